"""GFLOP per token must be the same for a model, task and sequence length on every system."""

from collections.abc import Iterator, Sequence
from math import log
from statistics import median

from perfdb.audit import flop_counts, mended, workload
from perfdb.audit.flop_counts import Counted
from perfdb.audit.interval import shared
from perfdb.audit.release import Release
from perfdb.audit.subject import Remark, Subject
from perfdb.groups import grouped
from perfdb.units import significant, told_apart

NAME = "flops_per_token"
MEANING = (
    "TFLOP/s ÷ tokens/s is the same for a model, task and sequence length across the systems of a "
    "release"
)
FIELDS = ("tokens_per_sec_per_gpu", "model_tflops_per_sec_per_gpu")
FIELDS_BY_MFU = ("tokens_per_sec_per_gpu", "mfu", "precision")

CLEAR = 1.3
"""A figure is out of step where it is off by such a factor, as models alone seldom make it,"""
NEARER = 3
"""and the other one so many times nearer to what the systems' other work makes likely."""


def check(rows: Sequence[Subject]) -> Iterator[Remark]:
    """Rows that count other FLOPs per token than their peers, beyond rounding."""
    release = Release(rows)
    for group in flop_counts.by_work(release.counted):
        agreed = flop_counts.consensus(group)
        if agreed:
            outliers = flop_counts.outliers(group, agreed)
            yield from (_remark(one, agreed, release) for one in outliers)
        else:
            yield from _undecided(group)


def _remark(one: Counted, agreed: Sequence[Counted], release: Release) -> Remark:
    row, given = one
    peers, counts = [peer for peer, _ in agreed], [count for _, count in agreed]
    expected = shared(counts) or min(counts, key=lambda count: count.uncertainty)
    factor = given.value / expected.value
    here, there = workload.apart(row, peers)
    return Remark(
        row,
        workload.severity(factor - 1),
        FIELDS if row.model_tflops_per_sec_per_gpu else FIELDS_BY_MFU,
        f"{expected} GFLOP per token",
        f"{given} GFLOP per token",
        f"{here} counts {significant(given.value)} GFLOP per token, "
        f"{there} {significant(expected.value)}: {_factor(factor)}",
        mended.one_of(_changes(row, factor, peers, release)),
    )


def _factor(factor: float) -> str:
    """'2.0 times as much: tokens/s halved, or TFLOP/s doubled'."""
    times = f"{told_apart(factor, 1, 3)[0]} times as much"
    if abs(factor / 2 - 1) < 0.02:
        return f"{times}: tokens/s halved, or TFLOP/s doubled"
    return f"{times}: tokens/s doubled, or TFLOP/s halved" if abs(factor * 2 - 1) < 0.02 else times


def _changes(
    row: Subject, factor: float, peers: Sequence[Subject], release: Release
) -> list[mended.Change]:
    """The changes that mend a row, without the one of a rate that is in step with other work.

    With it, where models that scale a little differently could put either rate out of step.
    """
    found = mended.changes(row, NAME, release)
    tokens, predicted = row.tokens_per_sec_per_gpu, _predicted(row, peers, release.rows)
    if not tokens or not row.model_tflops_per_sec_per_gpu or not predicted:
        return found
    likely = median(predicted)
    if_right, if_wrong = abs(log(tokens / likely)), abs(log(tokens * factor / likely))
    if max(if_right, if_wrong) < max(log(CLEAR), NEARER * min(if_right, if_wrong)):
        return found
    right = FIELDS[0] if if_right < if_wrong else FIELDS[1]
    return [change for change in found if list(change.values) != [right]] or found


def _predicted(row: Subject, peers: Sequence[Subject], rows: Sequence[Subject]) -> list[float]:
    """A row's tokens/s by each peer's and by how the two systems compare in other work."""
    of_row = _speeds(rows, row.system, flop_counts.work(row))
    found = []
    for system, of_system in grouped(peers, lambda peer: peer.system).items():
        of_peer = _speeds(rows, system, flop_counts.work(row))
        ratios = [of_row[work] / of_peer[work] for work in of_row.keys() & of_peer.keys()]
        speeds = (peer.tokens_per_sec_per_gpu for peer in of_system)
        found += [speed * median(ratios) for speed in speeds if speed and ratios]
    return found


def _speeds(
    rows: Sequence[Subject], system: str, without: tuple[object, ...]
) -> dict[tuple[object, ...], float]:
    return {
        flop_counts.work(row): row.tokens_per_sec_per_gpu
        for row in rows
        if row.system == system and row.tokens_per_sec_per_gpu and flop_counts.work(row) != without
    }


def _undecided(group: Sequence[Counted]) -> Iterator[Remark]:
    """Rows that disagree where nothing says which of them is right."""
    (row, given), *others = sorted(group, key=lambda one: one[1].value, reverse=True)
    lowest = others[-1][1] if others else given
    if given.with_cut().agrees(lowest.with_cut()):
        return
    factor = given.value / lowest.value
    here, other = workload.apart(row, [others[-1][0]])
    yield Remark(
        row,
        workload.severity(factor - 1),
        FIELDS,
        f"{lowest} GFLOP per token, as on {other}",
        f"{given} GFLOP per token",
        f"{here} counts {significant(given.value)} GFLOP per token, "
        f"{other} {significant(lowest.value)}: {_factor(factor)}; one is wrong",
    )
