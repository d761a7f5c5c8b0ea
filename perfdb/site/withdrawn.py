"""Where old links lead when all of a release, model, system, run, recipe or source is withdrawn.

The figures are not told again; the changelog of the data has them.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Final

from perfdb import units
from perfdb.site import addresses
from perfdb.site.contents import Contents, Revision
from perfdb.site.page import Kind, Page, document
from perfdb.site.revisions import Event, withdrawals
from perfdb.site.words import myst, release_title
from perfdb.units import UNKNOWN

MORE: Final = (
    "\nThe [changelog of the data](/performance/changelog.md) has each with its figures.\n"
)


def _pages(contents: Contents) -> Iterator[Page]:
    there = _there(contents)
    now = {one.run_id: one for one in contents.revisions if one.run_id and not one.superseded}
    titles: dict[str, str] = {}
    said: dict[str, Counter[str]] = defaultdict(Counter)
    for event in withdrawals(contents.revisions):
        places = _places(event.result) if event.result else {}
        for name in places.keys() - there:
            titles[name] = places[name]
            moved = now.get((event.result and event.result.run_id) or "")
            said[name][_moved(moved) if moved else _withdrawn(event)] += 1
    for name in sorted(said):
        lines = (_line(count, what) for what, count in said[name].items())
        title = f"{titles[name]} (withdrawn)"
        about = f"All of {titles[name]} was withdrawn; the changelog of the data has it."
        yield Page(name, document(title, about, *lines, MORE))


def _line(count: int, what: str) -> str:
    return f"- {units.counted(count, 'result')} {'was' if count == 1 else 'were'} {what}"


def _moved(to: Revision) -> str:
    """Of a run that was read again as one of something else."""
    release = addresses.of_release(to.framework, to.release)
    title = myst(release_title(to.framework, to.release))
    return f"read again as one of {myst(to.model_title)} in [{title}](/{release}.md)."


def _withdrawn(event: Event) -> str:
    when = "" if event.day == UNKNOWN else f" on {event.day}"
    why = f": {myst(event.reason)}" if event.reason else "; no reason was given."
    return f"withdrawn{when}{why}"


def _there(contents: Contents) -> set[str]:
    """The pages that there are, or were of sources that still state something."""
    in_force = [one for one in contents.revisions if not one.superseded]
    stating = {one.source for one in in_force}
    earlier = [one.source_sha256 for one in contents.revisions if one.source in stating]
    kept = [page.sha256 for page in contents.sources]
    there = {name for one in in_force for name in _places(one)}
    return there | {addresses.of_source(sha256) for sha256 in (*earlier, *kept)}


def _places(one: Revision) -> Mapping[str, str]:
    """The pages that a result is on, and their titles."""
    known = {
        addresses.of_release(one.framework, one.release): release_title(one.framework, one.release),
        addresses.of_model(one.model): one.model_title,
        addresses.of_system(one.system): one.system_title,
    }
    if one.run_id is None:
        return known | {addresses.of_source(one.source_sha256): PurePosixPath(one.source).name}
    known[addresses.of_run(one.run_id)] = one.run_id
    return known | ({addresses.of_recipe(one.recipe): one.recipe} if one.recipe else {})


KIND = Kind(_pages)
