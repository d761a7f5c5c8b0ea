"""Reads steps one by one from the pieces of a log that hold a marker."""

from collections.abc import Callable, Iterator

from perfdb.errors import Problem
from perfdb.formats.base import Reading
from perfdb.formats.scan import Piece, Scan, pieces
from perfdb.formats.steps import MOST_KEPT


class MarkedSteps:
    """The steps of a log, each read from one piece of text.

    `read` gives the reading of a piece, or what it lacks in words, or None where it is no step.
    `problems` are the pieces that could not be read, once the steps are through.
    """

    def __init__(
        self, where: str, marker: bytes, read: Callable[[Piece], Reading | str | None]
    ) -> None:
        self._where = where
        self._marker = marker
        self._read = read
        self.problems: list[Problem] = []

    def of(self, scan: Scan) -> Iterator[Reading]:
        """The readings of a log in the order they stand there."""
        for piece in (piece for block in scan for piece in pieces(block, self._marker)):
            found = self._read(piece)
            if isinstance(found, Reading):
                yield found
            elif found and len(self.problems) < MOST_KEPT:
                remedy = "is the line cut off?"
                self.problems.append(Problem(self._where, found, line=piece.line, remedy=remedy))
