"""GFLOP per token must follow the model's formula under the convention stated, or the usual one."""

from collections import Counter
from collections.abc import Iterator, Sequence

from perfdb import flops
from perfdb.audit import flop_counts, rates, remedy
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

FOLLOWERS = 2
"""Rows that must follow a convention before another is blamed for counting otherwise."""
DETAIL = 1.05
"""Up to here it can be a detail of the architecture that is counted otherwise."""
TWICE = 1.8
"""No way to count FLOPs is so far from another: recomputation adds a third, LoRA takes one."""


def check(rows: Sequence[Subject]) -> Iterator[Remark]:
    """One remark for each row that its formula does not explain and its peers agree with."""
    counted = flop_counts.counted(rows, rates.reader(rows))
    usual, followers = flop_counts.convention_of(counted), flop_counts.followers(counted)
    for group in flop_counts.by_work(counted):
        for one in flop_counts.consensus(group):
            if _speaks(one, usual):
                yield _remark(one, usual, followers)


def _speaks(one: Counted, usual: Convention | None) -> bool:
    row, given = one
    convention = flop_counts.stated(row) or usual or flops.DEFAULT
    has_formula = flop_counts.formula(row, convention) is not None
    return has_formula and convention not in flop_counts.explaining(row, given.with_cut())


def _remark(one: Counted, usual: Convention | None, followers: Counter[Convention]) -> Remark:
    row, given = one
    convention = flop_counts.stated(row) or usual or flops.DEFAULT
    expected = flop_counts.formula(row, convention) or 0.0
    factor = given.value / expected
    others = [it.name for it in flop_counts.explaining(row, given)]
    off = max(given.low / expected, expected / given.high)
    followed = followers[convention] >= FOLLOWERS
    severity = Severity.INFO if others or not followed else _severity(off)
    return Remark(
        row,
        severity,
        ("model_tflops_per_sec_per_gpu", "tokens_per_sec_per_gpu"),
        f"{significant(expected)} GFLOP per token ({convention.name})",
        f"{given} GFLOP per token",
        f"{titles.model(row.model)} {titles.task(row.task)} at {row.sequence_length:,} on "
        f"{titles.system(row.system)} counts {significant(given.value)} GFLOP per token, "
        f"{factor:.3g} times the formula under {convention.name!r}, {_whose(row, usual)}; "
        f"{_explained(others)}",
        None if severity is Severity.INFO else remedy.of_count(row, factor),
    )


def _severity(off: float) -> Severity:
    if off < DETAIL:
        return Severity.INFO
    return Severity.WARNING if off < TWICE else Severity.ERROR


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
