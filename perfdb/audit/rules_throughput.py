"""Rules over one row's rates and times: those it prints, and those its steps and program show."""

import re
from collections.abc import Callable, Iterator, Mapping
from math import inf
from typing import Final

from perfdb import fields
from perfdb.audit import equations, flop_counts, repair, rules
from perfdb.audit.equations import FIGURES, SPLITS, TOTAL
from perfdb.audit.interval import NUMBER, Interval, exactly, figure, number, ungrouped, within
from perfdb.audit.rules import ReleaseRows, identity, release_rule, row_rule
from perfdb.catalog import titles
from perfdb.messages import note_text
from perfdb.record import Finding, NoteCode, Result, Severity
from perfdb.units import SECONDS_PER_DAY, counted, percent, significant, told_apart

MOST_SPREAD = 0.10
"""The noisiest of 581 public MLPerf runs stays well below."""
FEWEST_STEPS = 40
"""The field's recipes run 50 steps, of which `skip_warmup(10)` leaves so many.

Over 50 or more the median of 581 public MLPerf runs varied by 0.8 % at the worst; of independent
steps 40 vary √(50/40) = 1.12 times as much.
"""


@row_rule("tokens/s/GPU is GBS × sequence length ÷ step time ÷ GPUs")
def throughput(row: Result, release: ReleaseRows) -> Iterator[Finding]:
    """A row that prints both a rate and a step time which do not fit."""
    rate, computed = figure(row, "tokens_per_sec_per_gpu"), equations.tokens_by_step_time(row)
    if not rate or not computed or equations.throughput_fits(row):
        return
    factor = rate.value / computed.value
    right, found = told_apart(computed.value, rate.value, 5)
    times = f"{factor:.4g} times that"
    if times == "1 times that":
        more = "more" if factor > 1 else "less"
        times = f"{significant(abs(factor - 1) * 100, 2)} % {more}"
    yield Finding(
        **identity("throughput", row),
        severity=rules.severity(factor - 1),
        fields=("tokens_per_sec_per_gpu", "step_time_s", "global_batch_size", "sequence_length",
                "num_gpus"),
        expected=f"{computed} tokens/s/GPU",
        found=f"{rate} tokens/s/GPU",
        message=f"GBS {row.global_batch_size:,} × sequence length {row.sequence_length:,} ÷ "
        f"{row.step_time_s:g} s ÷ {row.num_gpus:,} GPUs is {right} tokens/s/GPU; the row says "
        f"{found}, {times}",
        suggestion=repair.suggestion(row, "throughput", release),
    )  # fmt: skip


@row_rule("tokens/s of all GPUs is tokens/s/GPU × GPUs, and GBS × sequence length ÷ step time")
def total_throughput(row: Result, release: ReleaseRows) -> Iterator[Finding]:
    """A row that prints a total which does not fit; one finding a row."""
    if not (total := figure(row, TOTAL)):
        return
    for field, computed in equations.totals(row).items():
        if total.or_cut().agrees(computed):
            continue
        right, found = told_apart(computed.value, total.value, 6)
        how = f"{row.tokens_per_sec_per_gpu or 0:,g} tokens/s/GPU × {row.num_gpus:,} GPUs"
        if field == "step_time_s":
            batch = f"GBS {row.global_batch_size:,} × sequence length {row.sequence_length:,}"
            how = f"{batch} ÷ {row.step_time_s:g} s"
        yield Finding(
            **identity("total_throughput", row),
            severity=rules.severity(total.value / computed.value - 1),
            fields=(TOTAL, field),
            expected=f"{computed} tokens/s",
            found=f"{total} tokens/s",
            message=f"{how} is {right} tokens/s; the row says {found} for all GPUs",
            suggestion=repair.suggestion(row, "total_throughput", release),
        )
        return


_TOKENS = re.compile(rf"{NUMBER}\s*([KMBT])\s+tokens\b", re.IGNORECASE)
_GPUS = re.compile(rf"{NUMBER}\s*(K?)\s+GPUs\b", re.IGNORECASE)
_UNIT = re.compile(r"\btime\b.*\bin (days|hours|min(?:ute)?s)\b", re.IGNORECASE)
_SCALE: Final = {"K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}
_SECONDS: Final = {"d": SECONDS_PER_DAY, "h": 3600, "m": 60}


@row_rule("a column such as 'time to train 1T tokens in days' is the tokens ÷ tokens/s")
def time_to_train(row: Result, _release: ReleaseRows) -> Iterator[Finding]:
    """Columns that print another time than the throughput of the row gives."""
    for title, text in row.extras.items():
        printed, computed = number(text), _time_to_train(title, row)
        if not printed or not computed or printed.or_cut().agrees(computed):
            continue
        right, found = told_apart(computed.value, printed.value, 4)
        yield Finding(
            **identity("time_to_train", row),
            severity=rules.severity(printed.value / computed.value - 1),
            fields=(title, TOTAL if row.tokens_per_sec else "tokens_per_sec_per_gpu"),
            expected=str(computed),
            found=str(printed),
            message=f"{title!r} comes to {right} by the row's throughput; it says {found}",
            suggestion=f"write {right}",
        )


def _time_to_train(title: str, row: Result) -> Interval | None:
    """The time that a column's title asks for, by the row's throughput and in the title's unit.

    None where the title asks for no time, or where the throughput is not known.
    """
    tokens, unit, on = _TOKENS.search(title), _UNIT.search(title), _GPUS.search(title)
    if not (tokens and unit and ungrouped(tokens[1])):
        return None
    work = ungrouped(tokens[1]) * _SCALE[tokens[2].upper()] / _SECONDS[unit[1][0].lower()]
    gpus = exactly(ungrouped(on[1]) if on else row.num_gpus)
    if on and on[2]:  # 1K GPUs may be 1,000 or 1,024; NVIDIA's tables of 2024 take 1,024
        gpus = Interval(gpus.value * 1024, gpus.value * 1000, gpus.value * 1024)
    total, one = None if on else figure(row, TOTAL), equations.tokens(row)
    of_one = one.or_cut().times(gpus) if one else None
    rate = total.or_cut() if total else of_one
    return rate.under(work) if rate else None


@row_rule("a figure is above 0 and finite; unknown values are left out")
def zero_figure(row: Result, _release: ReleaseRows) -> Iterator[Finding]:
    """Figures that are 0, negative or no number, in the store or on the page."""
    for field in (*FIGURES, TOTAL):
        value, text, short = row.figure(field), row.printed.get(field, ""), fields.short(field)
        is_zero = text.strip(" %*_").strip("0") in ("", ".") and "0" in text
        if (value is None and is_zero) or (value is not None and not (0 < value < inf)):
            found = "0" if value is None else f"{value:g}"
            yield Finding(
                **identity("zero_figure", row),
                fields=(field,),
                found=found,
                message=f"{short} is {found}: nothing trains at that; the figure is unknown",
                suggestion=f"leave {short} empty, or -",
            )


@row_rule("the standard deviation of a measured run's step times is within 10 % of their mean")
def step_spread(row: Result, _release: ReleaseRows) -> Iterator[Finding]:
    """A measured row with steps that spread too much."""
    mean, deviation = row.step_time_mean_s, row.step_time_stdev_s
    if not (row.is_measured and mean and deviation and deviation > MOST_SPREAD * mean):
        return
    found, notes = percent(deviation / mean), map(note_text, row.notes)
    causes = "; ".join(("something else ran, or the warm-up was too short", *notes))
    yield Finding(
        **identity("step_spread", row),
        severity=Severity.WARNING,
        fields=("step_time_s",),
        expected=f"{percent(MOST_SPREAD, 0)} at most",
        found=found,
        message=f"the step times of the run spread by {found} of their mean "
        f"({deviation:.4g} s of {mean:.4g} s): {causes}",
        suggestion="run it again with more warm-up steps",
    )


@row_rule("the nodes of a measured run have the same GPUs, clocks, software and network")
def unlike_nodes(row: Result, _release: ReleaseRows) -> Iterator[Finding]:
    """A measured row over nodes that differ: the slowest sets the pace of all."""
    for note in row.notes:
        if note.code is NoteCode.UNLIKE_NODES:
            yield Finding(
                **identity("unlike_nodes", row),
                severity=Severity.WARNING,
                fields=("step_time_s",),
                expected="nodes that are alike",
                found=str(note.params["differences"]),
                message=f"{note_text(note)}; the slowest sets the pace of all",
                suggestion="leave the odd nodes out (exclude), and run it again",
            )


@row_rule("a measured run has 40 steps or more after its warm-up")
def few_steps(row: Result, _release: ReleaseRows) -> Iterator[Finding]:
    """A measured row over fewer steps."""
    if row.is_measured and row.num_steps and row.num_steps < FEWEST_STEPS:
        yield Finding(
            **identity("few_steps", row),
            severity=Severity.INFO,
            fields=("num_steps",),
            expected=f"{FEWEST_STEPS} or more",
            found=str(row.num_steps),
            message=f"the figures are of {counted(row.num_steps, 'step')}; below "
            f"{FEWEST_STEPS} the next run may give others",
        )


@release_rule("tokens/s of a release are not all a whole number of samples per second")
def low_precision_throughput(release: ReleaseRows) -> Iterator[Finding]:
    """One finding for a release of five rows or more of which this is true."""
    rows = [row for row in release.rows if figure(row, "tokens_per_sec_per_gpu")]
    if not equations.whole_samples(release.rows) or rows[0].is_measured:
        return
    worst = max(
        row.sequence_length / row.num_gpus / 2 / (row.tokens_per_sec_per_gpu or 1) for row in rows
    )
    yield Finding(
        **identity("low_precision_throughput", rows[0]),
        severity=Severity.INFO,
        fields=("tokens_per_sec_per_gpu",),
        found=f"{len(rows)} of {len(rows)} rows",
        message=f"tokens/s/GPU × GPUs ÷ sequence length is a whole number in all {len(rows)} rows "
        "of the release: the rates were computed from rounded samples per second, and may be off "
        f"by up to {percent(worst)}",
    )


@row_rule("the rates that a program prints follow from its steps")
def emitted(row: Result, _release: ReleaseRows) -> Iterator[Finding]:
    """Each rate that a program prints and that is another than the computed one; why, if known."""
    for field, explain in _EXPLANATIONS.items():
        # A program's own step time is a mean; the others are medians, as perfdb's are.
        compared = "step_time_mean_s" if field == "step_time_s" else field
        printed, computed = row.emitted.get(field), row.figure(compared)
        if not printed or not computed or _near(printed, computed):
            continue
        factor, why = printed / computed, explain(row, printed)
        found, expected = _rate(field, printed), _rate(field, computed)
        # Tokens and time are counted in one way alone: the batch, the length or the GPUs are not
        # those that ran. FLOPs may be counted in an unknown way, and a mean may be of times with
        # pauses.
        unknown = Severity.ERROR if field == "tokens_per_sec_per_gpu" else Severity.WARNING
        yield Finding(
            **identity("emitted", row),
            severity=Severity.INFO if why or abs(factor - 1) < rules.LARGE else unknown,
            fields=(field,),
            expected=expected,
            found=found,
            message=f"the program prints {found}, {factor:.3g} times the {expected} that its steps "
            f"come to; {why or 'nothing known explains it'}",
        )


def _near(one: float, other: float) -> bool:
    return abs(one / other - 1) < rules.SMALL


def _rate(field: str, rate: float) -> str:
    if field == "mfu":
        return f"{percent(rate, 2)} MFU"
    return f"{significant(rate)} {'s a step' if field == 'step_time_s' else fields.short(field)}"


def _divisor(row: Result, printed: float) -> str | None:
    """The ranks that a program leaves out when it divides the tokens of all by its GPUs."""
    tensor, pipeline, context = (equations.size(row, field) for field in SPLITS)
    left_out = {
        "data and context parallelism, not by TP × PP": tensor * pipeline,
        "data parallelism, not by TP × PP × CP": tensor * pipeline * context,
    }
    factor = printed / (row.tokens_per_sec_per_gpu or printed)
    fitting = (divisor for divisor, ranks in left_out.items() if _near(factor, ranks))
    return next((f"it divides by {divisor}" for divisor in fitting), None)


def _convention(row: Result, printed: float) -> str | None:
    """The FLOPs convention by which the printed TFLOP/s follow from the steps."""
    if not row.tokens_per_sec_per_gpu:
        return None
    per_token = 1000 * printed / row.tokens_per_sec_per_gpu
    # A rate that is printed with three figures may be off by half a percent.
    followed = flop_counts.explaining(row, within(per_token, 0.005 * per_token))
    return f"it follows the convention {followed[0].name!r}" if followed else None


def _peak(row: Result, printed: float) -> str | None:
    """Another precision's peak that the MFU is of, else the convention of its TFLOP/s."""
    achieved, own = row.model_tflops_per_sec_per_gpu, equations.peak_tflops(row)
    for name, peak in equations.peaks(row).items():
        if achieved and _near(printed * peak.tflops, achieved):
            of = f"the system's peak at {titles.precision(name)}"
            return f"it is of {of}, {peak.tflops:,g} TFLOP/s"
    return _convention(row, printed * own) if own else None


_EXPLANATIONS: Final[Mapping[str, Callable[[Result, float], str | None]]] = {
    "step_time_s": lambda _row, _printed: None,
    "tokens_per_sec_per_gpu": _divisor,
    "model_tflops_per_sec_per_gpu": _convention,
    "mfu": _peak,
}
"""What may explain that a program prints another rate; a time has no convention."""
