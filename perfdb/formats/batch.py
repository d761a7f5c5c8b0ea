"""The global batch size of a run by its step lines, which print it whatever else is configured.

A program may begin with small batches. Its arguments then state the last size only, and a rate over
steps of another would be wrong: the steps get their tokens, and the run has the batch that all
steps of its window have.
"""

from dataclasses import replace
from typing import Final

import numpy as np

from perfdb.aggregation import Window, lines_held, steps_per_line
from perfdb.errors import Diagnostic
from perfdb.formats import attempts
from perfdb.formats.base import Attempt, ParsedLog
from perfdb.formats.columns import StepColumn, Steps
from perfdb.formats.numbers import count
from perfdb.formats.settle import amounts

PRINTED: Final = "global_batch_size"
"""The column of steps that has it."""


def stated(where: str, log: ParsedLog) -> ParsedLog:
    """A log with the batch size of its step lines, and a note where its settings state another.

    Of several sizes none is taken: `of_window` knows which steps count, and whoever knows the
    sequence length how many tokens they have.
    """
    found = log.steps.column(PRINTED).distinct()
    if not found:
        return log
    size, other = count(found[0]), log.configuration.global_batch_size
    if len(found) > 1:
        return _with_size(log, None, None)
    log = replace(log, steps=log.steps.without(PRINTED))
    if size is None:
        return log
    message = f"its settings say global batch size {other}, its step lines {size}: that is taken"
    return _with_size(log, size, Diagnostic(where, message) if other not in (None, size) else None)


def with_tokens(log: ParsedLog, sequence: int | None) -> ParsedLog:
    """A log of several batch sizes with the tokens of its steps, of samples of this length."""
    if sequence is None or PRINTED not in log.steps.columns:
        return log
    values, known = log.steps.column(PRINTED)
    with np.errstate(over="ignore", invalid="ignore"):
        tokens = amounts(StepColumn(values.astype(np.float64) * sequence, known))
    return replace(log, steps=log.steps.without(PRINTED).with_columns(tokens=tokens))


def of_window(where: str, log: ParsedLog, window: Window, asked: int | None = None) -> ParsedLog:
    """A log of several batch sizes with that of all steps of the window; another as it is.

    `asked`: the size that --set states.
    """
    if PRINTED not in log.steps.columns:
        return log
    printed = log.steps.column(PRINTED)
    found, within = printed.distinct(), printed.at(held(log.steps, window)).distinct()
    size = count(within[0]) if len(within) == 1 else None
    log = with_tokens(log, log.configuration.sequence_length)
    changes = f"the global batch size changes between {found[0]:g} and {found[-1]:g}"
    if size is not None:
        message = f"{changes}: all steps of {window.name} have {size}"
        return _with_size(log, size, Diagnostic(where, message), window)
    message = f"{changes}, and not all steps of {window.name} have the same"
    remedy = "pass --window for steps of one"
    none = Diagnostic(where, f"{message}: none is stated", remedy=remedy)
    return _with_size(log, None, Diagnostic(where, message) if asked else none, window)


def held(steps: Steps, window: Window) -> slice:
    """The places of the lines that settle the batch of a window.

    They are those in it; where each is a mean, the line before too: the batch may have changed
    between the two.
    """
    counts = steps_per_line(steps.step)
    within = lines_held(window, steps.step, counts)
    if within.start == within.stop:
        return within
    return slice(max(0, within.start - int(counts[within.start] > 1)), within.stop)


def _with_size(
    log: ParsedLog, size: int | None, note: Diagnostic | None, window: Window | None = None
) -> ParsedLog:
    """A log with a batch size in place of those of its settings, whatever the attempt."""
    sized = replace(
        log,
        configuration=log.configuration.model_copy(update={PRINTED: size}),
        doubts={name: one for name, one in log.doubts.items() if name != PRINTED},
        attempts=tuple(_attempt_with_size(one, size) for one in log.attempts),
        notes=(*log.notes, *([note] if note else ())),
    )
    return attempts.of_window(sized, window)


def _attempt_with_size(attempt: Attempt, size: int | None) -> Attempt:
    own = attempt.settings
    sized = own.configuration.model_copy(update={PRINTED: size})
    return replace(attempt, settings=replace(own, configuration=sized))
