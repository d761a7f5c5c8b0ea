"""The sentences that tell what pages hold, for whoever does not see them: searches and lists."""

from collections.abc import Iterable, Sequence
from typing import Final

from perfdb.site.data import Result
from perfdb.units import counted

MOST_NAMES: Final = 4
"""Names that a sentence gives; of more it says how many there are."""


def results(given: Sequence[Result]) -> str:
    """'39 published results', '1 measured result', '39 published and 2 measured results'."""
    measured = sum(one.is_measured for one in given)
    known = [(len(given) - measured, "published"), (measured, "measured")]
    *others, (count, kind) = [one for one in known if one[0]]
    said = [f"{number:,} {word}" for number, word in others]
    return " and ".join([*said, counted(count, f"{kind} result")])


def names(given: Iterable[str]) -> str:
    """'A', 'A and B', 'A, B, C, D and 3 more': each once, in the order they come in."""
    known = list(dict.fromkeys(given))
    left = len(known) - MOST_NAMES
    parts = [*known[:MOST_NAMES], f"{left:,} more"] if left > 0 else known
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} and {parts[-1]}"
