"""AutoModel's files of JSON: the results of its benchmark recipe, and training.jsonl.

The benchmark recipe writes a summary, and CI collects it in groups. Up to 0.6.0 `tflops_per_gpu` is
the TFLOP of one global step over all GPUs; since 0.7.0 that is `tflops_total`. The rate of a GPU
follows from it in two ways that must agree: over time and GPUs, and from MFU and the peak.
Source: nemo_automodel/recipes/llm/benchmark.py, 0.2.0 to 0.7.0.

training.jsonl has an object for each step, counted from 0. A step's time is not in it: it is
num_tokens_per_step / tps. Tokens vary from step to step, so a rate over steps is the sum of tokens
over the sum of times. Up to 0.6.0 `tps_per_gpu` divides by data and context parallelism only: with
tensor or pipeline parallelism it is too high.
Source: nemo_automodel/components/loggers/metric_logger.py, 0.1.0 to 0.7.0.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Final

from pydantic import Field

from perfdb.errors import Diagnostic
from perfdb.formats import settings
from perfdb.formats.attempts import training_log
from perfdb.formats.base import Content, LogFormat, ParsedLog, nothing
from perfdb.formats.columns import Reading
from perfdb.formats.documents import (
    ForeignDocument,
    checked,
    has_keys,
    identity,
    json_object,
    texts,
)
from perfdb.formats.numbers import count, finite, percent, positive, real, size_bytes
from perfdb.formats.outcome import Account
from perfdb.formats.scan import Piece, Scan
from perfdb.formats.settle import Settled, marked
from perfdb.log_text import plain
from perfdb.record import MOST, Figures, Outcome, PartialCase

TOLERANCE: Final = 0.005
"""By how much the two ways to a GPU's rate may differ: the printed figures are rounded."""


class _Summary(ForeignDocument):
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


def _recognizes_summary(head: bytes, name: str) -> int:
    return head.lstrip()[:1] == b"{" and (
        has_keys(head, "avg_iter_time_seconds") or has_keys(head, "metadata", "config", "results")
    )


def _parse_summary(where: str, content: Content) -> tuple[ParsedLog, ...]:
    found = json_object(where, content)
    if isinstance(found, Diagnostic):
        return nothing(found)
    summary = checked(where, _flat(found), _Summary)
    if isinstance(summary, Diagnostic):
        return nothing(summary)
    time = positive(summary.avg_iter_time_seconds)
    configuration = _configuration(summary)
    if time is None:
        message = "no step time: the benchmark did not come to its end"
        return nothing(Diagnostic(where, message, field="avg_iter_time_seconds"), configuration)
    rate, problems = _rate(where, summary, time)
    log = ParsedLog(
        configuration=configuration,
        identity=identity(found),
        emitted=Figures(
            step_time_s=time,
            model_tflops_per_sec_per_gpu=rate,
            mfu=percent(summary.avg_mfu_percent),
        ),
        window=f"skip_warmup({summary.warmup_steps or 0})",
        outcome=Outcome.FINISHED,
        problems=problems,
        notes=_scope_note(where, summary),
    )
    return (log,)


def _flat(found: Mapping[str, object]) -> dict[str, object]:
    """The fields of all groups; a file without groups has them itself."""
    groups = [found.get(name) for name in ("metadata", "config", "results")]
    inner = {
        key: value for group in groups if isinstance(group, dict) for key, value in group.items()
    }
    return {**found, **inner}


def _configuration(summary: _Summary) -> PartialCase:
    values = texts(summary.model_dump(exclude_none=True))
    fields = {
        "model": settings.model(summary.model_name),
        "task": "lora" if summary.peft else None,
    }
    known = {name: value for name, value in fields.items() if value}
    return settings.configuration(values, framework="automodel", **known)


def _rate(
    where: str, summary: _Summary, time: float
) -> tuple[float | None, tuple[Diagnostic, ...]]:
    """TFLOP/s of a GPU. Upstream's CI writes a TFLOP of 0 where it does not know."""
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


def _scope_note(where: str, summary: _Summary) -> tuple[Diagnostic, ...]:
    if summary.flops_scope != "text":
        return ()
    message = "the text backbone alone is counted, in TFLOP/s and in MFU"
    return (Diagnostic(where, message, field="flops_scope"),)


_DECODER = json.JSONDecoder()
_MARKER = b'"step":'
_LINE = re.compile(rb'\{"step": *\d+, [^\n]*?"tps": *[\d.eE+\-]+')


def _recognizes_training(head: bytes, name: str) -> int:
    return len(_LINE.findall(plain(head)))


def _parse_training(where: str, content: Content) -> tuple[ParsedLog, ...]:
    settled = marked(where, Scan(content, _MARKER), _MARKER, _reading, is_appended=True)
    # The file holds steps and nothing else: where the last is whole, that is all it can tell.
    account = Account(None, done=not _is_cut_off(settled))
    settled = replace(settled, notes=(*settled.notes, *_notes(where, settled)))
    log = training_log(settled, account)
    return (replace(log, configuration=PartialCase(framework="automodel")),)


def _reading(piece: Piece) -> Reading | str:
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


def _is_cut_off(settled: Settled) -> bool:
    last_step = int(settled.steps.line.max(initial=0))
    return any((problem.line or 0) > last_step for problem in settled.problems)


def _notes(where: str, settled: Settled) -> tuple[Diagnostic, ...]:
    if not settled.steps:
        return ()
    rates = (
        "up to 0.6.0 is tokens per second over data and context parallelism: with tensor or "
        "pipeline parallelism it is too high, and it is not taken for a result"
    )
    end = "the file does not say how many steps there were to be: a killed run loses the last ones"
    return (Diagnostic(where, rates, field="tps_per_gpu"), Diagnostic(where, end))


SUMMARY: Final = LogFormat("automodel_summary", _recognizes_summary, _parse_summary, is_json=True)
TRAINING: Final = LogFormat(
    "automodel_training", _recognizes_training, _parse_training, is_json=True
)
