"""Steps whose tokens are not GBS × sequence length, as in fine-tuning on samples of many lengths.

Their rate is all tokens over all time. The FLOPs of a token depend on the length of its sample,
which no step says: TFLOP/s and MFU are unknown. Pure.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import fsum
from typing import Final

import numpy as np

from perfdb.db.rows import ResultRow
from perfdb.formats import piecewise
from perfdb.formats.numbers import positive
from perfdb.formats.piecewise import Array, pieces
from perfdb.formats.readings import Flags, Floats, Ints, Readings
from perfdb.record import Case
from perfdb.stated import UNEVEN

_Steps = tuple[Array, ...]
"""Tokens of some steps and which are known, the steps' seconds, and how often each of them counts.
"""

SAME_TOKENS: Final = 0.01
"""By how much a step's tokens may differ from GBS × sequence length, where labels are shifted."""


def first(lines: Readings, case: Case) -> int | None:
    """The place of the first of a window's steps whose tokens are not GBS × sequence length."""
    tokens = lines.column("tokens")
    expected = case.global_batch_size * case.sequence_length

    def are_odd(values: Ints, known: Flags) -> Flags:
        return np.asarray(known & (np.abs(values / expected - 1) > SAME_TOKENS))

    return piecewise.first(are_odd, tokens.values, tokens.known)


def rated(result: ResultRow, lines: Readings, spans: Ints) -> ResultRow:
    """A result with the rate of such steps; of others, and of one without figures, as it is.

    Where not every step says its tokens the rate is unknown.
    """
    if result.withheld is not None or first(lines, result.case) is None:
        return result
    tokens = lines.column("tokens")
    rate = _rate(lambda: pieces(tokens.values, tokens.known, lines.step_time_s, spans))
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
    columns = (rates.values, rates.known, tokens.values, tokens.known, spans)

    def said() -> Iterator[_Steps]:
        for rate, is_said, values, known, some in pieces(*columns):
            is_rate = is_said & (rate > 0)
            with np.errstate(over="ignore"):  # of rates that no program prints
                seconds = values[is_rate] / rate[is_rate]
            yield values[is_rate], known[is_rate], seconds, some[is_rate]

    return _rate(said)


def _rate(steps: Callable[[], Iterator[_Steps]]) -> float | None:
    if not all(known.all() for _, known, _, _ in steps()):
        return None
    try:
        total = fsum(one for values, _, _, spans in steps() for one in _each(values, spans))
        time = fsum(one for _, _, seconds, spans in steps() for one in _each(seconds, spans))
    except OverflowError:
        return None
    return positive(total / time) if time else None


def _each(values: Floats | Ints, spans: Ints) -> Sequence[float]:
    with np.errstate(over="ignore"):
        each: list[float] = (values.astype(np.float64) * spans).tolist()
    return each
