"""AutoModel's benchmark recipe on the console: the longest step of any rank, and averages.

`TFLOPs/GPU:`, printed up to 0.6.0, is not what it says: it is the TFLOP of one global step over all
GPUs. Since 0.7.0 the line says so.
Source of the format: nemo_automodel/recipes/llm/benchmark.py, 0.2.0 to 0.7.0.
"""

import re
from collections.abc import Iterator
from dataclasses import replace

from perfdb.errors import Diagnostic
from perfdb.formats.automodel_console import known_of, version
from perfdb.formats.base import Content, ParsedLog, Reading
from perfdb.formats.block import Block
from perfdb.formats.ending import Account, training_log
from perfdb.formats.numbers import NUMBER, WHOLE, count, percent, positive, size_bytes
from perfdb.formats.printed import mentioned
from perfdb.formats.scan import Piece, Scan, pieces
from perfdb.formats.steps import MOST_KEPT, countable, settle_columns
from perfdb.log_text import plain
from perfdb.record import Figures, Outcome, PartialCase

NAME = "automodel_benchmark"

_TIME_MARKER, _MEMORY_MARKER = b"Max iter time:", b"Max Memory Allocated:"
_TIME = re.compile(rf"Max iter time: *({NUMBER}){WHOLE}")
_ITERATION = re.compile(r"\| Iteration (\d{1,9}) \|")
_MEMORY = re.compile(rf"Max Memory Allocated: *({NUMBER}){WHOLE}")
_LOSS = re.compile(rf"\bloss=({NUMBER}){WHOLE}")
_PLAN = re.compile(r"Running (\d{1,9}) iterations with (\d{1,9}) warmup steps")
_BATCH = re.compile(
    r"GA steps: (\d+), DP size: (\d+), Local batch size: (\d+), Global batch size: (\d+)"
)
_ADAPTER = "PEFT params - lora_params:"
_BEGIN = re.compile(rb"Running \d+ iterations with \d+ warmup steps")
_AVERAGE = re.compile(rf"Average iteration time: *({NUMBER}) seconds")
_MFU = re.compile(rf"Average MFU: *({NUMBER})%")
_TFLOP = re.compile(rf"(?<!MTP )TFLOPs/GPU: *({NUMBER}){WHOLE}")


def recognises(head: bytes, name: str) -> int:
    """How often the benchmark recipe speaks among the first bytes: above, of and behind steps."""
    text = plain(head)
    rest = text.count(_TIME_MARKER) + text.count(b"Average iteration time:")
    return rest + len(_BEGIN.findall(text))


def parse(where: str, content: Content) -> tuple[ParsedLog, ...]:
    """The run that a log tells of."""
    scan, steps_of = Scan(content, _TIME_MARKER, _MEMORY_MARKER), _Iterations(where)
    printed = countable(
        where, (one for block in scan for one in steps_of.read(block)), steps_of.problems
    )
    steps = settle_columns(where, printed, steps_of.problems)
    plan = _PLAN.search(scan.preamble)
    planned, warmup = (count(plan[1]), int(plan[2])) if plan else (None, 0)
    figures = _averages(scan.epilogue)
    account = Account(planned, scan.epilogue, figures.step_time_s is not None, scan.before)
    known = known_of(scan.preamble) | _batch(scan.preamble)
    known |= {"task": "lora"} if _ADAPTER in scan.preamble else {}
    log = training_log(PartialCase(), steps, account, f"skip_warmup({warmup})")
    log = mentioned(scan.preamble, log).of(log, **known)
    log = replace(log, framework_version=version(scan.preamble))
    return (_with_averages(where, log, figures, _TFLOP.findall(scan.preamble)),)


class _Iterations:
    """Joins what two lines say of an iteration: a rank's memory and loss, and the longest time.

    Iterations are counted from 0. Where no rank says which iteration it is, the times are counted.
    """

    def __init__(self, where: str) -> None:
        self._where = where
        self._iteration: int | None = None
        self._num_times = 0
        self._loss: float | None = None
        self._memory: int | None = None
        self.problems: list[Diagnostic] = []

    def read(self, block: Block) -> Iterator[Reading]:
        """The iterations of a block."""
        found = [*pieces(block, _TIME_MARKER), *pieces(block, _MEMORY_MARKER)]
        for piece in sorted(found, key=lambda piece: piece.line):
            if "Max iter time:" not in piece.text:
                self._note(piece)
            elif time := _TIME.search(piece.text):
                yield self._reading(piece.line, float(time[1]))
            elif len(self.problems) < MOST_KEPT:
                message = "'Max iter time:' without a number"
                remedy = "is the line cut off?"
                self.problems.append(
                    Diagnostic(self._where, message, line=piece.line, remedy=remedy)
                )

    def _note(self, piece: Piece) -> None:
        iteration, memory = _ITERATION.search(piece.text), _MEMORY.search(piece.text)
        loss = _LOSS.search(piece.text)
        if iteration and int(iteration[1]) != self._iteration:
            self._iteration, self._loss, self._memory = int(iteration[1]), None, None
        self._loss = float(loss[1]) if loss else self._loss
        peak = size_bytes(memory[1], 2**30) if memory else None
        self._memory = max(peak or 0, self._memory or 0) or None

    def _reading(self, line: int, seconds: float) -> Reading:
        self._num_times += 1
        step = self._num_times if self._iteration is None else self._iteration + 1
        return Reading(line, step, seconds, loss=self._loss, peak_memory_bytes=self._memory)


def _batch(text: str) -> dict[str, object]:
    found = _BATCH.search(text)
    names = ("gradient_accumulation", "data_parallel", "local_batch_size", "global_batch_size")
    sizes = dict(zip(names, found.groups(), strict=True)) if found else {}
    return {name: size for name, printed in sizes.items() if (size := count(printed))}


def _averages(text: str) -> Figures:
    time, mfu = _AVERAGE.search(text), _MFU.search(text)
    return Figures(
        step_time_s=positive(time[1]) if time else None, mfu=percent(mfu[1]) if mfu else None
    )


def _with_averages(where: str, log: ParsedLog, figures: Figures, tflop: list[str]) -> ParsedLog:
    """The log with the averages it ends with; they are its only figures where it has no steps."""
    log = replace(log, emitted=figures)
    if tflop and positive(tflop[0]):
        message = f"'TFLOPs/GPU: {tflop[0]}' is the TFLOP of one step over all GPUs, not a rate"
        log = replace(log, notes=(*log.notes, Diagnostic(where, message)))
    if log.outcome is Outcome.NO_DATA and figures.step_time_s:
        return replace(log, outcome=Outcome.FINISHED, error=None)
    return log
