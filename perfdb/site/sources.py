"""A published page as it was read, line by line, and what was read; and a release's head."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from html import escape
from io import StringIO
from pathlib import PurePosixPath
from typing import Final

from perfdb import units
from perfdb.groups import grouped
from perfdb.site import addresses, findings, places
from perfdb.site.addresses import Address
from perfdb.site.data import Link, ReleasePage, Result, SourcePage
from perfdb.site.markup import Content, Html, facts, joined, link, tag, terms
from perfdb.site.origin import CHOSEN, flag_mark
from perfdb.site.rows import row_id
from perfdb.site.tables import moment
from perfdb.site.words import release_title
from perfdb.units import counted

_SEVERAL: Final = "Of several files with results of one case the one of median step time is shown."
_LEFT: Final = "no newer state has these results"


def with_states(
    pages: Sequence[SourcePage], rows: Mapping[str, Sequence[Result]]
) -> Iterator[SourcePage]:
    """Each state of each page with what became of it; `rows` are the results by SHA-256."""
    for states in grouped(pages, lambda page: page.path).values():
        *earlier, newest = sorted(states, key=_when)
        told = tuple((_state(one), len(rows.get(one.sha256, ()))) for one in earlier)
        yield newest.model_copy(update={"earlier": told})
        yield from (one.model_copy(update={"newest": _state(newest)}) for one in earlier)


def _when(page: SourcePage) -> tuple[bool, datetime | None]:
    return page.read_at is not None, page.read_at


def _state(page: SourcePage) -> Link:
    return Link(text=f"the state read on {_read(page)}", document=addresses.of_source(page.sha256))


def when(page: SourcePage) -> str:
    """', as read on 2026-03-05 06:07:08 UTC'; empty where nobody noted it."""
    which = ", an earlier state" if page.newest else ""
    return f"{which}, as read on {_read(page)}" if page.read_at else which


def _read(page: SourcePage) -> str:
    return f"{moment(page.read_at)} UTC"


def _states(source: SourcePage, address: Address) -> list[Html]:
    """Whether the page has been read in another state, and how many rows lead to an earlier one."""
    if source.newest is not None:
        newest = link(source.newest.text, address(source.newest.document))
        kept = f" The figures of {counted(len(source.results), 'row')} lead here: {_LEFT}."
        stays = kept if source.results else ""
        return [tag("p", ("Superseded by ", newest, f".{stays}"))]
    return [
        tag(
            "p",
            ("This is the newest state of the page. "
             f"The figures of {counted(count, 'row')} lead to ",
             link(one.text, address(one.document)), f": {_LEFT}."),
        )
        for one, count in source.earlier
        if count
    ]  # fmt: skip


def listing(source: SourcePage, address: Address) -> Html:
    """The text with numbered lines; #L7 is line 7."""
    # a form feed ends no line for those who read pages, as it would for str.splitlines
    text = StringIO(source.text, newline=None)
    lines = enumerate((line.removesuffix("\n") for line in text), start=1)
    read = tag(
        "p", ("Read from ", tag("code", places.of_path(source.path)), f", SHA-256 {source.sha256}.")
    )
    original = facts("What the page says of its original", _original(source))
    return joined((*_states(source, address), read, original, numbered(lines, "The page")))


def numbered(lines: Iterable[tuple[int, str]], label: str) -> Html:
    """Lines of a text with their numbers; #L7 is line 7."""
    made = [
        Html(f'<span id="L{number}"><i>{number}</i>{escape(line)}</span>\n')
        for number, line in lines
    ]
    return tag("pre", made, class_="perf-source", tabindex="0", role="region", aria_label=label)


def _original(source: SourcePage) -> Iterator[tuple[str, Content]]:
    url, day = source.source_url, source.published_on
    yield "Original", tag("a", url, href=url) if url else units.UNKNOWN
    yield "Published on", day.isoformat() if day else units.UNKNOWN


ALL_ROWS, _ALL = "All rows", "all-rows"
"""The heading of what holds for each result of a page, and the name of that place."""


def entries(source: SourcePage, address: Address) -> Html:
    """What holds for every result of the page, and an entry for each: why to believe its figures.

    Of several of one case the one that stands for them in tables has the name of their row.
    """
    named = {row_id(one): one for one in sorted(source.results, key=lambda it: it.num_results)}
    told = [
        [*_said(result, address), *_earlier(result, source, address)] for result in source.results
    ]
    common = _of_all(told)
    parts = []
    if common:
        every = (tag("h3", ALL_ROWS), terms(common))
        parts.append(tag("article", every, class_="perf-entry", id=_ALL))
    for result, lines in zip(source.results, told, strict=True):
        own = [line for line in lines if line not in common]
        own += [("Besides", link("what holds for all rows", f"#{_ALL}"))] if common else []
        name = row_id(result) if named[row_id(result)] is result else None
        entry = (tag("h3", findings.title(result)), terms(own))
        parts.append(tag("article", entry, class_="perf-entry", id=name))
    return joined(parts, "\n")


def _of_all(told: Sequence[Sequence[tuple[str, Content]]]) -> list[tuple[str, Content]]:
    """The lines that stand in each of several entries."""
    if len(told) < 2:
        return []
    first, *others = told
    return [line for line in first if all(line in lines for lines in others)]


def _earlier(result: Result, source: SourcePage, address: Address) -> Iterator[tuple[str, Content]]:
    corrected = source.corrections.get(result.result_id)
    if corrected:
        changelog = link("changelog", address(addresses.CHANGELOG))
        yield "Earlier", joined((corrected, "; see the ", changelog))


def _said(result: Result, address: Address) -> Iterator[tuple[str, Content]]:
    """What stands behind the figures of a published row, and what is not known of them."""
    line = f"line {result.source_line}" if result.source_line else "this page"
    yield "Figures", joined(("as published, on ", link(line, f"#L{result.source_line or 1}")))
    if result.raw:
        cells = (f"{name} {text}" for name, text in result.raw.items() if text)
        yield "As printed", " · ".join(cells)
    steps = result.num_steps
    yield "Steps", f"{steps:,}" if steps else "the page does not say how many"
    yield "Window", result.window or "the page does not say which steps"
    yield "Spread", "the page states none"
    yield "Convention", result.flops_convention or "the page does not say how FLOPs are counted"
    if result.withheld:
        yield "No figures", result.withheld
    for note in result.notes:
        yield "Note", note
    known = link("the recipes", address(addresses.RECIPES))
    none = "a published row names none that perfdb has; of runs there are "
    yield "Recipe", joined((none, known))
    yield "Audit", flag_mark(result, address) or "no error and no warning"
    tab = addresses.of_tab(result.framework, result.release, result.system, address)
    title = release_title(result.framework, result.release)
    yield "Table", link(f"{title}, {result.system_title}", f"{tab}#{row_id(result)}")


def release_head(release: ReleasePage, address: Address) -> Html:
    """The containers of a release, what its labels mean, and where its pages' originals are."""
    origins = {result.origin for result in release.results}
    said = {
        "published": "Published rows show the figures as they were printed; each figure leads to "
        "the line of the page that it is from.",
        "measured": f"Measured rows are from runs. Of a case that was run several times {CHOSEN}, "
        "is shown, and its page leads to the others. Each figure leads to the numbers it was "
        "computed from.",
    }
    labels = [tag("p", said[origin]) for origin in sorted(origins)]
    if any(one.num_results > 1 and not one.is_measured for one in release.results):
        labels.append(tag("p", _SEVERAL))
    containers = [_container(name, release.results) for name in release.containers]
    container = [tag("p", ("Container: ", joined(containers, ", ")))] if containers else []
    pages = {one.source_sha256: one for one in release.results}
    return joined([*container, *labels, *(_of_page(one, address) for one in pages.values())])


def _container(name: str, rows: Sequence[Result]) -> Html:
    """A container; of how many rows, where others have another or state none."""
    count = sum(one.container == name for one in rows)
    some = f" ({count:,} of {counted(len(rows), 'row')})" if count < len(rows) else ""
    return joined((tag("code", name), some))


def _of_page(result: Result, address: Address) -> Html:
    """Where the original of a result's page is and of which day; nothing where it does not say."""
    url, day = result.source_url, result.published_on
    said: list[Content] = [tag("a", url, href=url, class_="reference external")] if url else []
    said += [f"published on {day}"] if day else []
    if not said:
        return Html("")
    page = link(
        PurePosixPath(result.source).name, address(addresses.of_source(result.source_sha256))
    )
    return tag("p", ("Original of ", page, ": ", joined(said, ", ")), class_="perf-original")
