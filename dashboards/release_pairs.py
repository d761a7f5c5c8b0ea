"""Which two releases the comparison opens on, and in which order they are offered."""

from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import combinations

from perfdb.compare import Choice
from perfdb.groups import grouped
from perfdb.record import UNATTRIBUTED

Work = Mapping[int, Set[str]]
"""The keys of the workloads that a release has results of, by release_id."""

Pair = tuple[Choice, Choice]
"""Two releases, the older one first."""


def offered(known: Iterable[Choice]) -> list[Choice]:
    """The releases in their order, but those without a stated version last."""
    return sorted(known, key=lambda choice: UNATTRIBUTED in choice.name)


def opened_on(known: Sequence[Choice], work: Work, a: Choice | None, b: Choice | None) -> Pair:
    """The two releases to compare; `a` and `b` are those that a link names, None if it does not."""

    def partner(choice: Choice) -> Choice:
        """The other release that shares most work with this choice, the newest of those."""
        others = [other for other in reversed(known) if not other.overlaps(choice)]
        return max(others, key=lambda other: num_shared((choice, other), work), default=choice)

    if a is not None:
        return a, b or partner(a)
    if b is not None:
        return partner(b), b
    return opening_pair(known, work) or (partner(known[-1]), known[-1])


def opening_pair(known: Sequence[Choice], work: Work) -> Pair | None:
    """The pair that shares most work of each framework's newest two releases that share any.

    If there is none, of all releases, those without a stated version as A. None: no two share work.
    `known` is in the order of `perfdb.compare.read.known_releases`.
    """
    released = (choice for choice in known if choice.version is not None)
    newest: list[Pair] = []
    for versions in grouped(released, lambda choice: choice.framework).values():
        pairs = ((a, b) for b, a in combinations(reversed(versions), 2))
        newest += [*(pair for pair in pairs if num_shared(pair, work))][:1]
    unattributed_first = sorted(known, key=lambda choice: UNATTRIBUTED not in choice.name)
    others = [
        (a, b)
        for a, b in combinations(unattributed_first, 2)
        if not a.overlaps(b) and num_shared((a, b), work)
    ]
    return max(newest or others, key=lambda pair: num_shared(pair, work), default=None)


def num_shared(pair: Pair, work: Work) -> int:
    """How many workloads both releases have results of."""
    a, b = ({key for number in one.release_ids for key in work.get(number, ())} for one in pair)
    return len(a & b)
