"""What happened to results: added, corrected, contradicted, withdrawn, restored or rejected."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Final, Literal, get_args

from perfdb import units
from perfdb.groups import grouped
from perfdb.messages import note_text
from perfdb.metrics import METRICS
from perfdb.record import Note, Origin, Outcome
from perfdb.site.cells import moment, printed_value
from perfdb.site.data import Rejection, ResultRevision
from perfdb.units import UNKNOWN

RUNS: Final = "runs"
"""The source of measured results in the changelog: each run is a source of its own."""

Act = Literal[
    "corrected", "contradicted", "withdrawn", "restored", "rejected",
    "also printed", "read again", "added",
]  # fmt: skip
ACTS: Final[tuple[Act, ...]] = get_args(Act)

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


def events(
    revisions: Iterable[ResultRevision], rejections: Iterable[Rejection]
) -> list[ChangelogEvent]:
    """Everything that happened to every result, and what was rejected, the newest first."""
    found = [event for history in histories(revisions) for event in _events(history)]
    return _newest_first([*found, *_rejected(rejections)])


def histories(revisions: Iterable[ResultRevision]) -> list[list[ResultRevision]]:
    """The revisions of each result, the first of them first."""
    in_order = sorted(revisions, key=lambda it: (it.key, it.revision))
    return list(grouped(in_order, lambda it: it.key).values())


def corrections(revisions: Iterable[ResultRevision]) -> dict[int, str]:
    """What was corrected in current results, by their number in the store.

    'corrected on 2026-03-05: Tokens / sec / GPU: 3238 → 6476'. Results that were only read again,
    or are printed by another page too, are left out.
    """
    texts: dict[int, str] = {}
    for history in (it for it in histories(revisions) if len(it) > 1):
        changed = [it for it in _events(history) if it.act in ("corrected", "contradicted")]
        if changed and not history[-1].superseded:
            texts[history[-1].result_id] = "; ".join(
                f"{event.act} on {event.day}: {', '.join(event.changes)}" for event in changed
            )
    return texts


def withdrawals(revisions: Iterable[ResultRevision]) -> list[ChangelogEvent]:
    """The withdrawal of each result that is in force no more, the newest first."""
    gone = [history for history in histories(revisions) if history[-1].superseded]
    return _newest_first([*_events(history)][-1] for history in gone)


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


def _rejected(rejections: Iterable[Rejection]) -> Iterator[ChangelogEvent]:
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


def _newest_first(some: Iterable[ChangelogEvent]) -> list[ChangelogEvent]:
    """By moment, to the microsecond; events without one come last."""

    def place(event: ChangelogEvent) -> tuple[str, int, int, str]:
        key = event.result.key if event.result else ""
        return event.source, ACTS.index(event.act), event.line or 0, f"{key}{event.reason or ''}"

    in_place = sorted(some, key=place)
    return sorted(in_place, key=lambda it: it.at.isoformat() if it.at else "", reverse=True)
