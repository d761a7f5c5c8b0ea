"""The two releases that are compared: those that a link names, or the newest that share work."""

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations

import streamlit as st

from dashboards import data
from dashboards.choices import remembered
from dashboards.findings import plain
from perfdb.catalog import titles
from perfdb.compare import Choice
from perfdb.groups import grouped
from perfdb.record import UNATTRIBUTED

Pair = tuple[Choice, Choice]
"""Two releases, the older one first."""

NumShared = Callable[[Pair], int]
"""How many workloads both releases have results of."""


def chosen(store: data.Store, known: Sequence[Choice], *, apart: bool = True) -> Pair | None:
    """The releases to compare, kept in the address; None, with the reason on the page, for none.

    `apart`: they must not have results in common.
    """
    by_name = {choice.name: choice for choice in offered(known)}
    names = list(by_name)
    a, b = (by_name.get(st.query_params.get(key, "")) for key in ("a", "b"))
    first_a, first_b = opened_on(known, shared_in(store), a, b)
    left, right = st.columns(2)
    with left:
        a = by_name[remembered("Release A", names, first_a.name, "a", titles.release)]
    with right:
        b = by_name[remembered("Release B", names, first_b.name, "b", titles.release)]
    if apart and (reason := _why_none(known, a, b)):
        st.info(reason)
        return None
    return a, b


def _why_none(known: Sequence[Choice], a: Choice, b: Choice) -> str:
    name_a, name_b = (plain(titles.release(choice.name)) for choice in (a, b))
    if len(known) == 1:
        return f"Only {name_a} has results: there is nothing to compare it with."
    if a == b:
        return f"A and B are both {name_a}: choose another release for one."
    if a.overlaps(b):
        both = f"{name_a} and {name_b}"
        return f"{both} have the same results in part: choose another release for one."
    return ""


def shared_in(store: data.Store) -> NumShared:
    """How many workloads two releases of a store share."""
    return lambda pair: data.num_shared(store, pair[0].release_ids, pair[1].release_ids)


def offered(known: Iterable[Choice]) -> list[Choice]:
    """The releases in their order, but those without a stated version last."""
    return sorted(known, key=lambda choice: UNATTRIBUTED in choice.name)


def opened_on(
    known: Sequence[Choice], num_shared: NumShared, a: Choice | None, b: Choice | None
) -> Pair:
    """The two releases to compare; `a` and `b` are those that a link names, None if it does not."""

    def partner(choice: Choice) -> Choice:
        """The other release that shares most work with this choice, the newest of those."""
        others = [other for other in reversed(known) if not other.overlaps(choice)]
        return max(others, key=lambda other: num_shared((choice, other)), default=choice)

    if a is not None:
        return a, b or partner(a)
    if b is not None:
        return partner(b), b
    return opening_pair(known, num_shared) or (partner(known[-1]), known[-1])


def opening_pair(known: Sequence[Choice], num_shared: NumShared) -> Pair | None:
    """The pair that shares most work of each framework's newest two releases that share any.

    If there is none, of all releases, those without a stated version as A. None: no two share work.
    `known` is in the order of `perfdb.compare.releases.known_releases`.
    """
    released = (choice for choice in known if choice.version is not None)
    newest: list[Pair] = []
    for versions in grouped(released, lambda choice: choice.framework).values():
        pairs = ((a, b) for b, a in combinations(reversed(versions), 2))
        newest += next(([pair] for pair in pairs if num_shared(pair)), [])
    unattributed_first = sorted(known, key=lambda choice: UNATTRIBUTED not in choice.name)
    others = (
        (a, b)
        for a, b in combinations(unattributed_first, 2)
        if not newest and not a.overlaps(b) and num_shared((a, b))
    )
    return max(newest or others, key=num_shared, default=None)
