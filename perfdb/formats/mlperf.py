"""MLPerf training logs: `:::MLLOG {…}`, a JSON object behind a marker.

A log holds no steps but, for each block of training, the mean time of its steps. The figure is the
mean over the blocks, weighted by their samples. Source: mlcommons/logging, and the callback of
NVIDIA's mlperf_common. The parser of mlperf_logging 4.1.68 reads the same events, which a test
proves; it is not used, because it ends with a KeyError at an event without a key, loses the first
of two events on a line, does not say which line of the file it read, and needs SciPy.
"""

import hashlib
import json
import re
from array import array
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import numpy as np

from perfdb.errors import Diagnostic
from perfdb.formats import settings
from perfdb.formats.base import Content, LogFormat, ParsedLog, nothing
from perfdb.formats.numbers import count, finite, positive
from perfdb.formats.outcome import Ending
from perfdb.formats.scan import Piece, Scan, pieces
from perfdb.formats.settle import few
from perfdb.formats.steplines import MOST_KEPT
from perfdb.record import Figures, Outcome, PartialCase
from perfdb.text import plain
from perfdb.units import counted

_MARKER: Final = b":::MLLOG"
_EVENT: Final = re.compile(rb":::MLLOG *\{")
_TIME: Final = b'"train_step_time"'
_NEXT: Final = re.compile(r"(?=:::MLLOG)")
_DECODER: Final = json.JSONDecoder()
_PLATFORM: Final = re.compile(r"(\d{1,6})x(?:NVIDIA[ _-]?)?[DH]GX[ _-]?[HB]\d00")
"""Nodes of a system that has one size of them: SLURM_JOB_NUM_NODES and what the submitter says."""
_MEMORY: Final = "max_memory_usage"
_LENGTHS: Final = {"llama2_70b_lora": 8192}
"""Tokens of a sample if no event states them and the closed division lets nobody choose them.

Source: llama2_70b_lora of mlcommons/training, which packs GovReport to 8,192 tokens.
"""
_PRETRAINED: Final = frozenset({"gpt3", "llama31_405b", "llama31_8b"})
"""Benchmarks that pre-train by their rules. Source: mlcommons/training."""
_BOUNDARIES: Final = ("block_start", "eval_start", "run_stop")
_SETTINGS: Final = (
    "submission_benchmark", "submission_division", "submission_platform", "global_batch_size",
    "max_sequence_length", "gradient_accumulation_steps",
)  # fmt: skip


class Event(NamedTuple):
    """An event as it was logged; `text` is all of it, with its time."""

    line: int
    key: str
    value: object
    metadata: Mapping[str, object]
    text: str = ""


class _Blocks(NamedTuple):
    """Blocks of training: how many, the line of the last, and the mean time of a step.

    Each sample counts with the mean time of its block's steps.
    """

    number: int = 0
    line: int | None = None
    step_time_s: float | None = None


def _recognizes(head: bytes, name: str) -> int:
    text = plain(head)
    return max(1, text.count(_TIME)) if _EVENT.search(text) else 0


def _parse(where: str, content: Content) -> tuple[ParsedLog, ...]:
    """The one result."""
    run, problems = _Run(), list[Diagnostic]()
    for event in events(where, content, problems):
        run.add(event)
    if len(run.starts) > 1:
        message = f"a second 'run_start', after that of line {run.starts[0]}"
        remedy = "give each run a file of its own"
        return nothing(Diagnostic(where, message, line=run.starts[1], remedy=remedy))
    blocks, stated = run.blocks(), run.settings
    end, platform = _ending(run.stop, blocks), str(stated.get("submission_platform") or "")
    nodes = _PLATFORM.fullmatch(platform)
    log = ParsedLog(
        configuration=_configuration(stated),
        identity=run.hash.hexdigest(),
        num_nodes=count(nodes[1]) if nodes else None,
        emitted=Figures(step_time_s=blocks.step_time_s),
        emitted_line=blocks.line,
        extras={_MEMORY: str(_memory(run.peak))} if run.peak else {},
        outcome=end.outcome,
        error=end.error,
        problems=few(where, problems),
        notes=tuple(_notes(where, run, blocks)),
    )
    return (log,)


def events(where: str, content: Content, problems: list[Diagnostic]) -> Iterator[Event]:
    """Every event of a log in order; what cannot be read as one becomes a problem."""
    for piece in (one for block in Scan(content, _MARKER) for one in pieces(block, _MARKER)):
        # Ranks that print at once may share a line.
        for text in _NEXT.split(piece.text)[1:]:
            event = _event(Piece(piece.line, text))
            if isinstance(event, Event):
                yield event
            elif len(problems) < MOST_KEPT:
                remedy = "is the line cut off?"
                problems.append(Diagnostic(where, event, line=piece.line, remedy=remedy))


def _event(piece: Piece) -> Event | str:
    place = piece.text.find("{")
    try:
        stated, end = _DECODER.raw_decode(piece.text, max(place, 0))
    except (ValueError, RecursionError):
        return "an event that is not JSON"
    key = stated.get("key") if isinstance(stated, dict) else None
    if not isinstance(key, str):
        return "an event without a 'key'"
    metadata = stated.get("metadata")
    details = metadata if isinstance(metadata, dict) else {}
    return Event(piece.line, key, stated.get("value"), details, piece.text[place:end])


class _Run:
    """What events tell of a run, in the order of its log. Of each block it keeps four numbers.

    `starts`: the lines of the first two starts. `stop`: the last stop. `settings`: those of its
    events. `peak`: the first event of those with the most memory. `hash`: of all events.
    """

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.stop: Event | None = None
        self.peak: Event | None = None
        self.settings: dict[str, object] = {}
        self.hash = hashlib.sha256()
        self._boundaries = array("d")
        self._lines, self._times, self._samples = array("q"), array("d"), array("d")

    def add(self, event: Event) -> None:
        """Take the next event."""
        self.hash.update(event.text.encode(errors="replace"))
        if event.key in _SETTINGS:
            self.settings[event.key] = event.value
        elif event.key == "run_start":
            self.starts = [*self.starts, event.line][:2]
        elif event.key == "run_stop":
            self.stop = event
        elif event.key == "tracked_stats":
            self._add_block(event)
            if _memory(event) > (_memory(self.peak) if self.peak else 0):
                self.peak = event
        samples = finite(event.metadata.get("samples_count"))
        if event.key in _BOUNDARIES and samples is not None:
            self._boundaries.append(samples)

    def _add_block(self, event: Event) -> None:
        time, samples = _of(event, "train_step_time"), finite(event.metadata.get("step"))
        if time is not None and samples is not None:
            self._lines.append(event.line)
            self._times.append(time)
            self._samples.append(samples)

    def blocks(self) -> _Blocks:
        """The blocks whose end is known: one goes on to the next place that is reported."""
        starts, boundaries = np.frombuffer(self._samples), np.unique(self._boundaries)
        after = boundaries.searchsorted(starts, "right")
        known = np.flatnonzero(after < len(boundaries))
        if not len(known):
            return _Blocks()
        samples = boundaries[after[known]] - starts[known]
        seconds = sum((np.frombuffer(self._times)[known] * samples).tolist())
        total = sum(samples.tolist())
        mean = positive(seconds / total) if total else None
        return _Blocks(len(known), self._lines[known[-1]], mean)


def _of(event: Event, name: str) -> float | None:
    return positive(event.value.get(name)) if isinstance(event.value, dict) else None


def _memory(event: Event) -> float:
    return _of(event, _MEMORY) or 0


def _ending(stop: Event | None, blocks: _Blocks) -> Ending:
    status = stop.metadata.get("status") if stop else None
    if stop and status != "success":
        return Ending(Outcome.FAILED, f"run_stop: status is {status!r}")
    if not blocks.number:
        return Ending(Outcome.NO_DATA, "the log holds no 'train_step_time'")
    return Ending(Outcome.FINISHED) if stop else Ending(Outcome.INCOMPLETE, "no 'run_stop' event")


def _configuration(stated: Mapping[str, object]) -> PartialCase:
    benchmark = str(stated.get("submission_benchmark") or "")
    is_lora = benchmark.endswith("_lora")
    fields = {
        "model": settings.model(benchmark.removesuffix("_lora")),
        "task": "lora" if is_lora else "pretrain" if benchmark in _PRETRAINED else None,
        "system": settings.system(str(stated.get("submission_platform") or "")),
        "global_batch_size": count(stated.get("global_batch_size")),
        "sequence_length": count(stated.get("max_sequence_length")) or _length_by_rules(stated),
        "gradient_accumulation": count(stated.get("gradient_accumulation_steps")),
    }
    return PartialCase.model_validate({name: one for name, one in fields.items() if one})


def _length_by_rules(stated: Mapping[str, object]) -> int | None:
    """The sequence length of a benchmark if its rules state it and no event does."""
    if "max_sequence_length" in stated or stated.get("submission_division") != "closed":
        return None
    return _LENGTHS.get(str(stated.get("submission_benchmark")))


def _notes(where: str, run: _Run, blocks: _Blocks) -> Iterator[Diagnostic]:
    if blocks.number:
        of_blocks = counted(blocks.number, "block")
        message = f"the step time is the mean over {of_blocks} of training, by their samples"
        yield Diagnostic(where, message, line=blocks.line)
    if run.peak:
        message = (
            f"{_MEMORY} {_memory(run.peak)} is kept as printed: nothing says its unit, or whether "
            f"it was allocated"
        )
        yield Diagnostic(where, message, line=run.peak.line)
    if length := _length_by_rules(run.settings):
        message = f"no event says the sequence length, which is {length:,} by the benchmark's rules"
        yield Diagnostic(where, message)


FORMAT: Final = LogFormat("mlperf", _recognizes, _parse)
