"""Golden values of functional and performance tests, and the arguments of such a test.

Megatron-LM: JSON with a metric by name, `{"iteration-time": {"start_step": 1, …, "values": {…}}}`,
and model_config.yaml with the arguments and environment of the run; it is no account of a run but
completes what the golden values state. Source: Megatron-LM, tests/functional_tests.

Megatron-Bridge: `{"0": {"lm loss": …, "elapsed time per iteration (ms)": …, "GPU utilization": …},
…, "max_alloc": …}`: a step's key is its iteration less one, the utilization is model TFLOP/s of a
GPU, and memory is there once, in GB. Several such objects may be under names, as `baseline` and
`current`: each is a result. Source: scripts/performance/utils/evaluate.py.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import PurePath
from typing import Final

import numpy as np

from perfdb.errors import Diagnostic
from perfdb.formats import documents, settings
from perfdb.formats.base import Content, LogFormat, ParsedLog, nothing, showing
from perfdb.formats.columns import Reading, StepColumn
from perfdb.formats.numbers import count, positive, real, size_bytes
from perfdb.formats.settle import sampled_note, settle, steps_of, training_log
from perfdb.record import Figures, Outcome, PartialCase

_TIME, _AVERAGE = "iteration-time", "iteration_timing_avg"
_LOSS, _MEMORY = "lm loss", "mem-max-allocated-bytes"
_MEGATRON: Final = PartialCase(framework="megatron-lm")

_STEP_TIME: Final = "elapsed time per iteration (ms)"
_NORM, _RATE, _PEAK = "grad norm", "GPU utilization", "max_alloc"
_SKIPPED: Final = 0.7
"""The share of the steps that Megatron-Bridge's own comparison leaves out at the start."""
_BRIDGE: Final = PartialCase(framework="megatron-bridge")
_STEP: Final = (
    rb'"\d+"\s*:\s*\{[^{}]*?"(?:elapsed time per iteration \(ms\)|GPU utilization|lm loss)"\s*:'
)
_is_of_bridge: Final = showing(rb"\A\s*\{", _STEP)


class _Config(documents.ForeignDocument):
    MODEL_ARGS: Mapping[str, object]
    ENV_VARS: Mapping[str, object] = {}


def _recognizes_megatron(head: bytes, name: str) -> int:
    """By the name, which an empty file has too, or by the first metric."""
    if PurePath(name).suffix != ".json" or _is_of_bridge(head, name):
        return False
    is_named = "golden" in PurePath(name).name
    return is_named or documents.has_keys(head, "start_step", "end_step", "step_interval")


def _parse_megatron(where: str, content: Content) -> tuple[ParsedLog, ...]:
    found = documents.json_object(where, content)
    if isinstance(found, Diagnostic):
        return nothing(found, _MEGATRON)
    if not found:
        message, remedy = "an empty object: no value was recorded", "record the values again"
        return nothing(Diagnostic(where, message, line=1, remedy=remedy), _MEGATRON)
    losses, memory = _series(found.get(_LOSS)), _series(found.get(_MEMORY))
    readings = [
        # The file has one line for each value or only one: its lines say nothing.
        Reading(1, step, seconds, losses.get(step), None, size_bytes(memory.get(step)))
        for step, seconds in _series(found.get(_TIME)).items()
        if not math.isnan(seconds)
    ]
    if readings:
        # The windows that Megatron-LM's own comparison takes the median over (common.py).
        last = max(reading.step for reading in readings)
        window = "window(5,20)" if last <= 25 else "window(30,45)"
        return (_log_of(where, readings, _MEGATRON, window),)
    if average := positive(found.get(_AVERAGE)):
        figures = Figures(step_time_s=average)
        log = ParsedLog(_MEGATRON, identity=documents.identity(found), emitted=figures)
        return (replace(log, outcome=Outcome.FINISHED),)
    if _TIME in found:
        message = (
            f"no time of a step: the values of {_TIME!r} are neither numbers by step nor a list "
            f"that start_step, end_step and step_interval number"
        )
        return nothing(Diagnostic(where, message, remedy="record the values again"), _MEGATRON)
    metrics = ", ".join(map(repr, list(found)[:5]))
    message = f"no time of a step: there is no {_TIME!r} with a value, only {metrics}"
    return nothing(Diagnostic(where, message, remedy="is it of an inference test?"), _MEGATRON)


def _log_of(
    where: str, readings: list[Reading], who: PartialCase, window: str, peak: int | None = None
) -> ParsedLog:
    problems: list[Diagnostic] = []
    settled = settle(where, steps_of(where, readings, problems), problems)
    steps = settled.steps
    if peak and steps:
        first = [peak, *[None] * (len(steps) - 1)]
        steps = steps.with_columns(peak_memory_bytes=StepColumn.of(first, np.int64))
    notes = (*settled.notes, *sampled_note(where, steps.step))
    settled = replace(settled, steps=steps, notes=notes)
    return replace(training_log(settled, ParsedLog(who), done=True), window=window)


def _series(metric: object) -> dict[int, float]:
    """The values of a metric by step, from 1; empty if it has another layout.

    Up to 0.10 they are a list of one value in `step_interval`, counted from 0.
    """
    if not isinstance(metric, dict):
        return {}
    values = metric.get("values")
    if isinstance(values, list):
        end, interval = count(metric.get("end_step")), count(metric.get("step_interval"))
        is_numbered = end and interval and metric.get("start_step") == 0
        steps = range(1, (end or 0) + 1, interval or 1) if is_numbered else range(0)
        values = dict(zip(steps, values, strict=True)) if len(steps) == len(values) else {}
    if not isinstance(values, dict):
        return {}
    series = {count(step): real(value) for step, value in values.items()}
    return {step: value for step, value in series.items() if step and value is not None}


def _parse_bridge(where: str, content: Content) -> tuple[ParsedLog, ...]:
    found = documents.json_object(where, content)
    if isinstance(found, Diagnostic):
        return nothing(found, _BRIDGE)
    results = []
    for one in (found, *(one for one in found.values() if isinstance(one, dict))):
        if readings := list(_of_numbers(one)):
            steps = [reading.step for reading in readings]
            # A window counts from the first step that there is, the comparison from step 1.
            skipped = max(0, int(_SKIPPED * max(steps)) + 1 - min(steps))
            window, peak = f"skip_warmup({skipped})", size_bytes(one.get(_PEAK), 1e9)
            results.append(_log_of(where, readings, _BRIDGE, window, peak))
    if not results:
        message = f"no time of a step: there is no {_STEP_TIME!r} under a step's number"
        return nothing(Diagnostic(where, message, remedy="record the values again"), _BRIDGE)
    return tuple(results)


def _of_numbers(found: Mapping[str, object]) -> Iterator[Reading]:
    """The steps of an object with numbers for keys."""
    for key, values in found.items():
        seconds = positive(values.get(_STEP_TIME)) if isinstance(values, dict) else None
        if isinstance(values, dict) and seconds and re.fullmatch(r"\d{1,15}", key):
            yield Reading(
                line=1,
                step=int(key) + 1,
                step_time_s=seconds / 1000,
                loss=real(values.get(_LOSS)),
                grad_norm=real(values.get(_NORM)),
                model_tflops_per_sec_per_gpu=positive(values.get(_RATE)),
            )


def _parse_config(where: str, content: Content) -> tuple[ParsedLog, ...]:
    # A few real files give an argument twice; the loader of these tests keeps the last.
    found = documents.yaml_document(where, content, _Config, keep_last=True)
    if isinstance(found, Diagnostic):
        return nothing(found, _MEGATRON)
    document, config = found
    arguments = {
        name.lstrip("-").replace("-", "_"): str(value) for name, value in config.MODEL_ARGS.items()
    }
    log = ParsedLog(
        configuration=settings.configuration(arguments, framework="megatron-lm"),
        environment=documents.texts(config.ENV_VARS),
        doubts=settings.doubts(arguments),
        notes=tuple(
            replace(one, message="given twice: the last is taken", remedy=None)
            for one in document.repeated
        ),
    )
    return (log,)


MEGATRON: Final = LogFormat("megatron_golden", _recognizes_megatron, _parse_megatron, is_json=True)
BRIDGE: Final = LogFormat("megatron_bridge_golden", _is_of_bridge, _parse_bridge, is_json=True)
CONFIG: Final = LogFormat("megatron_config", showing(rb"(?m)^MODEL_ARGS:[ \t]*$"), _parse_config)
