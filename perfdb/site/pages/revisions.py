"""What became of results: added, corrected, contradicted, withdrawn, restored, or never stored."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from itertools import groupby
from typing import Final, Literal, get_args

from perfdb.groups import grouped
from perfdb.messages import note_text
from perfdb.metrics import METRICS
from perfdb.record import Note, Origin, Outcome
from perfdb.site.cells import moment, printed_value
from perfdb.site.data import Rejection, ResultRevision
from perfdb.units import UNKNOWN, significant, told_apart

RUNS: Final = "runs"
"""What stands for the sources of measured results: each run is one of its own."""

Act = Literal[
    "corrected", "contradicted", "withdrawn", "restored", "rejected",
    "also printed", "read again", "added",
]  # fmt: skip
ACTS: Final[tuple[Act, ...]] = get_args(Act)
"""What changes a figure or withholds it first."""

FIGURES: Final = (
    "outcome", "withheld", "window", "step_time_s", "tokens_per_sec", "tokens_per_sec_per_gpu",
    "flops_convention", "model_tflops_per_sec_per_gpu", "mfu", "peak_memory_bytes",
)  # fmt: skip
_TITLES: Final = {name: metric.title for name, metric in METRICS.items()} | {
    "flops_convention": "FLOPs convention",
    "tokens_per_sec": "Throughput in tokens per second",
}
_GROUNDS: Final = ("window", "flops_convention")
"""What figures are taken over and counted by."""


@dataclass(frozen=True, kw_only=True)
class FieldChange:
    """A field that says something else than before. None: it was not there."""

    field: str
    old: str | None
    new: str | None

    @property
    def text(self) -> str:
        """'Tokens / sec / GPU: 3238 → 6476'."""
        return f"{self.field}: {self.old or UNKNOWN} → {self.new or UNKNOWN}"


@dataclass(frozen=True, kw_only=True)
class ChangelogEvent:
    """Something that became of a result, or of something that was not stored.

    What was rejected for the same reason is one event: `count` lines, from `line` to `last_line`.
    So may be alike ones that change no figure, of results of one release and system: of `models`.
    `document` shows the source as it was read; None: the site has no such page.
    """

    at: datetime | None
    act: Act
    source: str
    line: int | None
    result: ResultRevision | None = None
    changes: tuple[FieldChange, ...] = ()
    reason: str | None = None
    count: int = 1
    last_line: int | None = None
    models: tuple[str, ...] = ()
    document: str | None = None

    @property
    def day(self) -> str:
        """'2026-01-02', in UTC; – for a moment that nobody noted."""
        return _day(self.at)


def events(
    revisions: Iterable[ResultRevision], rejections: Iterable[Rejection]
) -> list[ChangelogEvent]:
    """All that became of every result there ever was and of what was rejected, the newest first."""
    found = [event for history in histories(revisions) for event in _events(history)]
    return _newest_first([*found, *_rejected(rejections)])


def histories(revisions: Iterable[ResultRevision]) -> list[list[ResultRevision]]:
    """The revisions of each result, the first of them first."""
    by_key = groupby(sorted(revisions, key=lambda it: (it.key, it.revision)), lambda it: it.key)
    return [list(history) for _, history in by_key]


def corrections(revisions: Iterable[ResultRevision]) -> dict[int, str]:
    """What current results said before, by their number in the store.

    'corrected on 2026-03-05: Tokens / sec / GPU: 3238 → 6476'. What was only read anew, or is
    printed by another page too, says the same as before and is not here.
    """
    wording: dict[int, str] = {}
    for history in (it for it in histories(revisions) if len(it) > 1):
        changed = [it for it in _events(history) if it.act in ("corrected", "contradicted")]
        if changed and not history[-1].superseded:
            wording[history[-1].result_id] = "; ".join(map(_correction, changed))
    return wording


def withdrawals(revisions: Iterable[ResultRevision]) -> list[ChangelogEvent]:
    """How each result that is in force no more was withdrawn, the last one first."""
    gone = [history for history in histories(revisions) if history[-1].superseded]
    return _newest_first([*_events(history)][-1] for history in gone)


def _correction(event: ChangelogEvent) -> str:
    changes = ", ".join(change.text for change in event.changes)
    return f"{event.act} on {event.day}: {changes}"


def _rejected(rejections: Iterable[Rejection]) -> Iterator[ChangelogEvent]:
    """One event for what was rejected of a page on a day for the same reason."""
    groups = grouped(rejections, lambda it: (_day(it.at), it.path, it.reason))
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


def _events(history: Sequence[ResultRevision]) -> Iterator[ChangelogEvent]:
    """What became of a result, revision by revision."""
    before: ResultRevision | None = None
    for one in history:
        ended = before.superseded_at if before else None
        if before is None:
            yield _event(one, one.created_at, "added")
        elif ended is not None and ended < one.created_at:
            yield _withdrawn(before, ended)
            back = _differences({}, _stated(one))
            yield _event(one, one.created_at, "restored", back)
        else:
            act, changes = _revised(before, one)
            yield _event(one, one.created_at, act, changes)
            if ended is not None and ended > one.created_at:  # its page has dropped it since
                yield _withdrawn(before, ended)
        before = one
    if before is not None and before.superseded:
        yield _withdrawn(before, before.superseded_at, before.withdrawn)


def _withdrawn(
    one: ResultRevision, when: datetime | None, reason: str | None = None
) -> ChangelogEvent:
    """What is no longer stated, with its figures, and why: as stated of its run, or of its page."""
    return _event(
        one, when, "withdrawn", _differences(_stated(one), {}), reason or one.stated_reason
    )


def _differ(old: ResultRevision, new: ResultRevision) -> bool:
    return [getattr(old, name) for name in FIGURES] != [getattr(new, name) for name in FIGURES]


def _revised(old: ResultRevision, new: ResultRevision) -> tuple[Act, tuple[FieldChange, ...]]:
    """What a revision is to the one before it: of the same source, or of another that prints it."""
    differ = _differ(old, new)
    if _source(old) != _source(new):
        if not differ:
            return "also printed", ()
        return "contradicted", tuple(_changes(old, new, FIGURES))
    differing: list[FieldChange] = []
    fields: Sequence[str] = FIGURES
    if old.raw and new.raw:
        cells = old.raw, new.raw
        differing += _differences(*cells)
        fields = tuple(name for name in FIGURES if old.printed.get(name) == new.printed.get(name))
    changes = (*differing, *_changes(old, new, fields), *_noted(old, new))
    return ("corrected" if differ else "read again"), changes


def _noted(old: ResultRevision, new: ResultRevision) -> Iterator[FieldChange]:
    """The notes that are gone, and those that have come."""
    gone = "; ".join(note_text(note) for note in old.notes if note not in new.notes)
    come = "; ".join(note_text(note) for note in new.notes if note not in old.notes)
    if gone or come:
        yield FieldChange(field="note", old=gone or None, new=come or None)


def _source(one: ResultRevision) -> str:
    return RUNS if one.origin == Origin.MEASURED.value else one.source


def _event(
    one: ResultRevision,
    when: datetime | None,
    act: Act,
    changes: tuple[FieldChange, ...] = (),
    reason: str | None = None,
) -> ChangelogEvent:
    source = _source(one)
    line = None if source == RUNS else one.source_line
    return ChangelogEvent(
        at=when, act=act, source=source, line=line, result=one, changes=changes, reason=reason
    )


def _changes(
    old: ResultRevision, new: ResultRevision, fields: Iterable[str]
) -> Iterator[FieldChange]:
    """The figures that differ, to four digits or as many as tell them apart."""
    for name in fields:
        one, other = getattr(old, name), getattr(new, name)
        if one == other:
            continue
        texts = _wording(name, old), _wording(name, new)
        if isinstance(one, float) and isinstance(other, float) and texts[0] == texts[1]:
            texts = told_apart(one, other, 4)
        yield FieldChange(field=_TITLES.get(name, name), old=texts[0], new=texts[1])


def _differences(old: Mapping[str, str], new: Mapping[str, str]) -> tuple[FieldChange, ...]:
    names = dict.fromkeys([*old, *new])
    return tuple(
        FieldChange(field=name, old=old.get(name), new=new.get(name))
        for name in names
        if old.get(name) != new.get(name)
    )


def _wording(name: str, one: ResultRevision) -> str | None:
    """A figure as its page prints it where it does; else to four digits."""
    value = getattr(one, name)
    if isinstance(value, Note):
        return note_text(value)
    if value is None or isinstance(value, str):
        return value
    return printed_value(one.printed, name, value) or significant(value)


def _stated(one: ResultRevision) -> dict[str, str]:
    """The figures of a result, and how it ended where that is why it has none."""
    wording = ((name, _wording(name, one)) for name in FIGURES if name not in _GROUNDS)
    return {
        _TITLES.get(name, name): text
        for name, text in wording
        if text is not None and text != Outcome.FINISHED.value
    }


@lru_cache(maxsize=10_000)
def _day(when: datetime | None) -> str:
    return moment(when).split(" ")[0]


def _newest_first(given: Iterable[ChangelogEvent]) -> list[ChangelogEvent]:
    return sorted(sorted(given, key=_place), key=_moment, reverse=True)


def _place(event: ChangelogEvent) -> tuple[str, int, int, str]:
    key = event.result.key if event.result else ""
    return event.source, ACTS.index(event.act), event.line or 0, f"{key}{event.reason or ''}"


def _moment(event: ChangelogEvent) -> str:
    """To the microsecond; what has none comes last of the newest first."""
    return event.at.isoformat() if event.at else ""
