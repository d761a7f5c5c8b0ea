"""AutoModel logs on the console: of its training recipes and of its benchmark recipe.

A training recipe prints `step 0 | epoch 0 | loss 2.5 | … | tps 1028.12(…)`. Steps count from 0.
`tps` is tokens per second of all GPUs, padding left out, and how many tokens a step had is not
printed. Its time follows where the label tokens, which are at most as many, are all that the global
batch can have; of other data training.jsonl has more.
Source: nemo_automodel/recipes/llm/train_ft.py and base_recipe.py, 0.1.0 to 0.7.0.

The benchmark recipe prints the longest step of any rank, and averages. `TFLOPs/GPU:`, up to 0.6.0,
is not what its name says: it is the TFLOP of one global step over all GPUs.
Source: nemo_automodel/recipes/llm/benchmark.py, 0.2.0 to 0.7.0.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from perfdb.errors import Diagnostic
from perfdb.formats import settings
from perfdb.formats.attempts import settings_of, training_log, with_settings
from perfdb.formats.base import Content, LogFormat, ParsedLog, RunSettings
from perfdb.formats.columns import Floats, Reading, Steps
from perfdb.formats.mentions import mentioned
from perfdb.formats.numbers import NUMBER, WHOLE, count, percent, positive, real, size_bytes
from perfdb.formats.outcome import Account
from perfdb.formats.scan import Block, Piece, Scan, pieces
from perfdb.formats.settle import Settled, marked, settle, steps_of, with_times
from perfdb.formats.steplines import MOST_KEPT
from perfdb.log_text import plain
from perfdb.record import Figures, Outcome

SHIFTED: Final = 0.01
"""By how much label tokens may fall short of all: a sample's last token has no label."""

_START = b"Experiment_details:"
_MARKER = b"| tps "
_STEP = re.compile(r"\bstep (\d{1,15}) \| epoch \d+ \|")
_STEP_LINE = re.compile(rb"\bstep \d+ \| epoch \d+ \| [^\n]*?\| tps [\d.]+")
_VALUE = re.compile(rf"\| (loss|grad_norm|mem|num_label_tokens) ({NUMBER}){WHOLE}")
_RATE = re.compile(rf"\| tps ({NUMBER})(?!/gpu)(?:\(({NUMBER})/gpu\))?{WHOLE}")
_WORLD = re.compile(r"\bWorld size: (\d{1,9})\b")
_MODEL = re.compile(r"\bModel name: (\S+)")
_PLANNED = re.compile(r"\bmax_steps: (\d{1,15})\b")
_VERSION = re.compile(r"- nemo_automodel: (\d[\w.+]*) \(")
_ADAPTER = re.compile(r"peft:(?:(?<=\npeft:)|(?<=\S[ \t]peft:))[ \t]*\n.{0,199}[ \t]{2}\w+:")
"""With one blank behind what a launcher puts before it: with more it is within another group."""


def _recognizes_steps(head: bytes, name: str) -> int:
    return len(_STEP_LINE.findall(plain(head)))


def _parse_steps(where: str, content: Content) -> tuple[ParsedLog, ...]:
    scan = Scan(content, _MARKER, starts=(_START,))
    settled = marked(where, scan, _MARKER, _reading)
    found = settings_of(scan.sections, _described)
    planned = [one for section in scan.sections for one in _PLANNED.findall(section.text)]
    last = count(planned[-1]) if planned else None
    account = Account(last, scan.epilogue, last_words=scan.last_words, sections=scan.sections)
    log = training_log(_timed(where, settled, found), account)
    timed_by = ("global_batch_size", "sequence_length")
    return (replace(with_settings(log, found), timed_by=timed_by),)


def _described(text: str) -> RunSettings:
    return mentioned(text).described(_known_of(text), _version(text))


def _version(preamble: str) -> str | None:
    """AutoModel's version, which every recipe prints among those of its libraries."""
    found = _VERSION.findall(preamble)
    return found[-1] if found else None


def _reading(piece: Piece) -> Reading | str:
    """A step with its label tokens, whose time is that of one token, until the batch is known."""
    step, rate = _STEP.search(piece.text), _RATE.search(piece.text)
    values = dict(_VALUE.findall(piece.text))
    tokens = count(values.get("num_label_tokens"))
    if not step or not rate or not positive(rate[1]) or not tokens:
        return "a step without its number, 'tps' of all GPUs or 'num_label_tokens'"
    return Reading(
        line=piece.line,
        step=int(step[1]) + 1,
        step_time_s=1 / float(rate[1]),
        loss=real(values.get("loss")),
        grad_norm=real(values.get("grad_norm")),
        peak_memory_bytes=size_bytes(values.get("mem"), 2**30),
        tokens=tokens,
        tokens_per_sec_per_gpu=positive(rate[2]),
    )


def _known_of(preamble: str) -> dict[str, object]:
    """What a recipe says of itself before its first step: a summary, and its YAML."""
    worlds, models = _WORLD.findall(preamble), _MODEL.findall(preamble)
    model = models[-1].rpartition("/")[2] if models else "null"
    name = settings.model(model) if model != "null" else None
    fields = {
        "framework": "automodel",
        "model": name,
        "num_gpus": count(worlds[-1]) if worlds else None,
        "task": "lora" if _ADAPTER.search(preamble) else None,
    }
    return {field: value for field, value in fields.items() if value}


def _timed(where: str, settled: Settled, found: Sequence[tuple[int, RunSettings]]) -> Settled:
    """The steps with their times; without any where it is not certain how many tokens one had."""
    steps = settled.steps
    if not steps:
        return settled
    sizes = np.array([_tokens(one) for _, one in found])
    number = np.array([line for line, _ in found]).searchsorted(steps.line) - 1
    tokens = sizes[number]
    reason, line = _uncertain(steps, tokens)
    if reason:
        message = f"no step time follows from tps: {reason}"
        remedy = "read training.jsonl, which says the tokens of each step"
        problem = Diagnostic(where, message, line=line, remedy=remedy)
        return replace(settled, steps=steps[:0], problems=(*settled.problems, problem))
    return with_times(where, settled, tokens, np.ones(len(steps)))


def _tokens(found: RunSettings) -> float:
    case = found.configuration
    return float((case.global_batch_size or 0) * (case.sequence_length or 0))


def _uncertain(steps: Steps, tokens: Floats) -> tuple[str | None, int]:
    """Why the tokens of a step are not known, and the line that shows it."""
    if not tokens.all():
        first = int(np.flatnonzero(tokens == 0)[0])
        return "the log does not say global batch size and sequence length", int(steps.line[first])
    labels = steps.column("tokens").values
    odd = np.flatnonzero(~(((1 - SHIFTED) * tokens <= labels) & (labels <= tokens)))
    if not len(odd):
        return None, 0
    step = steps[int(odd[0])]
    most = int(tokens[odd[0]])
    return f"step {step.step} has {step.tokens:,} label tokens, its batch up to {most:,}", step.line


_TIME_MARKER, _MEMORY_MARKER = b"Max iter time:", b"Max Memory Allocated:"
_TIME = re.compile(rf"Max iter time: *({NUMBER}){WHOLE}")
_ITERATION = re.compile(r"\| Iteration (\d{1,9}) \|")
_MEMORY = re.compile(rf"Max Memory Allocated: *({NUMBER}){WHOLE}")
_LOSS = re.compile(rf"\bloss=({NUMBER}){WHOLE}")
_PLAN = re.compile(r"Running (\d{1,9}) iterations with (\d{1,9}) warmup steps")
_BATCH = re.compile(
    r"GA steps: (\d+), DP size: (\d+), Local batch size: (\d+), Global batch size: (\d+)"
)
_BENCHMARK_ADAPTER = "PEFT params - lora_params:"
_BEGIN = re.compile(rb"Running \d+ iterations with \d+ warmup steps")
_AVERAGE = re.compile(rf"Average iteration time: *({NUMBER}) seconds")
_MFU = re.compile(rf"Average MFU: *({NUMBER})%")
_TFLOP = re.compile(rf"(?<!MTP )TFLOPs/GPU: *({NUMBER}){WHOLE}")


def _recognizes_benchmark(head: bytes, name: str) -> int:
    text = plain(head)
    rest = text.count(_TIME_MARKER) + text.count(b"Average iteration time:")
    return rest + len(_BEGIN.findall(text))


def _parse_benchmark(where: str, content: Content) -> tuple[ParsedLog, ...]:
    scan, reader = Scan(content, _TIME_MARKER, _MEMORY_MARKER), _Iterations(where)
    printed = steps_of(
        where, (one for block in scan for one in reader.read(block)), reader.problems
    )
    settled, preamble = settle(where, printed, reader.problems), scan.preamble
    plan = _PLAN.search(preamble)
    planned, warmup = (count(plan[1]), int(plan[2])) if plan else (None, 0)
    figures = _averages(scan.epilogue)
    done = figures.step_time_s is not None
    account = Account(planned, scan.epilogue, done, scan.last_words)
    known = _known_of(preamble) | _batch(preamble)
    known |= {"task": "lora"} if _BENCHMARK_ADAPTER in preamble else {}
    found = mentioned(preamble).described(known, _version(preamble))
    log = with_settings(training_log(settled, account, f"skip_warmup({warmup})"), [(0, found)])
    return (_with_averages(where, log, figures, _TFLOP.findall(preamble)),)


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


CONSOLE: Final = LogFormat("automodel_console", _recognizes_steps, _parse_steps)
BENCHMARK: Final = LogFormat("automodel_benchmark", _recognizes_benchmark, _parse_benchmark)
