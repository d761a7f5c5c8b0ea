"""Megatron-LM's golden values: JSON with a series for each metric, from its functional tests.

Today `{metric: {start_step, end_step, step_interval, values: {"1": v | "nan"}}}`; before that the
values were a list, and the time one average. `iteration-time` is in seconds, unlike in the log; a
time of "nan" is one that was not logged. Source: tests/functional_tests.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import PurePath

from perfdb.errors import Diagnostic
from perfdb.formats import megatron_bridge_golden
from perfdb.formats.base import Content, ParsedLog, Reading
from perfdb.formats.documents import has_keys, identity, json_object, nothing
from perfdb.formats.ending import Account, training_log
from perfdb.formats.numbers import count, positive, real, size_bytes
from perfdb.formats.spans import sampled_note
from perfdb.formats.steps import settle
from perfdb.record import Figures, Outcome, PartialCase

NAME = "megatron_golden"

_TIME, _AVERAGE = "iteration-time", "iteration_timing_avg"
_LOSS, _MEMORY = "lm loss", "mem-max-allocated-bytes"
_WHO = PartialCase(framework="megatron-lm")


def recognises(head: bytes, name: str) -> bool:
    """Whether the name says so, which an empty file has too, or the first metric looks like it."""
    if PurePath(name).suffix != ".json" or megatron_bridge_golden.recognises(head, name):
        return False
    return "golden" in PurePath(name).name or has_keys(
        head, "start_step", "end_step", "step_interval"
    )


def parse(where: str, content: Content) -> tuple[ParsedLog, ...]:
    """The one result. An empty file or object is a result without data."""
    found = json_object(where, content)
    if isinstance(found, Diagnostic):
        return nothing(found, _WHO)
    if not found:
        message = "an empty object: no value was recorded"
        return nothing(Diagnostic(where, message, line=1, remedy="record the values again"), _WHO)
    readings = list(_readings(found))
    if readings:
        return (_of_steps(where, readings),)
    average = positive(found.get(_AVERAGE))
    return (_of_average(average, found),) if average else nothing(_no_time(where, found), _WHO)


def _of_steps(where: str, readings: list[Reading]) -> ParsedLog:
    steps = settle(where, readings)
    steps = replace(steps, notes=(*steps.notes, *sampled_note(where, steps.readings)))
    # The windows that Megatron-LM's own comparison takes the median over (common.py).
    last = max((reading.step for reading in steps.readings), default=0)
    window = "window(5,20)" if last <= 25 else "window(30,45)"
    return training_log(_WHO, steps, Account(None, done=True), window)


def _of_average(average: float, found: Mapping[str, object]) -> ParsedLog:
    return ParsedLog(
        configuration=_WHO,
        identity=identity(found),
        emitted=Figures(step_time_s=average),
        outcome=Outcome.FINISHED,
    )


def _no_time(where: str, found: Mapping[str, object]) -> Diagnostic:
    metrics = ", ".join(map(repr, list(found)[:5]))
    message = f"no time of a step: there is no {_TIME!r} with a value, only {metrics}"
    return Diagnostic(where, message, remedy="is it of an inference test?")


def _readings(found: Mapping[str, object]) -> Iterator[Reading]:
    losses, memory = _series(found.get(_LOSS)), _series(found.get(_MEMORY))
    for step, seconds in _series(found.get(_TIME)).items():
        if not math.isnan(seconds):
            peak = size_bytes(memory.get(step))
            # The file has one line for each value or only one: its lines say nothing.
            yield Reading(1, step, seconds, loss=losses.get(step), peak_memory_bytes=peak)


def _series(metric: object) -> dict[int, float]:
    """The values of a metric by step, from 1; empty where it has no such shape."""
    values = metric.get("values") if isinstance(metric, dict) else None
    if not isinstance(values, dict):
        return {}
    series = {count(step): real(value) for step, value in values.items()}
    return {step: value for step, value in series.items() if step and value is not None}
