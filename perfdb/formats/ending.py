"""Tells how a run ended from its steps and from what its log says behind the last of them."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from perfdb.formats.base import Configuration, ParsedLog, Reading
from perfdb.formats.readings import Readings
from perfdb.formats.steps import Settled
from perfdb.record import Outcome

_OUT_OF_MEMORY = re.compile(
    r"CUDA out of memory|OutOfMemoryError|can't allocate memory|\bMemoryError\b"
)
_TIME_LIMIT = re.compile(r"DUE TO TIME LIMIT")
_ERROR = re.compile(r"(?:Error|Exception): ")
_NAME = re.compile(r"[A-Za-z_][\w.]*$")
_LONGEST_ERROR = 300


@dataclass(frozen=True)
class Ending:
    """An outcome and, where it is not `finished`, the reason in one line."""

    outcome: Outcome
    error: str | None = None


@dataclass(frozen=True)
class Account:
    """What a log says of its run's end, beside its steps.

    `planned`: how many steps there were to be; None where the log does not say. `done`: the
    program said that it is done. `last_words`: what stands behind the last step.
    """

    planned: int | None
    last_words: str = ""
    done: bool = False


def training_log(
    configuration: Configuration, steps: Settled, account: Account, window: str
) -> ParsedLog:
    """What a log of steps says, with how its run ended."""
    end = ending(steps.readings, account)
    return ParsedLog(
        configuration=configuration,
        readings=steps.readings,
        planned_steps=account.planned,
        window=_of_last_attempt(window, steps),
        restarted_at=steps.restarted_at,
        outcome=end.outcome,
        error=end.error,
        problems=steps.problems,
        notes=steps.notes,
    )


def _of_last_attempt(window: str, steps: Settled) -> str:
    """A restart warms up again: the window follows it, if the last attempt is long enough."""
    warmup = re.fullmatch(r"skip_warmup\((\d+)\)", window)
    if not (warmup and steps.restarted_at and steps.readings):
        return window
    skipped = steps.restarted_at - 1 + int(warmup[1])
    return f"skip_warmup({skipped})" if skipped < steps.readings[-1].step else window


def ending(readings: Sequence[Reading], account: Account) -> Ending:
    """How the run ended. A number that is none counts first: its times are not worth keeping."""
    not_a_number = _not_a_number(readings)
    if not_a_number:
        return not_a_number
    if not readings:
        return _broken(account.last_words) or Ending(
            Outcome.NO_DATA, "the log holds no step that can be read"
        )
    last = readings[-1].step
    if account.done or (account.planned is not None and last >= account.planned):
        return Ending(Outcome.FINISHED)
    return _broken(account.last_words) or _incomplete(last, account.planned)


def _incomplete(last: int, planned: int | None) -> Ending:
    of = f" of {planned}" if planned else ", and does not say that it is the last"
    return Ending(Outcome.INCOMPLETE, f"the log ends at step {last}{of}")


def _not_a_number(readings: Sequence[Reading]) -> Ending | None:
    place = Readings.of(readings).first_not_finite()
    if place is None:
        return None
    odd = readings[place]
    if odd.loss is not None and not math.isfinite(odd.loss):
        return Ending(Outcome.NAN_LOSS, f"step {odd.step}: loss is {odd.loss}")
    message = f"step {odd.step}: gradient norm is {odd.grad_norm}"
    return Ending(Outcome.NAN_GRAD_NORM, message)


def _broken(last_words: str) -> Ending | None:
    memory = _OUT_OF_MEMORY.search(last_words)
    if memory:
        return Ending(Outcome.OUT_OF_MEMORY, _line_around(last_words, memory.start()))
    limit = _TIME_LIMIT.search(last_words)
    if limit:
        return Ending(Outcome.TIMED_OUT, _line_around(last_words, limit.start()))
    errors = [_error_at(last_words, found.start()) for found in _ERROR.finditer(last_words)]
    told = [error for error in errors if "ChildFailedError" not in error]
    return Ending(Outcome.FAILED, told[-1]) if told else None


def _line_around(text: str, place: int) -> str:
    start = text.rfind("\n", 0, place) + 1
    return text[start:].partition("\n")[0].strip()[:_LONGEST_ERROR]


def _error_at(text: str, place: int) -> str:
    """The error that is named at a place, without what a launcher put in front of its name."""
    name = _NAME.search(text[max(0, place - 100) : place])
    start = place - len(name[0]) if name else place
    return text[start : start + _LONGEST_ERROR].partition("\n")[0].strip()
