"""The log and result formats that perfdb reads: from the bytes of a file to the runs in it.

To add one: write its module with a `LogFormat` (perfdb.formats.base), add it to the table.

A log of steps is read in one pass: `scan` cuts it into blocks, finds the marker of a step in them,
and keeps the text around the steps. Lines of `key: value |` are read by the thousand (`steplines`),
others one by one (`settle.marked`). `settle` keeps each step of the last attempt once, as
`columns`; `settings` and `precision` read what the run was, `outcome` how it ended. `torchtitan` is
an example of the one way, `nemo` of the other.
"""

from typing import Final, NamedTuple

from perfdb.errors import Diagnostic, InputError, suggestion
from perfdb.formats import (
    automodel,
    golden,
    llmb,
    megatron_bridge,
    megatron_lm,
    mlperf,
    nemo,
    torchtitan,
    verification_card,
)
from perfdb.formats.base import Content, LogFormat, ParsedLog
from perfdb.formats.columns import Reading

__all__ = [
    "AVERAGES", "FORMATS", "MANY", "Content", "Likeness", "LogFormat",
    "ParsedLog", "Reading", "likest", "named", "recognized",
]  # fmt: skip

_TABLE: Final = (
    nemo.NEMO2,
    nemo.NEMO1,
    megatron_lm.FORMAT,
    megatron_bridge.FORMAT,
    automodel.BENCHMARK,
    automodel.CONSOLE,
    automodel.SUMMARY,
    automodel.TRAINING,
    golden.MEGATRON,
    golden.BRIDGE,
    golden.CONFIG,
    llmb.FORMAT,
    verification_card.FORMAT,
    mlperf.FORMAT,
    torchtitan.FORMAT,
)
FORMATS: Final[dict[str, LogFormat]] = {one.name: one for one in _TABLE}

AVERAGES: Final = frozenset(one.name for one in _TABLE if one.prints_means)
"""The logs in which each time is the mean over the steps since the line before."""

MANY: Final = 10
"""So many steps of another program nobody quotes in a log."""


class Likeness(NamedTuple):
    """The format that a part of a file looks like, and of how many steps; 1 of a document."""

    num_steps: int = 0
    format: LogFormat | None = None


def named(name: str) -> LogFormat:
    """The format of a name. Raises InputError with a suggestion."""
    if name not in FORMATS:
        problem = Diagnostic("--format", f"no format {name!r}", remedy=suggestion(name, FORMATS))
        raise InputError(problem)
    return FORMATS[name]


def recognized(head: bytes, name: str) -> LogFormat | None:
    """The format of a file by its first bytes and its name; None rather than a guess."""
    return likest(head, name).format


def likest(head: bytes, name: str) -> Likeness:
    """The format of which a file shows most steps, by its first bytes and its name.

    A log may quote steps of another program: pass more of it if these are not many.
    """
    best = Likeness()
    for one in FORMATS.values():
        found = one.recognizes(head, name)
        if found > best.num_steps:
            best = Likeness(found, one)
        if best.num_steps >= MANY:
            break
    return best
