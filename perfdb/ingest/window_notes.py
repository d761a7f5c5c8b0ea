"""What a reader of a run's figures should know of the steps in their window. Pure."""

from collections.abc import Iterator
from typing import Final

from perfdb import attempt_settings, picked, skipped, stated, uneven
from perfdb.db.rows import ResultRow
from perfdb.errors import Diagnostic
from perfdb.formats import ParsedLog, batch
from perfdb.windows import Window

_ONE_ATTEMPT: Final = "pass --window for steps of one attempt"


def notes(
    where: str, log: ParsedLog, result: ResultRow, window: Window, *, averages: bool
) -> Iterator[Diagnostic]:
    """Steps that do not count, that are of other settings, or that have other tokens.

    `averages`: whether the log's format is one of those in `perfdb.formats.AVERAGES`.
    """
    if skips := skipped.said_of(result):
        yield Diagnostic(where, skips)
    if attempt_settings.is_why(result.withheld):
        yield Diagnostic(where, f"no figures: {result.withheld}", remedy=_ONE_ATTEMPT)
    if result.step_time_s is not None:
        yield from _uneven(where, log, result, window, averages=averages)


def _uneven(
    where: str, log: ParsedLog, result: ResultRow, window: Window, *, averages: bool
) -> Iterator[Diagnostic]:
    """That steps have other tokens than the case says, and what is known of them."""
    case = result.case
    log = batch.with_tokens(log, case.sequence_length)
    within = picked.of(log.readings, window, averages=averages).lines
    place = uneven.first(within, case)
    if place is not None:
        expected = f"{case.global_batch_size:,} × {case.sequence_length:,}"
        odd, rated = within[place], stated.is_uneven(result.notes)
        known = "tokens/s are those of the steps, TFLOP/s and MFU" if rated else "rates"
        message = f"step {odd.step} has {odd.tokens:,} tokens, not {expected}"
        yield Diagnostic(where, f"{message}: {known} are unknown")
