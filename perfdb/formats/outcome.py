"""How a run ended, by its steps and by what its log prints behind the last of them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from perfdb.formats.columns import Steps
from perfdb.record import Outcome
from perfdb.text import OUT_OF_MEMORY, decoded, plain

Signs = Sequence[tuple[Outcome, re.Pattern[str]]]

_STATED: Final[Signs] = (
    (Outcome.OUT_OF_MEMORY, OUT_OF_MEMORY),
    (Outcome.TIMED_OUT, re.compile(r"DUE TO TIME LIMIT")),
    (Outcome.FAILED, re.compile(r"DUE TO NODE FAILURE|srun: error: Node failure on ")),
)
"""Reasons that only CUDA, NCCL, the kernel and Slurm know."""

_STOPPED: Final = re.compile(
    r"(?m)(?P<interrupted>KeyboardInterrupt\b|SignalException: |CANCELLED AT "
    r"|exiting program after receiving SIG)"
    r"|(?P<failed>Segmentation fault\b|\(core dumped\)|Fatal Python error: "
    r"|terminate called (?:after|without) |Watchdog caught collective operation timeout"
    r"|srun: error: [^\n]*: (?:Killed|Aborted|Terminated|Bus error)\b"
    r"|Killed(?<![A-Za-z,] Killed)(?:[ \t]*$| {2,}\S))"
)
"""A process that was stopped. The first that is stopped takes the others with it."""

_SUMMED_UP: Final[Signs] = (
    (Outcome.FAILED, re.compile(r"Signal (?!15\b)\d+ \(SIG\w+\) received by PID \d+")),
    (Outcome.FAILED, re.compile(r"exitcode *: *-?[1-9]|ChildFailedError")),
    (Outcome.FAILED, re.compile(r"exit code [1-9]")),
)
"""What torchrun says of its workers, whatever their reason, and last Slurm of any task. Torchrun
itself sends signal 15."""

_ERROR: Final = re.compile(r"(?m)(?:Error|Exception|Expired)(?:: |:?[ \t]*$)")
_START: Final = re.compile(r"(?:^|[\]:|>])[ \t]*$")
"""What a launcher may put in front of an error that says no more than its name."""
_OF_OTHERS: Final = re.compile(r"ChildFailedError|SignalException")
_NAME: Final = re.compile(r"[A-Za-z_][\w.]*$")

_UNCAUGHT: Final = re.compile(r"\[rank\d+\]: \S[^\n]*")
"""PyTorch puts its rank in front of each line of the error that ends a process."""

_TRACEBACK: Final = "Traceback (most recent call last)"
_LAST_LINES_CHARS: Final = 1 << 12
"""How far from the end of a log an error may be that is its end."""
_LONGEST_ERROR: Final = 300

STARTS: Final[Mapping[str, tuple[bytes, ...]]] = {
    "megatron_bridge": (b"ConfigContainer",),
    "megatron_lm": (b"-------- arguments --------",),
    "automodel_console": (b"Experiment_details:", b"- nemo_automodel: "),
    "torchtitan": (b"[titan] ", b" device mesh with parallelism: "),
    "nemo1": (b" exp_manager:", b" nlp_overrides:"),
    "nemo2": (b"[NeMo I 20", b"[NeMo W 20", b"MegatronStrategy("),
}
"""What a program prints when it begins, by its format; one that prints another's, too, is first."""

NOT_READ: Final[Mapping[str, re.Pattern[bytes]]] = {
    "the Hugging Face Trainer (as of axolotl)": re.compile(
        rb"\{'(?:loss|train_runtime)': [^\n]{1,400}, 'epoch': "
    ),
    "litgpt": re.compile(rb"Epoch \d+ \| iter \d+ step \d+ \| loss train: "),
    "nanotron": re.compile(rb"\| elapsed_time_per_iteration_ms: [\d.]"),
    "Composer (as of llm-foundry)": re.compile(rb"\[(?:batch|token|sample)=\d+(?:/\d+)?\]:\s"),
}
"""A step of other programs; their logs are refused by name. Sources: trainer_callback.py of
transformers 4.57.6, pretrain.py of litgpt 0.5.13, trainer.py of nanotron 0.4, console_logger.py of
mosaicml 0.32.1."""

DONE: Final[Mapping[str, re.Pattern[str]]] = {
    "megatron": re.compile(
        r"\[after training is done\]|exiting program (?:at iteration|after [\d.]+ minutes)"
    ),
    "nemo": re.compile(r"Trainer\.fit`? stopped: `max_(?:steps|epochs)=\d+` reached"),
    "torchtitan": re.compile(r"Training completed"),
}
"""What a program prints when it is done."""


@dataclass(frozen=True)
class Ending:
    """An outcome and, unless it is `finished`, the reason in one line."""

    outcome: Outcome
    error: str | None = None


def ending(
    steps: Steps,
    *,
    planned: int | None = None,
    done: bool = False,
    epilogue: str = "",
    last_words: str = "",
) -> Ending:
    """How a run ended. A loss that is NaN counts first: its times are not worth keeping.

    `planned`: how many steps there were to be. `done`: the program reports that it is done.
    `epilogue`: the text behind the last step. `last_words`: the text among the last steps, as one
    rank may fail before another prints its step.
    """
    if broken := _not_a_number(steps):
        return broken
    last = int(steps.step[-1]) if steps else 0
    if steps and (done or (planned is not None and last >= planned)):
        return Ending(Outcome.FINISHED)
    if not done and (broken := _broken(epilogue, last_words)):
        return broken
    if not steps:
        return Ending(Outcome.NO_DATA, "the log holds no step that can be read")
    of = f" of {planned}" if planned else ", and does not say that it is the last"
    return Ending(Outcome.INCOMPLETE, f"the log ends at step {last}{of}")


def _not_a_number(steps: Steps) -> Ending | None:
    found: list[tuple[int, Ending]] = []
    for name, words, outcome in (
        ("loss", "loss", Outcome.NAN_LOSS),
        ("grad_norm", "gradient norm", Outcome.NAN_GRAD_NORM),
    ):
        values, known = steps.column(name)
        for place in np.flatnonzero(known & ~np.isfinite(values))[:1].tolist():
            error = f"step {steps.step[place]}: {words} is {values[place]}"
            found.append((place, Ending(outcome, error)))
    return min(found, key=lambda one: one[0])[1] if found else None


def _broken(epilogue: str, last_words: str) -> Ending | None:
    """How a run broke off, by the most specific reason."""
    uncaught = "\n".join(_UNCAUGHT.findall(last_words))
    known = _reason(epilogue) or _reason(uncaught) or _stopped(epilogue)
    if known:
        return known
    summed_up = _first(_SUMMED_UP, epilogue)
    return summed_up and (_reason(last_words) or summed_up)


def _reason(text: str) -> Ending | None:
    return _first(_STATED, text) or _raised(text)


def _first(signs: Signs, text: str) -> Ending | None:
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
    """The last error that is named, but for what a launcher says of the errors of others.

    A name alone is an error where a line begins with it; elsewhere it is a line of a program.
    """
    for found in reversed([*_ERROR.finditer(text)]):
        place = found.start()
        name = _NAME.search(text[max(0, place - 100) : place])
        start = place - len(name[0]) if name else place
        line_start = text.rfind("\n", 0, start) + 1
        if found[0].endswith(": ") or (name and _START.search(text[line_start:start])):
            error = text[start : start + _LONGEST_ERROR].partition("\n")[0].strip()
            if not _OF_OTHERS.search(error):
                return Ending(Outcome.FAILED, error)
    return None


def _line_around(text: str, place: int) -> str:
    start = text.rfind("\n", 0, place) + 1
    return text[start:].partition("\n")[0].strip()[:_LONGEST_ERROR]


def started(text: bytes) -> str | None:
    """The format of a program that begins in a part of a log, with or without a step."""
    shown = plain(text)
    return next(
        (name for name, marks in STARTS.items() if any(one in shown for one in marks)), None
    )


def other_program(text: bytes) -> str | None:
    """The program of a log that is not read, by a part of it."""
    shown = plain(text)
    return next((name for name, step in NOT_READ.items() if step.search(shown)), None)


def died(tail: bytes, start: str | None) -> Ending | None:
    """How a log without a step ends by its last bytes, if in an error. `start`: what began.

    An error that the program reported and went on from does not count: it must be the last. What
    Slurm says of a task may be of any program.
    """
    text = decoded(plain(tail))
    if any(one.search(text) for one in DONE.values()):
        return None
    last = text[-_LAST_LINES_CHARS:] if _TRACEBACK in text else ""
    summed_up = _SUMMED_UP if start is not None else _SUMMED_UP[:-1]
    found = _first(_STATED, text) or _raised(last) or _stopped(text) or _first(summed_up, text)
    return found and _broken(text, "")
