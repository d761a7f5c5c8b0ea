"""The changelog of the data: what was corrected, withdrawn and added, by moment and source."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from perfdb import units
from perfdb.catalog import titles
from perfdb.groups import grouped
from perfdb.record import Frozen
from perfdb.site import addresses, columns, markup, places
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

QUIET: Final[tuple[Act, ...]] = ("also printed", "now stated", "read again", "added")
"""What changes no figure that was there."""

TITLE: Final = "Changelog of the data"
NOTHING: Final = Html(units.UNKNOWN)
"""What stands where there is nothing to say."""
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
        changed=tuple(_placed(event, documents) for event in changed[:most]),
        other=tuple(_placed(event, documents) for event in other[:most]),
        left=(_total(changed[most:]), _total(other[most:])),
        counts=_counts(ordered),
    )


def _documents(sources: Iterable[SourcePage]) -> dict[object, str]:
    """The pages of sources, by their SHA-256, and by path and moment, as rejections name them."""
    documents: dict[object, str] = {}
    for source in sources:
        document = addresses.of_source(source.sha256)
        documents[source.sha256] = document
        documents[places.of_path(source.path), source.read_at] = document
    return documents


def _placed(event: Event, documents: Mapping[object, str]) -> Event:
    state = event.result.source_sha256 if event.result else (event.source, event.at)
    return event.model_copy(update={"document": documents.get(state)})


def _batched(given: Iterable[Event]) -> list[Event]:
    """As one what became of the results of a release, system and source at one moment.

    Not those that stand in different states of a page since: the lines are of one of them.
    """
    groups = grouped(given, _alike).values()
    return [group[0] if len(group) == 1 else _batch(group) for group in groups]


def _alike(event: Event) -> tuple[object, ...]:
    result = event.result
    where = (result.framework, result.release, result.system) if result else None
    state = result.source_sha256 if result and event.line else None
    return event.at, event.act, event.source, state, where, event.changes


def _batch(group: Sequence[Event]) -> Event:
    lines = [event.line for event in group if event.line is not None]
    results = [event.result for event in group if event.result]
    models = [titles.qualified(result.model_title, result.qualifiers) for result in results]
    of_all = {
        "line": min(lines, default=None),
        "last_line": max(lines, default=None),
        "count": len(group),
        "models": tuple(dict.fromkeys(models)),
    }
    return group[0].model_copy(update=of_all)


def _total(given: Iterable[Event]) -> int:
    return sum(event.count for event in given)


def _counts(ordered: Iterable[Event]) -> tuple[Count, ...]:
    by_place = grouped(ordered, lambda event: (event.day, event.source, event.act))
    return tuple(
        Count(
            day=day,
            source=source,
            act=act,
            count=_total(there),
            times=(_time(there[-1]), _time(there[0])),
        )
        for (day, source, act), there in by_place.items()
    )


def _time(event: Event) -> str:
    """'03:04', in UTC."""
    return moment(event.at).partition(" ")[2][:5] or units.UNKNOWN


def _pages(contents: Contents) -> Iterable[Page]:
    log = changelog(contents.revisions, contents.rejections, sources=contents.sources)
    if not log.total:
        return [Page(addresses.CHANGELOG, document(TITLE, "Nothing has been read yet.", NO_DATA))]
    parts = ["What became of results, and when the store learnt of it. All times are UTC.\n"]
    if log.changed:
        parts.append(section(CHANGED, shown("changelog-changed")))
    parts.append(section("By day and source", shown("changelog-counts")))
    if log.other:
        parts.append(section("Added and read again", shown("changelog-other")))
    about = (
        "What was added, corrected, withdrawn and rejected, and when: "
        f"{units.counted(log.total, 'event')}."
    )
    return [Page(addresses.CHANGELOG, document(TITLE, about, *parts), log)]


def counts(page: Changelog, _address: Address) -> Html:
    """How many entries of each kind there are, by day and source."""
    by_place = grouped(page.counts, lambda count: (count.day, count.source))
    acts = [act for act in ACTS if any(count.act == act for count in page.counts)]
    heads = [Head("Day"), Head("Time (UTC)"), Head("Source", wide=True)]
    heads += [Head(act.capitalize(), numeric=True) for act in acts]
    rows = []
    for (day, source), there in by_place.items():
        numbers = {count.act: count.count for count in there}
        times = (min(count.times[0] for count in there), max(count.times[1] for count in there))
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
    older = f" The {left:,} older ones are counted by day and source." if left else ""
    count = _total(given)
    in_rows = f" in {units.counted(len(given), 'row')}" if len(given) < count else ""
    summary = f"{count:,} of {count + left:,} entries{in_rows}, the newest first.{older}"
    made = [
        (Head("Moment (UTC)"), [Cell(moment(event.at)) for event in given]),
        (Head("What"), [_act(event) for event in given]),
        (Head("Result", wide=True), [Cell(_result(event, address)) for event in given]),
        (Head("Change", wide=True), [Cell(_said(event)) for event in given]),
        (Head("Source"), [Cell(_source(event, address)) for event in given]),
    ]
    said = [one for one in made if not given or any(cell != Cell(NOTHING) for cell in one[1])]
    return joined((tag("p", summary), markup.table(columns.table(label, said))))


def _act(event: Event) -> Cell:
    bad = ("contradicted", "withdrawn", "rejected")
    kind = "bad" if event.act in bad else "warning" if event.act == "corrected" else "good"
    return Cell(tag("span", event.act, class_=f"perf-badge {kind}"))


def _result(event: Event, address: Address) -> Html:
    """The result, leading to the page of its release, or to why there is none any more."""
    result = event.result
    if result is None:
        return Html(units.UNKNOWN)
    release = release_title(result.framework, result.release)
    if event.models:
        models = _models(event.models)
        parts = [f"{event.count:,} results", release, result.system_title, models]
    else:
        model = titles.qualified(result.model_title, result.qualifiers)
        work = [titles.task(result.task), titles.precision(result.precision)]
        parts = [release, model, *work, f"{result.num_gpus:,} × {result.system_title}"]
    text = " · ".join(filter(None, parts))
    return link(text, addresses.of_tab(result.framework, result.release, result.system, address))


def _models(names: Sequence[str]) -> str:
    left = len(names) - MOST_MODELS
    more = [f"{units.counted(left, 'more model')}"] if left > 0 else []
    return ", ".join([*names[:MOST_MODELS], *more])


def _said(event: Event) -> Html:
    lines = []
    if event.reason is not None:
        times = f"{event.count:,} × " if event.act == "rejected" and event.count > 1 else ""
        lines.append(f"Reason: {times}{event.reason}")
    if event.act in ("also printed", "now stated", "contradicted"):
        lines.append(f"{event.act} by {event.source}")
    lines += [change.said for change in event.changes]
    return joined((tag("div", line) for line in lines), "\n") if lines else NOTHING


def _source(event: Event, address: Address) -> Html:
    run_id = event.result.run_id if event.result else None
    if event.models and event.source == RUNS:
        return link(f"{event.count:,} runs", address(addresses.RUNS))
    if run_id is not None:
        return link(run_id, address(addresses.of_run(run_id)))
    if event.line is None:
        return tag("span", event.source)
    lines = "–".join(map(str, dict.fromkeys((event.line, event.last_line or event.line))))
    place = f"{event.source}:{lines}"
    if event.document is None:
        return tag("span", place)
    return link(place, f"{address(event.document)}#L{event.line}")


KIND = Kind(
    _pages,
    {
        "changelog-changed": part(Changelog, changed),
        "changelog-counts": part(Changelog, counts),
        "changelog-other": part(Changelog, other),
    },
)
