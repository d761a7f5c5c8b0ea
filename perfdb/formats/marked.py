"""Reads steps one by one from the pieces of a log that hold a marker."""

from collections.abc import Callable, Iterator

from perfdb.errors import Diagnostic
from perfdb.formats.base import Reading
from perfdb.formats.readings import Readings
from perfdb.formats.scan import Piece, Scan, pieces
from perfdb.formats.steps import MOST_KEPT, countable


def marked(
    where: str, scan: Scan, marker: bytes, read: Callable[[Piece], Reading | str | None]
) -> tuple[Readings, list[Diagnostic]]:
    """The steps of a log in the order they stand there, and the pieces that could not be read.

    `read` gives the reading of a piece, or what it lacks in words, or None where it is no step.
    """
    problems, uncounted = list[Diagnostic](), list[Diagnostic]()

    def readings() -> Iterator[Reading]:
        for piece in (piece for block in scan for piece in pieces(block, marker)):
            found = read(piece)
            if isinstance(found, Reading):
                yield found
            elif found and len(problems) < MOST_KEPT:
                remedy = "is the line cut off?"
                problems.append(Diagnostic(where, found, line=piece.line, remedy=remedy))

    return countable(where, readings(), uncounted), [*problems, *uncounted]
