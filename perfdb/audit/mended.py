"""Which change of one field leaves nothing in a row at odds, or the least."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from math import ceil, floor, lcm
from typing import Any, Final

from perfdb import catalog
from perfdb.audit import equations, layout, rates
from perfdb.audit.interval import Interval, shared
from perfdb.audit.release import Release
from perfdb.audit.subject import FIGURES, SHORT, TOTAL, Subject
from perfdb.catalog import titles
from perfdb.units import percent, significant

Expected = Callable[[Subject], Interval | None]
"""The GFLOP per token that a changed row must count; None where nothing says it."""
Equation = Callable[[Subject], bool | None]
"""Whether a row fulfils it; None where the row does not give all that is in it."""

LENGTHS: Final = tuple(2**power for power in range(9, 21))
"""Sequence lengths that are usual."""
FEW = 8
"""Whole numbers of which the one that most twos divide is usual; of more nobody knows."""
SWAPPED: Final = ("tokens_per_sec_per_gpu", "model_tflops_per_sec_per_gpu")
"""Columns that are side by side, and may be exchanged."""

_ORDER: Final = (
    "data_parallel", "gradient_accumulation", "micro_batch_size", "local_batch_size",
    "global_batch_size", "sequence_length", "num_gpus", *layout.SPLITS, "virtual_pipeline",
)  # fmt: skip
"""In which order the changes of sizes are named."""
_TEXTS: Final[Mapping[str, Callable[[Any], str]]] = {
    "precision": lambda name: f"precision {titles.precision(name)}",
    "system": lambda name: f"system {titles.system(name)}",
    "mfu": lambda share: f"MFU {percent(share, 2)}",
    "step_time_s": lambda seconds: f"step time {significant(seconds, 5)} s",
}


@dataclass(frozen=True)
class Change:
    """New values of a row's fields: of one, or of two that are exchanged."""

    values: Mapping[str, Any]

    def __str__(self) -> str:
        """'GPUs 64'; 'swap them: tokens/s/GPU 3,562, model TFLOP/s/GPU 1,715'."""
        said = ", ".join(_said(field, value) for field, value in self.values.items())
        return f"swap them: {said}" if len(self.values) > 1 else said


def suggestion(
    row: Subject, equation: str, release: Release, expected: Expected | None = None
) -> str | None:
    """The changes that mend an equation of a row, in words; None where nothing determines one."""
    return one_of(changes(row, equation, release, expected))


def one_of(found: Sequence[Change]) -> str | None:
    """Changes of which each is enough, in words."""
    if len(found) < 2:
        return str(found[0]) if found else None
    return "one of: " + ", ".join(map(str, found))


def changes(
    row: Subject, equation: str, release: Release, expected: Expected | None = None
) -> list[Change]:
    """The changes that mend an equation of a row and break none, those that leave least at odds.

    `expected` is what the release says, unless it is given. No change is to a figure above the
    dense peak. Where two figures are exchanged, that alone.
    """
    count = expected or (lambda other: release.expected(other, row))
    holds = _equations(release, count)
    before = _at_odds(row, holds)
    found: list[tuple[int, Change]] = []
    for change in _candidates(row, release, count(row)) if equation in before else ():
        other = row.model_copy(update=dict(change.values))
        left = _at_odds(other, holds) if holds[equation](other) else before
        too_fast = "peak" in left and not {*FIGURES, TOTAL}.isdisjoint(change.values)
        if left < before and not too_fast:
            found.append((len(left), change))
    least = min((number for number, _ in found), default=0)
    best = [change for number, change in found if number == least]
    return [change for change in best if len(change.values) > 1] or best


def _equations(release: Release, count: Expected) -> dict[str, Equation]:
    """Whether each equation of a row holds, by the rule that looks at it."""
    return {
        "data_parallel": equations.splits,
        "virtual_pipeline": equations.virtual_pipeline,
        "gradient_accumulation": equations.batches,
        "throughput": equations.throughput,
        "total_throughput": equations.total_throughput,
        "mfu": equations.mfu,
        "flops_per_token": lambda row: equations.flops_per_token(
            row, release.tokens(row), count(row)
        ),
        "peak": lambda row: equations.peak(row, release.tokens(row)),
    }


def _at_odds(row: Subject, holds: Mapping[str, Equation]) -> frozenset[str]:
    """The equations that do not hold; what cannot be told of a row is no better than at odds."""
    return frozenset(name for name, equation in holds.items() if not equation(row))


def _candidates(row: Subject, release: Release, per_token: Interval | None) -> Iterator[Change]:
    """Changes that one equation or another gives; the others may break by them."""
    for field in (*SWAPPED[:1], TOTAL, "step_time_s", *SWAPPED[1:], "mfu"):
        if row.figure(field) and (value := _figure(row, field, per_token)):
            yield Change({field: value})
    if all(map(row.figure, SWAPPED)):
        yield Change(dict(zip(SWAPPED, map(row.figure, reversed(SWAPPED)), strict=True)))
    lengths = sorted({*LENGTHS, *release.lengths(row.model)})
    of_length = (("sequence_length", length) for length in lengths)
    sizes = {*_sizes(row), *_by_rates(row, per_token), *of_length}
    for field, size in sorted(sizes, key=lambda one: (_ORDER.index(one[0]), one[1])):
        if size >= 1 and getattr(row, field) is not None:
            yield Change({field: size})
    if row.mfu and not row.peak_tflops:
        yield from (Change({"precision": name}) for name in _precisions(row, release))
        yield from (Change({"system": name}) for name in catalog.systems())


def _precisions(row: Subject, release: Release) -> Iterator[str]:
    """For each peak of the system those that the release has there, else the plainest."""
    used = {one.precision for one in release.rows if one.system == row.system}
    for peak in rates.peaks(row):
        names = [one.name for one in catalog.precisions().values() if one.peak == peak]
        yield from [name for name in names if name in used] or names[:1]


def _figure(row: Subject, field: str, per_token: Interval | None) -> float | None:
    """The value of a figure by the others: the one that is known best, within all if it can be."""
    bare = row.model_copy(update={field: None})
    tokens, work = rates.speeds(bare), rates.tflops(bare)
    if field in ("model_tflops_per_sec_per_gpu", "mfu"):
        by_tokens = [one.times(per_token).over(1000) for one in tokens] if per_token else []
        peak = rates.peak_tflops(row) if field == "mfu" else 1.0
        given = [one.over(peak) for one in (*by_tokens, work) if one and peak]
    else:
        given = [_of_all(row, field, one) for one in (*tokens, *_by_work(bare, per_token))]
    if not given:
        return None
    best = min(given, key=lambda one: one.uncertainty)
    common = shared(given) or best
    return min(max(best.value, common.low), common.high)


def _of_all(row: Subject, field: str, tokens: Interval) -> Interval:
    """What tokens/s/GPU make of a figure of the tokens: itself, the total, the step time."""
    if field == "step_time_s":
        return tokens.under(row.global_batch_size * row.sequence_length / row.num_gpus)
    return tokens.times(row.num_gpus if field == TOTAL else 1)


def _sizes(row: Subject) -> Iterator[tuple[str, int]]:
    """Sizes by the layout and the batches."""
    batch, steps, gbs = layout.batch(row), row.gradient_accumulation, row.global_batch_size
    ranks, product = layout.data_parallel(row), layout.model_parallel(row)
    by_batch = gbs // (batch * steps) if batch and steps else None
    for copies in filter(None, (ranks, by_batch)):
        yield "data_parallel", copies
    if batch and ranks:
        yield "gradient_accumulation", gbs // (batch * ranks)
    if steps and ranks:
        yield layout.batch_field(row), gbs // (ranks * steps)
    if batch and steps and ranks:
        yield "global_batch_size", batch * ranks * steps
    for copies in filter(None, (by_batch, row.data_parallel) if layout.known(row) else ()):
        yield "num_gpus", copies * product
        for field in layout.SPLITS:
            yield field, row.num_gpus * layout.size(row, field) // (copies * product)
        if layout.size(row, "pipeline_parallel") == 1:
            yield "virtual_pipeline", 1


def _by_rates(row: Subject, per_token: Interval | None) -> Iterator[tuple[str, int]]:
    """GBS and GPUs with which two rates may agree, where few whole numbers make them."""
    given = [*rates.speeds(row), *_by_work(row, per_token)]
    samples = (layout.batch(row) or 1) * (layout.data_parallel(row) or 1)
    for one, other in permutations(given, 2):
        factor = one.over(other)
        yield from _whole("global_batch_size", factor.times(row.global_batch_size), samples)
        num_gpus = factor.times(row.num_gpus)
        yield from _whole("num_gpus", num_gpus, _unit(row, num_gpus))


def _by_work(row: Subject, per_token: Interval | None) -> list[Interval]:
    """Tokens/s/GPU by the TFLOP/s, where both they and the GFLOP per token are known."""
    work = rates.tflops(row)
    return [work.times(1000).over(per_token)] if work and per_token else []


def _unit(row: Subject, num_gpus: Interval) -> int:
    """What GPUs come in: whole copies of the model, and above one node whole nodes."""
    system, product = catalog.systems().get(row.system), layout.model_parallel(row)
    node = (system and system.gpus_per_node) or 1
    return lcm(product, node) if num_gpus.high > node else product


def _whole(field: str, size: Interval, unit: int) -> list[tuple[str, int]]:
    """The multiple of a unit that a size can be, of some the roundest; none where many can."""
    room = size.with_cut()
    if not room.high - room.low <= FEW * unit:  # nor of what is too large for a number
        return []
    found = (unit * times for times in range(ceil(room.low / unit), floor(room.high / unit) + 1))
    return [(field, max(found, key=lambda whole: whole & -whole, default=0))]


def _said(field: str, value: Any) -> str:
    if field in _TEXTS:
        return _TEXTS[field](value)
    shown = f"{value:,}" if isinstance(value, int) else significant(value)
    return f"{SHORT[field]} {shown}"
