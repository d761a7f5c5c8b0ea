"""Where old links to a release, model, system or run lead when all of it is withdrawn: why it is.

The figures are not told again; the changelog of the data has them.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Final

from perfdb.site import addresses
from perfdb.site.contents import Contents, Revision
from perfdb.site.page import Kind, Page, document
from perfdb.site.revisions import withdrawals
from perfdb.site.words import myst, release_title
from perfdb.units import UNKNOWN

Said = tuple[str, str | None]
"""The day of a withdrawal and its reason."""

MORE: Final = (
    "\nThe [changelog of the data](/performance/changelog.md) has each with its figures.\n"
)


def _pages(contents: Contents) -> Iterator[Page]:
    there = {name for one in contents.revisions if not one.superseded for name in _places(one)}
    titles: dict[str, str] = {}
    said: dict[str, Counter[Said]] = defaultdict(Counter)
    for event in withdrawals(contents.revisions):
        places = _places(event.result) if event.result else {}
        for name in places.keys() - there:
            titles[name] = places[name]
            said[name][event.day, event.reason] += 1
    for name in sorted(said):
        lines = (_line(count, *one) for one, count in said[name].items())
        yield Page(name, document(f"{titles[name]} (withdrawn)", *lines, MORE))


def _places(one: Revision) -> Mapping[str, str]:
    """The pages that a result is on, and their titles."""
    known = {
        addresses.of_release(one.framework, one.release): release_title(one.framework, one.release),
        addresses.of_model(one.model): one.model_title,
        addresses.of_system(one.system): one.system_title,
    }
    return known | ({addresses.of_run(one.run_id): one.run_id} if one.run_id else {})


def _line(count: int, day: str, reason: str | None) -> str:
    results = "1 result was" if count == 1 else f"{count:,} results were"
    when = "" if day == UNKNOWN else f" on {day}"
    why = f": {myst(reason)}" if reason else "; no reason was given."
    return f"- {results} withdrawn{when}{why}"


KIND = Kind(_pages)
