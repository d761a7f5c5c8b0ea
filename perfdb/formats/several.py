"""Reads a log of several runs, one behind the other, as if it held the last of them alone.

What a log says of settings, warm-up and end is then that of this run. Pure.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from perfdb.aggregation import Window
from perfdb.errors import Diagnostic
from perfdb.formats.attempts import with_settings
from perfdb.formats.base import Content, LogFormat, ParsedLog

REMEDY = "give each run a file of its own"


def of_last(
    found: LogFormat,
    where: str,
    logs: Sequence[ParsedLog],
    again: Callable[[], Content],
    asked: Window | None = None,
) -> Sequence[ParsedLog]:
    """What a file says of its last run, and a note on the earlier ones; `again` gives its bytes.

    Its settings are those of the attempt that the run is judged by, or of the window asked for.
    """
    until = max((log.earlier_until or 0 for log in logs), default=0)
    if not until:
        return [with_settings(found, where, log, again, asked) for log in logs]
    message = f"lines 1 to {until} are of an earlier run, or of another rank: they are left out"
    note = Diagnostic(where, message, remedy=REMEDY)

    def alone() -> Content:
        return _blank_until(again(), until)

    told = [replace(log, notes=(note, *log.notes)) for log in found.parse(where, alone())]
    return [with_settings(found, where, log, alone, asked) for log in told]


def _blank_until(content: Content, line: int) -> Iterator[bytes]:
    """The same lines, of which so many are empty: the others keep their numbers."""
    left = line
    for chunk in content:
        *blank, rest = chunk.split(b"\n", left)
        left -= len(blank)
        yield b"\n" * len(blank) + (b"" if left else rest)
