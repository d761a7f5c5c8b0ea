"""The log and result formats perfdb reads: from the bytes of a file to what it says of runs.

To add one: write its module (perfdb.formats.base.LogFormat), add it to the table.

A log that a collector has put into JSON is turned into text first (`collected`).
A log of steps is read in one pass. `scan` cuts its bytes into blocks, finds in them the marker of a
step (`block`), and keeps what stands before the first step and behind the last. Either a step is
read from each piece of text with the marker, by the format's own patterns (`marked`); or its lines
are `key: value |` and read by the thousand (`steplines`): `piped` reads one of them, `shapes` tells
where the same numbers stand in all that look like it, `lines` applies the one to the other, and
`readings` holds what comes out as columns, of many steps in a file (`shelf`): `piecewise` goes
through them, for no array is to be as long as a log. `steps` then keeps each step once, of restarts
and ranks as well (`back`, `order`), `settings` reads what the run was, `ending` how it ended; a log
of several runs is read again as of the last (`several`).
`torchtitan` is an example of the first way, `nemo2` of the other.
"""

from dataclasses import dataclass
from typing import Final

from perfdb.errors import Diagnostic, InputError, suggestion
from perfdb.formats import (
    automodel_benchmark,
    automodel_console,
    automodel_summary,
    automodel_training,
    llmb_config,
    megatron_bridge,
    megatron_bridge_golden,
    megatron_config,
    megatron_golden,
    megatron_lm,
    mlperf,
    nemo1,
    nemo2,
    torchtitan,
    verification_card,
)
from perfdb.formats.base import Content, LogFormat, ParsedLog, Reading
from perfdb.record import PartialCase

__all__ = [
    "AVERAGES", "FORMATS", "MANY", "Content", "Likeness", "LogFormat", "ParsedLog", "PartialCase",
    "Reading", "likest", "named", "recognised",
]  # fmt: skip

FORMATS: dict[str, LogFormat] = {
    nemo2.NAME: nemo2,
    nemo1.NAME: nemo1,
    megatron_lm.NAME: megatron_lm,
    megatron_bridge.NAME: megatron_bridge,
    automodel_benchmark.NAME: automodel_benchmark,
    automodel_console.NAME: automodel_console,
    automodel_summary.NAME: automodel_summary,
    automodel_training.NAME: automodel_training,
    megatron_golden.NAME: megatron_golden,
    megatron_bridge_golden.NAME: megatron_bridge_golden,
    megatron_config.NAME: megatron_config,
    llmb_config.NAME: llmb_config,
    verification_card.NAME: verification_card,
    mlperf.NAME: mlperf,
    torchtitan.NAME: torchtitan,
}

AVERAGES = frozenset({nemo2.NAME, megatron_lm.NAME, megatron_bridge.NAME, torchtitan.NAME})
"""The logs in which each time is the mean over the steps since the line before."""

MANY: Final = 10
"""So many steps of another program nobody quotes in a log."""


@dataclass(frozen=True)
class Likeness:
    """The format that a part of a file looks like, and of how many steps; 1 of a document."""

    num_steps: int = 0
    format: LogFormat | None = None


def named(name: str) -> LogFormat:
    """The format of a name. Raises InputError with a suggestion."""
    if name not in FORMATS:
        problem = Diagnostic("--format", f"no format {name!r}", remedy=suggestion(name, FORMATS))
        raise InputError(problem)
    return FORMATS[name]


def recognised(head: bytes, name: str) -> LogFormat | None:
    """The format of a file by its first bytes and its name; None rather than a guess."""
    return likest(head, name).format


def likest(head: bytes, name: str) -> Likeness:
    """The format of which a file shows most steps, by its first bytes and its name.

    A log may quote steps of another program's: give more of it where these are not many.
    """
    best = Likeness()
    for one in FORMATS.values():
        best = max(best, Likeness(one.recognises(head, name), one), key=_num_steps)
        if best.num_steps >= MANY:
            break
    return best if best.num_steps else Likeness()


def _num_steps(one: Likeness) -> int:
    return one.num_steps
