"""Takes the settings of a log that goes on after a restart from the attempt that it is judged by.

What a format keeps of a log's beginning ends soon behind the first step, and the dump of a later
attempt may stand far below it. Pure.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate, chain, groupby, pairwise
from typing import Final, NamedTuple

import numpy as np

from perfdb.aggregation import Window
from perfdb.formats.base import Content, LogFormat, ParsedLog, Reading
from perfdb.formats.piecewise import first, places
from perfdb.formats.printed import first_place
from perfdb.formats.readings import Ints, Readings
from perfdb.formats.settings import DUMPS, OPTIONS
from perfdb.formats.spans import held_by, spans
from perfdb.formats.steps import with_peaks
from perfdb.record import MOST, Note, NoteCode, PartialCase

_DUMP: Final = re.compile("|".join((*DUMPS, r"Building (?:\d+-D )?device mesh with ")).encode())
"""torchtitan dumps nothing; what it says of itself begins with its mesh."""
_LONGEST_DUMP_BYTES: Final = 1 << 20


class _Attempt(NamedTuple):
    """What the steps behind a line are of."""

    line: int
    said: ParsedLog


class _Stretch(NamedTuple):
    """The places of steps, one behind the other, that are of an attempt."""

    start: int
    stop: int
    said: ParsedLog
    alike: slice = slice(0)
    """With those around it of attempts with the same settings."""


def with_settings(
    found: LogFormat,
    where: str,
    log: ParsedLog,
    again: Callable[[], Content],
    asked: Window | None = None,
) -> ParsedLog:
    """A log with the settings of the attempt that it is judged by, and which steps have the same.

    That is the one with the window that was asked for, if all steps of that have the same.
    """
    if log.restarted_at is None or not log.readings:
        return log
    attempts = _attempts(found, where, log, again)
    if len(attempts) == 1:
        return log
    kept = _with_peaks(Readings.of(log.readings), attempts)
    stretches = _stretches(kept, attempts, log)
    own = _holding(stretches, first_place(log))
    window = held_by(asked, kept.step, spans(kept.step)) if asked else slice(0)
    other = _holding(stretches, window.start or 0)
    if other.alike != own.alike and 0 < window.stop <= other.alike.stop:
        own = other
    return replace(
        log,
        configuration=own.said.configuration,
        shape=own.said.shape,
        framework_version=own.said.framework_version,
        gpu_memory_bytes=own.said.gpu_memory_bytes,
        doubts=own.said.doubts,
        readings=kept,
        changed_settings=_told(kept, own, stretches),
    )


def _attempts(
    found: LogFormat, where: str, log: ParsedLog, again: Callable[[], Content]
) -> Sequence[_Attempt]:
    """The attempts that steps are kept of, with what each of them says of itself."""
    lines = Readings.of(log.readings).line
    attempts, again_from = list[_Attempt](), 0
    dumps = chain(_dumps(again(), int(lines[0])), [(MOST, b"")])
    for (line, dump), (until, _) in pairwise(dumps):
        again_from = again_from or line  # of one that no step is kept of, too
        if _has_steps(lines, line, until):
            attempts += [_Attempt(line, said) for said in found.parse(where, [dump])]
    if not attempts:
        return [_Attempt(0, log)]
    [begun] = found.parse(where, _above(again(), again_from))
    return [_Attempt(0, _with_batch_of(log, begun)), *attempts]


def _has_steps(lines: Ints, above: int, below: int) -> bool:
    return first(lambda some: (above < some) & (some < below), lines) is not None


def _with_batch_of(log: ParsedLog, begun: ParsedLog) -> ParsedLog:
    """The first attempt: where its times do not follow from it, the step lines say the batch."""
    batch = _batch(log)
    said = begun.configuration.model_dump(exclude_unset=True, exclude=batch)
    said |= log.configuration.model_dump(exclude_unset=True, include=batch)
    return replace(begun, configuration=PartialCase.model_validate(said))


def _batch(log: ParsedLog) -> set[str]:
    return {"global_batch_size"} - {*log.timed_by}


def _stretches(kept: Readings, attempts: Sequence[_Attempt], log: ParsedLog) -> Sequence[_Stretch]:
    starts = np.array([one.line for one in attempts])
    going_on = partial(_gone_on, batch=_batch(log))
    said = list(accumulate((one.said for one in attempts), going_on))
    begins = places(lambda some: np.diff(starts.searchsorted(some)) != 0, kept.line, overlap=1) + 1
    bounds = pairwise([0, *begins.tolist(), len(kept)])
    each = (_Stretch(*two, said[starts.searchsorted(kept.line[two[0]]) - 1]) for two in bounds)
    alike = (list(some) for _, some in groupby(each, key=lambda one: _settings(one.said)))
    return [
        one._replace(alike=slice(some[0].start, some[-1].stop)) for some in alike for one in some
    ]


def _gone_on(before: ParsedLog, attempt: ParsedLog, batch: set[str]) -> ParsedLog:
    """What a dump does not say holds as it was, but for options: those it leaves out are off."""
    said = attempt.configuration.model_dump(exclude_unset=True, exclude=batch)
    if not said.keys() - {"framework"}:
        return before
    settled = {*said, *attempt.doubts, *OPTIONS}
    kept = before.configuration.model_dump(exclude_unset=True, exclude={"options", *attempt.doubts})
    doubts = {name: told for name, told in before.doubts.items() if name not in settled}
    return replace(
        before,
        configuration=PartialCase.model_validate(kept | said),
        shape={**before.shape, **attempt.shape},
        framework_version=attempt.framework_version or before.framework_version,
        gpu_memory_bytes=attempt.gpu_memory_bytes or before.gpu_memory_bytes,
        doubts={**doubts, **attempt.doubts},
    )


def _settings(said: ParsedLog) -> Mapping[str, object]:
    """What makes another case or release of it."""
    fields = said.configuration.model_dump(exclude={"framework"})
    fields |= {"release": said.framework_version}
    return {name: value for name, value in fields.items() if value}


def _holding(stretches: Sequence[_Stretch], place: int) -> _Stretch:
    return next(one for one in stretches if place < one.stop)


def _steps(kept: Readings, own: _Stretch) -> tuple[int, int]:
    """The first and the last step of the same settings."""
    return int(kept.step[own.alike.start]), int(kept.step[own.alike.stop - 1])


def _told(kept: Readings, own: _Stretch, stretches: Sequence[_Stretch]) -> Note | None:
    mine, others = _settings(own.said), [_settings(one.said) for one in stretches]
    names = {name for one in others for name in {*mine, *one} if mine.get(name) != one.get(name)}
    if not names:
        return None
    first_step, last_step = _steps(kept, own)
    fields = ", ".join(sorted(names))
    return Note.of(NoteCode.OTHER_SETTINGS, first=first_step, last=last_step, fields=fields)


def _with_peaks(kept: Readings, attempts: Sequence[_Attempt]) -> Readings:
    """The steps with the peak memory that the attempts say they had, each of its own."""
    for line, said in attempts[1:]:
        told = {one.step: one for one in said.readings if one.peak_memory_bytes}
        found = places(partial(np.isin, test_elements=[*told]), kept.step).tolist()
        own = (int(kept.step[at]) for at in found if _is_on(kept, at, told, line))
        kept = with_peaks(kept, {step: told[step].peak_memory_bytes or 0 for step in own})
    return kept


def _is_on(kept: Readings, place: int, told: Mapping[int, Reading], first_line: int) -> bool:
    """Whether a step was read from the same line of the dump that begins with a line."""
    return int(kept.line[place]) == told[int(kept.step[place])].line + first_line - 1


def _dumps(content: Content, behind: int) -> Iterator[tuple[int, bytes]]:
    """The line of each dump behind a line, and the dump with what stands behind it."""
    start, kept, size = 0, list[bytes](), 0
    for number, line in _lines(content, behind):
        if _DUMP.search(line):
            if start:
                yield start, b"".join(kept)
            start, kept, size = number, [line], 0
        elif start and size < _LONGEST_DUMP_BYTES:
            kept.append(line)
        size += len(line)
    if start:
        yield start, b"".join(kept)


def _lines(content: Content, behind: int) -> Iterator[tuple[int, bytes]]:
    """The lines behind a line, with their numbers and breaks."""
    number, rest = 1, b""
    for chunk in content:
        if number + chunk.count(b"\n") <= behind:
            number, rest = number + chunk.count(b"\n"), b""
            continue
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if behind < number:
                yield number, line + b"\n"
            number += 1
        if len(rest) > _LONGEST_DUMP_BYTES:  # of bars that are drawn again, on one line
            rest = b""
    if rest and behind < number:
        yield number, rest


def _above(content: Content, line: int) -> Iterator[bytes]:
    """The lines above a line."""
    left = line - 1
    for chunk in content:
        *lines, rest = chunk.split(b"\n", left)
        left -= len(lines)
        yield chunk if left else chunk[: len(chunk) - len(rest)]
        if not left:
            return
