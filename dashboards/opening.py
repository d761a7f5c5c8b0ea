"""Which two releases the comparison opens on, and in which order they are offered."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import combinations
from typing import NamedTuple

from perfdb.compare import Choice

UNATTRIBUTED = "(unattributed)"
"""How `perfdb.record.Release` names a version that nobody stated."""

Work = Mapping[int, Set[str]]
"""The keys of the workloads that a release has results of, by release_id."""


class Pair(NamedTuple):
    """Two releases, the older one first."""

    a: Choice
    b: Choice


def offered(known: Iterable[Choice]) -> list[Choice]:
    """The releases as they were ordered, those whose version nobody stated last."""
    return sorted(known, key=lambda choice: UNATTRIBUTED in choice.name)


def newest_pair(known: Sequence[Choice], work: Work) -> Pair | None:
    """Each framework's newest two releases that share work; of these the two that share most.

    `known` is in the order of `perfdb.compare.read.known_releases`. None: nothing shares work.
    """
    versions: dict[str, list[Choice]] = defaultdict(list)
    for choice in known:
        if choice.version is not None:
            versions[choice.name.removesuffix(choice.version)].append(choice)
    pairs = [pair for of_one in versions.values() if (pair := _newest(of_one, work))]
    return max(pairs, key=lambda pair: len(shared(pair, work)), default=None)


def _newest(versions: Sequence[Choice], work: Work) -> Pair | None:
    """The newest release that shares work with an older one, and the newest such older one."""
    pairs = (Pair(a, b) for b, a in combinations(reversed(versions), 2))
    return next((pair for pair in pairs if shared(pair, work)), None)


def shared(pair: Pair, work: Work) -> Set[str]:
    """The workloads that both releases have results of."""
    a, b = (
        {key for release_id in one.release_ids for key in work.get(release_id, ())} for one in pair
    )
    return a & b
