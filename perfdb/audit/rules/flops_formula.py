"""GFLOP per token must follow the model's formula under the convention stated, or the usual one."""

from collections import Counter
from collections.abc import Iterator, Sequence

from perfdb import flops
from perfdb.audit import flop_counts, mended, rates
from perfdb.audit.flop_counts import Counted
from perfdb.audit.interval import Interval
from perfdb.audit.release import Release
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
FAR = 0.01
"""Nearer to the formula than this, a ratio needs more digits to tell them apart."""
TWICE = 1.8
"""No way to count FLOPs is so far from another: recomputation adds a third, LoRA takes one."""


def check(rows: Sequence[Subject]) -> Iterator[Remark]:
    """One remark for each row that its formula does not explain and its peers can agree with."""
    release = Release(rows)
    followers = flop_counts.followers(release.counted)
    for group in flop_counts.by_work(release.counted):
        # Where all disagree and no formula explains one, none excuses the others.
        agreed = flop_counts.consensus(group)
        outliers = flop_counts.outliers(group, agreed) if agreed else []
        told = {id(row) for row, _ in outliers}
        for one in group:
            if id(one[0]) not in told and _speaks(one, release.usual):
                yield _remark(one, release, followers)


def _speaks(one: Counted, usual: Convention | None) -> bool:
    row, given = one
    convention = flop_counts.stated(row) or usual or flops.DEFAULT
    has_formula = flop_counts.formula(row, convention) is not None
    return has_formula and convention not in flop_counts.explaining(row, given.with_cut())


def _remark(one: Counted, release: Release, followers: Counter[Convention]) -> Remark:
    row, given = one
    convention = flop_counts.stated(row) or release.usual or flops.DEFAULT
    expected = flop_counts.formula(row, convention) or 0.0
    factor = given.value / expected
    explained = _explained(row, given)
    off = max(given.low / expected, expected / given.high)
    is_followed = followers[convention] >= FOLLOWERS
    is_sure = off >= TWICE or is_followed
    severity = _severity(off) if is_sure and not explained else Severity.INFO
    if severity is Severity.INFO and is_followed and _has_other_length(one, convention, release):
        severity = Severity.WARNING
    return Remark(
        row,
        severity,
        ("model_tflops_per_sec_per_gpu", "tokens_per_sec_per_gpu"),
        f"{significant(expected)} GFLOP per token ({convention.name})",
        f"{given} GFLOP per token",
        f"{titles.model(row.model)} {titles.task(row.task)} at {row.sequence_length:,} on "
        f"{titles.system(row.system)} counts {significant(given.value)} GFLOP per token, "
        f"{_times(factor)} the formula under {convention.name!r}, "
        f"{_whose(row, release.usual)}; {explained or 'no convention explains it'}",
        None if severity is Severity.INFO else _suggestion(row, convention, release),
    )


def _has_other_length(one: Counted, convention: Convention, release: Release) -> bool:
    """Whether it counts what the convention gives at a length that other rows of its model have.

    Attention in full is what is counted causally at twice the length: a row that is alone with
    another convention rather has a wrong length. It is not, where its model has it at another one.
    """
    row, given = one
    lengths = release.lengths(row.model) - {row.sequence_length}
    peers = [it for it in release.counted if it[0].model == row.model]
    elsewhere = flop_counts.followers([it for it in peers if it[0].sequence_length in lengths])
    others = (row.model_copy(update={"sequence_length": length}) for length in lengths)
    counts = (flop_counts.by_formula(other, convention) for other in others)
    has_length = any(count and given.agrees(count) for count in counts)
    return has_length and elsewhere.keys().isdisjoint(flop_counts.explaining(row, given))


def _times(factor: float) -> str:
    return f"{significant(factor, 3 if abs(factor - 1) > FAR else 5)} times"


def _suggestion(row: Subject, convention: Convention, release: Release) -> str | None:
    def expected(other: Subject) -> Interval | None:
        return flop_counts.by_formula(other, convention)

    return mended.suggestion(row, "flops_per_token", release, expected)


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


def _explained(row: Subject, given: Interval) -> str | None:
    """The plainest convention that does explain it, or does by an MFU of a lower peak."""
    if others := flop_counts.explaining(row, given):
        return f"it follows {others[0].name!r}"
    own = 0.0 if row.model_tflops_per_sec_per_gpu else rates.peak_tflops(row) or 0.0
    lower = {name: it.tflops for name, it in rates.peaks(row).items() if it.tflops < own}
    for name, peak in lower.items():
        if others := flop_counts.explaining(row, given.times(peak / own)):
            of = f"its MFU is of the system's peak at {titles.precision(name)}"
            return f"it follows {others[0].name!r} if {of}"
    return None
