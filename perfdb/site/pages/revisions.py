"""What happened to results: added, corrected, contradicted, withdrawn, restored or rejected."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Final, Literal, get_args

from perfdb import units
from perfdb.groups import grouped
from perfdb.messages import note_text
from perfdb.metrics import METRICS
from perfdb.record import Note, Origin, Outcome
from perfdb.site import addresses
from perfdb.site.cells import moment, printed_value
from perfdb.site.data import Rejection, ResultRevision
from perfdb.site.grouping import release_title
from perfdb.site.pages.parts import label
from perfdb.units import UNKNOWN

RUNS: Final = "runs"
"""The source of measured results in the changelog: each run is a source of its own."""

Act = Literal[
    "corrected", "contradicted", "withdrawn", "restored", "rejected",
    "also printed", "read again", "added",
]  # fmt: skip
ACTS: Final[tuple[Act, ...]] = get_args(Act)
QUIET: Final[tuple[Act, ...]] = ("also printed", "read again", "added")
"""The acts that change no figure that was there."""

FIGURES: Final = (
    "outcome", "withheld", "window", "step_time_s", "tokens_per_sec", "tokens_per_sec_per_gpu",
    "flops_convention", "model_tflops_per_sec_per_gpu", "mfu", "peak_memory_bytes",
)  # fmt: skip
_TITLES: Final = {name: metric.title for name, metric in METRICS.items()} | {
    "flops_convention": "FLOPs convention",
    "tokens_per_sec": "Throughput in tokens per second",
}


@dataclass(frozen=True, kw_only=True)
class ChangelogEvent:
    """Something that happened to a result, or to something that was not stored.

    `changes` are texts such as 'Tokens / sec / GPU: 3238 → 6476'. Lines that were rejected for the
    same reason are one event: `count` lines, from `line` to `last_line`. So are events of one
    moment that change no figure, of results of one release and system: of `models`. `document`
    shows the source as it was read; None: the site has no such page.
    """

    at: datetime | None
    act: Act
    source: str
    line: int | None
    result: ResultRevision | None = None
    changes: tuple[str, ...] = ()
    reason: str | None = None
    count: int = 1
    last_line: int | None = None
    models: tuple[str, ...] = ()
    document: str | None = None

    @property
    def day(self) -> str:
        """'2026-01-02', in UTC; – for a moment that is not known."""
        return _moment(self.at)[0]

    @property
    def time(self) -> str:
        """'03:04', in UTC; – for a moment that is not known."""
        return _moment(self.at)[1]


@lru_cache(maxsize=10_000)
def _moment(when: datetime | None) -> tuple[str, str]:
    """The day and the time, in UTC."""
    day, _, time = moment(when).partition(" ")
    return day, time[:5] or UNKNOWN


@dataclass(frozen=True, kw_only=True)
class ReleaseChangelog:
    """What happened to the results of a release; none is ever a result of another.

    `events` are the newest first, those that change no figure in batches; `withdrawn` those of
    results in force no more. `corrected` says what was corrected in current results, by their
    numbers in the store. `sources` are path, SHA-256, and whether a result in force is from it.
    `printed` are the pages that results of tables are on, with their titles; `others` those of
    other results in force.
    """

    release: str | None
    events: tuple[ChangelogEvent, ...]
    withdrawn: tuple[ChangelogEvent, ...]
    corrected: Mapping[int, str]
    sources: frozenset[tuple[str, str, bool]]
    printed: Mapping[str, str]
    others: Mapping[str, str]


def of_release(revisions: Sequence[ResultRevision], in_tables: Collection[int]) -> ReleaseChangelog:
    """The changelog of the revisions of a release; `in_tables` are results that tables print."""
    in_order = sorted(revisions, key=lambda it: (it.key, it.revision))
    histories = list(grouped(in_order, lambda it: it.key).values())
    happened = [list(_events(history)) for history in histories]
    ordered = newest_first(event for some in happened for event in some)
    batches = grouped((event for event in ordered if event.act in QUIET), _batch_key).values()
    gone = (some[-1] for some, history in zip(happened, histories, strict=True)
            if history[-1].superseded)  # fmt: skip
    pages: tuple[dict[str, str], dict[str, str]] = ({}, {})
    for one in in_order:
        if not one.superseded:
            pages[one.result_id in in_tables].update(pages_of(one))
    return ReleaseChangelog(
        release=revisions[0].release,
        events=(*(it for it in ordered if it.act not in QUIET), *map(_batch, batches)),
        withdrawn=tuple(gone),
        corrected={
            history[-1].result_id: text
            for some, history in zip(happened, histories, strict=True)
            if not history[-1].superseded and (text := _corrected(some))
        },
        sources=frozenset((it.source, it.source_sha256, not it.superseded) for it in revisions),
        printed=pages[True],
        others=pages[False],
    )


def _corrected(events: Iterable[ChangelogEvent]) -> str:
    """'corrected on 2026-03-05: Tokens / sec / GPU: 3238 → 6476'.

    That a result was only read again, or is printed by another page too, is left out.
    """
    changed = (it for it in events if it.act in ("corrected", "contradicted"))
    return "; ".join(f"{it.act} on {it.day}: {', '.join(it.changes)}" for it in changed)


def pages_of(one: ResultRevision) -> Mapping[str, str]:
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


def _batch_key(event: ChangelogEvent) -> tuple[object, ...]:
    """Events are batched of one moment, system and state of a source, which has lines."""
    system, state = (event.result.system, event.result.source_sha256) if event.result else ("", "")
    return event.at, event.act, event.source, event.line and state, system, event.changes


def _batch(group: Sequence[ChangelogEvent]) -> ChangelogEvent:
    if len(group) == 1:
        return group[0]
    lines = [event.line for event in group if event.line is not None]
    models = [label(["qualified model"], event.result) for event in group if event.result]
    return replace(
        group[0],
        line=min(lines, default=None),
        last_line=max(lines, default=None),
        count=len(group),
        models=tuple(dict.fromkeys(models)),
    )


def _events(history: Sequence[ResultRevision]) -> Iterator[ChangelogEvent]:
    """What happened to a result, revision by revision."""
    before: ResultRevision | None = None
    for one in history:
        ended = before.superseded_at if before else None
        if before is None:
            yield _event(one, one.created_at, "added")
        elif ended is not None and ended < one.created_at:
            yield _withdrawn(before, ended)
            yield _event(one, one.created_at, "restored", _differences({}, _stated(one)))
        else:
            act, changes = _revised(before, one)
            yield _event(one, one.created_at, act, changes)
            if ended is not None and ended > one.created_at:  # its page has dropped it since
                yield _withdrawn(before, ended)
        before = one
    if before is not None and before.superseded:
        yield _withdrawn(before, before.superseded_at, before.withdrawn)


def _event(
    one: ResultRevision,
    when: datetime | None,
    act: Act,
    changes: Iterable[str] = (),
    reason: str | None = None,
) -> ChangelogEvent:
    source = _source(one)
    line = None if source == RUNS else one.source_line
    return ChangelogEvent(
        at=when, act=act, source=source, line=line, result=one, changes=tuple(changes),
        reason=reason,
    )  # fmt: skip


def _source(one: ResultRevision) -> str:
    return RUNS if one.origin == Origin.MEASURED.value else one.source


def _withdrawn(
    one: ResultRevision, when: datetime | None, reason: str | None = None
) -> ChangelogEvent:
    """A withdrawal with the figures that are gone, and the reason that its run or page states."""
    gone = _differences(_stated(one), {})
    return _event(one, when, "withdrawn", gone, reason or one.stated_reason)


def _revised(old: ResultRevision, new: ResultRevision) -> tuple[Act, list[str]]:
    """How a revision follows the one before it, of the same source or of another that prints it."""
    differ = any(getattr(old, name) != getattr(new, name) for name in FIGURES)
    if _source(old) != _source(new):
        return ("contradicted", _changes(old, new, FIGURES)) if differ else ("also printed", [])
    texts: list[str] = []
    fields: Sequence[str] = FIGURES
    if old.raw and new.raw:
        texts += _differences(old.raw, new.raw)
        fields = [name for name in FIGURES if old.printed.get(name) == new.printed.get(name)]
    texts += _changes(old, new, fields)
    gone, come = (
        "; ".join(note_text(note) for note in one.notes if note not in other.notes)
        for one, other in ((old, new), (new, old))
    )
    texts += _differences({"note": gone}, {"note": come})
    return ("corrected" if differ else "read again"), texts


def _changes(old: ResultRevision, new: ResultRevision, fields: Iterable[str]) -> list[str]:
    """The figures that differ, to four digits or as many as tell them apart."""
    found = []
    for name in fields:
        one, other = getattr(old, name), getattr(new, name)
        if one == other:
            continue
        texts = _text(name, old), _text(name, new)
        if isinstance(one, float) and isinstance(other, float) and texts[0] == texts[1]:
            texts = units.told_apart(one, other, 4)
        found.append(f"{_TITLES.get(name, name)}: {texts[0] or UNKNOWN} → {texts[1] or UNKNOWN}")
    return found


def _differences(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    """'GA: – → 4' for each name of which two texts differ."""
    return [
        f"{name}: {old.get(name) or UNKNOWN} → {new.get(name) or UNKNOWN}"
        for name in dict.fromkeys([*old, *new])
        if old.get(name) != new.get(name)
    ]


def _text(name: str, one: ResultRevision) -> str | None:
    """A figure as its page prints it where it does; else to four digits."""
    value = getattr(one, name)
    if isinstance(value, Note):
        return note_text(value)
    if value is None or isinstance(value, str):
        return value
    return printed_value(one.printed, name, value) or units.significant(value)


def _stated(one: ResultRevision) -> dict[str, str]:
    """The figures of a result, and how it ended where that is why it has none."""
    names = (name for name in FIGURES if name not in ("window", "flops_convention"))
    texts = {_TITLES.get(name, name): _text(name, one) for name in names}
    return {
        name: text
        for name, text in texts.items()
        if text is not None and text != Outcome.FINISHED.value
    }


def rejected(rejections: Iterable[Rejection]) -> Iterator[ChangelogEvent]:
    """One event for what was rejected of a page on a day for the same reason."""
    groups = grouped(rejections, lambda it: (_moment(it.at)[0], it.path, it.reason))
    for (_, path, reason), group in groups.items():
        lines = [it.line for it in group if it.line is not None]
        yield ChangelogEvent(
            at=max(it.at for it in group),
            act="rejected",
            source=path,
            line=min(lines, default=None),
            reason=reason,
            count=len(group),
            last_line=max(lines) if len(group) > 1 and lines else None,
        )


def newest_first(some: Iterable[ChangelogEvent]) -> list[ChangelogEvent]:
    """By moment, to the microsecond; events without one come last."""

    def place(event: ChangelogEvent) -> tuple[str, int, int, str]:
        key = event.result.key if event.result else ""
        return event.source, ACTS.index(event.act), event.line or 0, f"{key}{event.reason or ''}"

    in_place = sorted(some, key=place)
    return sorted(in_place, key=lambda it: it.at.isoformat() if it.at else "", reverse=True)
