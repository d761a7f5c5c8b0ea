"""Where old links lead when all of a release, model, system, run, recipe or source is withdrawn.

The figures are not told again; the changelog of the data has them.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import PurePosixPath

from perfdb.site import addresses
from perfdb.site.addresses import CHANGELOG
from perfdb.site.data import Revision, SiteData
from perfdb.site.links import release_title
from perfdb.site.page import Block, Page
from perfdb.site.revisions import Event, withdrawals
from perfdb.site.templates import joined, link, render_text
from perfdb.units import UNKNOWN


def pages(data: SiteData) -> Iterator[Page]:
    """A page where a page was of which everything was withdrawn."""
    there = _there(data)
    now = {one.run_id: one for one in data.revisions if one.run_id and not one.superseded}
    titles: dict[str, str] = {}
    reasons: dict[str, Counter[str]] = defaultdict(Counter)
    for event in withdrawals(data.revisions):
        places = _places(event.result) if event.result else {}
        for name in places.keys() - there:
            titles[name] = places[name]
            moved = now.get((event.result and event.result.run_id) or "")
            reasons[name][_moved(moved) if moved else _withdrawn(event)] += 1
    for name in sorted(reasons):
        about = f"All of {titles[name]} was withdrawn; the changelog of the data has it."
        body = partial(_page, tuple(reasons[name].items()))
        yield Page(name, f"{titles[name]} (withdrawn)", about, body)


def _page(reasons: Sequence[tuple[str, int]]) -> list[Block]:
    return [
        render_text(
            "<ul>{% for text, count in reasons %}<li>{{ count|counted('result') }} "
            "{{ 'was' if count == 1 else 'were' }} {{ text }}</li>\n{% endfor %}</ul>"
            "<p>The {{ link('changelog of the data', changelog) }} has each with its figures."
            "</p>\n",
            reasons=reasons,
            changelog=CHANGELOG,
        )
    ]


def _moved(to: Revision) -> str:
    """Of a run that was read again as one of something else."""
    release = addresses.of_release(to.framework, to.release)
    page = link(release_title(to.framework, to.release), release)
    return joined((f"read again as one of {to.model_title} in ", page, "."))


def _withdrawn(event: Event) -> str:
    when = "" if event.day == UNKNOWN else f" on {event.day}"
    why = f": {event.reason}" if event.reason else "; no reason was given."
    return f"withdrawn{when}{why}"


def _there(data: SiteData) -> set[str]:
    """The pages that there are, or were of sources that still state something."""
    in_force = [one for one in data.revisions if not one.superseded]
    stating = {one.source for one in in_force}
    earlier = [one.source_sha256 for one in data.revisions if one.source in stating]
    kept = [page.sha256 for page in data.sources]
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
