"""Steps whose tokens are not GBS × sequence length, as in fine-tuning on samples of many lengths.

Their rate is all tokens over all time. The FLOPs of a token depend on the length of its sample,
which no step says: TFLOP/s and MFU are unknown. Pure.
"""

from dataclasses import replace
from typing import Final

import numpy as np

from perfdb.db.rows import ResultRow
from perfdb.formats.numbers import positive
from perfdb.formats.piecewise import places
from perfdb.formats.readings import Column, Flags, Floats, Ints, Readings
from perfdb.record import Case
from perfdb.stated import UNEVEN

SAME_TOKENS: Final = 0.01
"""By how much a step's tokens may differ from GBS × sequence length, where labels are shifted."""


def first(lines: Readings, case: Case) -> int | None:
    """The place of the first of a window's steps whose tokens are not GBS × sequence length."""
    tokens = lines.column("tokens")
    expected = case.global_batch_size * case.sequence_length

    def are_odd(values: Ints, known: Flags) -> Flags:
        return np.asarray(known & (np.abs(values / expected - 1) > SAME_TOKENS))

    odd = places(are_odd, tokens.values, tokens.known)
    return int(odd[0]) if len(odd) else None


def rated(result: ResultRow, lines: Readings, spans: Ints) -> ResultRow:
    """A result with the rate of such steps; of others, and of one without figures, as it is.

    Where not every step says its tokens the rate is unknown.
    """
    if result.withheld is not None or first(lines, result.case) is None:
        return result
    rate = _rate(lines.column("tokens"), lines.step_time_s, spans)
    return replace(
        result,
        tokens_per_sec_per_gpu=rate and rate / result.case.num_gpus,
        model_tflops_per_sec_per_gpu=None,
        flops_convention=None,
        mfu=None,
        peak_tflops=None,
        notes=(*result.notes, UNEVEN) if rate else result.notes,
    )


def printed(lines: Readings, spans: Ints) -> float | None:
    """The tokens/s/GPU that a program prints beside its steps, over all of their tokens too."""
    rates, tokens = lines.column("tokens_per_sec_per_gpu"), lines.column("tokens")
    said = rates.known & (rates.values > 0)
    with np.errstate(over="ignore"):
        seconds = tokens.values[said] / rates.values[said]
    return _rate(tokens.at(said), seconds, spans[said])


def _rate(tokens: Column, seconds: Floats, spans: Ints) -> float | None:
    if not tokens.known.all():
        return None
    with np.errstate(over="ignore"):  # times that follow from rates that no program prints
        total, time = np.dot(spans, tokens.values.astype(np.float64)), np.dot(spans, seconds)
    return positive(float(total) / float(time)) if time else None
