"""How long a training would take and what it would cost, from the nearest result. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import log
from typing import Final

from perfdb import metrics
from perfdb.record import Result
from perfdb.stated import RATE, figure

FARTHEST: Final = 4.0
"""By how much the GPUs may be more or fewer than those of a result, and the sequence longer or
shorter: beyond it the rate of a GPU is another one (efficiency, attention, layout)."""


@dataclass(frozen=True)
class PlannedTraining:
    """What is to be trained: so many tokens on so many GPUs; None: at any sequence length."""

    tokens: float
    num_gpus: int
    sequence_length: int | None = None
    price_per_gpu_hour: float | None = None


@dataclass(frozen=True)
class Estimate:
    """The nearest result, and what follows if each GPU is as fast as there.

    `distance`: in what it differs from what was asked, in words; empty: it is the same.
    """

    nearest: Result
    tokens_per_sec_per_gpu: float
    days: float
    gpu_hours: float
    cost: float | None
    distance: tuple[str, ...]


def estimate(results: Iterable[Result], asked: PlannedTraining) -> Estimate | None:
    """From the nearest of some results of one model, system and precision; None: none is near.

    The nearest has the fewest times more or fewer GPUs and the nearest sequence length; of
    several the fastest. Errors of the audit and unknown rates are left out.
    """
    usable = [
        (it, rate)
        for it in results
        if it.counts and not it.has_open_errors and (rate := figure(it, RATE))
        and max(_times(it, asked)) <= FARTHEST
    ]  # fmt: skip
    if not usable:
        return None
    it, rate = min(usable, key=lambda one: (sum(map(log, _times(one[0], asked))), -one[1]))
    hours = metrics.gpu_hours(asked.tokens, rate)
    price = asked.price_per_gpu_hour
    return Estimate(
        nearest=it,
        tokens_per_sec_per_gpu=rate,
        days=metrics.days_to_train(asked.tokens, rate * asked.num_gpus),
        gpu_hours=hours,
        cost=None if price is None else hours * price,
        distance=tuple(_distance(it, asked)),
    )


def _times(it: Result, asked: PlannedTraining) -> tuple[float, float]:
    """How many times as many, or as few, the GPUs and the tokens of a sequence are."""
    sequence = asked.sequence_length or it.sequence_length
    pairs = ((it.num_gpus, asked.num_gpus), (it.sequence_length, sequence))
    gpus, tokens = (max(pair) / min(pair) for pair in pairs)
    return gpus, tokens


def _distance(it: Result, asked: PlannedTraining) -> Iterator[str]:
    if it.num_gpus != asked.num_gpus:
        gpus, _ = _times(it, asked)
        way = "fewer" if it.num_gpus < asked.num_gpus else "more"
        yield f"measured on {it.num_gpus:,} GPUs, {gpus:.3g} times {way} than asked"
    if asked.sequence_length and it.sequence_length != asked.sequence_length:
        yield f"at sequence length {it.sequence_length:,} instead of {asked.sequence_length:,}"
