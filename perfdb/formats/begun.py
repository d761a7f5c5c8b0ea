"""Finds where among the steps of a log its program begins again, and what it says there."""

import re
from collections.abc import Sequence
from typing import Final

import numpy as np

from perfdb.formats.block import Block
from perfdb.formats.piecewise import places
from perfdb.formats.readings import Flags, Ints

MOST_STARTS: Final = 1 << 12
"""Of more nobody made a log: what is kept of them is bounded."""
_LONGEST: Final = 1 << 10

LOADED: Final = b"successfully loaded checkpoint "
"""What Megatron prints of the checkpoint that it goes on from."""
FIRST_STEP: Final = b"Training starts at step "
"""What torchtitan prints, with the step."""
_LOADED = re.compile(LOADED + rb"[^\n]*? at iteration +(\d{1,15})\b")
_FIRST_STEP = re.compile(FIRST_STEP + rb" *(\d{1,15})\b")


class Starts:
    """Where a program begins, by marks that it prints then, one for each stretch without a step.

    `said`: the lines with a mark, from the mark on, where they differ from the last with that mark.
    """

    def __init__(self, *marks: bytes) -> None:
        self.marks = marks
        self.lines: list[int] = []
        self.said: list[tuple[int, bytes]] = []
        self._latest: dict[bytes, bytes] = {}
        self._num_steps, self._num_above = 0, -1

    def add(self, block: Block, steps: Sequence[Ints]) -> None:
        """Take those of the next block of a log, which has steps on these lines."""
        found = [
            (number, place, mark)
            for mark in self.marks
            if block.holds(mark)
            for place, number in zip(*map(np.ndarray.tolist, block.lines_with(mark)), strict=True)
        ]
        for number, place, mark in sorted(found):
            num_above = self._num_steps + sum(int(some.searchsorted(number)) for some in steps)
            if num_above != self._num_above and len(self.lines) < MOST_STARTS:
                self.lines.append(number)
            self._num_above = num_above
            _, end = block.line_around(place)
            text = block.text[place : min(end, place + _LONGEST)]
            if text != self._latest.get(mark) and len(self.said) < MOST_STARTS:
                self.said.append((number, text))
            self._latest[mark] = text
        self._num_steps += sum(map(len, steps))

    def go_on_with(self, rest: "Starts", lines: int) -> None:
        """Take over those of the rest of a log, whose lines count from so many on."""
        self.lines += [number + lines for number in rest.lines]
        self.said += [(number + lines, text) for number, text in rest.said]

    def prints(self, mark: bytes) -> bool:
        """Whether a mark is printed."""
        return any(text.startswith(mark) for _, text in self.said)

    @property
    def first_steps(self) -> list[tuple[int, int]]:
        """The lines that tell which step the program begins with, and that step."""
        loaded = [(line, _LOADED.match(text)) for line, text in self.said]
        told = [(line, int(one[1]) + 1) for line, one in loaded if one]
        begun = [(line, _FIRST_STEP.match(text)) for line, text in self.said]
        return sorted(told + [(line, int(one[1])) for line, one in begun if one])

    def again(self, first: int) -> list[int]:
        """Those lines but the first, if that stands above a line: that of the first step."""
        return self.lines[1:] if self.lines and self.lines[0] < first else []


def attempts(lines: Ints, starts: list[int]) -> Ints:
    """At which places of steps another attempt begins, by their lines and those of its start."""
    numbers, latest = np.array(starts, np.int64), 0

    def begin(some: Ints) -> Flags:
        nonlocal latest
        above = np.maximum(numbers.searchsorted(some), latest)
        above = np.maximum.accumulate(above)
        latest = int(above[-1])
        return np.asarray(np.diff(above) > 0)

    return places(begin, lines, overlap=1) + 1
