"""The global batch size of a run by its step lines, which say it whatever else is configured.

A program may begin with small batches. What its arguments say is then the last size alone, and a
rate over steps of another would be wrong: the steps are given their tokens, and the run has the
batch that all steps of its window have.
"""

from dataclasses import replace

import numpy as np

from perfdb.aggregation import Window
from perfdb.errors import Diagnostic
from perfdb.formats.base import ParsedLog
from perfdb.formats.numbers import count
from perfdb.formats.readings import Column, Readings
from perfdb.formats.shelf import each
from perfdb.formats.spans import held_by, spans
from perfdb.formats.steps import sizes

PRINTED = "global_batch_size"
"""The column of step lines that says it; no step is kept with it."""


def stated(where: str, log: ParsedLog) -> ParsedLog:
    """A log with the batch size of its step lines, and a note where its settings say another.

    Of several sizes none is taken: `of_window` knows which steps count, and whoever knows the
    sequence length how many tokens they have.
    """
    lines = Readings.of(log.readings)
    printed = lines.column(PRINTED)
    found = printed.distinct()
    if found:
        doubts = {name: told for name, told in log.doubts.items() if name != PRINTED}
        log = replace(log, doubts=doubts)
    if len(found) > 1:
        return _with_size(log, None, None)
    log = replace(log, readings=lines.without(PRINTED))
    size, other = count(found[0] if found else None), log.configuration.global_batch_size
    if size is None:
        return log
    message = f"its settings say global batch size {other}, its step lines {size}: that is taken"
    return _with_size(log, size, Diagnostic(where, message) if other not in (None, size) else None)


def with_tokens(log: ParsedLog, sequence: int | None) -> ParsedLog:
    """A log of several batch sizes with the tokens of its steps, of samples of this length."""
    lines = Readings.of(log.readings)
    if sequence is None or PRINTED not in lines.columns:
        return log

    def told(some: Readings) -> Readings:
        printed = some.column(PRINTED)
        with np.errstate(over="ignore", invalid="ignore"):
            tokens = Column(printed.values * sequence, printed.known)
        return some.without(PRINTED).with_columns(tokens=sizes(tokens))

    return replace(log, readings=each(lines, told))


def of_window(where: str, log: ParsedLog, window: Window, asked: int | None = None) -> ParsedLog:
    """A log of several batch sizes with that of all steps of the window; another as it is.

    `asked`: the size that --set states.
    """
    lines = Readings.of(log.readings)
    if PRINTED not in lines.columns:
        return log
    printed = lines.column(PRINTED)
    within = printed.at(held(lines, window)).distinct()
    size = count(within[0]) if len(within) == 1 else None
    log = with_tokens(log, log.configuration.sequence_length)
    if size is not None:
        message = f"{_changes(printed)}: all steps of {window.name} have {size}"
        return _with_size(log, size, Diagnostic(where, message))
    message = f"{_changes(printed)}, and not all steps of {window.name} have the same"
    remedy = "pass --window for steps of one"
    none = Diagnostic(where, f"{message}: none is stated", remedy=remedy)
    return _with_size(log, None, Diagnostic(where, message) if asked else none)


def _changes(printed: Column) -> str:
    found = printed.distinct()
    return f"the global batch size changes between {found[0]:g} and {found[-1]:g}"


def _with_size(log: ParsedLog, size: int | None, note: Diagnostic | None) -> ParsedLog:
    said = log.configuration.model_copy(update={PRINTED: size})
    return replace(log, configuration=said, notes=(*log.notes, *([note] if note else ())))


def held(lines: Readings, window: Window) -> slice:
    """The places of the lines that settle the batch of a window.

    They are those in it; where each is a mean, the line before too: the batch may have changed
    between the two.
    """
    counts = spans(lines.step)
    within = held_by(window, lines.step, counts)
    if within.start == within.stop:
        return within
    return slice(max(0, within.start - int(counts[within.start] > 1)), within.stop)
