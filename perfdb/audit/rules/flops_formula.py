"""GFLOP per token must follow the formula of the model under the release's convention."""

from collections.abc import Iterator, Sequence

from perfdb import flops
from perfdb.audit import flop_counts, rates, workload
from perfdb.audit.flop_counts import Counted
from perfdb.audit.subject import Remark, Severity, Subject
from perfdb.catalog import titles
from perfdb.flops.base import Convention
from perfdb.units import significant

NAME = "flops_formula"
MEANING = "GFLOP per token is what the model's formula gives under the release's FLOPs convention"


def check(rows: Sequence[Subject]) -> Iterator[Remark]:
    """One remark for each model, task and sequence length that its formula does not explain."""
    counted = flop_counts.counted(rows, rates.reader(rows))
    usual = flop_counts.convention_of(counted)
    for group in flop_counts.by_work(counted):
        unexplained = [one for one in flop_counts.consensus(group) if _speaks(one, usual)]
        if unexplained:
            yield _remark(unexplained, usual or flops.DEFAULT)


def _speaks(one: Counted, usual: Convention | None) -> bool:
    row, given = one
    has_formula = flop_counts.formula(row, usual or flops.DEFAULT) is not None
    return has_formula and usual not in flop_counts.explaining(row, given)


def _remark(group: Sequence[Counted], usual: Convention) -> Remark:
    row, given = group[0]
    expected = flop_counts.formula(row, usual) or 0.0
    factor = given.value / expected
    rows = [one for one, _ in group]
    others = [one.name for one in flop_counts.explaining(row, given)]
    return Remark(
        row,
        Severity.INFO,
        ("model_tflops_per_sec_per_gpu", "tokens_per_sec_per_gpu"),
        f"{significant(expected)} GFLOP per token ({usual.name})",
        f"{given} GFLOP per token",
        f"{titles.model(row.model)} {titles.task(row.task)} at {row.sequence_length:,} on "
        f"{workload.names(rows)} counts {significant(given.value)} GFLOP per token, {factor:.3g} "
        f"times the formula under {usual.name!r}, the release's convention; {_explained(others)}",
    )


def _explained(others: Sequence[str]) -> str:
    """The plainest convention that does explain it."""
    return f"it follows {others[0]!r}" if others else "no convention explains it"
