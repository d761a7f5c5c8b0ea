"""The changelog of the data: what was corrected, withdrawn and added, by moment and source."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from perfdb import units
from perfdb.catalog import titles
from perfdb.groups import grouped
from perfdb.record import Frozen
from perfdb.site import addresses, markup, places
from perfdb.site.addresses import Address
from perfdb.site.contents import Contents, Rejection, Revision
from perfdb.site.data import SourcePage
from perfdb.site.markup import Cell, Head, Html, joined, link, tag
from perfdb.site.page import NO_DATA, Kind, Page, document, part, section, shown
from perfdb.site.revisions import ACTS, RUNS, Act, Event, events
from perfdb.site.tables import moment
from perfdb.site.words import release_title

MOST_ENTRIES: Final = 200
"""Rows of each table; older entries are counted by day and source."""
MOST_MODELS: Final = 5
"""Models that the row of many results names."""

QUIET: Final[tuple[Act, ...]] = ("also printed", "read again", "added")
"""What changes no figure that was there."""

TITLE: Final = "Changelog of the data"
CHANGED: Final = "Corrected, withdrawn, restored, rejected"


class Count(Frozen):
    """How much became of a source on a day, and at what times (UTC): the first and the last."""

    day: str
    source: str
    act: Act
    count: int
    times: tuple[str, str]


class Changelog(Frozen):
    """The newest events in full, and the counts of all of them by day, source and act.

    `changed` are those that change or withhold a figure or give it back, `other` the rest, those of
    a moment, source, release and system as one; `left` counts the older ones of each.
    """

    changed: tuple[Event, ...]
    other: tuple[Event, ...]
    left: tuple[int, int]
    counts: tuple[Count, ...]

    @property
    def total(self) -> int:
        """How many entries there are, old ones and all."""
        return _total(self.changed) + _total(self.other) + sum(self.left)


def changelog(
    revisions: Iterable[Revision],
    rejections: Iterable[Rejection],
    most: int = MOST_ENTRIES,
    sources: Iterable[SourcePage] = (),
) -> Changelog:
    """The changelog of every result there ever was, the newest event first."""
    ordered = events(revisions, rejections)
    documents = _documents(sources)
    changed = [event for event in ordered if event.act not in QUIET]
    other = _batched(event for event in ordered if event.act in QUIET)
    return Changelog(
        changed=tuple(_placed(it, documents) for it in changed[:most]),
        other=tuple(_placed(it, documents) for it in other[:most]),
        left=(_total(changed[most:]), _total(other[most:])),
        counts=_counts(ordered),
    )


def _documents(sources: Iterable[SourcePage]) -> dict[object, str]:
    """The pages of sources, by their SHA-256, and by path and moment, as rejections name them."""
    known: dict[object, str] = {}
    for one in sources:
        document = addresses.of_source(one.sha256)
        known |= {one.sha256: document, (places.of_path(one.path), one.read_at): document}
    return known


def _placed(event: Event, documents: Mapping[object, str]) -> Event:
    read = event.result.source_sha256 if event.result else (event.source, event.at)
    return event.model_copy(update={"document": documents.get(read)})


def _batched(given: Iterable[Event]) -> list[Event]:
    """As one what became of the results of a release, system and source at one moment.

    Not those that stand in different states of a page since: the lines are of one of them.
    """
    groups = grouped(given, _alike).values()
    return [group[0] if len(group) == 1 else _batch(group) for group in groups]


def _alike(it: Event) -> tuple[object, ...]:
    of = (it.result.framework, it.result.release, it.result.system) if it.result else None
    state = it.result.source_sha256 if it.result and it.line else None
    return it.at, it.act, it.source, state, of, it.changes


def _batch(group: Sequence[Event]) -> Event:
    lines = [it.line for it in group if it.line is not None]
    results = [it.result for it in group if it.result]
    models = [titles.qualified(it.model_title, it.qualifiers) for it in results]
    known = {
        "line": min(lines, default=None),
        "last_line": max(lines, default=None),
        "count": len(group),
        "models": tuple(dict.fromkeys(models)),
    }
    return group[0].model_copy(update=known)


def _total(given: Iterable[Event]) -> int:
    return sum(event.count for event in given)


def _counts(ordered: Iterable[Event]) -> tuple[Count, ...]:
    by_place = grouped(ordered, lambda it: (it.day, it.source, it.act))
    return tuple(
        Count(
            day=day,
            source=source,
            act=act,
            count=_total(found),
            times=(_time(found[-1]), _time(found[0])),
        )
        for (day, source, act), found in by_place.items()
    )


def _time(event: Event) -> str:
    """'03:04', in UTC."""
    return moment(event.at).partition(" ")[2][:5] or units.UNKNOWN


def _pages(contents: Contents) -> Iterable[Page]:
    made = changelog(contents.revisions, contents.rejections, sources=contents.sources)
    if not made.total:
        return [Page(addresses.CHANGELOG, document(TITLE, "Nothing has been read yet.", NO_DATA))]
    parts = ["What became of results, and when the store learnt of it. All times are UTC.\n"]
    if made.changed:
        parts.append(section(CHANGED, shown("changelog-changed")))
    parts.append(section("By day and source", shown("changelog-counts")))
    if made.other:
        parts.append(section("Added and read again", shown("changelog-other")))
    told = (
        "What was added, corrected, withdrawn and rejected, and when: "
        f"{units.counted(made.total, 'event')}."
    )
    return [Page(addresses.CHANGELOG, document(TITLE, told, *parts), made)]


def counts(page: Changelog, _address: Address) -> Html:
    """How many entries of each kind there are, by day and source."""
    by_place = grouped(page.counts, lambda one: (one.day, one.source))
    acts = [act for act in ACTS if any(one.act == act for one in page.counts)]
    heads = [Head("Day"), Head("Time (UTC)"), Head("Source", wide=True)]
    heads += [Head(act.capitalize(), numeric=True) for act in acts]
    rows = []
    for (day, source), found in by_place.items():
        numbers = {one.act: one.count for one in found}
        times = (min(one.times[0] for one in found), max(one.times[1] for one in found))
        cells = [Cell(day), Cell("–".join(dict.fromkeys(times))), Cell(source)]
        rows.append([*cells, *(Cell(f"{numbers.get(act, 0):,}") for act in acts)])
    return markup.table(markup.Table("Entries by day and source", heads, rows))


def changed(page: Changelog, address: Address) -> Html:
    """The newest entries that change or withhold a figure, or give it back."""
    return _entries(CHANGED, page.changed, page.left[0], address)


def other(page: Changelog, address: Address) -> Html:
    """The newest entries of what is new or says the same as before."""
    return _entries("Added and read again", page.other, page.left[1], address)


def _entries(label: str, given: Sequence[Event], left: int, address: Address) -> Html:
    """Entries in full, and how many older ones there are."""
    more = f" The {left:,} older ones are counted by day and source." if left else ""
    told = _total(given)
    rows = f" in {units.counted(len(given), 'row')}" if len(given) < told else ""
    said = tag("p", f"{told:,} of {told + left:,} entries{rows}, the newest first.{more}")
    heads = [Head("Moment (UTC)"), Head("What"), Head("Change", wide=True)]
    heads += [Head("Result", wide=True), Head("Source")]
    made = [_row(event, address) for event in given]
    return joined((said, markup.table(markup.Table(label, heads, made))))


def _row(event: Event, address: Address) -> list[Cell]:
    bad = ("contradicted", "withdrawn", "rejected")
    kind = "bad" if event.act in bad else "warning" if event.act == "corrected" else "good"
    return [
        Cell(moment(event.at)),
        Cell(tag("span", event.act, class_=f"perf-badge {kind}")),
        Cell(_said(event)),
        Cell(_result(event, address)),
        Cell(_source(event, address)),
    ]


def _result(event: Event, address: Address) -> Html:
    """The result, leading to the page of its release, or to why there is none any more."""
    it = event.result
    if it is None:
        return Html(units.UNKNOWN)
    release = release_title(it.framework, it.release)
    if event.models:
        known = [f"{event.count:,} results", release, it.system_title, _models(event.models)]
    else:
        model = titles.qualified(it.model_title, it.qualifiers)
        where = f"{it.num_gpus:,} × {it.system_title}"
        work = [titles.task(it.task), titles.precision(it.precision)]
        known = [release, model, *work, where]
    text = " · ".join(filter(None, known))
    return link(text, addresses.of_tab(it.framework, it.release, it.system, address))


def _models(names: Sequence[str]) -> str:
    left = len(names) - MOST_MODELS
    more = [f"{left:,} more models"] if left > 0 else []
    return ", ".join([*names[:MOST_MODELS], *more])


def _said(event: Event) -> Html:
    times = f"{event.count:,} × " if event.count > 1 else ""
    why = [tag("div", f"Reason: {times}{event.reason}")] if event.reason is not None else []
    by = {"also printed": "also printed by ", "contradicted": "contradicted by "}.get(event.act)
    named = [tag("div", f"{by}{event.source}")] if by else []
    items = [*why, *named, *(tag("div", it.said) for it in event.changes)]
    return joined(items) if items else Html(units.UNKNOWN)


def _source(event: Event, address: Address) -> Html:
    it = event.result
    if event.models and event.source == RUNS:
        return link(f"{event.count:,} runs", address(addresses.RUNS))
    if it is not None and it.run_id is not None:
        return link(it.run_id, address(addresses.of_run(it.run_id)))
    if event.line is None:
        return tag("span", event.source)
    lines = "–".join(map(str, dict.fromkeys((event.line, event.last_line or event.line))))
    said = f"{event.source}:{lines}"
    if event.document is None:
        return tag("span", said)
    return link(said, f"{address(event.document)}#L{event.line}")


KIND = Kind(
    _pages,
    {
        "changelog-changed": part(Changelog, changed),
        "changelog-counts": part(Changelog, counts),
        "changelog-other": part(Changelog, other),
    },
)
