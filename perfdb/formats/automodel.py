"""AutoModel: the consoles of its training and benchmark recipes, training.jsonl, and summaries.

A training recipe prints `step 0 | epoch 0 | loss 2.5 | … | tps 1028.12(…)`. Steps count from 0.
`tps` is tokens per second of all GPUs, padding left out, and how many tokens a step had is not
printed. Its time follows if the label tokens, which are at most as many, are all that the global
batch can have; of other data training.jsonl has more.
Source: nemo_automodel/recipes/llm/train_ft.py and base_recipe.py, 0.1.0 to 0.7.0.

training.jsonl has an object for each step, counted from 0. A step's time is not in it: it is
num_tokens_per_step / tps. Tokens vary from step to step, so a rate over steps is the sum of tokens
over the sum of times. Up to 0.6.0 `tps_per_gpu` divides by data and context parallelism only: with
tensor or pipeline parallelism it is too high.
Source: nemo_automodel/components/loggers/metric_logger.py, 0.1.0 to 0.7.0.

The benchmark recipe prints the longest step of any rank, and averages. It writes a summary as JSON,
which CI collects in groups. `TFLOPs/GPU:` and `tflops_per_gpu`, up to 0.6.0, are not what their
names say: they are the TFLOP of one global step over all GPUs; since 0.7.0 that is `tflops_total`.
The rate of a GPU follows from it in two ways that must agree: over time and GPUs, and from MFU and
the peak.
Source: nemo_automodel/recipes/llm/benchmark.py, 0.2.0 to 0.7.0.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Final

import numpy as np
from pydantic import Field

from perfdb.errors import Diagnostic
from perfdb.formats import documents, settings
from perfdb.formats.base import Content, LogFormat, ParsedLog, nothing, showing
from perfdb.formats.columns import Reading
from perfdb.formats.numbers import (
    NUMBER,
    WHOLE,
    count,
    finite,
    percent,
    positive,
    real,
    size_bytes,
)
from perfdb.formats.scan import Block, Piece, Scan, pieces
from perfdb.formats.settle import Settled, marked, settle, steps_of, training_log, with_times
from perfdb.formats.steplines import MOST_KEPT
from perfdb.record import MOST, Figures, Outcome, PartialCase

FRAMEWORK: Final = "automodel"
SHIFTED: Final = 0.01
"""By how much label tokens may fall short of all: a sample's last token has no label."""
TOLERANCE: Final = 0.005
"""By how much the two ways to a GPU's rate may differ: the printed figures are rounded."""

_START: Final = b"Experiment_details:"
_MARKER: Final = b"| tps "
_STEP: Final = re.compile(r"\bstep (\d{1,15}) \| epoch \d+ \|")
_STEP_LINE: Final = rb"\bstep \d+ \| epoch \d+ \| [^\n]*?\| tps [\d.]+"
_VALUE: Final = re.compile(rf"\| (loss|grad_norm|mem|num_label_tokens) ({NUMBER}){WHOLE}")
_RATE: Final = re.compile(rf"\| tps ({NUMBER})(?!/gpu)(?:\(({NUMBER})/gpu\))?{WHOLE}")
_WORLD: Final = re.compile(r"\bWorld size: (\d{1,9})\b")
_MODEL: Final = re.compile(r"\bModel name: (\S+)")
_PLANNED: Final = re.compile(r"\bmax_steps: (\d{1,15})\b")
_VERSION: Final = re.compile(r"- nemo_automodel: (\d[\w.+]*) \(")
_ADAPTER: Final = re.compile(r"(?m)^peft:[ \t]*\n[ \t]+\w+:")
_LORA_PARAMS: Final = "PEFT params - lora_params:"


def _described(text: str, **known: object) -> ParsedLog:
    """What a recipe prints of itself before its first step: a summary, and its YAML."""
    worlds, models = _WORLD.findall(text), _MODEL.findall(text)
    name = models[-1].rpartition("/")[2] if models else "null"
    is_lora = _ADAPTER.search(text) or _LORA_PARAMS in text
    fields: dict[str, object] = {
        "framework": FRAMEWORK,
        "model": settings.model(name) if name != "null" else None,
        "num_gpus": count(worlds[-1]) if worlds else None,
        "task": "lora" if is_lora else None,
        **known,
    }
    stated = {field: value for field, value in fields.items() if value}
    log, versions = settings.described(text, stated), _VERSION.findall(text)
    return replace(log, framework_version=versions[-1] if versions else None)


def _parse_steps(where: str, content: Content) -> tuple[ParsedLog, ...]:
    scan = Scan(content, _MARKER, starts=(_START,))
    settled = marked(where, scan, _MARKER, _reading)
    text = "".join(scan.sections(settled.first_line))
    log, planned = _described(text), _PLANNED.findall(text)
    settled = _timed(settled, log.configuration)
    log = training_log(settled, log, scan, planned=count(planned[-1]) if planned else None)
    return (replace(log, timed_by=("global_batch_size", "sequence_length")),)


def _reading(piece: Piece) -> Reading | str:
    """A step with its label tokens; its time is that of one token, until the batch is known."""
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


def _timed(settled: Settled, case: PartialCase) -> Settled:
    """The steps with their times; without any if it is not certain how many tokens each had."""
    steps, most = settled.steps, (case.global_batch_size or 0) * (case.sequence_length or 0)
    labels = steps.column("tokens").values
    odd = np.flatnonzero(~(((1 - SHIFTED) * most <= labels) & (labels <= most)))
    if most and not len(odd):
        return with_times(settled, most)
    if not steps:
        return settled
    step, reason = steps[0], "the log does not say global batch size and sequence length"
    if most:
        step = steps[int(odd[0])]
        labelled = f"step {step.step} has {step.tokens:,} label tokens"
        reason = f"{labelled}, its batch up to {most:,}"
    message = f"no step time follows from tps: {reason}"
    remedy = "read training.jsonl, which says the tokens of each step"
    problem = Diagnostic(settled.where, message, line=step.line, remedy=remedy)
    return replace(settled, steps=steps[:0], problems=(*settled.problems, problem))


_DECODER: Final = json.JSONDecoder()
_JSON_MARKER: Final = b'"step":'
_JSON_LINE: Final = rb'\{"step": *\d+, [^\n]*?"tps": *[\d.eE+\-]+'


def _parse_training(where: str, content: Content) -> tuple[ParsedLog, ...]:
    scan = Scan(content, _JSON_MARKER)
    settled = marked(where, scan, _JSON_MARKER, _json_reading, is_appended=True)
    if settled.steps:
        rates = (
            "up to 0.6.0 is tokens per second over data and context parallelism: with tensor or "
            "pipeline parallelism it is too high, and it is not taken for a result"
        )
        end = "the file does not say how many steps there were to be: a killed run loses the last "
        notes = (Diagnostic(where, rates, field="tps_per_gpu"), Diagnostic(where, f"{end}ones"))
        settled = replace(settled, notes=(*settled.notes, *notes))
    # The file holds steps and nothing else: if the last is whole, that is all it can tell.
    last = int(settled.steps.line.max(initial=0))
    is_whole = not any((problem.line or 0) > last for problem in settled.problems)
    log = ParsedLog(PartialCase(framework=FRAMEWORK))
    return (training_log(settled, log, done=is_whole),)


def _json_reading(piece: Piece) -> Reading | str:
    try:
        values, _ = _DECODER.raw_decode(piece.text, max(piece.text.find("{"), 0))
    except (ValueError, RecursionError):
        return "a step that is not JSON"
    if not isinstance(values, dict):
        return "a step that is not a JSON object"
    number, rate = finite(values.get("step")), positive(values.get("tps"))
    # The recipe for diffusion language models has another word for it.
    tokens = count(values.get("num_tokens_per_step", values.get("tokens_per_step")))
    if number is None or number < 0 or not tokens or not rate:
        return "a step without 'step', 'num_tokens_per_step' or 'tps': its time does not follow"
    return Reading(
        line=piece.line,
        step=int(number) + 1,
        step_time_s=tokens / rate,
        loss=real(values.get("loss")),
        grad_norm=real(values.get("grad_norm")),
        peak_memory_bytes=size_bytes(values.get("mem"), 2**30),
        tokens=tokens,
        tokens_per_sec_per_gpu=positive(values.get("tps_per_gpu")),
        mfu=percent(values.get("mfu")),
    )


_TIME_MARKER, _MEMORY_MARKER = b"Max iter time:", b"Max Memory Allocated:"
_TIME: Final = re.compile(rf"Max iter time: *({NUMBER}){WHOLE}")
_ITERATION: Final = re.compile(r"\| Iteration (\d{1,9}) \|")
_MEMORY: Final = re.compile(rf"Max Memory Allocated: *({NUMBER}){WHOLE}")
_LOSS: Final = re.compile(rf"\bloss=({NUMBER}){WHOLE}")
_PLAN: Final = re.compile(r"Running (\d{1,9}) iterations with (\d{1,9}) warmup steps")
_BATCH: Final = re.compile(
    r"GA steps: (\d+), DP size: (\d+), Local batch size: (\d+), Global batch size: (\d+)"
)
_AVERAGE: Final = re.compile(rf"Average iteration time: *({NUMBER}) seconds")
_MFU: Final = re.compile(rf"Average MFU: *({NUMBER})%")
_BENCHMARK: Final = (
    rb"Running \d+ iterations with \d+ warmup steps|Max iter time:|Average iteration time:"
)
_TFLOP: Final = re.compile(rf"(?<!MTP )TFLOPs/GPU: *({NUMBER}){WHOLE}")


def _parse_benchmark(where: str, content: Content) -> tuple[ParsedLog, ...]:
    scan, reader = Scan(content, _TIME_MARKER, _MEMORY_MARKER), _Iterations(where)
    printed = steps_of(
        where, (one for block in scan for one in reader.read(block)), reader.problems
    )
    settled, text, end = settle(where, printed, reader.problems), scan.preamble, scan.epilogue
    plan, time, mfu = _PLAN.search(text), _AVERAGE.search(end), _MFU.search(end)
    tflop, batch = _TFLOP.search(text), _BATCH.search(text)
    names = ("gradient_accumulation", "data_parallel", "local_batch_size", "global_batch_size")
    sizes = dict(zip(names, map(count, batch.groups()), strict=True)) if batch else {}
    figures = Figures(
        step_time_s=positive(time[1]) if time else None, mfu=percent(mfu[1]) if mfu else None
    )
    planned, done = count(plan[1]) if plan else None, figures.step_time_s is not None
    log = training_log(settled, _described(text, **sizes), scan, planned=planned, done=done)
    log = replace(log, window=f"skip_warmup({int(plan[2]) if plan else 0})", emitted=figures)
    if tflop and positive(tflop[1]):
        message = f"'TFLOPs/GPU: {tflop[1]}' is the TFLOP of one step over all GPUs, not a rate"
        log = replace(log, notes=(*log.notes, Diagnostic(where, message)))
    if log.outcome is Outcome.NO_DATA and figures.step_time_s:
        log = replace(log, outcome=Outcome.FINISHED, error=None)
    return (log,)


class _Iterations:
    """Joins what two lines say of an iteration: a rank's memory and loss, and the longest time.

    Iterations are counted from 0. If no rank says which iteration it is, the times are counted.
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
            if _TIME_MARKER.decode() not in piece.text:
                self._note(piece)
            elif time := _TIME.search(piece.text):
                self._num_times += 1
                step = self._num_times if self._iteration is None else self._iteration + 1
                seconds, memory = float(time[1]), self._memory
                yield Reading(piece.line, step, seconds, self._loss, peak_memory_bytes=memory)
            elif len(self.problems) < MOST_KEPT:
                message, remedy = "'Max iter time:' without a number", "is the line cut off?"
                problem = Diagnostic(self._where, message, line=piece.line, remedy=remedy)
                self.problems.append(problem)

    def _note(self, piece: Piece) -> None:
        iteration, memory = _ITERATION.search(piece.text), _MEMORY.search(piece.text)
        loss = _LOSS.search(piece.text)
        if iteration and int(iteration[1]) != self._iteration:
            self._iteration, self._loss, self._memory = int(iteration[1]), None, None
        self._loss = float(loss[1]) if loss else self._loss
        peak = size_bytes(memory[1], 2**30) if memory else None
        self._memory = max(peak or 0, self._memory or 0) or None


_GROUPS: Final = ("metadata", "config", "results")
_KEYS: Final = rb'"avg_iter_time_seconds"\s*:|' + rb"[\s\S]*".join(
    rb'"%s"\s*:' % name.encode() for name in _GROUPS
)
"""What a summary has, or that of CI in this order."""


class _Summary(documents.ForeignDocument):
    """The fields of both files; the one of CI has them in three groups."""

    world_size: int | None = None
    warmup_steps: Annotated[int, Field(ge=0, le=MOST)] | None = None
    avg_iter_time_seconds: float | None = None
    avg_mfu_percent: float | None = None
    tflops_per_gpu: float | None = None
    tflops_total: float | None = None
    flops_scope: str | None = None
    peak_tflops: float | None = None
    global_batch_size: int | None = None
    local_batch_size: int | None = None
    seq_len: int | None = None
    tp_size: int | None = None
    cp_size: int | None = None
    pp_size: int | None = None
    ep_size: int | None = None
    model_name: str | None = None
    fp8: object = None
    peft: object = None
    backend_attn: object = None
    backend_linear: object = None
    backend_experts: object = None
    backend_dispatcher: object = None


def _parse_summary(where: str, content: Content) -> tuple[ParsedLog, ...]:
    found = documents.json_object(where, content)
    if isinstance(found, Diagnostic):
        return nothing(found)
    groups = [found.get(name) for name in _GROUPS]
    inner = {key: one for group in groups if isinstance(group, dict) for key, one in group.items()}
    summary = documents.checked(where, {**found, **inner}, _Summary)
    if isinstance(summary, Diagnostic):
        return nothing(summary)
    time = positive(summary.avg_iter_time_seconds)
    model = settings.model(summary.model_name)
    known = {name: one for name, one in {
        "framework": FRAMEWORK, "model": model, "task": "lora" if summary.peft else None,
    }.items() if one}  # fmt: skip
    configuration = settings.configuration(
        documents.texts(summary.model_dump(exclude_none=True)), **known
    )
    if time is None:
        message = "no step time: the benchmark did not come to its end"
        return nothing(Diagnostic(where, message, field="avg_iter_time_seconds"), configuration)
    rate, problems = _rate(where, summary, time)
    scope = "the text backbone alone is counted, in TFLOP/s and in MFU"
    mfu = percent(summary.avg_mfu_percent)
    log = ParsedLog(
        configuration=configuration,
        identity=documents.identity(found),
        emitted=Figures(step_time_s=time, model_tflops_per_sec_per_gpu=rate, mfu=mfu),
        peak_tflops=positive(summary.peak_tflops),
        window=f"skip_warmup({summary.warmup_steps or 0})",
        outcome=Outcome.FINISHED,
        problems=problems,
        notes=(Diagnostic(where, scope, field="flops_scope"),) * (summary.flops_scope == "text"),
    )
    return (log,)


def _rate(
    where: str, summary: _Summary, time: float
) -> tuple[float | None, tuple[Diagnostic, ...]]:
    """TFLOP/s of a GPU. AutoModel's CI writes a TFLOP of 0 where it does not know."""
    tflop = positive(summary.tflops_total) or positive(summary.tflops_per_gpu)
    world = count(summary.world_size)
    mfu, peak = percent(summary.avg_mfu_percent), positive(summary.peak_tflops)
    over_time = positive(tflop / (world * time)) if tflop and world else None
    of_peak = positive(peak * mfu) if peak and mfu else None
    if over_time and of_peak and abs(over_time / of_peak - 1) > TOLERANCE:
        message = (
            f"{over_time:.2f} TFLOP/s/GPU follow from the TFLOP of a step, "
            f"{of_peak:.2f} from MFU and peak"
        )
        remedy = "neither is taken: was another number of GPUs or another peak meant?"
        return None, (Diagnostic(where, message, field="tflops_per_gpu", remedy=remedy),)
    return over_time or of_peak, ()


CONSOLE: Final = LogFormat("automodel_console", showing(_STEP_LINE), _parse_steps)
TRAINING: Final = LogFormat(
    "automodel_training", showing(_JSON_LINE), _parse_training, is_json=True
)
BENCHMARK: Final = LogFormat("automodel_benchmark", showing(_BENCHMARK), _parse_benchmark)
SUMMARY: Final = LogFormat(
    "automodel_summary", showing(rb"\A\s*\{", _KEYS), _parse_summary, is_json=True
)
