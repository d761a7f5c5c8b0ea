"""The changelog of the data: what was corrected, withdrawn and added, by moment and source."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePosixPath
from typing import Final

from markupsafe import Markup

from perfdb import units
from perfdb.catalog import titles
from perfdb.groups import grouped
from perfdb.site import addresses, redaction
from perfdb.site.addresses import CHANGELOG
from perfdb.site.cells import HtmlCell, moment
from perfdb.site.data import Rejection, ResultRevision, SiteData, SourceData
from perfdb.site.grouping import release_title
from perfdb.site.page import Block, Page, Section, no_data
from perfdb.site.pages.revisions import ACTS, RUNS, Act, ChangelogEvent, events, withdrawals
from perfdb.site.tables import HtmlHead, plain, table
from perfdb.site.templates import badge, joined, link, paragraph, render_text
from perfdb.units import UNKNOWN

MOST_ENTRIES: Final = 200
"""Rows of each table; older entries are counted by day and source."""
MOST_MODELS: Final = 5
"""Models that the row of many results names."""

QUIET: Final[tuple[Act, ...]] = ("also printed", "read again", "added")
"""What changes no figure that was there."""

TITLE: Final = "Changelog of the data"
CHANGED: Final = "Corrected, withdrawn, restored, rejected"
ADDED: Final = "Added and read again"


@dataclass(frozen=True, kw_only=True)
class EventCount:
    """How much became of a source on a day, and at what times (UTC): the first and the last."""

    day: str
    source: str
    act: Act
    count: int
    times: tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class Changelog:
    """The newest events in full, and the counts of all of them by day, source and act.

    `changed` are those that change or withhold a figure or give it back, `other` the rest, those of
    a moment, source, release and system as one; `left` counts the older ones of each.
    """

    changed: tuple[ChangelogEvent, ...]
    other: tuple[ChangelogEvent, ...]
    left: tuple[int, int]
    counts: tuple[EventCount, ...]

    @property
    def total(self) -> int:
        """How many entries there are, old ones and all."""
        return _total(self.changed) + _total(self.other) + sum(self.left)


def changelog(
    revisions: Iterable[ResultRevision],
    rejections: Iterable[Rejection],
    most: int = MOST_ENTRIES,
    sources: Iterable[SourceData] = (),
) -> Changelog:
    """The changelog of every result there ever was, the newest event first."""
    ordered = events(revisions, rejections)
    documents = _documents(sources)
    changed = [event for event in ordered if event.act not in QUIET]
    other = _batched(event for event in ordered if event.act in QUIET)

    def placed(event: ChangelogEvent) -> ChangelogEvent:
        state = event.result.source_sha256 if event.result else (event.source, event.at)
        return replace(event, document=documents.get(state))

    return Changelog(
        changed=tuple(map(placed, changed[:most])),
        other=tuple(map(placed, other[:most])),
        left=(_total(changed[most:]), _total(other[most:])),
        counts=_counts(ordered),
    )


def _documents(sources: Iterable[SourceData]) -> dict[object, str]:
    """The pages of sources, by their SHA-256, and by path and moment, as rejections name them."""
    documents: dict[object, str] = {}
    for source in sources:
        document = addresses.of_source(source.sha256)
        documents[source.sha256] = document
        documents[redaction.of_path(source.path), source.read_at] = document
    return documents


def _batched(given: Iterable[ChangelogEvent]) -> list[ChangelogEvent]:
    """As one what became of the results of a release, system and source at one moment.

    Not those that stand in different states of a page since: the lines are of one of them.
    """
    groups = grouped(given, _alike).values()
    return [group[0] if len(group) == 1 else _batch(group) for group in groups]


def _alike(event: ChangelogEvent) -> tuple[object, ...]:
    result = event.result
    where = (result.framework, result.release, result.system) if result else None
    state = result.source_sha256 if result and event.line else None
    return event.at, event.act, event.source, state, where, event.changes


def _batch(group: Sequence[ChangelogEvent]) -> ChangelogEvent:
    lines = [event.line for event in group if event.line is not None]
    results = [event.result for event in group if event.result]
    models = [titles.qualified(result.model_title, result.qualifiers) for result in results]
    return replace(
        group[0],
        line=min(lines, default=None),
        last_line=max(lines, default=None),
        count=len(group),
        models=tuple(dict.fromkeys(models)),
    )


def _total(given: Iterable[ChangelogEvent]) -> int:
    return sum(event.count for event in given)


def _counts(ordered: Iterable[ChangelogEvent]) -> tuple[EventCount, ...]:
    by_place = grouped(ordered, lambda event: (event.day, event.source, event.act))
    return tuple(
        EventCount(
            day=day,
            source=source,
            act=act,
            count=_total(there),
            times=(_time(there[-1]), _time(there[0])),
        )
        for (day, source, act), there in by_place.items()
    )


def _time(event: ChangelogEvent) -> str:
    """'03:04', in UTC."""
    return moment(event.at).partition(" ")[2][:5] or units.UNKNOWN


def pages(data: SiteData) -> Iterator[Page]:
    """The changelog."""
    log = changelog(data.revisions, data.rejections, sources=data.sources)
    about = (
        "What was added, corrected, withdrawn and rejected, and when: "
        f"{units.counted(log.total, 'event')}."
    )
    none = "Nothing has been read yet."
    yield Page(addresses.CHANGELOG, TITLE, about if log.total else none, partial(_changelog, log))


def _changelog(log: Changelog) -> list[Block]:
    if not log.total:
        return [no_data()]
    intro = "What became of results, and when the store learnt of it. All times are UTC."
    made: list[Block] = [paragraph(intro)]
    if log.changed:
        made.append(Section(CHANGED, [_entries(CHANGED, log.changed, log.left[0])]))
    made.append(Section("By day and source", [counts(log)]))
    if log.other:
        made.append(Section(ADDED, [_entries(ADDED, log.other, log.left[1])]))
    return made


def counts(log: Changelog) -> Markup:
    """How many entries of each kind there are, by day and source."""
    by_place = grouped(log.counts, lambda count: (count.day, count.source))
    acts = [act for act in ACTS if any(count.act == act for count in log.counts)]
    heads = [HtmlHead("Day"), HtmlHead("Time (UTC)"), HtmlHead("Source", wide=True)]
    heads += [HtmlHead(act.capitalize(), numeric=True) for act in acts]
    rows = []
    for (day, source), there in by_place.items():
        numbers = {count.act: count.count for count in there}
        times = (min(count.times[0] for count in there), max(count.times[1] for count in there))
        numbers_of = (f"{numbers.get(act, 0):,}" for act in acts)
        rows.append([day, "–".join(dict.fromkeys(times)), source, *numbers_of])
    return plain("Entries by day and source", heads, rows)


def _entries(label: str, given: Sequence[ChangelogEvent], left: int) -> Markup:
    """Entries in full, and how many older ones there are."""
    older = f" The {left:,} older ones are counted by day and source." if left else ""
    count = _total(given)
    in_rows = f" in {units.counted(len(given), 'row')}" if len(given) < count else ""
    summary = f"{count:,} of {count + left:,} entries{in_rows}, the newest first.{older}"
    made = [
        (HtmlHead("Moment (UTC)"), [HtmlCell(moment(event.at)) for event in given]),
        (HtmlHead("What"), [_act(event) for event in given]),
        (HtmlHead("Result", wide=True), [HtmlCell(_result(event)) for event in given]),
        (HtmlHead("Change", wide=True), [HtmlCell(_text(event)) for event in given]),
        (HtmlHead("Source"), [HtmlCell(_source(event)) for event in given]),
    ]
    nothing = HtmlCell(units.UNKNOWN)
    shown = [one for one in made if not given or any(cell != nothing for cell in one[1])]
    return joined((paragraph(summary), table(label, shown)))


def _act(event: ChangelogEvent) -> HtmlCell:
    bad = ("contradicted", "withdrawn", "rejected")
    kind = "bad" if event.act in bad else "warning" if event.act == "corrected" else "good"
    return HtmlCell(badge(event.act, kind))


def _result(event: ChangelogEvent) -> str:
    """The result, leading to the page of its release, or to why there is none any more."""
    result = event.result
    if result is None:
        return units.UNKNOWN
    release = release_title(result.framework, result.release)
    if event.models:
        models = _models(event.models)
        parts = [f"{event.count:,} results", release, result.system_title, models]
    else:
        model = titles.qualified(result.model_title, result.qualifiers)
        work = [titles.task(result.task), titles.precision(result.precision)]
        parts = [release, model, *work, f"{result.num_gpus:,} × {result.system_title}"]
    text = " · ".join(filter(None, parts))
    tab = addresses.tab(result.framework, result.release, result.system)
    return Markup('<a href="{}">{}</a>').format(tab, text)


def _models(names: Sequence[str]) -> str:
    left = len(names) - MOST_MODELS
    more = [f"{units.counted(left, 'more model')}"] if left > 0 else []
    return ", ".join([*names[:MOST_MODELS], *more])


def _text(event: ChangelogEvent) -> str:
    lines = []
    if event.reason is not None:
        times = f"{event.count:,} × " if event.act == "rejected" and event.count > 1 else ""
        lines.append(f"Reason: {times}{event.reason}")
    if event.act in ("also printed", "contradicted"):
        lines.append(f"{event.act} by {event.source}")
    lines += [change.text for change in event.changes]
    html = Markup("\n").join(Markup("<div>{}</div>").format(line) for line in lines)
    return html or units.UNKNOWN


def _source(event: ChangelogEvent) -> str:
    run_id = event.result.run_id if event.result else None
    if event.models and event.source == RUNS:
        return link(f"{event.count:,} runs", addresses.RUNS)
    if run_id is not None:
        return link(run_id, addresses.of_run(run_id))
    if event.line is None:
        return Markup("<span>{}</span>").format(event.source)
    lines = "–".join(map(str, dict.fromkeys((event.line, event.last_line or event.line))))
    place = f"{event.source}:{lines}"
    if event.document is None:
        return Markup("<span>{}</span>").format(place)
    return link(place, event.document, f"L{event.line}")


def withdrawn_pages(data: SiteData) -> Iterator[Page]:
    """A page where a page was of which everything was withdrawn."""
    there = _there(data)
    now = {one.run_id: one for one in data.revisions if one.run_id and not one.superseded}
    titles: dict[str, str] = {}
    reasons: dict[str, Counter[str]] = defaultdict(Counter)
    for event in withdrawals(data.revisions):
        places = _places_of(event.result) if event.result else {}
        for name in places.keys() - there:
            titles[name] = places[name]
            moved = now.get((event.result and event.result.run_id) or "")
            reasons[name][_moved(moved) if moved else _withdrawn(event)] += 1
    for name in sorted(reasons):
        about = f"All of {titles[name]} was withdrawn; the changelog of the data has it."
        body = partial(_withdrawn_page, tuple(reasons[name].items()))
        yield Page(name, f"{titles[name]} (withdrawn)", about, body)


def _withdrawn_page(reasons: Sequence[tuple[str, int]]) -> list[Block]:
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


def _moved(to: ResultRevision) -> str:
    """Of a run that was read again as one of something else."""
    release = addresses.of_release(to.framework, to.release)
    page = link(release_title(to.framework, to.release), release)
    return joined((f"read again as one of {to.model_title} in ", page, "."))


def _withdrawn(event: ChangelogEvent) -> str:
    when = "" if event.day == UNKNOWN else f" on {event.day}"
    why = f": {event.reason}" if event.reason else "; no reason was given."
    return f"withdrawn{when}{why}"


def _there(data: SiteData) -> set[str]:
    """The pages that there are, or were of sources that still state something."""
    in_force = [one for one in data.revisions if not one.superseded]
    stating = {one.source for one in in_force}
    earlier = [one.source_sha256 for one in data.revisions if one.source in stating]
    kept = [page.sha256 for page in data.sources]
    there = {name for one in in_force for name in _places_of(one)}
    return there | {addresses.of_source(sha256) for sha256 in (*earlier, *kept)}


def _places_of(one: ResultRevision) -> Mapping[str, str]:
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
