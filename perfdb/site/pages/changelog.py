"""The changelog of the data, and the pages of which everything was withdrawn."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from markupsafe import Markup

from perfdb import units
from perfdb.groups import grouped
from perfdb.site import addresses, redaction
from perfdb.site.addresses import CHANGELOG
from perfdb.site.cells import HtmlCell, moment
from perfdb.site.data import Rejection, SiteData, SiteResult, SourceData
from perfdb.site.grouping import release_title
from perfdb.site.page import Block, Section, SitePage, no_data
from perfdb.site.pages.parts import heads, label
from perfdb.site.pages.revisions import (
    ACTS,
    QUIET,
    RUNS,
    Act,
    ChangelogEvent,
    ReleaseChangelog,
    newest_first,
    pages_of,
    rejected,
)
from perfdb.site.tables import plain, table
from perfdb.site.templates import badge, href, joined, link, paragraph, render, render_text
from perfdb.units import UNKNOWN

MOST_ENTRIES: Final = 200
"""Rows of each table; older entries are counted by day and source."""
MOST_MODELS: Final = 5
"""Models that the row of many results names."""
CHANGED: Final = "Corrected, withdrawn, restored, rejected"
ADDED: Final = "Added and read again"


@dataclass(frozen=True, kw_only=True)
class Changelog:
    """The newest events in full, and the number of all events by day and source.

    `changed` are the events that change or withhold a figure or give it back. `other` are the rest;
    those of a moment, source, release and system are one. `left` counts the older events of each.
    `counts` has the times of the day and the number of each act.
    """

    changed: tuple[ChangelogEvent, ...]
    other: tuple[ChangelogEvent, ...]
    left: tuple[int, int]
    counts: Mapping[tuple[str, str], tuple[str, Mapping[Act, int]]]

    @property
    def total(self) -> int:
        return _total(self.changed) + _total(self.other) + sum(self.left)


def changelog(
    known: Iterable[ReleaseChangelog],
    rejections: Iterable[Rejection],
    sources: Iterable[SourceData] = (),
) -> Changelog:
    """The changelog of every result in the store, the newest event first."""
    ordered = newest_first([*(it for one in known for it in one.events), *rejected(rejections)])
    documents: dict[object, str] = {}
    for source in sources:
        # rejections name their source by path and moment
        for it in (source.sha256, (redaction.of_path(source.path), source.read_at)):
            documents[it] = addresses.of_source(source.sha256)

    def placed(event: ChangelogEvent) -> ChangelogEvent:
        state = event.result.source_sha256 if event.result else (event.source, event.at)
        return replace(event, document=documents.get(state))

    changed = [event for event in ordered if event.act not in QUIET]
    other = [event for event in ordered if event.act in QUIET]
    counts = {}
    for place, there in grouped(ordered, lambda event: (event.day, event.source)).items():
        times = sorted(event.time for event in there)
        acts = grouped(there, lambda event: event.act)
        numbers = {act: _total(some) for act, some in acts.items()}
        counts[place] = ("–".join(dict.fromkeys((times[0], times[-1]))), numbers)
    return Changelog(
        changed=tuple(map(placed, changed[:MOST_ENTRIES])),
        other=tuple(map(placed, other[:MOST_ENTRIES])),
        left=(_total(changed[MOST_ENTRIES:]), _total(other[MOST_ENTRIES:])),
        counts=counts,
    )


def _total(some: Iterable[ChangelogEvent]) -> int:
    return sum(event.count for event in some)


def pages(data: SiteData) -> Iterator[SitePage]:
    log = changelog(data.changelog, data.rejections, data.sources)
    number = units.counted(log.total, "event")
    about = f"What was added, corrected, withdrawn and rejected, and when: {number}."
    about = about if log.total else "Nothing has been ingested yet."
    yield SitePage(CHANGELOG, "Changelog of the data", about, partial(_changelog, log))


def _changelog(log: Changelog) -> list[Block]:
    if not log.total:
        return [no_data()]
    intro = "Results added, corrected and withdrawn. All times are UTC."
    made: list[Block] = [paragraph(intro)]
    if log.changed:
        made.append(Section(CHANGED, [_entries(CHANGED, log.changed, log.left[0])]))
    acts = [act for act in ACTS if any(act in numbers for _, numbers in log.counts.values())]
    rows = [
        [day, times, source, *(f"{numbers.get(act, 0):,}" for act in acts)]
        for (day, source), (times, numbers) in log.counts.items()
    ]
    columns = heads("Day", "Time (UTC)", "~Source", *(f"#{act.capitalize()}" for act in acts))
    counts = plain("Entries by day and source", columns, rows)
    made.append(Section("By day and source", [counts]))
    if log.other:
        made.append(Section(ADDED, [_entries(ADDED, log.other, log.left[1])]))
    return made


def _entries(label: str, some: Sequence[ChangelogEvent], left: int) -> Markup:
    """Entries in full, and how many older ones there are."""
    older = f" {left:,} older ones are in the counts by day and source." if left else ""
    count = _total(some)
    in_rows = f" in {units.counted(len(some), 'row')}" if len(some) < count else ""
    summary = f"{count:,} of {count + left:,} entries{in_rows}, newest first.{older}"
    columns: dict[str, Sequence[str]] = {
        "Moment (UTC)": [moment(event.at) for event in some],
        "What": [_badge(event.act) for event in some],
        "~Result": [_result(event) for event in some],
        "~Change": [_change(event) for event in some],
        "Source": [_place(event) for event in some],
    }
    shown = {title: texts for title, texts in columns.items() if {*texts} != {UNKNOWN}}
    cells = [list(map(HtmlCell, texts)) for texts in shown.values()]
    return joined((paragraph(summary), table(label, zip(heads(*shown), cells, strict=True))))


def _badge(act: Act) -> Markup:
    bad = act in ("contradicted", "withdrawn", "rejected")
    return badge(act, "bad" if bad else "warning" if act == "corrected" else "good")


def _result(event: ChangelogEvent) -> str:
    """The result, leading to the page of its release, or to why there is none any more."""
    result = event.result
    if result is None:
        return UNKNOWN
    text = label(("framework", "qualified model", "task", "precision"), result)
    text += f" · {result.num_gpus:,} × {result.system_title}"
    if event.models:
        left = len(event.models) - MOST_MODELS
        more = [units.counted(left, "more model")] if left > 0 else []
        models = ", ".join([*event.models[:MOST_MODELS], *more])
        where = label(("framework", "system"), result)
        text = f"{event.count:,} results · {where} · {models}"
    return href(text, addresses.tab(result.framework, result.release, result.system))


def _change(event: ChangelogEvent) -> str:
    lines = list(event.changes)
    if event.act in ("also printed", "contradicted"):
        lines.insert(0, f"{event.act} by {event.source}")
    if event.reason is not None:
        times = f"{event.count:,} × " if event.act == "rejected" and event.count > 1 else ""
        lines.insert(0, f"Reason: {times}{event.reason}")
    return Markup("\n").join(Markup("<div>{}</div>").format(line) for line in lines) or UNKNOWN


def _place(event: ChangelogEvent) -> Markup:
    """The run, or the line of the page."""
    run_id = event.result.run_id if event.result else None
    if event.models and event.source == RUNS:
        return link(f"{event.count:,} runs", addresses.RUNS)
    if run_id is not None:
        return link(run_id, addresses.of_run(run_id))
    if event.line is None:
        return Markup("<span>{}</span>").format(event.source)
    lines = "–".join(map(str, dict.fromkeys((event.line, event.last_line or event.line))))
    text = f"{event.source}:{lines}"
    if event.document is None:
        return Markup("<span>{}</span>").format(text)
    return link(text, event.document, f"L{event.line}")


def withdrawn_pages(data: SiteData) -> Iterator[SitePage]:
    """A page in place of each page of which everything was withdrawn."""
    sources = {source for one in data.changelog for source in one.sources}
    stating = {path for path, _, is_in_force in sources if is_in_force}
    states = {sha256 for path, sha256, _ in sources if path in stating}
    there = {name for one in data.changelog for name in (*one.printed, *one.others)}
    there |= {addresses.of_source(it) for it in (*states, *(one.sha256 for one in data.sources))}
    now = {one.run.run_id: one.result for one in data.runs}
    named: dict[str, str] = {}
    reasons: dict[str, Counter[str]] = defaultdict(Counter)
    for event in newest_first(it for one in data.changelog for it in one.withdrawn):
        places = pages_of(event.result) if event.result else {}
        moved = now.get((event.result and event.result.run_id) or "")
        for name in places.keys() - there:
            named[name] = places[name]
            reasons[name][_why_gone(event, moved)] += 1
    for name in sorted(reasons):
        about = f"All of {named[name]} was withdrawn; the changelog of the data has it."
        body = partial(_withdrawn_page, tuple(reasons[name].items()))
        yield SitePage(name, f"{named[name]} (withdrawn)", about, body)


def unfinished_pages(data: SiteData) -> Iterator[SitePage]:
    """A page in place of each release, model and system that only unfinished runs are of."""
    printed = {name for one in data.changelog for name in one.printed}
    others = {name: title for one in data.changelog for name, title in one.others.items()}
    for name in sorted(others.keys() - printed):
        if name.startswith(("performance/", "models/", "systems/")):
            about = f"{others[name]} has only runs that did not finish."
            text = "<p>{{ about }} {{ link('All runs', runs) }} have their figures.</p>\n"
            body = partial(list[Block], [render_text(text, about=about, runs=addresses.RUNS)])
            yield SitePage(name, others[name], about, body)


def _withdrawn_page(reasons: Sequence[tuple[str, int]]) -> list[Block]:
    return [render("withdrawn", reasons=reasons, changelog=CHANGELOG)]


def _why_gone(event: ChangelogEvent, now: SiteResult | None) -> str:
    """When and why a result was withdrawn, or what its run is the result of now."""
    if now:
        release = addresses.of_release(now.framework, now.release)
        page = link(release_title(now.framework, now.release), release)
        return joined((f"read again as one of {now.model_title} in ", page, "."))
    when = "" if event.day == UNKNOWN else f" on {event.day}"
    return f"withdrawn{when}{f': {event.reason}' if event.reason else '; no reason stated.'}"
