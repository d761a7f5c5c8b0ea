"""The steps that figures are taken over, and the rates of their tokens and programs. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum, isfinite
from typing import Final

import numpy as np

from perfdb import aggregation
from perfdb.aggregation import Window
from perfdb.formats.columns import Ints, StepColumn, Steps
from perfdb.record import Case, Note, NoteCode

EMITTED_PER_STEP: Final = ("tokens_per_sec_per_gpu", "model_tflops_per_sec_per_gpu")
"""The rates of a program that are stored with each step."""

SAME_TOKENS: Final = 0.01
"""By how much a step's tokens may differ from GBS × sequence length, where labels are shifted."""


@dataclass(frozen=True)
class Selection:
    """The steps that figures are taken over: a window's, without those the optimizer skipped.

    `counts`: how many steps each line is the mean of. `num_steps`: how many steps all lines of the
    log are. `longest`: the largest count of any line. `peak_memory_bytes`: the most of any line.
    """

    steps: Steps
    counts: Ints
    num_steps: int
    longest: int
    peak_memory_bytes: int
    skipped: Note | None = None


def pick_steps(steps: Steps, window: Window, *, averages: bool = False) -> Selection:
    """The steps that figures are taken over, of a log or of a run directory.

    `averages`: whether the times of the log are means since the line before.
    """
    counts = np.broadcast_to(np.int64(1), len(steps))
    if averages:
        counts = aggregation.steps_per_line(steps.step)
    held = aggregation.lines_held(window, steps.step, counts)
    within, within_counts, skipped = steps[held], counts[held], None
    is_skipped = np.asarray(within.column("skipped").values != 0)
    if is_skipped.any():
        skipped = _skipped_note(within.step, within_counts, is_skipped)
        within, within_counts = within.at(~is_skipped), within_counts[~is_skipped]
    memory = steps.column("peak_memory_bytes")
    return Selection(
        steps=within,
        counts=within_counts,
        num_steps=int(counts.sum()),
        longest=int(counts.max(initial=1)),
        peak_memory_bytes=int(memory.values[memory.known].max(initial=0)),
        skipped=skipped,
    )


def _skipped_note(lasts: Ints, counts: Ints, is_skipped: np.ndarray) -> Note:
    """The steps of a window that the optimizer skipped, as loss scaling does now and then.

    Such a step has no update, so it is shorter than a step: neither its time counts nor the mean
    that a line of a log has of it and others.
    """
    skipped_counts = counts[is_skipped]
    last, span = int(lasts[is_skipped][0]), int(skipped_counts[0])
    params = {"num_steps": int(skipped_counts.sum()), "of": int(counts.sum())}
    return Note(NoteCode.SKIPPED_STEPS, {**params, "first": last - span + 1, "last": last})


def first_of_other_tokens(steps: Steps, case: Case) -> int | None:
    """The index of the first step with tokens other than GBS × sequence length."""
    tokens = steps.column("tokens")
    expected = case.global_batch_size * case.sequence_length
    odd = np.flatnonzero(tokens.known & (np.abs(tokens.values / expected - 1) > SAME_TOKENS))
    return int(odd[0]) if len(odd) else None


def token_rate(tokens: StepColumn, seconds: np.ndarray, counts: Ints) -> float | None:
    """Tokens per second of lines that are means of so many steps; None if one is not known."""
    if not tokens.known.all():
        return None
    try:
        total = fsum((tokens.values.astype(np.float64) * counts).tolist())
        time = fsum((seconds * counts).tolist())
    except OverflowError:
        return None
    rate = total / time if time else 0.0
    return rate if isfinite(rate) and rate > 0 else None


def emitted_rates(selection: Selection, names: Sequence[str], case: Case) -> Mapping[str, float]:
    """Of each rate that some lines print, the median over these; a rate of 0 is not known.

    Tokens/s of steps of many lengths are over all of their tokens, as those computed of them.
    """
    steps, counts = selection.steps, selection.counts
    found: dict[str, float | None] = {}
    for name in names:
        rate = _positive(steps.column(name))
        values = rate.values[rate.known].astype(np.float64)
        found[name] = aggregation.median(values, counts[rate.known]) if len(values) else None
    if first_of_other_tokens(steps, case) is not None:
        rate, tokens = _positive(steps.column("tokens_per_sec_per_gpu")), steps.column("tokens")
        known = tokens.at(rate.known)
        with np.errstate(over="ignore"):  # of rates that no program prints
            seconds = known.values / rate.values[rate.known]
        found["tokens_per_sec_per_gpu"] = token_rate(known, seconds, counts[rate.known])
    return known_rates(found)


def known_rates(rates: Mapping[str, float | None]) -> Mapping[str, float]:
    """The rates that are above zero and finite."""
    return {name: rate for name, rate in rates.items() if rate and isfinite(rate) and rate > 0}


def storable(steps: Steps) -> Steps:
    """Steps as they are stored: a loss that is not a number and a rate of 0 are not known."""
    rules = {"loss": _finite, "grad_norm": _finite, **dict.fromkeys(EMITTED_PER_STEP, _positive)}
    kept = {name: rules[name](one) for name, one in steps.columns.items() if name in rules}
    skipped = steps.column("skipped")
    kept["skipped"] = StepColumn.full(np.asarray(skipped.known & (skipped.values != 0)))
    return steps.with_columns(**kept)


def _finite(column: StepColumn) -> StepColumn:
    return StepColumn(column.values, column.known & np.isfinite(column.values))


def _positive(column: StepColumn) -> StepColumn:
    finite = _finite(column)
    return StepColumn(finite.values, finite.known & (finite.values > 0))
