"""The figures of a measured result, made anew from its run's stored steps. Pure."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from perfdb import catalog, flops, logged, metrics, stated, uneven, windows
from perfdb.db.rows import ResultRow
from perfdb.flops.base import Convention
from perfdb.formats.readings import Readings
from perfdb.record import Outcome
from perfdb.windows import Window

DERIVED = (
    "outcome", "withheld", "window", "num_steps", "step_time_s", "step_time_mean_s",
    "step_time_stdev_s", "step_time_p10_s", "step_time_p90_s", "step_time_last_s",
    "tokens_per_sec_per_gpu", "model_tflops_per_sec_per_gpu", "flops_convention", "mfu",
    "peak_tflops", "peak_memory_bytes", "emitted", "notes",
)  # fmt: skip
"""The columns of a result that follow from its steps, its case and the catalogue."""

TIMES = tuple(name for name in DERIVED if name.startswith("step_time_"))
"""Columns in seconds: of equal steps the deviation is 0, or dust of the step time."""

SAME = 1e-12
"""The relative difference up to which two figures are one: the same sum, added in another order."""


@dataclass(frozen=True)
class Stored:
    """A measured result as it stands in the store, and what its run says of its end."""

    result: ResultRow
    """Its content hash is that of the run: of all that the run was read from."""
    result_id: int
    release_id: int
    run_id: str
    run_row_id: int
    finished: bool
    """Whether its steps may give figures: the run finished, whatever the window makes of it."""
    of_log: bool
    """Whether the run was read from a log."""
    averages: bool = False
    """Whether that log is of one of `perfdb.formats.AVERAGES`."""


@dataclass(frozen=True)
class Asked:
    """The window and the convention to state figures in; None: those that each result has."""

    window: Window | None = None
    convention: Convention | None = None


@dataclass(frozen=True)
class Change:
    """A derived column that would say something else now."""

    before: object
    after: object


def anew(stored: Stored, given: Readings, asked: Asked) -> ResultRow:
    """A result with its figures made again, by today's formulas and catalogue.

    A run that did not finish gives none, and its result stays as it is, as does one of which no
    window is known. A window that holds no step gives none, nor one in which the optimizer skipped
    a step; the convention that was asked for is kept for a window that does.
    """
    window = asked.window or _window(stored.result)
    if window is None or not stored.finished:
        return stored.result
    convention = asked.convention or _convention(stored.result)
    within = logged.picked(given, window, stored.averages)
    bare = replace(_bare(stored.result, window), emitted=_emitted(stored.result, within, window))
    skipped = within.lines.step[within.lines.column("skipped").values != 0]
    if len(skipped):
        reason = f"the optimizer skipped step {skipped[0]}"
        made = replace(bare, outcome=Outcome.INCOMPLETE, withheld=reason)
    else:
        made = logged.with_figures(bare, within, window)
    if stored.of_log:
        made = uneven.rated(made, within.lines, within.spans)
    return _counted_as(made, convention)


def differences(before: ResultRow, after: ResultRow) -> Mapping[str, Change]:
    """The derived columns in which two rows differ, beyond the dust of floating-point sums."""
    pairs = {name: Change(getattr(before, name), getattr(after, name)) for name in DERIVED}
    return {
        name: pair
        for name, pair in pairs.items()
        if not _same(pair, SAME * (after.step_time_s or 0.0) if name in TIMES else 0.0)
    }


def _window(result: ResultRow) -> Window | None:
    return windows.named(result.window, "window") if result.window else None


def _convention(result: ResultRow) -> Convention:
    return flops.CONVENTIONS.get(result.flops_convention or "", flops.DEFAULT)


def _emitted(result: ResultRow, within: logged.Picked, window: Window) -> Mapping[str, float]:
    """What the program printed of a window's steps: over another window, by each step's rates.

    A rate that is not kept step by step is then not known.
    """
    if window.name == result.window:
        return result.emitted
    return logged.rates(within, logged.KEPT, result.case)


def _bare(result: ResultRow, window: Window) -> ResultRow:
    """The result of a finished run before anything is computed."""
    return ResultRow(
        case=result.case,
        release=result.release,
        key=result.key,
        content_hash=result.content_hash,
        origin=result.origin,
        outcome=Outcome.FINISHED,
        window=window.name,
        formula_version=flops.FORMULA_VERSION,
        notes=tuple(note for note in result.notes if note != stated.UNEVEN),
    )


def _counted_as(result: ResultRow, convention: Convention) -> ResultRow:
    """The same rates with the FLOPs that a convention counts."""
    if convention is flops.DEFAULT:
        return result
    case, tokens = result.case, result.tokens_per_sec_per_gpu
    if tokens is None or stated.is_uneven(result.notes):
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


def _same(pair: Change, dust: float) -> bool:
    if isinstance(pair.before, float) and isinstance(pair.after, float):
        return math.isclose(pair.before, pair.after, rel_tol=SAME, abs_tol=dust)
    return pair.before == pair.after
