"""GFLOP per token of a row: by its figures, by its peers, and by the formula of its model."""

import re
from collections.abc import Iterable, Sequence
from functools import cache

from perfdb import catalog, flops
from perfdb.audit.equations import Tokens, limit_tflops, tflops
from perfdb.audit.interval import Interval, agreeing, shared
from perfdb.flops.base import Convention
from perfdb.groups import grouped
from perfdb.record import Result, Task

_ACTIVE = re.compile(r"(?<![a-z0-9])a([0-9]+(?:\.[0-9]+)?)b(?![a-z0-9])")
_SIZE = re.compile(r"(?<![a-z0-9.])(?:([0-9]+)x)?([0-9]+(?:\.[0-9]+)?)b(?![a-z0-9])")
"""The parameters of all experts together: 20 of `gpt3-20b`, 8 × 7 of `8x7b`."""

Counted = tuple[Result, Interval]
"""A row and its GFLOP per token."""
Work = tuple[str, str, str, int, str]


def counted(rows: Sequence[Result], tokens: Tokens) -> list[Counted]:
    """1000 × TFLOP/s ÷ tokens/s of each row that gives both."""
    rates = [(row, tflops(row), tokens(row)) for row in rows]
    return [(row, work.times(1000).over(speed)) for row, work, speed in rates if work and speed]


def work(row: Result) -> Work:
    """What decides the FLOPs of a token: rows that share it must count the same."""
    return (row.model, row.qualifiers, row.task, row.sequence_length, row.variant or "")


def by_work(rows: Sequence[Counted]) -> Iterable[Sequence[Counted]]:
    """The rows that must count the same FLOPs, in the order of their lines."""
    ordered = sorted(rows, key=lambda one: (work(one[0]), one[0].source_line or 0))
    return grouped(ordered, lambda one: work(one[0])).values()


def consensus(group: Sequence[Counted]) -> list[Counted]:
    """The rows that most of a group agree with; by the formula where there is no majority."""
    if majority := agreeing([count for _, count in group]):
        return [group[place] for place in majority]
    return [(row, count) for row, count in group if explaining(row, count)]


def outliers(group: Sequence[Counted], agreed: Sequence[Counted]) -> list[Counted]:
    """The rows that cannot count what all rows that agree can count together.

    A row that is printed coarsely agrees with many numbers, and excuses none of them.
    """
    counts = [count.with_cut() for _, count in agreed]
    common = shared(counts)
    right = [common] if common else counts
    return [one for one in group if not any(one[1].with_cut().agrees(it) for it in right)]


def explaining(row: Result, count: Interval) -> list[Convention]:
    """The conventions with a formula that gives the row's figures."""
    computed = ((one, by_formula(row, one)) for one in flops.CONVENTIONS.values())
    return [one for one, value in computed if value and count.agrees(value)]


def by_formula(row: Result, convention: Convention) -> Interval | None:
    """GFLOP per token by a formula, within 0.1 % for a vocabulary that is padded otherwise.

    A convention that leaves out attention between packed examples leaves it out within them too,
    where it is short: 1.5 % more.
    """
    return _by_formula(row.model, row.sequence_length, row.task, convention)


@cache
def _by_formula(name: str, length: int, task: Task, convention: Convention) -> Interval | None:
    value = _formula(name, length, task, convention)
    more = 0.015 if convention.packed_fine_tuning and task != "pretrain" else 0.0
    return Interval(value, value / 1.001, value / (0.999 - more)) if value else None


def implied_tflops(row: Result, tokens: Interval | None) -> Interval | None:
    """The model TFLOP/s of a row's tokens/s, from the least that a convention counts to the most.

    Its value is the least. Of a model that the catalog lacks it is 6 FLOPs for each parameter that
    its name states to be active, and 4 in LoRA, which computes no gradients of frozen weights.
    Source: Kaplan et al., "Scaling Laws for Neural Language Models", section 2.1.
    """
    counts = _counts(row.model, row.sequence_length, row.task)
    if tokens is None or not counts:
        return None
    least, most = min(counts) / 1000, max(counts) / 1000
    return Interval(tokens.value * least, tokens.low * least, tokens.high * most)


@cache
def _counts(name: str, length: int, task: Task) -> Sequence[float]:
    every = flops.CONVENTIONS.values()
    counts = [count for one in every if (count := _formula(name, length, task, one))]
    if not counts and (billions := _active_billions(name)):
        counts = [billions * (4 if task == "lora" else 6)]
    return counts


def most_per_token(row: Result) -> tuple[float, float] | None:
    """The billions of parameters that the name of an unknown model states, and the most GFLOP.

    6 FLOPs for each parameter, were all active, and as many more for attention as in that model of
    the catalogue, of half the size or more, which has the most at this length. None where the
    catalogue has the model, or the name states no size.
    """
    sizes = [float(many or 1) * float(one) for many, one in _SIZE.findall(row.model)]
    if row.model in catalog.models() or not sizes or max(sizes) == 0:
        return None
    billions = max(sizes)
    return billions, 6 * billions * _most_by_attention(billions, row.sequence_length)


@cache
def _most_by_attention(billions: float, sequence_length: int) -> float:
    """FLOPs of a token at a length ÷ those at length 1: the most of models about as large."""
    full = flops.CONVENTIONS["full"]
    known = [
        (alone, whole / alone)
        for name in catalog.models()
        if (alone := _formula(name, 1, "pretrain", full))
        and (whole := _formula(name, sequence_length, "pretrain", full))
    ]
    largest = max(alone for alone, _ in known)
    return max(more for alone, more in known if alone >= min(3 * billions, largest))


def _active_billions(model: str) -> float | None:
    """The parameters that a name states to be active: 3 of `qwen3-30b-a3b`.

    A size alone may be that of all experts, and bounds nothing.
    """
    found = None if model in catalog.models() else _ACTIVE.search(model)
    return float(found[1]) if found else None


def basis(row: Result) -> str:
    """What `implied_tflops` follows from, in words."""
    billions = _active_billions(row.model)
    if billions is None:
        return "the model's formula"
    factor = 4 if row.task == "lora" else 6
    return f"{factor} FLOPs for each of {billions:g} billion active parameters"


def formula(row: Result, convention: Convention) -> float | None:
    """GFLOP per token by the catalog's shape of the model; None where nothing gives it."""
    return _formula(row.model, row.sequence_length, row.task, convention)


@cache
def _formula(name: str, sequence_length: int, task: Task, convention: Convention) -> float | None:
    model = catalog.models().get(name)
    per_token = model and flops.flops_per_token(model, sequence_length, convention, task)
    return per_token / 1e9 if per_token else None


def stated(row: Result) -> Convention | None:
    """The convention that a row's page or run states; None where it states none."""
    return flops.CONVENTIONS.get(row.flops_convention or "")


def together(counts: Sequence[Interval]) -> Interval:
    """What rows that agree count: what all can together, else what the most exact one does."""
    best = shared(counts) or min(counts, key=lambda one: one.uncertainty)
    room = shared([one.with_cut() for one in counts]) or best.with_cut()
    return Interval(best.value, room.low, room.high)


def fits(row: Result, tokens: Interval | None, expected: Interval | None) -> bool | None:
    """Whether TFLOP/s ÷ tokens/s is the expected GFLOP per token ÷ 1000."""
    achieved = tflops(row)
    if not achieved or not tokens or not expected:
        return None
    return achieved.times(1000).over(tokens).with_cut().agrees(expected)


def peak_fits(row: Result, tokens: Interval | None) -> bool:
    """Whether no rate is above the dense peak, nor what tokens/s come to at the least."""
    limit, achieved = limit_tflops(row), tflops(row)
    computed = [one for one in (achieved, implied_tflops(row, tokens)) if one and limit]
    return (row.mfu or 0) <= 1 and all(one.low <= (limit or 0) for one in computed)
