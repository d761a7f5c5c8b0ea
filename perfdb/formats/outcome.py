"""How a run ended, by its steps and by what its log prints behind the last of them."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from perfdb import out_of_memory
from perfdb.formats.columns import Steps
from perfdb.formats.scan import LogSection, Piece
from perfdb.formats.settings import DUMPS
from perfdb.log_text import decoded, plain
from perfdb.record import Outcome

_STATED: Final = (
    (Outcome.OUT_OF_MEMORY, out_of_memory.MESSAGE),
    (Outcome.TIMED_OUT, re.compile(r"DUE TO TIME LIMIT")),
    (Outcome.FAILED, re.compile(r"DUE TO NODE FAILURE|srun: error: Node failure on ")),
)
"""What CUDA, NCCL, the kernel and Slurm say of an end that they alone know the reason of."""

_STOPPED = re.compile(
    r"(?m)(?P<interrupted>KeyboardInterrupt\b|SignalException: |CANCELLED AT "
    r"|exiting program after receiving SIG)"
    r"|(?P<failed>Segmentation fault\b|\(core dumped\)|Fatal Python error: "
    r"|terminate called (?:after|without) |Watchdog caught collective operation timeout"
    r"|srun: error: [^\n]*: (?:Killed|Aborted|Terminated|Bus error)\b"
    r"|Killed(?<![A-Za-z,] Killed)(?:[ \t]*$| {2,}\S))"
)
"""A process that was stopped. The first that is stopped takes the others with it."""

_SUMMED_UP: Final = (
    (Outcome.FAILED, re.compile(r"Signal (?!15\b)\d+ \(SIG\w+\) received by PID \d+")),
    (Outcome.FAILED, re.compile(r"exitcode *: *-?[1-9]|ChildFailedError")),
    (Outcome.FAILED, re.compile(r"exit code [1-9]")),
)
"""What torchrun says of its workers, whatever their reason, and Slurm of any task. Signal 15 is
torchrun's own."""

_ERROR = re.compile(r"(?m)(?:Error|Exception|Expired)(?:: |:?[ \t]*$)")
_START = re.compile(r"(?:^|[\]:|>])[ \t]*$")
"""What a launcher may put in front of an error that says no more than its name."""

_BEGINS = re.compile(
    "|".join(DUMPS) + r"|MegatronStrategy\(| exp_manager:| device mesh with parallelism: "
)
"""What programs print when they begin: an error above it is of an earlier attempt."""

_UNCAUGHT = re.compile(r"\[rank\d+\]: \S[^\n]*")
"""PyTorch puts its rank in front of each line of the error that ends a process."""

_TRACEBACK = "Traceback (most recent call last)"
_LAST_LINES_CHARS = 1 << 12
"""How far from the end of a log an error may be that is its end."""
_OF_OTHERS = re.compile(r"ChildFailedError|SignalException")
_NAME = re.compile(r"[A-Za-z_][\w.]*$")
_LONGEST_ERROR = 300
_NOTHING: Final = Piece(0, "")


@dataclass(frozen=True)
class Ending:
    """An outcome and, where it is not `finished`, the reason in one line."""

    outcome: Outcome
    error: str | None = None


@dataclass(frozen=True)
class Account:
    """What a log prints of the end of its run, apart from its steps.

    `planned`: how many steps there were to be; None where the log does not state it. `done`: the
    program reports that it is done. `epilogue`: the text behind the last step; `last_words`: the
    text among the last steps, where one rank may fail before another prints its step, or an
    earlier attempt has ended. `sections`: the text of each start.
    """

    planned: int | None
    epilogue: str = ""
    done: bool = False
    last_words: Piece = _NOTHING
    sections: Sequence[LogSection] = field(default=())


def ending(steps: Steps, account: Account) -> Ending:
    """How the run ended. A number that is none counts first: its times are not worth keeping."""
    not_a_number = _not_a_number(steps)
    if not_a_number:
        return not_a_number
    if not steps:
        broken = None if account.done else _broken(account)
        return broken or Ending(Outcome.NO_DATA, "the log holds no step that can be read")
    last = steps[-1].step
    if account.done or (account.planned is not None and last >= account.planned):
        return Ending(Outcome.FINISHED)
    return _broken(account) or _incomplete(last, account.planned)


def _incomplete(last: int, planned: int | None) -> Ending:
    of = f" of {planned}" if planned else ", and does not say that it is the last"
    return Ending(Outcome.INCOMPLETE, f"the log ends at step {last}{of}")


def _not_a_number(steps: Steps) -> Ending | None:
    place = steps.first_not_finite()
    if place is None:
        return None
    odd = steps[place]
    if odd.loss is not None and not math.isfinite(odd.loss):
        return Ending(Outcome.NAN_LOSS, f"step {odd.step}: loss is {odd.loss}")
    message = f"step {odd.step}: gradient norm is {odd.grad_norm}"
    return Ending(Outcome.NAN_GRAD_NORM, message)


def broken_start(tail: str, *, is_training: bool) -> Ending | None:
    """How a log ends that may be of a run without a step, by its last words.

    An error that some program reported and went on from is none: it must be the last. A task of
    Slurm may be anything.
    """
    last = tail[-_LAST_LINES_CHARS:] if _TRACEBACK in tail else ""
    summed_up = _SUMMED_UP if is_training else _SUMMED_UP[:-1]
    found = _first(_STATED, tail) or _raised(last) or _stopped(tail) or _first(summed_up, tail)
    return found and _broken(Account(None, tail))


def _broken(account: Account) -> Ending | None:
    """How a run broke off, by whatever says most of the reason."""
    behind, before = account.epilogue, _BEGINS.split(account.last_words.text)[-1]
    uncaught = "\n".join(_UNCAUGHT.findall(before))
    known = _reason(behind) or _reason(uncaught) or _stopped(behind)
    if known:
        return known
    summed_up = _first(_SUMMED_UP, behind)
    return summed_up and (_reason(before) or summed_up)


def _reason(text: str) -> Ending | None:
    return _first(_STATED, text) or _raised(text)


def _first(signs: Sequence[tuple[Outcome, re.Pattern[str]]], text: str) -> Ending | None:
    found = ((outcome, sign.search(text)) for outcome, sign in signs)
    ends = (Ending(outcome, _line_around(text, one.start())) for outcome, one in found if one)
    return next(ends, None)


def _stopped(text: str) -> Ending | None:
    found = _STOPPED.search(text)
    if not found:
        return None
    outcome = Outcome.INTERRUPTED if found["interrupted"] else Outcome.FAILED
    return Ending(outcome, _line_around(text, found.start()))


def _raised(text: str) -> Ending | None:
    """The last error that is named, but for what a launcher says of the errors of others."""
    errors = (_error_at(text, found) for found in _ERROR.finditer(text))
    named = [error for error in errors if error and not _OF_OTHERS.search(error)]
    return Ending(Outcome.FAILED, named[-1]) if named else None


def _line_around(text: str, place: int) -> str:
    start = text.rfind("\n", 0, place) + 1
    return text[start:].partition("\n")[0].strip()[:_LONGEST_ERROR]


def _error_at(text: str, found: re.Match[str]) -> str | None:
    """The error that is named at a place, without what a launcher put in front of its name.

    A name alone is an error where a line begins with it; elsewhere it is a line of a program.
    """
    place = found.start()
    name = _NAME.search(text[max(0, place - 100) : place])
    start = place - len(name[0]) if name else place
    line_start = text.rfind("\n", 0, start) + 1
    if not found[0].endswith(": ") and not (name and _START.search(text[line_start:start])):
        return None
    return text[start : start + _LONGEST_ERROR].partition("\n")[0].strip()


STARTS: Final[Mapping[str, tuple[bytes, ...]]] = {
    "megatron_bridge": (b"ConfigContainer",),
    "megatron_lm": (b"-------- arguments --------",),
    "automodel_console": (b"Experiment_details:", b"- nemo_automodel: "),
    "torchtitan": (b"[titan] ", b" device mesh with parallelism: "),
    "nemo1": (b" exp_manager:", b" nlp_overrides:"),
    "nemo2": (b"[NeMo I 20", b"[NeMo W 20", b"MegatronStrategy("),
}
"""What a program prints when it begins, by its format; one that prints another's, too, is first."""

DONE: Final[Mapping[str, re.Pattern[str]]] = {
    "megatron": re.compile(
        r"\[after training is done\]|exiting program (?:at iteration|after [\d.]+ minutes)"
    ),
    "nemo": re.compile(r"Trainer\.fit`? stopped: `max_(?:steps|epochs)=\d+` reached"),
    "torchtitan": re.compile(r"Training completed"),
}
"""What a program prints when it is done."""


def started(text: bytes) -> str | None:
    """The format whose program begins in a part of a log, whether it has a step or not."""
    shown = plain(text)
    return next(
        (name for name, marks in STARTS.items() if any(one in shown for one in marks)), None
    )


def died(tail: bytes, start: str | None) -> Ending | None:
    """How a log without a step ends by its last bytes, if in an error. `start`: what began."""
    text = decoded(plain(tail))
    is_done = any(one.search(text) for one in DONE.values())
    return None if is_done else broken_start(text, is_training=start is not None)
