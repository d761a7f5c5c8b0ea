"""MLPerf training logs: `:::MLLOG {…}`, a JSON object behind a marker.

`tracked_stats` come in two kinds. Those of a step have its loss, and `step` is the samples after
it. Those of a block of training have its throughput in samples/s, its memory and the mean time of
its steps by the wall clock, with all that happens between steps; `step` is the samples at its
start. The figure is the mean over the steps if there are any, else over the blocks, weighted by
their samples; a log with neither has its time to train alone.
Source: mlcommons/logging, and the callbacks of NVIDIA's mlperf_common and of its submissions. The
parser of mlperf_logging 4.1.68 reads the same events, which a test proves; it is not used, because
it ends with a KeyError at an event without a key, loses the first of two events on a line, does not
say which line of the file it read, and needs SciPy.
"""

import hashlib
import json
import math
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
from perfdb.record import TIME_TO_TRAIN, Figures, Outcome, PartialCase
from perfdb.text import plain
from perfdb.units import counted

_MARKER: Final = b":::MLLOG"
_EVENT: Final = re.compile(rb":::MLLOG *\{")
_STATS: Final = re.compile(rb'"(?:train_step_time|train_step_timing in s|throughput)"')
_NEXT: Final = re.compile(r"(?=:::MLLOG)")
_DECODER: Final = json.JSONDecoder()
_PLATFORM: Final = re.compile(r"(\d{1,6})x(?:NVIDIA[ _-]?)?[DH]GX[ _-]?[HB]\d00")
"""Nodes of a system that has one size of them: SLURM_JOB_NUM_NODES and what the submitter says."""
_MEMORY, _LOSS = "max_memory_usage", "reduced_train_loss"
_BLOCK_TIME: Final = "block_step_time_s"
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
    """An event as it was logged; `text` is all of it. `time_ms`: since 1970, if it is stated."""

    line: int
    key: str
    value: object
    metadata: Mapping[str, object]
    text: str = ""
    time_ms: float | None = None


class _Mean(NamedTuple):
    """The mean time of a step: of how many steps or blocks, and the line of the last."""

    number: int = 0
    line: int | None = None
    step_time_s: float | None = None


def _recognizes(head: bytes, name: str) -> int:
    text = plain(head)
    return max(1, len(_STATS.findall(text))) if _EVENT.search(text) else 0


def _parse(where: str, content: Content) -> tuple[ParsedLog, ...]:
    """The one result."""
    run, problems = _Run(), list[Diagnostic]()
    for event in events(where, content, problems):
        run.add(event)
    if len(run.starts) > 1:
        message = f"a second 'run_start', after that of line {run.starts[0].line}"
        remedy = "give each run a file of its own"
        return nothing(Diagnostic(where, message, line=run.starts[1].line, remedy=remedy))
    steps, blocks, stated = run.steps(), run.blocks(), run.settings
    mean = steps if steps.number else blocks
    seconds = _time_to_train(run)
    end, platform = _ending(run.stop, mean, seconds), str(stated.get("submission_platform") or "")
    nodes = _PLATFORM.fullmatch(platform)
    extras = {
        _MEMORY: _memory(run.peak) if run.peak else None,
        _BLOCK_TIME: blocks.step_time_s if steps.number else None,
        TIME_TO_TRAIN: seconds,
    }
    log = ParsedLog(
        configuration=_configuration(stated),
        identity=run.hash.hexdigest(),
        num_nodes=count(nodes[1]) if nodes else None,
        emitted=Figures(step_time_s=mean.step_time_s),
        emitted_line=mean.line,
        extras={name: str(value) for name, value in extras.items() if value},
        outcome=end.outcome,
        error=end.error,
        problems=few(where, problems),
        notes=tuple(_notes(where, run, steps, blocks)),
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
    text, time_ms = piece.text[place:end], finite(stated.get("time_ms"))
    return Event(piece.line, key, stated.get("value"), details, text, time_ms)


class _Run:
    """What events tell of a run, in the order of its log. Of each block it keeps a few numbers.

    `starts`: the first two starts. `stop`: the last stop. `settings`: those of its events. `peak`:
    the first event of those with the most memory. `is_of_rates`: some times of blocks follow from
    their throughput. `hash`: of all events.
    """

    def __init__(self) -> None:
        self.starts: list[Event] = []
        self.is_of_rates = False
        self.stop: Event | None = None
        self.peak: Event | None = None
        self.settings: dict[str, object] = {}
        self.hash = hashlib.sha256()
        self._boundaries = array("d")
        self._step_lines, self._step_times = array("q"), array("d")
        self._lines, self._times, self._samples = array("q"), array("d"), array("d")

    def add(self, event: Event) -> None:
        """Take the next event."""
        self.hash.update(event.text.encode(errors="replace"))
        if event.key in _SETTINGS:
            self.settings[event.key] = event.value
        elif event.key == "run_start":
            self.starts = [*self.starts, event][:2]
        elif event.key == "run_stop":
            self.stop = event
        elif event.key == "tracked_stats":
            self._add_stats(event)
            if _memory(event) > (_memory(self.peak) if self.peak else 0):
                self.peak = event
        samples = finite(event.metadata.get("samples_count"))
        if event.key in _BOUNDARIES and samples is not None:
            self._boundaries.append(samples)

    def _add_stats(self, event: Event) -> None:
        time, samples = _of(event, "train_step_time"), finite(event.metadata.get("step"))
        nemo_time, rate = _of(event, "train_step_timing in s"), _of(event, "throughput")
        is_step = nemo_time or (isinstance(event.value, dict) and _LOSS in event.value)
        if time is None and nemo_time is None and rate and not is_step:
            size = positive(self.settings.get("global_batch_size"))
            time = positive(size / rate) if size else None
            self.is_of_rates |= time is not None
        if is_step and (time := time or nemo_time):
            self._step_lines.append(event.line)
            self._step_times.append(time)
        elif time is not None and samples is not None:
            self._lines.append(event.line)
            self._times.append(time)
            self._samples.append(samples)

    def steps(self) -> _Mean:
        """The steps that are logged one by one."""
        number = len(self._step_times)
        if not number:
            return _Mean()
        return _Mean(number, self._step_lines[-1], positive(math.fsum(self._step_times) / number))

    def blocks(self) -> _Mean:
        """The blocks with a known end: one goes on to the next place that is reported."""
        starts, boundaries = np.frombuffer(self._samples), np.unique(self._boundaries)
        after = boundaries.searchsorted(starts, "right")
        known = np.flatnonzero(after < len(boundaries))
        if not len(known):
            return _Mean()
        samples = boundaries[after[known]] - starts[known]
        with np.errstate(over="ignore"):  # a mean that is not finite is none
            seconds = sum((np.frombuffer(self._times)[known] * samples).tolist())
        total = sum(samples.tolist())
        mean = positive(seconds / total) if total else None
        return _Mean(len(known), self._lines[known[-1]], mean)


def _of(event: Event, name: str) -> float | None:
    return positive(event.value.get(name)) if isinstance(event.value, dict) else None


def _memory(event: Event) -> float:
    return _of(event, _MEMORY) or 0


def _time_to_train(run: _Run) -> float | None:
    """MLPerf's own metric in seconds: from the start of a run to its successful stop."""
    start, stop = run.starts[0] if run.starts else None, run.stop
    if not start or not stop or stop.metadata.get("status") != "success":
        return None
    if start.time_ms is None or stop.time_ms is None:
        return None
    return positive((stop.time_ms - start.time_ms) / 1000)


def _ending(stop: Event | None, mean: _Mean, time_to_train: float | None) -> Ending:
    status = stop.metadata.get("status") if stop else None
    if stop and status != "success":
        return Ending(Outcome.FAILED, f"run_stop: status is {status!r}")
    if not mean.number and time_to_train is None:
        message = "the log holds no 'train_step_time' and no time to train"
        return Ending(Outcome.NO_DATA, message)
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


def _notes(where: str, run: _Run, steps: _Mean, blocks: _Mean) -> Iterator[Diagnostic]:
    by_rate = " (batch ÷ throughput)" * run.is_of_rates
    of_blocks = (
        f"the mean over {counted(blocks.number, 'block')} of training{by_rate}, by their samples"
    )
    if steps.number:
        message = f"the step time is the mean over {counted(steps.number, 'logged step')}"
        if blocks.number:
            message += f"; {_BLOCK_TIME} is {of_blocks}"
        yield Diagnostic(where, message, line=steps.line)
    elif blocks.number:
        yield Diagnostic(where, f"the step time is {of_blocks}", line=blocks.line)
    elif _time_to_train(run):
        yield Diagnostic(where, "no event has the time of a step: its figure is its time to train")
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
