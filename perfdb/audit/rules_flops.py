"""Rules over FLOPs: how many a token has, and how near they come to the peak of the GPU."""

from collections.abc import Iterator, Sequence
from math import log
from statistics import median

from perfdb import catalog, flops
from perfdb.audit import base, equations, flop_counts, repair
from perfdb.audit.base import ReleaseRows, Rule, identity
from perfdb.audit.equations import TOTAL
from perfdb.audit.flop_counts import Counted
from perfdb.audit.interval import Interval, figure, shared, shown
from perfdb.audit.repair import RATES
from perfdb.catalog import titles
from perfdb.flops.base import Convention
from perfdb.groups import grouped
from perfdb.record import Finding, Result, Severity
from perfdb.units import percent, significant, told_apart

CLEAR = 1.3
"""A figure is out of step where it is off by such a factor, as models alone seldom make it,"""
NEARER = 3
"""and the other one so many times nearer to what the systems' other work makes likely."""


def _flops_per_token(release: ReleaseRows) -> Iterator[Finding]:
    """Rows that count other FLOPs per token than their peers, beyond rounding."""
    for one, agreed in release.outliers:
        yield _outlier(one, agreed, release)
    for group in flop_counts.by_work(release.counted):
        if not flop_counts.consensus(group):
            yield from _undecided(group)


def _outlier(one: Counted, agreed: Sequence[Counted], release: ReleaseRows) -> Finding:
    row, count = one
    peers, counts = [peer for peer, _ in agreed], [each for _, each in agreed]
    expected = shared(counts) or min(counts, key=lambda each: each.uncertainty)
    factor = count.value / expected.value
    here, there = _apart(row, peers)
    by_mfu = ("tokens_per_sec_per_gpu", "mfu", "precision")
    return Finding(
        **identity("flops_per_token", row),
        severity=base.severity(factor - 1),
        fields=RATES if row.model_tflops_per_sec_per_gpu else by_mfu,
        expected=f"{expected} GFLOP per token",
        found=f"{count} GFLOP per token",
        message=f"{here} counts {significant(count.value)} GFLOP per token, "
        f"{there} {significant(expected.value)}: {_factor(factor)}",
        suggestion=repair.one_of(_changes(row, factor, peers, release)),
    )


def _undecided(group: Sequence[Counted]) -> Iterator[Finding]:
    """Rows that disagree where nothing determines which of them is right."""
    (row, count), *others = sorted(group, key=lambda one: one[1].value, reverse=True)
    other, lowest = others[-1] if others else (row, count)
    if count.with_cut().agrees(lowest.with_cut()):
        return
    factor = count.value / lowest.value
    here, there = _apart(row, [other])
    yield Finding(
        **identity("flops_per_token", row),
        severity=base.severity(factor - 1),
        fields=RATES,
        expected=f"{lowest} GFLOP per token, as on {there}",
        found=f"{count} GFLOP per token",
        message=f"{here} counts {significant(count.value)} GFLOP per token, "
        f"{there} {significant(lowest.value)}: {_factor(factor)}; one is wrong",
    )


def _apart(row: Result, others: Sequence[Result]) -> tuple[str, str]:
    """How a row and others are named in a sentence: by their systems, else also by their GPUs."""
    if all(other.system != row.system for other in others):
        names = dict.fromkeys(titles.system(other.system) for other in others)
        return base.name(row), ", ".join(names)
    precision = f" in {titles.precision(row.precision)}" if row.precision else ""
    systems = grouped(others, lambda other: other.system).values()
    return f"{base.name(row)} with {row.num_gpus:,} GPUs{precision}", ", ".join(map(_gpus, systems))


def _gpus(rows: Sequence[Result]) -> str:
    """'DGX-H100 with 16 to 2,048 GPUs'."""
    sizes = [row.num_gpus for row in rows]
    most = f" to {max(sizes):,}" if min(sizes) < max(sizes) else ""
    return f"{titles.system(rows[0].system)} with {min(sizes):,}{most} GPUs"


def _factor(factor: float) -> str:
    """'2.0 times as much: tokens/s halved, or TFLOP/s doubled'."""
    times = f"{told_apart(factor, 1, 3)[0]} times as much"
    if abs(factor / 2 - 1) < 0.02:
        return f"{times}: tokens/s halved, or TFLOP/s doubled"
    return f"{times}: tokens/s doubled, or TFLOP/s halved" if abs(factor * 2 - 1) < 0.02 else times


def _changes(
    row: Result, factor: float, peers: Sequence[Result], release: ReleaseRows
) -> list[repair.RepairChange]:
    """The changes that repair a row, without the one of a rate that is in step with other work.

    With it, where models that scale a little differently could put either rate out of step.
    """
    found = repair.changes(row, "flops_per_token", release)
    tokens, predicted = row.tokens_per_sec_per_gpu, _predicted(row, peers, release.rows)
    if not tokens or not row.model_tflops_per_sec_per_gpu or not predicted:
        return found
    likely = median(predicted)
    if_right, if_wrong = abs(log(tokens / likely)), abs(log(tokens * factor / likely))
    if max(if_right, if_wrong) < max(log(CLEAR), NEARER * min(if_right, if_wrong)):
        return found
    right = RATES[0] if if_right < if_wrong else RATES[1]
    return [change for change in found if list(change.values) != [right]] or found


def _predicted(row: Result, peers: Sequence[Result], rows: Sequence[Result]) -> list[float]:
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
    rows: Sequence[Result], system: str, without: tuple[object, ...]
) -> dict[tuple[object, ...], float]:
    return {
        flop_counts.work(row): row.tokens_per_sec_per_gpu
        for row in rows
        if row.system == system and row.tokens_per_sec_per_gpu and flop_counts.work(row) != without
    }


FOLLOWERS = 2
"""Rows that must follow a convention before another is blamed for counting otherwise."""
DETAIL = 1.05
"""Up to here it can be a detail of the architecture that is counted otherwise."""
TWICE = 1.8
"""No way to count FLOPs is so far from another: recomputation adds a third, LoRA takes one."""


def _flops_formula(release: ReleaseRows) -> Iterator[Finding]:
    """One finding for each row that its formula does not explain and its peers can agree with."""
    followers = flop_counts.followers(release.counted)
    outliers = {id(row) for (row, _), _ in release.outliers}
    for group in flop_counts.by_work(release.counted):
        for row, count in group:
            convention = flop_counts.stated(row) or release.usual or flops.DEFAULT
            expected = flop_counts.formula(row, convention)
            explaining = flop_counts.explaining(row, count.with_cut())
            if id(row) not in outliers and expected and convention not in explaining:
                is_followed = followers[convention] >= FOLLOWERS
                yield _unexplained((row, count), convention, release, is_followed=is_followed)


def _unexplained(
    one: Counted, convention: Convention, release: ReleaseRows, *, is_followed: bool
) -> Finding:
    row, count = one
    expected, others = flop_counts.formula(row, convention) or 0.0, flop_counts.explaining(*one)
    off = max(count.low / expected, expected / count.high)
    is_sure = (off >= TWICE or is_followed) and not others
    severity = _severity(off) if is_sure else Severity.INFO
    why = f"it follows {others[0].name!r}" if others else "no convention explains it"
    is_info = severity is Severity.INFO
    return Finding(
        **identity("flops_formula", row),
        severity=severity,
        fields=(RATES[1], RATES[0]),
        expected=f"{significant(expected)} GFLOP per token ({convention.name})",
        found=f"{count} GFLOP per token",
        message=f"{titles.model(row.model)} {titles.task(row.task)} at {row.sequence_length:,} on "
        f"{titles.system(row.system)} counts {significant(count.value)} GFLOP per token, "
        f"{_ratio(count.value / expected)} times the formula under {convention.name!r}, "
        f"{_basis(row, release.usual)}; {why}",
        suggestion=None if is_info else _suggestion(row, convention, release),
    )


def _ratio(factor: float) -> str:
    """A ratio near 1 needs more digits to be told from it."""
    return significant(factor, 3 if abs(factor - 1) > 0.01 else 5)


def _suggestion(row: Result, convention: Convention, release: ReleaseRows) -> str | None:
    def expected(other: Result) -> Interval | None:
        return flop_counts.by_formula(other, convention)

    return repair.suggestion(row, "flops_per_token", release, expected)


def _severity(off: float) -> Severity:
    if off < DETAIL:
        return Severity.INFO
    return Severity.WARNING if off < TWICE else Severity.ERROR


def _basis(row: Result, usual: Convention | None) -> str:
    """Where the convention is from that a row is compared with."""
    if flop_counts.stated(row):
        return "the convention that is stated for it"
    if usual:
        return "the convention that most rows of this release follow, as the audit infers"
    return "the default, as no convention is stated and none explains a row of this release"


def _mfu(release: ReleaseRows) -> Iterator[Finding]:
    """Rows that print MFU and TFLOP/s, which do not fit."""
    for row in release.rows:
        if equations.mfu_fits(row) is False:
            yield _other_mfu(row, release)


def _other_mfu(row: Result, release: ReleaseRows) -> Finding:
    mfu, achieved = row.mfu or 0.0, row.model_tflops_per_sec_per_gpu or 0.0
    peak = equations.peak_tflops(row) or 0.0
    computed, used = achieved / peak, achieved / mfu
    other = _named_peak(row, used)
    return Finding(
        **identity("mfu", row),
        severity=Severity.INFO if other else base.severity(mfu / computed - 1),
        fields=("mfu", "model_tflops_per_sec_per_gpu"),
        expected=percent(computed, 2),
        found=percent(mfu, 2),
        message=f"{significant(achieved)} TFLOP/s of a peak of {peak:,g} is {percent(computed, 2)};"
        f" the row says {percent(mfu, 2)}, which is of a peak of {used:,.4g}{other}",
        suggestion=repair.suggestion(row, "mfu", release),
    )


def _named_peak(row: Result, used: float) -> str:
    """', the system's at BF16', where a page measures against another precision's peak."""
    for name, peak in equations.peaks(row).items():
        is_other = peak.tflops != equations.peak_tflops(row)
        if is_other and abs(used / peak.tflops - 1) < base.SMALL:
            return f", the system's at {titles.precision(name)}"
    return ""


MOST = 0.85
"""The highest MFU of the pages in `data/published` is 66.07 %."""
USUAL = f"{MOST * 100:g} %"
LEAST = 0.01
"""The lowest is 19 %: a published figure so far below is in another unit, or of another column."""
_OF_TOKENS = ("tokens_per_sec_per_gpu", "step_time_s", TOTAL)


def _peak(release: ReleaseRows) -> Iterator[Finding]:
    """Rows too close to the peak or too far below; to every peak where no precision is known."""
    for row in release.rows:
        achieved = figure(row, "model_tflops_per_sec_per_gpu")
        peak = equations.limit_tflops(row)
        implied = flop_counts.implied_tflops(row, release.tokens(row))
        if achieved and peak and (limit := _limit(row, achieved, peak)):
            yield _near_peak(row, "model_tflops_per_sec_per_gpu", achieved, limit)
        elif row.mfu and row.mfu > (1 if achieved and peak else MOST):
            yield _high_mfu(row, row.mfu)
        elif implied and peak and (limit := _limit(row, implied, peak)):
            yield _near_peak(row, next(filter(row.figure, _OF_TOKENS)), implied, limit)


def _limit(row: Result, rate: Interval, peak: float) -> float | None:
    """The share of the peak that a rate is above, or below; None where it is within all."""
    if not row.is_measured and rate.high < LEAST * peak:
        return LEAST
    return next((share for share in (1.0, MOST) if rate.low > share * peak), None)


def _high_mfu(row: Result, mfu: float) -> Finding:
    severity, most = (Severity.ERROR, "100 %") if mfu > 1 else (Severity.WARNING, USUAL)
    return Finding(
        **identity("peak", row),
        severity=severity,
        fields=("mfu",),
        expected=f"{most} at most",
        found=percent(mfu, 2),
        message=f"an MFU of {percent(mfu, 2)} is above {most}",
    )


def _near_peak(row: Result, field: str, rate: Interval, limit: float) -> Finding:
    above, slow, peak = limit == 1, limit == LEAST, equations.limit_tflops(row) or 1.0
    usual = f"; training stays {'above' if slow else 'below'} {limit * 100:g} %"
    found = f"{significant(rate.value)} TFLOP/s"
    by_formula = f"{shown(row, [field])} comes to {found} by the model's formula, which"
    return Finding(
        **identity("peak", row),
        severity=Severity.ERROR if above else Severity.WARNING,
        fields=(field,),
        expected=f"{limit * peak:,g} TFLOP/s at {'least' if slow else 'most'}",
        found=found,
        message=f"{by_formula if field in _OF_TOKENS else found} is "
        f"{percent(rate.value / peak)} of the dense peak of {titles.system(row.system)} at "
        f"{titles.precision(row.precision) or 'any precision'}, {peak:,g} TFLOP/s"
        f"{'' if above else usual}",
    )


def _precision(release: ReleaseRows) -> Iterator[Finding]:
    """Rows in a precision that their system, whose peaks are known, does not have."""
    every = catalog.precisions()
    for row in release.rows:
        known, recipe = equations.peaks(row), every.get(row.precision or "")
        if known and recipe and not recipe.is_of(known):
            has = ", ".join(one.title for one in every.values() if one.is_of(known))
            yield Finding(
                **identity("precision", row),
                severity=Severity.ERROR,
                fields=("precision", "system"),
                expected=f"one of {has}",
                found=recipe.title,
                message=f"{titles.system(row.system)} has no units for {recipe.title}",
            )


def _unknown_model(release: ReleaseRows) -> Iterator[Finding]:
    """One finding for each model of a release that the catalog does not hold."""
    firsts = {row.model: row for row in reversed(release.rows)}
    for name, row in reversed(firsts.items()):
        if name not in catalog.models():
            yield Finding(
                **identity("unknown_model", row),
                severity=Severity.INFO,
                fields=("model",),
                expected="a model of the catalogue",
                found=name,
                message=f"{name!r} is not in the catalogue: its FLOPs cannot be checked",
                suggestion="add it to perfdb/catalog/models/, or the page's spelling to its "
                "model's aliases",
            )


FLOPS_PER_TOKEN = Rule(
    "flops_per_token",
    "TFLOP/s ÷ tokens/s is the same for a model, task and sequence length across the systems of a "
    "release",
    _flops_per_token,
)
FLOPS_FORMULA = Rule(
    "flops_formula",
    "GFLOP per token is what the model's formula gives under the FLOPs convention that is stated, "
    "else under the one that most rows of the release follow",
    _flops_formula,
)
MFU = Rule("mfu", "MFU is model TFLOP/s ÷ the dense peak of the system at the precision", _mfu)
PEAK = Rule(
    "peak",
    "model TFLOP/s, as printed or as tokens/s come to by the model's formula, are 85 % at the most "
    "of the dense peak of the system at the precision, and those of a page 1 % at the least",
    _peak,
)
PRECISION = Rule("precision", "the GPUs of the system have units for the precision", _precision)
UNKNOWN_MODEL = Rule("unknown_model", "the model is in the catalogue", _unknown_model)
