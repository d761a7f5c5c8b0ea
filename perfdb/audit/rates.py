"""The rates of a row with their rounding, from whichever of its figures give them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod

from perfdb import catalog, stated
from perfdb.audit.interval import Interval, exactly, within
from perfdb.audit.printed import figure
from perfdb.audit.subject import TOTAL, Subject
from perfdb.catalog import Peak

FEWEST_WHOLE = 5
_COINCIDENCE = 1e-4
"""The chance below which whole samples per second in every row are no coincidence."""

Tokens = Callable[[Subject], Interval | None]


def tokens(row: Subject) -> Interval | None:
    """Tokens/s/GPU as given, else by the step time or the total of all GPUs.

    Where these two agree, by the one that is printed more exactly; else by the step time.
    """
    given, by_step_time = figure(row, "tokens_per_sec_per_gpu"), tokens_by_step_time(row)
    total = tokens_by_total(row)
    if by_step_time and total and by_step_time.with_cut().agrees(total.with_cut()):
        return given or min(by_step_time, total, key=lambda one: one.uncertainty)
    return given or by_step_time or total


def speeds(row: Subject) -> list[Interval]:
    """Tokens/s/GPU by each of the figures that give them."""
    given = figure(row, "tokens_per_sec_per_gpu")
    return [one for one in (given, tokens_by_step_time(row), tokens_by_total(row)) if one]


def totals(row: Subject) -> dict[str, Interval]:
    """Tokens/s of all GPUs by the fields that give them, with room for digits that were cut off."""
    rate, step_time = figure(row, "tokens_per_sec_per_gpu"), figure(row, "step_time_s")
    tokens = row.global_batch_size * row.sequence_length
    by_rate = {"tokens_per_sec_per_gpu": rate.or_cut().times(row.num_gpus)} if rate else {}
    by_time = {"step_time_s": step_time.or_cut().under(tokens)} if step_time else {}
    return by_rate | by_time


def tokens_by_total(row: Subject) -> Interval | None:
    """The tokens/s of all GPUs ÷ GPUs."""
    total = figure(row, TOTAL)
    return total.over(row.num_gpus) if total else None


def tokens_by_step_time(row: Subject) -> Interval | None:
    """GBS × sequence length ÷ step time ÷ GPUs, in tokens per second.

    None where the steps had other tokens.
    """
    step_time = None if stated.is_uneven(row.notes) else figure(row, "step_time_s")
    return tokens_in(row, step_time) if step_time else None


def tokens_in(row: Subject, step_time_s: Interval) -> Interval:
    """Tokens/s/GPU of a row whose step takes so long."""
    return step_time_s.under(row.global_batch_size * row.sequence_length / row.num_gpus)


def tflops(row: Subject) -> Interval | None:
    """Model TFLOP/s/GPU as given, else MFU × peak."""
    given, mfu, peak = (
        figure(row, "model_tflops_per_sec_per_gpu"), figure(row, "mfu"), peak_tflops(row),
    )  # fmt: skip
    return given or (mfu.times(peak) if mfu and peak else None)


def peak_tflops(row: Subject) -> float | None:
    """The dense peak of a GPU at the row's precision; None where it is not known."""
    known = catalog.peak(row.system, row.precision)
    return row.peak_tflops or (known.tflops if known else None)


def limit_tflops(row: Subject) -> float | None:
    """The dense peak of a GPU; its highest where the row's precision is not known."""
    known = peak_tflops(row)
    if known or row.precision:
        return known
    return max((peak.tflops for peak in peaks(row).values()), default=None)


def peaks(row: Subject) -> Mapping[str, Peak]:
    """The dense peaks of a row's system by their precision; none where it is not known."""
    system = catalog.systems().get(row.system)
    return system.peaks if system else {}


def reader(rows: Sequence[Subject]) -> Tokens:
    """How exactly the rows of a release give tokens/s: by their digits, or by whole samples/s."""
    return coarse_tokens if whole_samples(rows) else tokens


def coarse_tokens(row: Subject) -> Interval | None:
    """Tokens/s/GPU that were computed from a rounded number of samples per second."""
    given = tokens(row)
    if given is None:
        return None
    half_sample = row.sequence_length / row.num_gpus / 2
    return within(given.value, max(half_sample, given.high - given.value))


def whole_samples(rows: Iterable[Subject]) -> bool:
    """Whether every tokens/s of a release is a whole number of samples per second.

    Each may be so by chance, the likelier the more GPUs share the sample.
    """
    given = [(row, figure(row, "tokens_per_sec_per_gpu")) for row in rows]
    printed = [(row, one) for row, one in given if one and one.high > one.low]
    chances = [(one.high - one.low) * row.num_gpus / row.sequence_length for row, one in printed]
    if len(printed) < FEWEST_WHOLE or prod(min(chance, 1) for chance in chances) > _COINCIDENCE:
        return False
    return all(_is_whole(row, one) for row, one in printed)


def _is_whole(row: Subject, given: Interval) -> bool:
    per_sample = row.sequence_length / row.num_gpus
    return given.agrees(exactly(round(given.value / per_sample) * per_sample))
