"""Which of several versions in order is the first that a verdict is of. Pure."""

from collections.abc import Callable
from math import isclose

from perfdb.compare.verdict import Judgement, Verdict

SOUGHT = (Verdict.SLOWER, Verdict.FASTER, Verdict.FAILED)
"""The verdicts of the last version on the first that there is something to look for."""


def search(count: int, is_changed: Callable[[int], bool | None]) -> tuple[int, int]:
    """The last of `count` versions that is as the first, and the first that is as the last.

    `is_changed` says of a version whether it is as the last one; None: unknown, and the
    next one is asked. Only such versions may lie between the two.
    """
    low, high, untold = 0, count - 1, set[int]()
    while left := [number for number in range(low + 1, high) if number not in untold]:
        middle = left[len(left) // 2]
        changed = is_changed(middle)
        if changed is None:
            untold.add(middle)
        elif changed:
            high = middle
        else:
            low = middle
    return low, high


def is_changed(found: Judgement, sought: Verdict, least: float) -> bool | None:
    """Whether a version has the verdict that is looked for; None where it is unknown.

    A change of speed counts that is `least` or more, as a fraction. What is too noisy for a verdict
    has not changed where its whole interval is nearer than that.
    """
    if found.verdict is sought:
        return sought is Verdict.FAILED or found.reaches(least)
    if sought is Verdict.FAILED:
        return False if found.ratio is not None else None
    if found.verdict in (Verdict.SAME, Verdict.SLOWER, Verdict.FASTER):
        return False
    apart = [abs(end - 1) for end in (found.low, found.high) if end is not None]
    is_near = bool(apart) and max(apart) < least and not isclose(max(apart), least)
    return False if is_near else None
