"""What a reader of a run's figures should know of the steps in their window. Pure."""

from collections.abc import Iterator
from typing import Final

from perfdb import measure, selection
from perfdb.aggregation import Window
from perfdb.db.rows import ResultRow
from perfdb.errors import Diagnostic
from perfdb.formats import ParsedLog, batch
from perfdb.messages import note_text
from perfdb.record import NoteCode

_ONE_ATTEMPT: Final = "pass --window for steps of one attempt"


def notes(
    where: str, log: ParsedLog, result: ResultRow, window: Window, *, averages: bool
) -> Iterator[Diagnostic]:
    """Steps that do not count, that are of other settings, or that have other tokens.

    `averages`: whether the log's format is one of those in `perfdb.formats.AVERAGES`.
    """
    why = result.withheld
    for note in (*filter(None, [why]), *result.notes):
        if note.code is NoteCode.SKIPPED_STEPS:
            yield Diagnostic(where, note_text(note))
    if why and why.code is NoteCode.WINDOW_OF_OTHER_SETTINGS:
        yield Diagnostic(where, f"no figures: {note_text(why)}", remedy=_ONE_ATTEMPT)
    if result.step_time_s is not None:
        yield from _uneven(where, log, result, window, averages=averages)


def _uneven(
    where: str, log: ParsedLog, result: ResultRow, window: Window, *, averages: bool
) -> Iterator[Diagnostic]:
    """That steps have other tokens than the case says, and what is known of them."""
    case = result.case
    log = batch.with_tokens(log, case.sequence_length)
    within = selection.pick_steps(log.steps, window, averages=averages).steps
    place = selection.first_of_other_tokens(within, case)
    if place is not None:
        expected = f"{case.global_batch_size:,} × {case.sequence_length:,}"
        odd, rated = within[place], measure.has_note(result, NoteCode.VARIABLE_LENGTH_STEPS)
        known = "tokens/s are those of the steps, TFLOP/s and MFU" if rated else "rates"
        message = f"step {odd.step} has {odd.tokens:,} tokens, not {expected}"
        yield Diagnostic(where, f"{message}: {known} are unknown")
