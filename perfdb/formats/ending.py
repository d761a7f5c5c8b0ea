"""Tells how a run ended from its steps and from what its log says behind the last of them."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from perfdb.formats.base import Reading
from perfdb.record import Outcome

_OUT_OF_MEMORY = re.compile(
    r"[^\n]*(?:CUDA out of memory|OutOfMemoryError|can't allocate memory|\bMemoryError\b)[^\n]*"
)
_TIME_LIMIT = re.compile(r"[^\n]*DUE TO TIME LIMIT[^\n]*")
_ERROR = re.compile(r"\b((?:[A-Za-z_][\w.]*)?(?:Error|Exception): [^\n]*)")
_LONGEST_ERROR = 300


@dataclass(frozen=True)
class Ending:
    """An outcome and, where it is not `finished`, the reason in one line."""

    outcome: Outcome
    error: str | None = None


@dataclass(frozen=True)
class Account:
    """What is known of a run's end: its steps, how many there were to be, the last words.

    `done`: the program said that it is done. `planned` is None where the log does not say.
    """

    readings: Sequence[Reading]
    planned: int | None
    last_words: str
    done: bool = False


def ending(account: Account) -> Ending:
    """How the run ended. A number that is none counts first: its times are not worth keeping."""
    not_a_number = _not_a_number(account.readings)
    if not_a_number:
        return not_a_number
    if not account.readings:
        return _broken(account.last_words) or Ending(
            Outcome.NO_DATA, "the log holds no step that can be read"
        )
    last = account.readings[-1].step
    if account.done or (account.planned is not None and last >= account.planned):
        return Ending(Outcome.FINISHED)
    return _broken(account.last_words) or _incomplete(last, account.planned)


def _incomplete(last: int, planned: int | None) -> Ending:
    of = f" of {planned}" if planned else ", and does not say that it is the last"
    return Ending(Outcome.INCOMPLETE, f"the log ends at step {last}{of}")


def _not_a_number(readings: Sequence[Reading]) -> Ending | None:
    for reading in readings:
        if reading.loss is not None and not math.isfinite(reading.loss):
            return Ending(Outcome.NAN_LOSS, f"step {reading.step}: loss is {reading.loss}")
        if reading.grad_norm is not None and not math.isfinite(reading.grad_norm):
            message = f"step {reading.step}: gradient norm is {reading.grad_norm}"
            return Ending(Outcome.NAN_GRAD_NORM, message)
    return None


def _broken(last_words: str) -> Ending | None:
    memory = _OUT_OF_MEMORY.search(last_words)
    if memory:
        return Ending(Outcome.OUT_OF_MEMORY, memory[0].strip()[:_LONGEST_ERROR])
    limit = _TIME_LIMIT.search(last_words)
    if limit:
        return Ending(Outcome.TIMED_OUT, limit[0].strip()[:_LONGEST_ERROR])
    errors: list[str] = [one for one in _ERROR.findall(last_words) if "ChildFailed" not in one]
    return Ending(Outcome.FAILED, errors[-1].strip()[:_LONGEST_ERROR]) if errors else None
