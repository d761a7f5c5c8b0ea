"""MLPerf training logs: `:::MLLOG {…}`, a JSON object behind a marker.

A log holds no steps but, for each block of training, the mean time of its steps. The figure is the
mean over the blocks, weighted by their samples. Source: mlcommons/logging, and the callback of
NVIDIA's mlperf_common. The parser of mlperf_logging 4.1.68 reads the same events, which a test
proves; it is not used, because it ends with a KeyError at an event without a key, loses the first
of two events on a line, does not say which line of the file it read, and needs SciPy.
"""

import json
import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perfdb.errors import Problem
from perfdb.formats import settings, several
from perfdb.formats.base import Configuration, Content, ParsedLog
from perfdb.formats.documents import nothing
from perfdb.formats.ending import Ending
from perfdb.formats.numbers import count, finite, positive
from perfdb.formats.scan import Piece, Scan, pieces
from perfdb.formats.steps import MOST_KEPT, few
from perfdb.log_text import plain
from perfdb.record import Figures, Outcome
from perfdb.units import counted

NAME = "mlperf"

_MARKER = b":::MLLOG"
_EVENT = re.compile(rb":::MLLOG *\{")
_TIME = b'"train_step_time"'
_NEXT = re.compile(r"(?=:::MLLOG)")
_DECODER = json.JSONDecoder()
_BOUNDARIES = ("block_start", "eval_start", "run_stop")


@dataclass(frozen=True)
class Event:
    """An event as it was logged: what it is of, its value, and what was said beside it."""

    line: int
    key: str
    value: object
    metadata: Mapping[str, object]


@dataclass(frozen=True)
class _Span:
    """A block of training: the mean time of its steps, and how many samples it took."""

    line: int
    step_time_s: float
    samples: float


def recognises(head: bytes, name: str) -> int:
    """How many step times are among the first bytes; 1 where there is any event of its logging."""
    text = plain(head)
    return max(1, text.count(_TIME)) if _EVENT.search(text) else 0


def parse(where: str, content: Content) -> tuple[ParsedLog, ...]:
    """The one result."""
    events, problems = read(where, content)
    starts = [event.line for event in events if event.key == "run_start"]
    if len(starts) > 1:
        message = f"a second 'run_start', after that of line {starts[0]}"
        return nothing(Problem(where, message, line=starts[1], remedy=several.REMEDY))
    spans = _spans(events)
    end = _ending(events, spans)
    log = ParsedLog(
        configuration=_configuration(events),
        emitted=_figures(spans),
        emitted_line=spans[-1].line if spans else None,
        outcome=end.outcome,
        error=end.error,
        problems=few(where, problems),
        notes=_note(where, spans),
    )
    return (log,)


def read(where: str, content: Content) -> tuple[list[Event], list[Problem]]:
    """Every event of a log in order, and what cannot be read as one."""
    events: list[Event] = []
    problems: list[Problem] = []
    for piece in (one for block in Scan(content, _MARKER) for one in pieces(block, _MARKER)):
        # Ranks that print at once may share a line.
        for text in _NEXT.split(piece.text)[1:]:
            event = _event(Piece(piece.line, text))
            if isinstance(event, Event):
                events.append(event)
            elif len(problems) < MOST_KEPT:
                remedy = "is the line cut off?"
                problems.append(Problem(where, event, line=piece.line, remedy=remedy))
    return events, problems


def _event(piece: Piece) -> Event | str:
    place = piece.text.find("{")
    try:
        said, _ = _DECODER.raw_decode(piece.text, max(place, 0))
    except (ValueError, RecursionError):
        return "an event that is not JSON"
    key = said.get("key") if isinstance(said, dict) else None
    if not isinstance(key, str):
        return "an event without a 'key'"
    metadata = said.get("metadata")
    return Event(piece.line, key, said.get("value"), metadata if isinstance(metadata, dict) else {})


def _spans(events: Sequence[Event]) -> list[_Span]:
    """The blocks of training whose end is known: a block goes on to the next place it is told."""
    counted = (finite(e.metadata.get("samples_count")) for e in events if e.key in _BOUNDARIES)
    boundaries = sorted({samples for samples in counted if samples is not None})
    spans = []
    for event in events:
        time = _of(event.value, "train_step_time") if event.key == "tracked_stats" else None
        start = finite(event.metadata.get("step"))
        if time is not None and start is not None:
            after = boundaries[bisect_right(boundaries, start) :]
            spans += [_Span(event.line, time, after[0] - start)] if after else []
    return spans


def _of(value: object, name: str) -> float | None:
    return positive(value.get(name)) if isinstance(value, dict) else None


def _figures(spans: Sequence[_Span]) -> Figures:
    samples = sum(span.samples for span in spans)
    if not samples:
        return Figures()
    time = sum(span.step_time_s * span.samples for span in spans) / samples
    return Figures(step_time_s=positive(time))


def _ending(events: Sequence[Event], spans: Sequence[_Span]) -> Ending:
    stops = [event for event in events if event.key == "run_stop"]
    status = stops[-1].metadata.get("status") if stops else None
    if stops and status != "success":
        return Ending(Outcome.FAILED, f"run_stop: status is {status!r}")
    if not spans:
        return Ending(Outcome.NO_DATA, "the log holds no 'train_step_time'")
    return Ending(Outcome.FINISHED) if stops else Ending(Outcome.INCOMPLETE, "no 'run_stop' event")


def _configuration(events: Sequence[Event]) -> Configuration:
    said = {event.key: event.value for event in events}
    benchmark = str(said.get("submission_benchmark") or "")
    fields = {
        "model": settings.model(benchmark.removesuffix("_lora")),
        "task": "lora" if benchmark.endswith("_lora") else None,
        "system": settings.system(str(said.get("submission_platform") or "")),
        "global_batch_size": count(said.get("global_batch_size")),
        "sequence_length": count(said.get("max_sequence_length")),
        "gradient_accumulation": count(said.get("gradient_accumulation_steps")),
    }
    return Configuration.model_validate({name: one for name, one in fields.items() if one})


def _note(where: str, spans: Sequence[_Span]) -> tuple[Problem, ...]:
    if not spans:
        return ()
    blocks = counted(len(spans), "block")
    message = f"the step time is the mean over {blocks} of training, by their samples"
    return (Problem(where, message, line=spans[-1].line),)
