"""Megatron-LM logs: the dump of the arguments, and a line for each iteration that is logged."""

import re

from perfdb.formats import batch, settings
from perfdb.formats.base import Content, ParsedLog
from perfdb.formats.iterations import STEP_LINE, SYNTAX, iterations, log_of, readings
from perfdb.formats.scan import Scan
from perfdb.formats.steplines import StepLines
from perfdb.log_text import plain

NAME = "megatron_lm"

_BRIDGE = re.compile(rb"GPU utilization: *[\d.]+ *(?:MODEL_)?TFLOP/s/GPU|ConfigContainer")
_ARGUMENT = re.compile(r"\b(\w+) \.{2,} (\[[^\]\n]*\]|\S+)")


def recognises(head: bytes, name: str) -> bool:
    """Whether an iteration line is among the first bytes, and nothing of Megatron-Bridge."""
    text = plain(head)
    return bool(STEP_LINE.search(text)) and not _BRIDGE.search(text)


def parse(where: str, content: Content) -> tuple[ParsedLog, ...]:
    """The run that a log tells of."""
    scan, lines = Scan(content, SYNTAX.marker), StepLines(where, SYNTAX, readings)
    steps = iterations(where, lines.of(scan), lines)
    arguments = settings.agreed(_ARGUMENT.findall(_dotted(scan.preamble)))
    configuration = settings.configuration(arguments, framework="megatron-lm")
    return (batch.stated(where, log_of(configuration, scan, lines, steps)),)


def _dotted(text: str) -> str:
    """The lines that may hold an argument: a pattern that begins with any word is slow to find."""
    return "\n".join(line for line in text.split("\n") if " .." in line)
