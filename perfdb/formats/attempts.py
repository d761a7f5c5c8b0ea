"""Takes the settings of a log that goes on after a restart from the attempt that it is judged by.

What a format keeps of a log's beginning ends soon behind the first step, and the dump of a later
attempt may stand far below it. Pure.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from perfdb.formats.base import Configuration, Content, LogFormat, ParsedLog
from perfdb.formats.printed import first_line
from perfdb.formats.readings import Readings
from perfdb.formats.settings import DUMPS, OPTIONS
from perfdb.formats.steps import with_peaks

_DUMP: Final = re.compile("|".join((*DUMPS, r"Building (?:\d+-D )?device mesh with ")).encode())
"""torchtitan dumps nothing; what it says of itself begins with its mesh."""
_LONGEST_DUMP_BYTES: Final = 1 << 20


def with_settings(
    found: LogFormat, where: str, log: ParsedLog, again: Callable[[], Content]
) -> ParsedLog:
    """A log with the settings of the last dump above the first step that it is judged by."""
    if log.restarted_at is None or not log.readings:
        return log
    dump = _last_dump(again(), log.readings[0].line, first_line(log))
    for attempt in found.parse(where, [dump]) if dump else ():
        log = _of_attempt(log, attempt)
    return log


def _of_attempt(log: ParsedLog, attempt: ParsedLog) -> ParsedLog:
    """What a dump does not say holds as it was, but for options: those it leaves out are off."""
    # Where its times do not follow from it, the step lines may say another.
    batch = {"global_batch_size"} - {*log.timed_by}
    said = attempt.configuration.model_dump(exclude_unset=True, exclude=batch)
    if not said.keys() - {"framework"}:
        return log
    settled = {*said, *attempt.doubts, *OPTIONS}
    before = log.configuration.model_dump(exclude_unset=True, exclude={"options", *attempt.doubts})
    peaks = {one.step: one.peak_memory_bytes or 0 for one in attempt.readings}
    doubts = {name: told for name, told in log.doubts.items() if name not in settled}
    return replace(
        log,
        configuration=Configuration.model_validate(before | said),
        shape={**log.shape, **attempt.shape},
        framework_version=attempt.framework_version or log.framework_version,
        gpu_memory_bytes=attempt.gpu_memory_bytes or log.gpu_memory_bytes,
        doubts={**doubts, **attempt.doubts},
        readings=with_peaks(Readings.of(log.readings), peaks),
    )


def _last_dump(content: Content, first: int, last: int) -> bytes:
    """The lines from the last dump on that begins behind a line, up to another."""
    kept: list[bytes] = []
    size = 0
    for line in _between(content, first, last):
        if _DUMP.search(line):
            kept, size = [line], 0
        elif kept and size < _LONGEST_DUMP_BYTES:
            kept.append(line)
        size += len(line)
    return b"".join(kept)


def _between(content: Content, first: int, last: int) -> Iterator[bytes]:
    """The lines behind a line, up to another, with their breaks."""
    number, rest = 1, b""
    for chunk in content:
        if number + chunk.count(b"\n") <= first:
            number, rest = number + chunk.count(b"\n"), b""
            continue
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if first < number <= last:
                yield line + b"\n"
            number += 1
        if number > last:
            return
        if len(rest) > _LONGEST_DUMP_BYTES:  # of bars that are drawn again, on one line
            rest = b""
