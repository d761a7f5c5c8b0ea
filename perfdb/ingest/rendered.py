"""How far two logs of one run may differ, and what they share all the same.

AutoModel writes a run to the console and, with more digits, to training.jsonl. torchrun keeps what
each rank has printed, `LOGS/JOB_RANDOM/attempt_0/RANK/stdout.log`: ranks measure the same steps,
each by its own clock. Source: torch/distributed/elastic/multiprocessing/api.py. Where Slurm keeps
a file of each node, nothing of their paths says so; but each rank of torchtitan prints the losses
of all. Source: torchtitan/trainer.py, `train_step`.
"""

import math
import os
import re
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from operator import eq
from typing import Final

from perfdb.formats import automodel, automodel_json, torchtitan
from perfdb.record import Outcome

AT_ONCE: Final = frozenset((automodel.CONSOLE.name, automodel_json.TRAINING.name))
"""The formats that one program writes a run in."""

OF_NODES: Final = torchtitan.FORMAT.name
"""The format of which the logs of two nodes are known by their losses."""

OF_RANKS: Final = "%std%.log%"
"""The paths of torchrun's logs, from whatever folder, and perhaps of others, for LIKE."""

_OF_RANK = re.compile(r"(.+/attempt_\d+)/\d+/std(?:out|err)\.log(?:\.\w+)?")
_TIME_DIGITS: Final = 1e-4
"""By how much a time may differ that follows from a rate with two decimals, as its share."""
_CLOCKS: Final = 0.05
"""By how much the time of a step may differ from node to node, as its share."""
_LOSS_DIGITS: Final = 1e-4
"""By how much a loss may differ that is printed with four decimals."""

SAYS_END: Final = 2
"""What `end_told` is of a log that says how its run ended."""

Said = tuple[int, float, float | None]
"""A step, its time and its loss."""


@dataclass(frozen=True)
class Likeness:
    """How the steps of two logs of one run are alike, and the words of a note for it."""

    is_same: Callable[[Said, Said], bool]
    why: str
    dust: float | None = None
    """The deviation that equal times may have by rounding, as a share; None: times do not tell."""


def _but_for_digits(one: Said, other: Said) -> bool:
    (step, time, loss), (its_step, its_time, its_loss) = one, other
    if step != its_step or (loss is None) != (its_loss is None):
        return False
    is_loss = math.isclose(loss or 0.0, its_loss or 0.0, rel_tol=0.0, abs_tol=_LOSS_DIGITS)
    return is_loss and math.isclose(time, its_time, rel_tol=_TIME_DIGITS)


def _but_for_clocks(one: Said, other: Said) -> bool:
    (step, time, loss), (its_step, its_time, its_loss) = one, other
    is_same = step == its_step and loss is not None and loss == its_loss
    return is_same and math.isclose(time, its_time, rel_tol=_CLOCKS)


EXACT: Final = Likeness(eq, "its steps are the same", 1e-9)
BUT_FOR_DIGITS: Final = Likeness(
    _but_for_digits, "its steps are the same but for their digits", _TIME_DIGITS
)
OF_ANOTHER_RANK: Final = Likeness(
    lambda one, other: one[0] == other[0], "it is of another rank of the same attempt"
)
OF_ANOTHER_NODE: Final = Likeness(_but_for_clocks, "its steps have the same losses")
"""If these differ from step to step."""


def likeness(paths: tuple[str, str], parsers: tuple[str, str]) -> Likeness:
    """How two logs have to be alike to be one run. At the same path are no two ranks."""
    attempts = set(map(attempt_of, paths))
    if attempts != {None} and len(attempts) == len(set(parsers)) == 1 < len(set(paths)):
        return OF_ANOTHER_RANK
    return BUT_FOR_DIGITS if set(parsers) == AT_ONCE else EXACT


def attempt_of(path: str) -> str | None:
    """The folder of torchrun's in which a rank's log lies, wherever it is spelled from."""
    found = _OF_RANK.fullmatch(os.path.abspath(path))  # noqa: PTH100  a Path keeps `..`
    return os.path.realpath(found[1]) if found else None


def end_told(parser: str, outcome: Outcome) -> int:
    """How much a log says of the end of its run: training.jsonl holds steps and nothing else."""
    if parser == automodel_json.TRAINING.name:
        return 0
    return 1 if outcome is Outcome.INCOMPLETE else SAYS_END


def marks(path: str, parser: str, said: Iterable[Said]) -> Iterator[Hashable]:
    """What a log that may differ so much shares with any other one of its run."""
    if attempt := attempt_of(path):
        yield attempt
    for step, time, loss in said:
        if parser in AT_ONCE:
            yield from {(step, f"{time * by:.3g}") for by in (1 - _TIME_DIGITS, 1 + _TIME_DIGITS)}
        if parser == OF_NODES and loss is not None:
            yield step, "loss", loss
