"""Which change of one field makes a row consistent, or leaves the least in contradiction."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import permutations
from math import ceil, floor, lcm
from typing import Final

from perfdb import catalog, fields
from perfdb.audit import equations, flop_counts
from perfdb.audit.equations import FIGURES, RATES, SPLITS, TOTAL
from perfdb.audit.interval import Interval, shared
from perfdb.audit.rules import ReleaseRows
from perfdb.catalog import titles
from perfdb.record import Result
from perfdb.units import percent, significant

Expected = Callable[[Result], Interval | None]
"""The GFLOP per token that a changed row must count; None where nothing determines it."""
Equation = Callable[[Result], bool | None]
"""Whether a row fulfils it; None where the row does not state all of its numbers."""
Value = int | float | str
RepairChange = Mapping[str, Value]
"""New values of a row's fields: of one, or of two that are exchanged."""

LENGTHS: Final = tuple(2**power for power in range(9, 21))
"""Sequence lengths that are usual."""
FEW = 8
"""Of at most so many whole numbers the roundest in binary is the usual one."""
_FIGURES: Final = (RATES[0], TOTAL, "step_time_s", RATES[1], "mfu")
_ORDER: Final = (
    "data_parallel", "gradient_accumulation", "micro_batch_size", "local_batch_size",
    "global_batch_size", "sequence_length", "num_gpus", *SPLITS, "virtual_pipeline",
)  # fmt: skip
"""In which order the changes of sizes are named."""


def _text(field: str, value: Value) -> str:
    match field, value:
        case "precision", str(name):
            shown = titles.precision(name)
        case "system", str(name):
            shown = titles.system(name)
        case "mfu", float(share):
            shown = percent(share, 2)
        case "step_time_s", float(seconds):
            shown = f"{significant(seconds, 5)} s"
        case _, int(count):
            shown = f"{count:,}"
        case _:
            shown = significant(float(value))
    return f"{fields.short(field)} {shown}"


def _words(change: RepairChange) -> str:
    """'GPUs 64'; 'swap them: tokens/s/GPU 3,562, model TFLOP/s/GPU 1,715'."""
    texts = ", ".join(_text(field, value) for field, value in change.items())
    return f"swap them: {texts}" if len(change) > 1 else texts


def suggestion(
    row: Result, equation: str, release: ReleaseRows, expected: Expected | None = None
) -> str | None:
    """The changes that repair an equation of a row, in words; None where nothing determines one."""
    return one_of(changes(row, equation, release, expected))


def one_of(found: Sequence[RepairChange]) -> str | None:
    """Changes of which each is enough, in words."""
    words = ", ".join(map(_words, found))
    return f"one of: {words}" if len(found) > 1 else words or None


def changes(
    row: Result, equation: str, release: ReleaseRows, expected: Expected | None = None
) -> list[RepairChange]:
    """The changes that repair an equation of a row and break none, those that leave least wrong.

    `expected` is by default what the release counts. No change makes a figure exceed the dense
    peak. An exchange of two figures, where it helps, comes alone.
    """
    count = expected or (lambda other: release.expected(other, row))
    holds = _equations(release, count)

    def wrong(one: Result) -> frozenset[str]:
        """An equation that cannot be checked is no better than a wrong one."""
        return frozenset(name for name, holds_for in holds.items() if not holds_for(one))

    before = wrong(row)
    found: list[tuple[int, RepairChange]] = []
    for change in _candidates(row, release, count(row)) if equation in before else ():
        other = replace(row, **change)  # type: ignore[arg-type]  # by the names of fields
        left = wrong(other) if holds[equation](other) else before
        too_fast = "peak" in left and not {*FIGURES, TOTAL}.isdisjoint(change)
        if left < before and not too_fast:
            found.append((len(left), change))
    least = min((number for number, _ in found), default=0)
    best = [change for number, change in found if number == least]
    return [change for change in best if len(change) > 1] or best


def _equations(release: ReleaseRows, count: Expected) -> dict[str, Equation]:
    """The equations of a row, by the rule that checks them."""
    return {
        "data_parallel": equations.layout_fits,
        "virtual_pipeline": equations.virtual_pipeline_fits,
        "gradient_accumulation": equations.batches_fit,
        "throughput": equations.throughput_fits,
        "total_throughput": equations.total_fits,
        "mfu": equations.mfu_fits,
        "flops_per_token": lambda row: flop_counts.fits(row, release.tokens(row), count(row)),
        "peak": lambda row: flop_counts.peak_fits(row, release.tokens(row)),
    }


def _candidates(
    row: Result, release: ReleaseRows, per_token: Interval | None
) -> Iterator[RepairChange]:
    """Changes that one equation or another gives; they may break the others."""
    for field in _FIGURES:
        if row.figure(field) and (value := _figure(row, field, per_token)):
            yield {field: value}
    first, second = (row.figure(field) for field in RATES)
    if first and second:
        yield {RATES[0]: second, RATES[1]: first}
    lengths = {one.sequence_length for one in release.rows if one.model == row.model}
    of_length = (("sequence_length", length) for length in (*LENGTHS, *lengths))
    sizes = {*_sizes(row), *_by_rates(row, per_token), *of_length}
    for field, size in sorted(sizes, key=lambda one: (_ORDER.index(one[0]), one[1])):
        if size >= 1 and row.value(field) is not None:
            yield {field: size}
    if row.mfu and not row.peak_tflops:
        yield from ({"precision": name} for name in _precisions(row, release))
        # A DGX may be mistaken for another one, and for no machine of another line.
        line, _, _ = row.system.partition("-")
        names = (name for name in catalog.systems() if name.partition("-")[0] == line)
        yield from ({"system": name} for name in names)


def _precisions(row: Result, release: ReleaseRows) -> Iterator[str]:
    """For each peak of the system those that the release has there, else the plainest."""
    used = {one.precision for one in release.rows if one.system == row.system}
    for peak in equations.peaks(row):
        names = [one.name for one in catalog.precisions().values() if one.peak == peak]
        yield from [name for name in names if name in used] or names[:1]


def _figure(row: Result, field: str, per_token: Interval | None) -> float | None:
    """A figure by the others: the one that is known best, within all of them if it can be."""
    bare = replace(row, **{field: None})  # type: ignore[arg-type]  # a figure may be unknown
    tokens, work = equations.speeds(bare), equations.tflops(bare)
    if field in ("model_tflops_per_sec_per_gpu", "mfu"):
        by_tokens = [one.times(per_token).over(1000) for one in tokens] if per_token else []
        peak = equations.peak_tflops(row) if field == "mfu" else 1.0
        known = [one.over(peak) for one in (*by_tokens, work) if one and peak]
    else:
        rates = (*tokens, *_by_work(bare, per_token))
        if field == "step_time_s":
            known = [one.under(equations.tokens_per_gpu(row)) for one in rates]
        else:
            known = [one.times(row.num_gpus if field == TOTAL else 1) for one in rates]
    if not known:
        return None
    best = min(known, key=lambda one: one.uncertainty)
    common = shared(known) or best
    return min(max(best.value, common.low), common.high)


def _by_work(row: Result, per_token: Interval | None) -> list[Interval]:
    """Tokens/s/GPU by the TFLOP/s, where both they and the GFLOP per token are known."""
    work = equations.tflops(row)
    return [work.times(1000).over(per_token)] if work and per_token else []


def _sizes(row: Result) -> Iterator[tuple[str, int]]:
    """Sizes by the layout and the batches."""
    batch, steps, gbs = equations.batch(row), row.gradient_accumulation, row.global_batch_size
    ranks, product = equations.data_parallel(row), equations.model_parallel(row)
    by_batch = gbs // (batch * steps) if batch and steps else None
    for copies in filter(None, (ranks, by_batch)):
        yield "data_parallel", copies
    if batch and ranks:
        yield "gradient_accumulation", gbs // (batch * ranks)
    if steps and ranks:
        yield equations.batch_field(row), gbs // (ranks * steps)
    if batch and steps and ranks:
        yield "global_batch_size", batch * ranks * steps
    for copies in filter(None, (by_batch, row.data_parallel) if equations.has_layout(row) else ()):
        yield "num_gpus", copies * product
        for field in SPLITS:
            yield field, row.num_gpus * equations.size(row, field) // (copies * product)
    if equations.size(row, "pipeline_parallel") == 1:
        yield "virtual_pipeline", 1


def _by_rates(row: Result, per_token: Interval | None) -> Iterator[tuple[str, int]]:
    """GBS and GPUs with which two rates may agree, where few whole numbers make them.

    GPUs come in whole copies of the model, and above one node in whole nodes.
    """
    system, product = catalog.systems().get(row.system), equations.model_parallel(row)
    node = (system and system.gpus_per_node) or 1
    samples = (equations.batch(row) or 1) * (equations.data_parallel(row) or 1)
    known = [*equations.speeds(row), *_by_work(row, per_token)]
    for one, other in permutations(known, 2):
        factor = one.over(other)
        gpus = factor.times(row.num_gpus)
        unit = lcm(product, node) if gpus.high > node else product
        yield from _whole("global_batch_size", factor.times(row.global_batch_size), samples)
        yield from _whole("num_gpus", gpus, unit)


def _whole(field: str, size: Interval, unit: int) -> list[tuple[str, int]]:
    """The multiple of a unit that a size can be, of some the roundest; none where many can."""
    room = size.with_cut()
    if not room.high - room.low <= FEW * unit:  # nor of what is too large for a number
        return []
    found = (unit * times for times in range(ceil(room.low / unit), floor(room.high / unit) + 1))
    return [(field, max(found, key=lambda whole: whole & -whole, default=0))]
