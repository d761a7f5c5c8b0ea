"""Megatron-Bridge's golden values: JSON with what each step printed, from its performance tests.

`{"0": {"lm loss": …, "elapsed time per iteration (ms)": …, "GPU utilization": …}, …, "max_alloc":
…}`: a step's key is its iteration less one, the utilization is model TFLOP/s of a GPU, and memory
is told once, in GB. Several such objects may stand under names, as `baseline` and `current`: each
is a result. Source: scripts/performance/utils/evaluate.py.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from perfdb.errors import Diagnostic
from perfdb.formats.base import Content, ParsedLog, Reading
from perfdb.formats.documents import json_object, nothing
from perfdb.formats.ending import Account, training_log
from perfdb.formats.numbers import positive, real, size_bytes
from perfdb.formats.spans import sampled_note
from perfdb.formats.steps import settle
from perfdb.record import PartialCase

NAME = "megatron_bridge_golden"

_TIME: Final = "elapsed time per iteration (ms)"
_LOSS, _NORM, _RATE, _PEAK = "lm loss", "grad norm", "GPU utilization", "max_alloc"
_SKIPPED: Final = 0.7
"""The share of the steps that Megatron-Bridge's own comparison leaves out at the start."""
_WHO = PartialCase(framework="megatron-bridge")
_STEP = re.compile(
    rb'"\d+"\s*:\s*\{[^{}]*?"(?:elapsed time per iteration \(ms\)|GPU utilization|lm loss)"\s*:'
)


def recognises(head: bytes, name: str) -> bool:
    """Whether a step's values stand under its number among the first bytes of a JSON object."""
    return head.lstrip()[:1] == b"{" and bool(_STEP.search(head))


def parse(where: str, content: Content) -> tuple[ParsedLog, ...]:
    """A result for each object that has steps."""
    found = json_object(where, content)
    if isinstance(found, Diagnostic):
        return nothing(found, _WHO)
    results = [_of_steps(where, one) for one in _with_steps(found)]
    if not results:
        message = f"no time of a step: there is no {_TIME!r} under a step's number"
        return nothing(Diagnostic(where, message, remedy="record the values again"), _WHO)
    return tuple(results)


def _with_steps(found: Mapping[str, object]) -> Iterator[Mapping[str, object]]:
    """The file's own object, or those in it, where they have steps with times."""
    inner = [one for one in found.values() if isinstance(one, dict)]
    for one in (found, *inner):
        if any(_readings(one)):
            yield one


def _of_steps(where: str, found: Mapping[str, object]) -> ParsedLog:
    steps = settle(where, _readings(found))
    peak = size_bytes(found.get(_PEAK), 1e9)
    told = [one._replace(peak_memory_bytes=peak) for one in steps.readings[:1]]
    notes = (*steps.notes, *sampled_note(where, steps.readings))
    steps = replace(steps, readings=(*told, *steps.readings[1:]), notes=notes)
    first = min((one.step for one in steps.readings), default=1)
    last = max((one.step for one in steps.readings), default=0)
    # A window counts from the first step that there is, the comparison from step 1.
    window = f"skip_warmup({max(0, int(_SKIPPED * last) + 1 - first)})"
    return training_log(_WHO, steps, Account(None, done=True), window)


def _readings(found: Mapping[str, object]) -> Iterator[Reading]:
    for key, said in found.items():
        seconds = positive(said.get(_TIME)) if isinstance(said, dict) else None
        if isinstance(said, dict) and seconds and re.fullmatch(r"\d{1,15}", key):
            yield Reading(
                # The file has one line for each value or only one: its lines say nothing.
                line=1,
                step=int(key) + 1,
                step_time_s=seconds / 1000,
                loss=real(said.get(_LOSS)),
                grad_norm=real(said.get(_NORM)),
                model_tflops_per_sec_per_gpu=positive(said.get(_RATE)),
            )
