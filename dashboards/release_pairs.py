"""Which two releases the comparison opens on, and in which order they are offered."""

from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import combinations
from typing import NamedTuple

from perfdb.compare import Choice
from perfdb.groups import grouped
from perfdb.record import UNATTRIBUTED

Work = Mapping[int, Set[str]]
"""The keys of the workloads that a release has results of, by release_id."""


class Pair(NamedTuple):
    """Two releases, the older one first."""

    a: Choice
    b: Choice


def offered(known: Iterable[Choice]) -> list[Choice]:
    """The releases in their order, but those without a stated version last."""
    return sorted(known, key=lambda choice: UNATTRIBUTED in choice.name)


def opened_on(known: Sequence[Choice], work: Work, a: Choice | None, b: Choice | None) -> Pair:
    """The two releases to compare; `a` and `b` are those that a link names, None if it does not."""
    if a is not None:
        return Pair(a, b or _beside(a, known, work))
    if b is not None:
        return Pair(_beside(b, known, work), b)
    return opening_pair(known, work) or Pair(_beside(known[-1], known, work), known[-1])


def _beside(choice: Choice, known: Sequence[Choice], work: Work) -> Choice:
    """The other release that shares most work with this choice, the newest of those."""
    others = [other for other in reversed(known) if not other.overlaps(choice)]
    return max(others, key=lambda other: len(shared(Pair(choice, other), work)), default=choice)


def opening_pair(known: Sequence[Choice], work: Work) -> Pair | None:
    """The newest pair; if there is none, the two that share most work, unattributed ones as A."""
    unattributed_first = sorted(known, key=lambda choice: UNATTRIBUTED not in choice.name)
    pairs = [Pair(a, b) for a, b in combinations(unattributed_first, 2) if not a.overlaps(b)]
    most = max(pairs, key=lambda pair: len(shared(pair, work)), default=None)
    return newest_pair(known, work) or (most if most and shared(most, work) else None)


def newest_pair(known: Sequence[Choice], work: Work) -> Pair | None:
    """Each framework's newest two releases that share work; of these the two that share most.

    `known` is in the order of `perfdb.compare.read.known_releases`. None: nothing shares work.
    """
    released = (choice for choice in known if choice.version is not None)
    versions = grouped(released, lambda choice: choice.framework)
    pairs = [pair for of_one in versions.values() if (pair := _newest(of_one, work))]
    return max(pairs, key=lambda pair: len(shared(pair, work)), default=None)


def _newest(versions: Sequence[Choice], work: Work) -> Pair | None:
    """The newest release that shares work with an older one, and the newest such older one."""
    pairs = (Pair(a, b) for b, a in combinations(reversed(versions), 2))
    return next((pair for pair in pairs if shared(pair, work)), None)


def shared(pair: Pair, work: Work) -> Set[str]:
    """The workloads that both releases have results of."""
    a, b = (
        {key for release_id in choice.release_ids for key in work.get(release_id, ())}
        for choice in pair
    )
    return a & b
