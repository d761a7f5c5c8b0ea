"""Rules over one row's rates and times: those it prints, and those its steps and program show."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Final

from perfdb import fields
from perfdb.audit import equations, flop_counts, repair
from perfdb.audit.base import LARGE, SMALL, ReleaseRows, Rule, identity, severity
from perfdb.audit.equations import FIGURES, SPLITS, TOTAL
from perfdb.audit.interval import NUMBER, Interval, cell, exactly, figure, number, ungrouped, within
from perfdb.catalog import titles
from perfdb.messages import note_text
from perfdb.record import Finding, Result, Severity
from perfdb.units import SECONDS_PER_DAY, counted, percent, significant, told_apart

MOST_SPREAD = 0.10
"""The noisiest of 581 public MLPerf runs stays well below."""
FEWEST_STEPS = 40
"""The field's recipes run 50 steps, of which `skip_warmup(10)` leaves so many.

Over 50 or more the median of 581 public MLPerf runs varied by 0.8 % at the worst; of independent
steps 40 vary √(50/40) = 1.12 times as much.
"""


def _throughput(release: ReleaseRows) -> Iterator[Finding]:
    """Rows that print both a rate and a step time which do not fit."""
    for row in release.rows:
        rate, computed = figure(row, "tokens_per_sec_per_gpu"), equations.tokens_by_step_time(row)
        if rate and computed and not equations.throughput_fits(row):
            yield _other_rate(row, rate, computed, release)


def _other_rate(row: Result, rate: Interval, computed: Interval, release: ReleaseRows) -> Finding:
    factor = rate.value / computed.value
    right, found = told_apart(computed.value, rate.value, 5)
    return Finding(
        **identity("throughput", row),
        severity=severity(factor - 1),
        fields=("tokens_per_sec_per_gpu", "step_time_s", "global_batch_size", "sequence_length",
                "num_gpus"),
        expected=f"{computed} tokens/s/GPU",
        found=f"{rate} tokens/s/GPU",
        message=f"GBS {row.global_batch_size:,} × sequence length {row.sequence_length:,} ÷ "
        f"{row.step_time_s:g} s ÷ {row.num_gpus:,} GPUs is {right} tokens/s/GPU; the row says "
        f"{found}, {_times(factor)}",
        suggestion=repair.suggestion(row, "throughput", release),
    )  # fmt: skip


def _times(factor: float) -> str:
    """'1.999 times that'; '0.012 % more' where it would be 1 times that."""
    times = f"{factor:.4g}"
    if times != "1":
        return f"{times} times that"
    return f"{significant(abs(factor - 1) * 100, 2)} % {'more' if factor > 1 else 'less'}"


def _total_throughput(release: ReleaseRows) -> Iterator[Finding]:
    """Rows that print a total which does not fit; one finding a row."""
    for row in release.rows:
        if total := figure(row, TOTAL):
            ways = equations.totals(row).items()
            wrong = [way for way in ways if not total.or_cut().agrees(way[1])]
            yield from (_other_total(row, total, way, release) for way in wrong[:1])


def _other_total(
    row: Result, total: Interval, way: tuple[str, Interval], release: ReleaseRows
) -> Finding:
    field, computed = way
    right, found = told_apart(computed.value, total.value, 6)
    how = f"{row.tokens_per_sec_per_gpu or 0:,g} tokens/s/GPU × {row.num_gpus:,} GPUs"
    if field == "step_time_s":
        batch = f"GBS {row.global_batch_size:,} × sequence length {row.sequence_length:,}"
        how = f"{batch} ÷ {row.step_time_s:g} s"
    return Finding(
        **identity("total_throughput", row),
        severity=severity(total.value / computed.value - 1),
        fields=(TOTAL, field),
        expected=f"{computed} tokens/s",
        found=f"{total} tokens/s",
        message=f"{how} is {right} tokens/s; the row says {found} for all GPUs",
        suggestion=repair.suggestion(row, "total_throughput", release),
    )


_TOKENS = re.compile(rf"{NUMBER}\s*([KMBT])\s+tokens\b", re.IGNORECASE)
_GPUS = re.compile(rf"{NUMBER}\s*(K?)\s+GPUs\b", re.IGNORECASE)
_UNIT = re.compile(r"\btime\b.*\bin (days|hours|min(?:ute)?s)\b", re.IGNORECASE)
_SCALE: Final = {"K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}
_SECONDS: Final = {"d": SECONDS_PER_DAY, "h": 3600, "m": 60}


@dataclass(frozen=True)
class _Estimate:
    """What a column's title asks: how long so many tokens take, on how many GPUs (None: all)."""

    tokens: float
    unit_s: float
    gpus: Interval | None

    def of(self, row: Result) -> Interval | None:
        """The time by the row's throughput, in the title's unit; None where it has none."""
        total, one = None if self.gpus else figure(row, TOTAL), equations.tokens(row)
        of_one = one.or_cut().times(self.gpus or row.num_gpus) if one else None
        rate = total.or_cut() if total else of_one
        return rate.under(self.tokens / self.unit_s) if rate else None


def _time_to_train(release: ReleaseRows) -> Iterator[Finding]:
    """Rows that print another time than their throughput gives."""
    for row in release.rows:
        for title, text in row.extras.items():
            estimate, printed = _estimate(title), number(text)
            computed = estimate.of(row) if estimate else None
            if printed and computed and not printed.or_cut().agrees(computed):
                yield _other_time(row, title, printed, computed)


def _estimate(title: str) -> _Estimate | None:
    tokens, unit, gpus = _TOKENS.search(title), _UNIT.search(title), _GPUS.search(title)
    if not (tokens and unit and ungrouped(tokens[1])):
        return None
    amount = ungrouped(tokens[1]) * _SCALE[tokens[2].upper()]
    on = _number_of(ungrouped(gpus[1]), gpus[2]) if gpus else None
    return _Estimate(amount, _SECONDS[unit[1][0].lower()], on)


def _number_of(count: float, thousands: str) -> Interval:
    """1K GPUs may be 1,000 or 1,024; NVIDIA's tables of 2024 take 1,024."""
    return Interval(count * 1024, count * 1000, count * 1024) if thousands else exactly(count)


def _other_time(row: Result, title: str, printed: Interval, computed: Interval) -> Finding:
    right, found = told_apart(computed.value, printed.value, 4)
    return Finding(
        **identity("time_to_train", row),
        severity=severity(printed.value / computed.value - 1),
        fields=(title, TOTAL if row.tokens_per_sec else "tokens_per_sec_per_gpu"),
        expected=str(computed),
        found=str(printed),
        message=f"{title!r} comes to {right} by the row's throughput; it says {found}",
        suggestion=f"write {right}",
    )


def _zero_figure(release: ReleaseRows) -> Iterator[Finding]:
    """Figures that are 0, negative or no number, in the store or on the page."""
    for row in release.rows:
        for field in (*FIGURES, TOTAL):
            value = row.figure(field)
            if value is None and _is_zero(cell(row, field)):
                yield _nothing(row, field, "0")
            elif value is not None and not (isfinite(value) and value > 0):
                yield _nothing(row, field, f"{value:g}")


def _is_zero(text: str | None) -> bool:
    """'0', '0.00', '0%', but not an empty cell and not a dash."""
    return text is not None and text.strip(" %*_").strip("0") in ("", ".") and "0" in text


def _nothing(row: Result, field: str, found: str) -> Finding:
    short = fields.short(field)
    return Finding(
        **identity("zero_figure", row),
        severity=Severity.ERROR,
        fields=(field,),
        expected=None,
        found=found,
        message=f"{short} is {found}: nothing trains at that; the figure is unknown",
        suggestion=f"leave {short} empty, or -",
    )


def _step_spread(release: ReleaseRows) -> Iterator[Finding]:
    """Measured rows whose steps spread too much."""
    for row in release.rows:
        mean, deviation = row.step_time_mean_s, row.step_time_stdev_s
        if row.is_measured and mean and deviation and deviation > MOST_SPREAD * mean:
            found = percent(deviation / mean)
            causes = (
                "something else ran, or the warm-up was too short",
                *map(note_text, row.notes),
            )
            yield Finding(
                **identity("step_spread", row),
                severity=Severity.WARNING,
                fields=("step_time_s",),
                expected=f"{percent(MOST_SPREAD, 0)} at most",
                found=found,
                message=f"the step times of the run spread by {found} of their mean "
                f"({deviation:.4g} s of {mean:.4g} s): {'; '.join(causes)}",
                suggestion="run it again with more warm-up steps",
            )


def _few_steps(release: ReleaseRows) -> Iterator[Finding]:
    """Measured rows over fewer steps."""
    for row in release.rows:
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


def _low_precision_throughput(release: ReleaseRows) -> Iterator[Finding]:
    """One finding for a release of five rows or more of which this is true."""
    rows = [row for row in release.rows if figure(row, "tokens_per_sec_per_gpu")]
    if not equations.whole_samples(release.rows) or rows[0].is_measured:
        return
    half_samples = (row.sequence_length / row.num_gpus / 2 for row in rows)
    rates = (row.tokens_per_sec_per_gpu or 1 for row in rows)
    worst = max(half / rate for half, rate in zip(half_samples, rates, strict=True))
    yield Finding(
        **identity("low_precision_throughput", rows[0]),
        severity=Severity.INFO,
        fields=("tokens_per_sec_per_gpu",),
        expected=None,
        found=f"{len(rows)} of {len(rows)} rows",
        message=f"tokens/s/GPU × GPUs ÷ sequence length is a whole number in all {len(rows)} rows "
        "of the release: the rates were computed from rounded samples per second, and may be off "
        f"by up to {percent(worst)}",
    )


_COMPUTED: Final = {"step_time_s": "step_time_mean_s"}
"""A program's own step time is a mean; the others are medians, as perfdb's are."""
_ROUNDING: Final = 0.005
"""By how much a rate may be off that is printed with three figures."""


def _emitted(release: ReleaseRows) -> Iterator[Finding]:
    """Each rate that a program prints and that is another than the computed one; why, if known."""
    for row in release.rows:
        for field, explain in _EXPLANATIONS.items():
            printed, computed = row.emitted.get(field), row.figure(_COMPUTED.get(field, field))
            if printed and computed and not _near(printed, computed):
                yield _other_emitted(row, field, printed / computed, explain(row, printed))


def _near(one: float, other: float) -> bool:
    return abs(one / other - 1) < SMALL


def _other_emitted(row: Result, field: str, factor: float, why: str | None) -> Finding:
    printed = row.emitted[field]
    found, expected = _rate(field, printed), _rate(field, printed / factor)
    # Tokens and time are counted in one way alone: the batch, the length or the GPUs are not those
    # that ran. FLOPs may be counted in an unknown way, and a mean may be of times with pauses.
    unexplained = Severity.ERROR if field == "tokens_per_sec_per_gpu" else Severity.WARNING
    return Finding(
        **identity("emitted", row),
        severity=Severity.INFO if why or abs(factor - 1) < LARGE else unexplained,
        fields=(field,),
        expected=expected,
        found=found,
        message=f"the program prints {found}, {factor:.3g} times the {expected} that its steps "
        f"come to; {why or 'nothing known explains it'}",
    )


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
    followed = flop_counts.explaining(row, within(per_token, _ROUNDING * per_token))
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

THROUGHPUT = Rule(
    "throughput", "tokens/s/GPU is GBS × sequence length ÷ step time ÷ GPUs", _throughput
)
TOTAL_THROUGHPUT = Rule(
    "total_throughput",
    "tokens/s of all GPUs is tokens/s/GPU × GPUs, and GBS × sequence length ÷ step time",
    _total_throughput,
)
TIME_TO_TRAIN = Rule(
    "time_to_train",
    "a column such as 'time to train 1T tokens in days' is the tokens ÷ tokens/s",
    _time_to_train,
)
ZERO_FIGURE = Rule(
    "zero_figure", "a figure is above 0 and finite; what is not known is left out", _zero_figure
)
STEP_SPREAD = Rule(
    "step_spread",
    "the standard deviation of a measured run's step times is within 10 % of their mean",
    _step_spread,
)
FEW_STEPS = Rule("few_steps", "a measured run has 40 steps or more after its warm-up", _few_steps)
EMITTED = Rule(
    "emitted", "the rates that a program prints itself are those that follow from its steps",
    _emitted,
)  # fmt: skip
LOW_PRECISION_THROUGHPUT = Rule(
    "low_precision_throughput",
    "tokens/s of a release are not all a whole number of samples per second",
    _low_precision_throughput,
)
