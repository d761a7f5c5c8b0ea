"""Steps that the optimizer skipped, as loss scaling does now and then: they do not count.

Such a step has no update, so it is shorter than a step. Neither its time counts nor the mean that
a line of a log has of it and others. Pure.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from perfdb.db.rows import ResultRow
from perfdb.record import Outcome

SAID: Final = "steps that the optimizer skipped are not counted: "


class Skips(NamedTuple):
    """The steps of a window that do not count, and the first and the last of their first line."""

    num_steps: int
    of: int
    """How many steps the window holds with them."""
    first: int
    last: int


def skips(lasts: Sequence[int], spans: Sequence[int], of: int) -> Skips | None:
    """Those of a window of so many steps, by the numbers of their lines; None of no line.

    `spans`: how many steps each line stands for.
    """
    if not len(lasts):
        return None
    last, span = int(lasts[0]), int(spans[0])
    return Skips(int(sum(spans)), of, last - span + 1, last)


def noted(result: ResultRow, found: Skips | None) -> ResultRow:
    """The result with a note on its skipped steps.

    Where more steps were skipped than not, the run hardly trained: it has no figures.
    """
    if found is None:
        return result
    said = f"{SAID}{_amount(found)}"
    if 2 * found.num_steps > found.of:
        return replace(result, outcome=Outcome.INCOMPLETE, withheld=said)
    return replace(result, notes=(*result.notes, said))


def said_of(result: ResultRow) -> str | None:
    """What is said of a result's skipped steps, as a note or as the reason for no figures."""
    texts = (result.withheld, *result.notes)
    return next((text for text in texts if text and is_said(text)), None)


def is_said(note: str) -> bool:
    """Whether a note speaks of skipped steps."""
    return note.startswith(SAID)


def _amount(found: Skips) -> str:
    counts = f"{found.num_steps:,} of {found.of:,}"
    if found.first == found.last:
        return f"{counts}, the first is step {found.last}"
    return f"the means of {counts}, the first of steps {found.first} to {found.last}"
