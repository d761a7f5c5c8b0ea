"""GFLOP per token must follow the model's formula under the convention stated, or the usual one."""

from collections.abc import Iterator, Sequence

from perfdb import flops
from perfdb.audit import flop_counts, rates, workload
from perfdb.audit.flop_counts import Counted
from perfdb.audit.subject import Remark, Severity, Subject
from perfdb.catalog import titles
from perfdb.flops.base import Convention
from perfdb.units import significant

NAME = "flops_formula"
MEANING = (
    "GFLOP per token is what the model's formula gives under the FLOPs convention that is stated, "
    "else under the one that most rows of the release follow"
)


def check(rows: Sequence[Subject]) -> Iterator[Remark]:
    """One remark for each model, task and sequence length that its formula does not explain."""
    counted = flop_counts.counted(rows, rates.reader(rows))
    usual = flop_counts.convention_of(counted)
    for group in flop_counts.by_work(counted):
        unexplained = [one for one in flop_counts.consensus(group) if _speaks(one, usual)]
        if unexplained:
            yield _remark(unexplained, usual)


def _speaks(one: Counted, usual: Convention | None) -> bool:
    row, given = one
    convention = flop_counts.stated(row) or usual
    has_formula = flop_counts.formula(row, convention or flops.DEFAULT) is not None
    return has_formula and convention not in flop_counts.explaining(row, given)


def _remark(group: Sequence[Counted], usual: Convention | None) -> Remark:
    row, given = group[0]
    convention = flop_counts.stated(row) or usual or flops.DEFAULT
    expected = flop_counts.formula(row, convention) or 0.0
    factor = given.value / expected
    rows = [one for one, _ in group]
    others = [one.name for one in flop_counts.explaining(row, given)]
    return Remark(
        row,
        Severity.INFO,
        ("model_tflops_per_sec_per_gpu", "tokens_per_sec_per_gpu"),
        f"{significant(expected)} GFLOP per token ({convention.name})",
        f"{given} GFLOP per token",
        f"{titles.model(row.model)} {titles.task(row.task)} at {row.sequence_length:,} on "
        f"{workload.names(rows)} counts {significant(given.value)} GFLOP per token, {factor:.3g} "
        f"times the formula under {convention.name!r}, {_whose(row, usual)}; {_explained(others)}",
    )


def _whose(row: Subject, usual: Convention | None) -> str:
    """Where the convention is from that a row is held against."""
    if flop_counts.stated(row):
        return "the convention that is stated for it"
    if usual:
        return "the convention that most rows of this release follow, as the audit infers"
    return "the default, as no convention is stated and none explains a row of this release"


def _explained(others: Sequence[str]) -> str:
    """The plainest convention that does explain it."""
    return f"it follows {others[0]!r}" if others else "no convention explains it"
