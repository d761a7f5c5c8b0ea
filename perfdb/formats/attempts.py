"""The attempts of a log that a restarted run goes on in: which one counts, and its settings.

A program that is started again prints its settings anew and warms up again. The figures of a log
are those of its last attempt that is long enough, or of the window that the user asks for; the
settings are those of the same attempt.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

import numpy as np

from perfdb.aggregation import Window, lines_held, named, steps_per_line
from perfdb.formats.base import Attempt, ParsedLog, RunSettings
from perfdb.formats.columns import Ints
from perfdb.formats.outcome import Account, ending
from perfdb.formats.scan import LogSection
from perfdb.formats.settings import OPTIONS
from perfdb.formats.settle import Settled
from perfdb.record import Note, NoteCode, PartialCase

WINDOW: Final = "skip_warmup(10)"
"""The steps to take figures over where a format does not name others."""
LOADED: Final = b"successfully loaded checkpoint "
"""What Megatron prints of the checkpoint that it goes on from."""
FIRST_STEP: Final = b"Training starts at step "
"""What torchtitan prints, with the step."""
_LOADED = re.compile(LOADED.decode() + r"[^\n]*? at iteration +(\d{1,15})\b")
_FIRST_STEP = re.compile(FIRST_STEP.decode() + r" *(\d{1,15})\b")


def training_log(settled: Settled, account: Account, window: str = WINDOW) -> ParsedLog:
    """What a log of steps reports, with how its run ended, and without its settings."""
    settled = _started_again(settled, account.sections)
    last_words = account.last_words.since(settled.attempt_line)
    end = ending(settled.steps, replace(account, last_words=last_words))
    judged = _judged(window, settled, account.sections)
    return ParsedLog(
        configuration=PartialCase(),
        steps=settled.steps,
        planned_steps=account.planned,
        window=judged.window,
        restarts=settled.restarts,
        restarted_at=judged.restarted_at,
        restarted_from=judged.restarted_from,
        goes_on=settled.goes_on,
        outcome=end.outcome,
        error=end.error,
        problems=settled.problems,
        notes=settled.notes,
    )


def _started_again(settled: Settled, sections: Sequence[LogSection]) -> Settled:
    """The same with the attempts that go back to no step: the program prints that it starts."""
    steps = settled.steps
    starts = [one.line for one in sections[1:]] if _starts_above(sections) else []
    if not starts or not steps:
        return settled
    number = np.maximum.accumulate(np.array(starts).searchsorted(steps.line))
    begins = np.flatnonzero(np.diff(number) > 0) + 1
    if not len(begins):
        return settled
    restarts = np.union1d(np.array(settled.restarts, np.int64), steps.step[begins])
    return replace(
        settled,
        restarts=tuple(restarts.tolist()),
        attempt_line=max(settled.attempt_line, int(steps.line[begins[-1]])),
        goes_on=int(restarts[-1]) not in settled.restarts,
    )


def _starts_above(sections: Sequence[LogSection]) -> bool:
    """Whether a start is printed above the first step: else nobody knows which start is whose."""
    return bool(sections and sections[0].line)


@dataclass(frozen=True)
class _Judged:
    """The window of a log, over the attempt that counts, and where the last attempt begins.

    `restarted_from`: the earliest step that it may have begun with, where that is not printed.
    """

    window: str
    restarted_at: int | None = None
    restarted_from: int | None = None


class _Lines:
    """The lines of a log, each the mean of several steps, and where attempts begin among them."""

    def __init__(self, lasts: Ints, lines: Ints, sections: Sequence[LogSection]) -> None:
        self.lasts = lasts
        self._lines = lines
        self._counts = steps_per_line(lasts)
        self._reported = sorted(_first_steps(sections))

    def first_of(self, place: int) -> int:
        """The first of the steps that a line is the mean of."""
        return int(self.lasts[place]) - int(self._counts[place]) + 1

    def holds(self, first: int, behind: int) -> bool:
        """Whether there is a line of which all steps are among these."""
        place, end = self.lasts.searchsorted([first, behind]).tolist()
        return any(self.first_of(one) >= first for one in range(place, min(place + 2, end)))

    def began(self, step: int) -> tuple[int, int | None]:
        """The step that the attempt began with whose first line is that of a step.

        That line may be the mean of fewer steps than others: a checkpoint may lie between lines.
        Where nothing is printed of it, the last step that it may be, and the earliest.
        """
        place = int(self.lasts.searchsorted(step))
        first, last = self.first_of(place), int(self.lasts[place])
        above = int(self._lines[place - 1]) if place else 0
        reported = [one for line, one in self._reported if above < line < self._lines[place]]
        if reported and first <= reported[-1] <= last:
            return reported[-1], None
        return (first, None) if first == last or not place else (last, first)


def _first_steps(sections: Sequence[LogSection]) -> Iterator[tuple[int, int]]:
    """The lines on which sections report the step that they begin with, and that step."""
    for section in sections:
        text, line = section.text, max(section.line, 1)
        for pattern, ahead in ((_LOADED, 1), (_FIRST_STEP, 0)):
            for found in pattern.finditer(text):
                yield line + text.count("\n", 0, found.start()), int(found[1]) + ahead


def _judged(window: str, settled: Settled, sections: Sequence[LogSection]) -> _Judged:
    """The attempt that counts: a restart warms up again, and the window follows it.

    It is the last, if it is long enough, else the last before it that is; of steps over several
    attempts if none. Where it is unknown at which of a line's steps an attempt began, its warm-up
    counts from the last of them.
    """
    steps, warmup = settled.steps, re.fullmatch(r"skip_warmup\((\d+)\)", window)
    restarted_at = settled.restarts[-1] if settled.restarts else None
    if not (warmup and steps):
        return _Judged(window, restarted_at)
    lines, skipped = _Lines(steps.step, steps.line, sections), int(warmup[1])
    last = int(steps.step[-1])
    restarts = [one for one in settled.restarts if one <= last]
    first, (begin, _) = lines.first_of(0), lines.began(int(steps.step[0]))
    if not restarts:
        window = f"skip_warmup({begin - first + skipped})" if begin > first else window
        return _Judged(window, restarted_at)
    again, earliest = lines.began(restarts[-1])
    if again + skipped > lines.first_of(-1):
        starts = [*(lines.began(one)[0] for one in reversed(restarts)), begin]
        attempts = [(start, end) for end, start in pairwise(starts)]
        for start, end in [*attempts, (begin, again)]:
            if lines.holds(start + skipped, end):
                return _Judged(f"window({start + skipped},{end - 1})", again, earliest)
    return _Judged(f"skip_warmup({again - first + skipped})", again, earliest)


def settings_of(
    sections: Sequence[LogSection], describe: Callable[[str], RunSettings]
) -> list[tuple[int, RunSettings]]:
    """The line of each start, and the settings from there on; the first are those of line 0.

    What a later start does not print holds as it was, except options: those left out are off.
    """
    found = [(0, describe(sections[0].text))]
    for section in sections[1:]:
        found.append((section.line, _completed(describe(section.text), found[-1][1])))
    return found


def _completed(own: RunSettings, before: RunSettings) -> RunSettings:
    stated = own.configuration.model_dump(exclude_unset=True)
    if not stated.keys() - {"framework"}:
        return before
    settled = {*stated, *own.doubts, *OPTIONS}
    kept = before.configuration.model_dump(exclude_unset=True, exclude={"options", *own.doubts})
    doubts = {name: one for name, one in before.doubts.items() if name not in settled}
    return RunSettings(
        configuration=PartialCase.model_validate(kept | stated),
        shape={**before.shape, **own.shape},
        doubts={**doubts, **own.doubts},
        framework_version=own.framework_version or before.framework_version,
        gpu_memory_bytes=own.gpu_memory_bytes or before.gpu_memory_bytes,
    )


def with_settings(log: ParsedLog, found: Sequence[tuple[int, RunSettings]]) -> ParsedLog:
    """A log with the settings of the attempt that counts; `found` are those of each start."""
    steps = log.steps
    if len(found) == 1 or not steps:
        return _with(log, found[0][1])
    lines = np.array([line for line, _ in found])
    number = np.maximum.accumulate(lines.searchsorted(steps.line) - 1)
    bounds = [0, *(np.flatnonzero(np.diff(number)) + 1).tolist(), len(steps)]
    attempts = tuple(
        Attempt(int(steps.step[start]), int(steps.step[stop - 1]), found[int(number[start])][1])
        for start, stop in pairwise(bounds)
    )
    return of_window(replace(log, attempts=attempts), None)


def of_window(log: ParsedLog, asked: Window | None) -> ParsedLog:
    """A log with the settings of the attempts that its window is of, or the window asked for.

    `asked` counts where all of its steps have the same settings.
    """
    if not log.attempts or not log.steps:
        return log
    lasts = log.steps.step
    own = _alike(log.attempts, first_judged(log))
    if asked:
        held = lines_held(asked, lasts, steps_per_line(lasts))
        if held.stop:
            other = _alike(log.attempts, int(lasts[held.start]))
            if int(lasts[held.stop - 1]) <= other[-1].last_step:
                own = other
    mine, stated = own[0].settings, [_comparable(one.settings) for one in log.attempts]
    differ = sorted(
        name
        for name in {name for one in stated for name in one}
        if any(one.get(name) != _comparable(mine).get(name) for one in stated)
    )
    first, last = own[0].first_step, own[-1].last_step
    changed = Note.of(NoteCode.OTHER_SETTINGS, first=first, last=last, fields=", ".join(differ))
    return replace(_with(log, mine), changed_settings=changed if differ else None)


def first_judged(log: ParsedLog) -> int:
    """The first step in the window of a log, or else of its last attempt."""
    lasts = log.steps.step
    judged = lines_held(named(log.window or WINDOW), lasts, steps_per_line(lasts))
    again = min(int(lasts.searchsorted(log.restarted_at or 0)), len(lasts) - 1)
    return int(lasts[judged.start if judged.stop else again])


def _alike(attempts: Sequence[Attempt], step: int) -> Sequence[Attempt]:
    """The attempts around a step that have the same settings as its own."""
    place = next(at for at, one in enumerate(attempts) if step <= one.last_step)
    start, stop, own = place, place + 1, _comparable(attempts[place].settings)
    while start and _comparable(attempts[start - 1].settings) == own:
        start -= 1
    while stop < len(attempts) and _comparable(attempts[stop].settings) == own:
        stop += 1
    return attempts[start:stop]


def _comparable(settings: RunSettings) -> Mapping[str, object]:
    """What makes another case or release of settings."""
    fields = settings.configuration.model_dump(exclude={"framework"})
    fields |= {"release": settings.framework_version}
    return {name: value for name, value in fields.items() if value}


def _with(log: ParsedLog, settings: RunSettings) -> ParsedLog:
    return replace(
        log,
        configuration=settings.configuration,
        shape=settings.shape,
        doubts=settings.doubts,
        framework_version=settings.framework_version,
        gpu_memory_bytes=settings.gpu_memory_bytes,
    )
