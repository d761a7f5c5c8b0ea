"""Reads steps one by one from the pieces of a log that hold a marker."""

from collections.abc import Callable

from perfdb.errors import Problem
from perfdb.formats.base import Reading
from perfdb.formats.scan import Piece, Scan, pieces
from perfdb.formats.steps import MOST_KEPT


def marked(
    where: str, scan: Scan, marker: bytes, read: Callable[[Piece], Reading | str | None]
) -> tuple[list[Reading], list[Problem]]:
    """The steps of a log in the order they stand there, and the pieces that could not be read.

    `read` gives the reading of a piece, or what it lacks in words, or None where it is no step.
    """
    readings, problems = list[Reading](), list[Problem]()
    for piece in (piece for block in scan for piece in pieces(block, marker)):
        found = read(piece)
        if isinstance(found, Reading):
            readings.append(found)
        elif found and len(problems) < MOST_KEPT:
            problems.append(Problem(where, found, line=piece.line, remedy="is the line cut off?"))
    return readings, problems
