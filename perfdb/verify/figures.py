"""The figures of a measured result, recomputed from its run's stored steps. Pure."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from perfdb import aggregation, catalog, flops, measure, metrics, selection
from perfdb.aggregation import Window
from perfdb.db.rows import ResultRow
from perfdb.flops.base import Convention
from perfdb.formats.columns import Steps
from perfdb.record import Note, NoteCode, Outcome
from perfdb.selection import Selection
from perfdb.verify.stored import StoredRun

RECOMPUTED = (
    "outcome", "withheld", "window", "num_steps", "num_means", "step_time_s", "step_time_mean_s",
    "step_time_stdev_s", "step_time_p10_s", "step_time_p90_s", "step_time_last_s",
    "tokens_per_sec_per_gpu", "model_tflops_per_sec_per_gpu", "flops_convention", "mfu",
    "peak_tflops", "peak_memory_bytes", "emitted", "notes",
)  # fmt: skip
"""The columns of a result that follow from its steps, its case and the catalog."""

TIMES = tuple(name for name in RECOMPUTED if name.startswith("step_time_"))
"""Columns in seconds: of equal steps the deviation is 0, or a rounding error of the step time."""

SAME = 1e-12
"""The relative difference up to which two figures are equal: one sum, added in another order."""


@dataclass(frozen=True)
class Asked:
    """The window and the convention to state figures in; None: those that each result has."""

    window: Window | None = None
    convention: Convention | None = None


@dataclass(frozen=True)
class ColumnChange:
    """The stored and the recomputed value of a derived column that differs."""

    before: object
    after: object


def recomputed(stored: StoredRun, given: Steps, asked: Asked) -> ResultRow:
    """A result with its figures recomputed by today's formulas and catalog.

    The result is returned unchanged if its run did not finish or its window is unknown. If the
    window holds no step, or most of those in it were skipped by the optimizer, the figures are
    withheld; the convention is recorded all the same, for the next window that gives figures.
    """
    window = asked.window or _window(stored.result)
    if window is None or not stored.finished:
        return stored.result
    convention = asked.convention or _convention(stored.result)
    within = selection.pick_steps(given, window, averages=stored.averages)
    emitted = _emitted(stored.result, within, window)
    empty = replace(_without_figures(stored.result, window), emitted=emitted)
    empty = measure.with_model_shape(empty, stored.configuration)
    result = measure.with_figures(empty, within, window)
    if stored.of_log:
        result = measure.with_token_rate(result, within)
    return _counted_as(result, convention)


def differences(before: ResultRow, after: ResultRow) -> Mapping[str, ColumnChange]:
    """The derived columns in which two rows differ by more than a rounding error."""
    pairs = {name: ColumnChange(getattr(before, name), getattr(after, name)) for name in RECOMPUTED}
    return {
        name: pair
        for name, pair in pairs.items()
        if not _same(pair, SAME * (after.step_time_s or 0.0) if name in TIMES else 0.0)
    }


def _window(result: ResultRow) -> Window | None:
    return aggregation.named(result.window, "window") if result.window else None


def _convention(result: ResultRow) -> Convention:
    return flops.CONVENTIONS.get(result.flops_convention or "", flops.DEFAULT)


def _emitted(result: ResultRow, within: Selection, window: Window) -> Mapping[str, float]:
    """The rates the program printed for the steps of a window.

    Over another window than the stored one they come from each step's rates; a rate that is not
    stored for each step is then left out.
    """
    if window.name == result.window:
        return result.emitted
    return selection.emitted_rates(within, selection.EMITTED_PER_STEP, result.case)


def _without_figures(result: ResultRow, window: Window) -> ResultRow:
    """The result of a finished run, before any figure is computed."""
    return ResultRow(
        case=result.case,
        release=result.release,
        key=result.key,
        content_hash=result.content_hash,
        origin=result.origin,
        outcome=Outcome.FINISHED,
        window=window.name,
        formula_version=flops.FORMULA_VERSION,
        notes=tuple(note for note in result.notes if not _is_made_anew(note)),
    )


def _is_made_anew(note: Note) -> bool:
    """Whether a note holds of the steps of one window alone, or of the catalog as it was."""
    return note.code in (
        NoteCode.VARIABLE_LENGTH_STEPS, NoteCode.SKIPPED_STEPS, NoteCode.MODEL_SHAPE,
    )  # fmt: skip


def _counted_as(result: ResultRow, convention: Convention) -> ResultRow:
    """The result with its TFLOP/s and MFU in another convention; tokens per second stay."""
    if convention is flops.DEFAULT or measure.has_note(result, NoteCode.MODEL_SHAPE):
        return result
    case, tokens = result.case, result.tokens_per_sec_per_gpu
    if tokens is None or measure.has_note(result, NoteCode.VARIABLE_LENGTH_STEPS):
        return replace(result, flops_convention=convention.name)
    model = catalog.models().get(case.model)
    if model is None:
        return result
    per_token = flops.flops_per_token(model, case.sequence_length, convention, case.task)
    if per_token is None:
        return result
    achieved = metrics.model_tflops_per_sec_per_gpu(tokens, per_token)
    return replace(
        result,
        model_tflops_per_sec_per_gpu=achieved,
        flops_convention=convention.name,
        mfu=metrics.mfu(achieved, result.peak_tflops) if result.peak_tflops else None,
    )


def _same(pair: ColumnChange, abs_tol: float) -> bool:
    if isinstance(pair.before, float) and isinstance(pair.after, float):
        return math.isclose(pair.before, pair.after, rel_tol=SAME, abs_tol=abs_tol)
    return pair.before == pair.after
