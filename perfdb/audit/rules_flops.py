"""Rules over FLOPs: how many a token has, and how near they come to the peak of the GPU."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from math import log
from statistics import median
from typing import Final

from perfdb import catalog, flops
from perfdb.audit import equations, flop_counts, repair, rules
from perfdb.audit.equations import RATES, TOTAL
from perfdb.audit.flop_counts import Counted, Work
from perfdb.audit.interval import Interval, figure, shared, shown
from perfdb.audit.rules import ReleaseRows, identity, release_rule, row_rule
from perfdb.catalog import titles
from perfdb.flops.base import Convention
from perfdb.groups import grouped
from perfdb.record import Finding, Result, Severity
from perfdb.units import percent, significant, told_apart
from perfdb.versions import version_order

CLEAR = 1.3
"""A figure is out of step where it is off by such a factor, as models alone seldom make it,"""
NEARER = 3
"""and the other one so many times nearer to what the systems' other work makes likely."""


@release_rule(
    "TFLOP/s ÷ tokens/s is the same for a model, task and sequence length across the systems of a "
    "release"
)
def flops_per_token(release: ReleaseRows) -> Iterator[Finding]:
    """Rows that count other FLOPs per token than their peers, beyond rounding.

    Where nothing determines which of two rows is right, the one that counts more is named.
    """
    for one, agreed in release.outliers:
        counts, peers = [each for _, each in agreed], [peer for peer, _ in agreed]
        right = shared(counts) or min(counts, key=lambda each: each.uncertainty)
        found = _changes(one[0], one[1].value / right.value, peers, release)
        yield _other_count(one, right, peers, repair.one_of(found))
    for group in flop_counts.by_work(release.counted):
        ordered = sorted(group, key=lambda one: one[1].value, reverse=True)
        (row, count), (other, lowest) = ordered[0], ordered[-1]
        undecided = not release.agreed[flop_counts.work(row)]
        if undecided and not count.with_cut().agrees(lowest.with_cut()):
            yield _other_count((row, count), lowest, [other], is_undecided=True)


def _other_count(
    one: Counted,
    right: Interval,
    peers: Sequence[Result],
    suggestion: str | None = None,
    *,
    is_undecided: bool = False,
) -> Finding:
    row, count = one
    factor = count.value / right.value
    here, there = _apart(row, peers)
    times = f"{told_apart(factor, 1, 3)[0]} times as much"
    if abs(factor / 2 - 1) < 0.02:
        times += ": tokens/s halved, or TFLOP/s doubled"
    elif abs(factor * 2 - 1) < 0.02:
        times += ": tokens/s doubled, or TFLOP/s halved"
    has_rates = is_undecided or row.model_tflops_per_sec_per_gpu
    return Finding(
        **identity("flops_per_token", row),
        severity=rules.severity(factor - 1),
        fields=RATES if has_rates else ("tokens_per_sec_per_gpu", "mfu", "precision"),
        expected=f"{right} GFLOP per token{f', as on {there}' if is_undecided else ''}",
        found=f"{count} GFLOP per token",
        message=f"{here} counts {significant(count.value)} GFLOP per token, {there} "
        f"{significant(right.value)}: {times}{'; one is wrong' if is_undecided else ''}",
        suggestion=suggestion,
    )


def _apart(row: Result, others: Sequence[Result]) -> tuple[str, str]:
    """How a row and others are named in a sentence: by their systems, else also by their GPUs."""
    if all(other.system != row.system for other in others):
        names = dict.fromkeys(titles.system(other.system) for other in others)
        return rules.name(row), ", ".join(names)
    named = []
    for system, rows in grouped(others, lambda other: titles.system(other.system)).items():
        least, most = min(one.num_gpus for one in rows), max(one.num_gpus for one in rows)
        named.append(f"{system} with {least:,}{f' to {most:,}' if least < most else ''} GPUs")
    precision = f" in {titles.precision(row.precision)}" if row.precision else ""
    return f"{rules.name(row)} with {row.num_gpus:,} GPUs{precision}", ", ".join(named)


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
    return [change for change in found if list(change) != [right]] or found


def _predicted(row: Result, peers: Sequence[Result], rows: Sequence[Result]) -> list[float]:
    """A row's tokens/s by each peer's and by how the two systems compare in other work."""

    def speeds(system: str) -> dict[Work, float]:
        other = [one for one in rows if flop_counts.work(one) != flop_counts.work(row)]
        known = ((one, one.tokens_per_sec_per_gpu) for one in other if one.system == system)
        return {flop_counts.work(one): speed for one, speed in known if speed}

    of_row, found = speeds(row.system), []
    for system, of_system in grouped(peers, lambda peer: peer.system).items():
        of_peer = speeds(system)
        ratios = [of_row[work] / of_peer[work] for work in of_row.keys() & of_peer.keys()]
        known = (peer.tokens_per_sec_per_gpu for peer in of_system)
        found += [speed * median(ratios) for speed in known if speed and ratios]
    return found


FOLLOWERS = 2
"""Rows that must follow a convention before another is blamed for counting otherwise."""
DETAIL = 1.05
"""Up to here it can be a detail of the architecture that is counted otherwise."""
TWICE = 1.8
"""No way to count FLOPs is so far from another: recomputation adds a third, LoRA takes one."""


@release_rule(
    "GFLOP per token follows from the model's formula, in the stated FLOPs convention, "
    "otherwise in the one of most rows of the release. For a model that the catalog lacks, "
    "it is at most 1.8 times what all parameters in its name can count"
)
def flops_formula(release: ReleaseRows) -> Iterator[Finding]:
    """One finding for each row that its formula does not explain and its peers can agree with."""
    outliers = {id(row) for (row, _), _ in release.outliers}
    for group in flop_counts.by_work(release.counted):
        for row, count in group:
            convention = flop_counts.stated(row) or release.usual or flops.DEFAULT
            expected = flop_counts.formula(row, convention)
            explaining = flop_counts.explaining(row, count.with_cut())
            if id(row) not in outliers and expected and convention not in explaining:
                yield _unexplained((row, count), convention, release)
            elif (most := flop_counts.most_per_token(row)) and count.low > TWICE * most[1]:
                yield _above_all_parameters(row, count, *most)


def _above_all_parameters(row: Result, count: Interval, billions: float, most: float) -> Finding:
    return Finding(
        **identity("flops_formula", row),
        fields=RATES[::-1],
        expected=f"{significant(most)} GFLOP per token at most",
        found=f"{count} GFLOP per token",
        message=f"{rules.name(row)} counts {significant(count.value)} GFLOP per token; a model of "
        f"{billions:g} billion parameters, which its name states, counts {significant(most)} at "
        f"most at {row.sequence_length:,}, were all of them active: TFLOP/s or tokens/s is wrong",
    )


def _unexplained(one: Counted, convention: Convention, release: ReleaseRows) -> Finding:
    (row, count), expected = one, flop_counts.formula(one[0], convention) or 0.0
    proof = _arithmetic(row, expected)
    followed = flop_counts.explaining(row, count)
    off = max(count.low / expected, expected / count.high)
    is_sure = (off >= TWICE or release.followers[convention] >= FOLLOWERS) and not followed
    severity, suggestion = Severity.INFO, None
    if is_sure and off >= DETAIL:
        severity = Severity.WARNING if off < TWICE else Severity.ERROR
        suggestion = repair.suggestion(
            row, "flops_per_token", release, lambda it: flop_counts.by_formula(it, convention)
        )
    ratio = count.value / expected
    basis = "the default, as no convention is stated and none explains a row of this release"
    if flop_counts.stated(row):
        basis = "the convention that is stated for it"
    elif release.usual:
        basis = "the convention that most rows of this release follow, as the audit infers"
    why = f"it follows {followed[0].name!r}" if followed else "no convention explains it"
    return Finding(
        **identity("flops_formula", row),
        severity=severity,
        fields=RATES[::-1],
        expected=f"{significant(expected)} GFLOP per token ({convention.name})",
        found=f"{count} GFLOP per token",
        # a ratio near 1 needs more digits to differ from it
        message=f"{titles.model(row.model)} {titles.task(row.task)} at {row.sequence_length:,} on "
        f"{titles.system(row.system)} counts {significant(count.value)} GFLOP per token, "
        f"{significant(ratio, 3 if abs(ratio - 1) > 0.01 else 5)} times the formula under "
        f"{convention.name!r}, {basis}; {why}{proof if severity is not Severity.INFO else ''}",
        suggestion=suggestion,
    )


def _arithmetic(row: Result, gflop_per_token: float) -> str:
    """The TFLOP/s that a step time, or tokens/s, and the FLOPs of a token come to, put in numbers.

    Empty for a row that prints no TFLOP/s.
    """
    printed, speed = row.model_tflops_per_sec_per_gpu, equations.tokens(row)
    if not printed or not speed:
        return ""
    rate = f"{speed.value:,.6g} tokens/s/GPU"
    if by_step_time := equations.tokens_by_step_time(row):
        speed = by_step_time
        batch = f"GBS {row.global_batch_size:,} × sequence length {row.sequence_length:,}"
        rate = f"({batch} ÷ {row.step_time_s:g} s ÷ {row.num_gpus:,} GPUs)"
    right, found = told_apart(gflop_per_token * speed.value / 1000, printed, 4)
    factors = f"{significant(gflop_per_token)} GFLOP per token × {rate} ÷ 1,000"
    return f": {factors} is {right} TFLOP/s/GPU, not {found}"


@row_rule("MFU is model TFLOP/s ÷ the dense peak of the system at the precision")
def mfu(row: Result, release: ReleaseRows) -> Iterator[Finding]:
    """A row that prints MFU and TFLOP/s, which do not fit."""
    if equations.mfu_fits(row) is not False:
        return
    share, achieved = row.mfu or 0.0, row.model_tflops_per_sec_per_gpu or 0.0
    peak = equations.peak_tflops(row) or 0.0
    computed, used = achieved / peak, achieved / share
    other = next(
        (
            f", the system's at {titles.precision(name)}"
            for name, one in equations.peaks(row).items()
            if one.tflops != peak and abs(used / one.tflops - 1) < rules.SMALL
        ),
        "",
    )
    yield Finding(
        **identity("mfu", row),
        severity=Severity.INFO if other else rules.severity(share / computed - 1),
        fields=("mfu", "model_tflops_per_sec_per_gpu"),
        expected=percent(computed, 2),
        found=percent(share, 2),
        message=f"{significant(achieved)} TFLOP/s of a peak of {peak:,g} is {percent(computed, 2)};"
        f" the row says {percent(share, 2)}, which is of a peak of {used:,.4g}{other}",
        suggestion=repair.suggestion(row, "mfu", release),
    )


MOST = 0.85
"""The highest MFU of the pages in `data/published` is 66.07 %."""
LEAST = 0.01
"""The lowest is 19 %: a published figure so far below is in another unit, or of another column."""
_OF_TOKENS = ("tokens_per_sec_per_gpu", "step_time_s", TOTAL)


@row_rule(
    "model TFLOP/s are at most 85 % of the dense peak of the system at the precision, and "
    "at least 1 % on a page. They are printed, or follow from tokens/s by the model's "
    "formula"
)
def peak(row: Result, release: ReleaseRows) -> Iterator[Finding]:
    """A row too close to the peak or too far below; to every peak where no precision is known.

    A rate that a program prints above every peak of the system is wrong, be the model known or not.
    """
    achieved = figure(row, "model_tflops_per_sec_per_gpu")
    highest = equations.limit_tflops(row)
    implied = flop_counts.implied_tflops(row, release.tokens(row))
    if achieved and highest and (limit := _limit(row, achieved, highest)):
        yield _near_peak(row, "model_tflops_per_sec_per_gpu", achieved, limit)
    elif row.mfu and row.mfu > (1 if achieved and highest else MOST):
        most = "100 %" if row.mfu > 1 else f"{MOST * 100:g} %"
        yield Finding(
            **identity("peak", row),
            severity=Severity.ERROR if row.mfu > 1 else Severity.WARNING,
            fields=("mfu",),
            expected=f"{most} at most",
            found=percent(row.mfu, 2),
            message=f"an MFU of {percent(row.mfu, 2)} is above {most}",
        )
    elif implied and highest and (limit := _limit(row, implied, highest)):
        yield _near_peak(row, next(filter(row.figure, _OF_TOKENS)), implied, limit)
    yield from _above_every_peak(row, is_compared=bool(highest))


def _above_every_peak(row: Result, *, is_compared: bool) -> Iterator[Finding]:
    """A rate that a program prints, or a row without a peak of its precision, above all peaks."""
    field, every = "model_tflops_per_sec_per_gpu", equations.peaks(row).values()
    own = None if is_compared else row.model_tflops_per_sec_per_gpu
    printed, highest = own or row.emitted.get(field), max((one.tflops for one in every), default=0)
    if printed and 0 < highest < printed:
        times = f"{printed / highest:,.3g} times the highest dense peak"
        yield Finding(
            **identity("peak", row),
            fields=(field,),
            expected=f"{highest:,g} TFLOP/s at most",
            found=f"{significant(printed)} TFLOP/s",
            message=f"{'the row' if own else 'the program'} prints {significant(printed)} TFLOP/s, "
            f"{times} of {titles.system(row.system)}, {highest:,g} TFLOP/s",
        )


def _limit(row: Result, rate: Interval, highest: float) -> float | None:
    """The share of the peak that a rate is above, or below; None where it is within all."""
    if not row.is_measured and rate.high < LEAST * highest:
        return LEAST
    return next((share for share in (1.0, MOST) if rate.low > share * highest), None)


def _near_peak(row: Result, field: str, rate: Interval, limit: float) -> Finding:
    above, slow, highest = limit == 1, limit == LEAST, equations.limit_tflops(row) or 1.0
    usual = f"; training stays {'above' if slow else 'below'} {limit * 100:g} %"
    found = f"{significant(rate.value)} TFLOP/s"
    by_formula = f"{shown(row, [field])} comes to {found} by {flop_counts.basis(row)}, which"
    return Finding(
        **identity("peak", row),
        severity=Severity.ERROR if above else Severity.WARNING,
        fields=(field,),
        expected=f"{limit * highest:,g} TFLOP/s at {'least' if slow else 'most'}",
        found=found,
        message=f"{by_formula if field in _OF_TOKENS else found} is "
        f"{percent(rate.value / highest)} of the dense peak of {titles.system(row.system)} at "
        f"{titles.precision(row.precision) or 'any precision'}, {highest:,g} TFLOP/s"
        f"{'' if above else usual}",
    )


@row_rule("the GPUs of the system have units for the precision")
def precision(row: Result, _release: ReleaseRows) -> Iterator[Finding]:
    """A row in a precision that its system does not have, if its peaks are known."""
    every, known = catalog.precisions(), equations.peaks(row)
    recipe = every.get(row.precision or "")
    if known and recipe and not recipe.is_of(known):
        yield Finding(
            **identity("precision", row),
            fields=("precision", "system"),
            expected=f"one of {', '.join(one.title for one in every.values() if one.is_of(known))}",
            found=recipe.title,
            message=f"{titles.system(row.system)} has no units for {recipe.title}",
        )


@release_rule("the model is in the catalog")
def unknown_model(release: ReleaseRows) -> Iterator[Finding]:
    """One finding for each model of a release that the catalog does not hold."""
    for name, rows in grouped(release.rows, lambda row: row.model).items():
        if name not in catalog.models():
            yield Finding(
                **identity("unknown_model", rows[0]),
                severity=Severity.INFO,
                fields=("model",),
                expected="a model of the catalogue",
                found=name,
                message=f"{name!r} is not in the catalogue: its FLOPs cannot be checked",
                suggestion="add it to perfdb/catalog/models/, or the page's spelling to its "
                "model's aliases",
            )


ACROSS_RELEASES: Final = "flops_across_releases"
"""The rule that looks at all releases together."""


def across_releases(rows: Iterable[Result]) -> Iterator[Finding]:
    """A finding for each work and release that counts other FLOPs than the release before it.

    Of a release counts what most of its rows of the work agree on. Rounding of the printed
    figures, and digits that were cut off, are allowed for.
    """
    known = [row for row in rows if row.release and not row.is_measured and row.withheld is None]
    for of_framework in grouped(known, lambda row: row.framework).values():
        counted: dict[Work, list[list[Counted]]] = {}
        by_version = grouped(of_framework, lambda row: row.release)
        for version in sorted(by_version, key=version_order):
            for work, agreed in ReleaseRows(by_version[version]).agreed.items():
                if agreed:
                    counted.setdefault(work, []).append(agreed)
        for releases in counted.values():
            for before, after in pairwise(releases):
                yield from _change(before, after)


def _change(before: Sequence[Counted], after: Sequence[Counted]) -> Iterator[Finding]:
    earlier, later = (flop_counts.together([one for _, one in some]) for some in (before, after))
    (old, _), (row, _) = before[0], after[0]
    if later.agrees(earlier):
        return
    factor = later.value / earlier.value
    known_by = [flop_counts.explaining(one, its) for one, its in ((old, earlier), (row, later))]
    if set(known_by[0]) & set(known_by[1]):
        return
    names = [some[0].name if some else "no known convention" for some in known_by]
    is_detail = all(known_by) or 1 / DETAIL < factor < DETAIL
    yield Finding(
        **identity(ACROSS_RELEASES, row),
        severity=Severity.INFO if is_detail else Severity.WARNING,
        fields=RATES,
        expected=f"{earlier} GFLOP per token, as in {row.framework} {old.release}",
        found=f"{later} GFLOP per token",
        message=f"{titles.qualified(titles.model(row.model), row.qualifiers)} "
        f"{titles.task(row.task)} at {row.sequence_length:,} counts {significant(later.value)} "
        f"GFLOP per token in {row.framework} {row.release} ({names[1]}) and "
        f"{significant(earlier.value)} in {old.release} ({names[0]}), "
        f"{told_apart(factor, 1, 3)[0]} times as much: their TFLOP/s cannot be "
        f"compared{_restated(old, row)}",
    )


def _restated(old: Result, row: Result) -> str:
    """The TFLOP/s of both rows by the formula of their model; empty where it is not known."""
    count = flop_counts.formula(row, flops.DEFAULT)
    if count is None:
        return ""
    texts = [
        f"{significant(speed.value * count / 1000)} in {one.release} ({one.num_gpus:,} "
        f"{titles.system(one.system)} GPUs"
        + (f", {significant(printed.value)} printed)" if printed else ")")
        for one in (row, old)
        if (speed := equations.tokens(one))
        for printed in [equations.tflops(one)]
    ]
    by = f"the model's formula, {significant(count)} GFLOP per token ({flops.DEFAULT.name})"
    return f"; by {by}, TFLOP/s/GPU are {' and '.join(texts)}"
