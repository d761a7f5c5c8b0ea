"""The same work on more and more GPUs: which results are that, and how well they scale."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import product
from operator import itemgetter
from typing import Final, Generic, Literal, TypeVar, get_args

from perfdb import metrics
from perfdb.groups import grouped
from perfdb.record import Result
from perfdb.stated import figure

Key = TypeVar("Key")
Some = TypeVar("Some", bound=Result)
Rate = Literal["tokens_per_sec_per_gpu", "model_tflops_per_sec_per_gpu"]
RATES: Final[Sequence[Rate]] = get_args(Rate)
Scaling = Literal["weak", "strong"]
SCALINGS: Final[Sequence[Scaling]] = get_args(Scaling)

_NODES: Final = re.compile(r"\d+[- ]nodes?")


@dataclass(frozen=True)
class Scaled(Generic[Some]):
    """The same work on two or more numbers of GPUs, in ascending order, the best of each.

    Weak: the global batch grows with the GPUs. Strong: it stays as it is. `rate` is the figure
    that all of them know. `wrong` counts the rows with open errors, of which none is among them.
    """

    scaling: Scaling
    rate: Rate
    points: tuple[Some, ...]
    wrong: int


def series_of(results: Iterable[Some]) -> Iterator[Scaled[Some]]:
    """Every way in which results are the same work at several scales, weak scaling first."""
    by_rate = grouped(
        results, lambda one: next((it for it in RATES if figure(one, it) is not None), None)
    )
    for scaling, rate in product(SCALINGS, RATES):
        same = grouped(by_rate.get(rate, ()), partial(same_work, scaling=scaling))
        for some in same.values():
            best = best_of_each(some, rate, lambda one: one.num_gpus)
            if len(best) > 1:
                points = tuple(best[count] for count in sorted(best))
                yield Scaled(scaling, rate, points, sum(one.has_open_errors for one in some))


def same_work(result: Result, scaling: Scaling) -> tuple[object, ...]:
    """What stays the same: last the samples of each GPU, or those of all."""
    gpus = result.num_gpus if scaling == "weak" else 1
    return (
        result.task, result.variant, qualifiers(result), result.origin, result.precision,
        result.sequence_length, Fraction(result.global_batch_size, gpus),
    )  # fmt: skip


def efficiency(points: Iterable[Result], rate: Rate) -> dict[int, float]:
    """The rate of each GPU as a share of that at the smallest scale, by number of GPUs."""
    return metrics.scaling_efficiency({it.num_gpus: figure(it, rate) or 0.0 for it in points})


def best_of_each(
    results: Iterable[Some], metric: str, key: Callable[[Some], Key]
) -> dict[Key, Some]:
    """For each key the result of the highest figure; rows with open errors are left out."""
    figures = [(figure(it, metric), it) for it in results if not it.has_open_errors]
    known = [(value, it) for value, it in figures if value is not None]
    return {key(it): it for _, it in sorted(known, key=itemgetter(0))}


def qualifiers(result: Result) -> str:
    """What sets its model apart, without '2-node', which only repeats the number of GPUs."""
    every = result.qualifiers.split(", ")
    return ", ".join(one for one in every if not _NODES.fullmatch(one))
