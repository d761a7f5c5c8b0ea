"""Megatron-LM logs: the dump of the arguments, and a line for each iteration that is logged.

Megatron-Bridge prints such lines, too: they alone do not say which of the two it was.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile

from perfdb.formats import batch, megatron_bridge, printed
from perfdb.formats.base import Content, ParsedLog
from perfdb.formats.begun import LOADED
from perfdb.formats.iterations import STEP_LINE, SYNTAX, iterations, log_of, readings
from perfdb.formats.precisions import Pair
from perfdb.formats.scan import Scan
from perfdb.formats.steplines import StepLines
from perfdb.log_text import plain

NAME = "megatron_lm"
FRAMEWORK = "megatron-lm"

_START = b"---- arguments ----"
_ARGUMENT = re.compile(r"\b(\w+) \.{2,} (\[[^\]\n]*\]|[^\s\"'\\\[][^\s\"'\\]*)")
_MOST_FOLDS = 8
"""The lines that a list is looked for on where a terminal has folded it."""


def recognises(head: bytes, name: str) -> int:
    """How many iteration lines are among the first bytes, if not Megatron-Bridge's."""
    steps = len(STEP_LINE.findall(plain(head)))
    return 0 if steps and megatron_bridge.recognises(head, name) else steps


def parse(where: str, content: Content) -> tuple[ParsedLog, ...]:
    """The run that a log tells of."""
    scan, lines = (
        Scan(content, SYNTAX.marker, starts=(_START, LOADED)),
        StepLines(where, SYNTAX, readings),
    )
    steps = iterations(where, lines.of(scan), lines)
    log = log_of(where, scan, lines, steps)
    arguments = printed.printed(scan.preamble, _arguments, log)
    is_said = arguments.configuration().model_fields_set or scan.starts.prints(_START)
    log = arguments.of(log, **({"framework": FRAMEWORK} if is_said else {}))
    return (batch.stated(where, replace(log, likely_framework=FRAMEWORK)),)


def _arguments(text: str) -> list[Pair]:
    return _ARGUMENT.findall(_dotted(text))


def _dotted(text: str) -> str:
    """The lines that may hold an argument: a pattern that begins with any word is slow to find."""
    lines = text.split("\n")
    return "\n".join(_unfolded(lines, place) for place, one in enumerate(lines) if " .." in one)


def _unfolded(lines: Sequence[str], place: int) -> str:
    """A line, with those behind it where it ends within a list."""
    _, is_list, items = lines[place].partition(".. [")
    if not is_list or "]" in items:
        return lines[place]
    behind = lines[place + 1 : place + 1 + _MOST_FOLDS]
    return "".join([lines[place], *takewhile(lambda line: " .." not in line, behind)])
