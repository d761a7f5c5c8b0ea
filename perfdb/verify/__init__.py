"""Proves that a store is consistent: its figures follow from its steps, its steps from its bytes.

To add a check: write a function (perfdb.verify.base.Check), add it to the table.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from sqlalchemy import URL, Connection

from perfdb.db import migrate
from perfdb.db.session import reading_current
from perfdb.verify import published, runs, tables
from perfdb.verify.base import Check, Fault, Item, PassedOver

__all__ = ["CHECKS", "Fault", "PassedOver", "Verified", "Watched", "verify"]

CHECKS: dict[str, Check] = {
    "sources": tables.sources,
    "references": tables.references,
    "revisions": tables.revisions,
    "orphans": tables.orphans,
    "figures": runs.figures,
    "steps": runs.steps,
    "published": published.published,
}

Watched = Callable[[str, int], Callable[[], None]]
"""Takes a check and how many items it looks at; returns what to call after each item."""


@dataclass(frozen=True)
class Verified:
    """What a check looked at, what is wrong, and what it had to pass over."""

    check: str
    count: int
    faults: tuple[Fault, ...]
    passed_over: tuple[PassedOver, ...]


def verify(url: URL, watched: Watched) -> tuple[Verified, ...]:
    """Every check, over one consistent state of the store.

    Raises StoreError if there is no store, or if it has the schema of another version.
    """
    with reading_current(url) as connection:
        found = [_verified(name, connection, watched) for name in CHECKS]
    differences = tuple(Fault("schema", text) for text in migrate.differences(url))
    return (Verified("schema", 1, differences, ()), *found)


def _verified(name: str, connection: Connection, watched: Watched) -> Verified:
    count = 0

    def watch(items: Iterable[Item], of: int, /) -> Iterable[Item]:
        nonlocal count
        count += of
        done = watched(name, of)
        for item in items:
            yield item
            done()

    found = list(CHECKS[name](connection, watch))
    return Verified(
        name,
        count,
        tuple(finding for finding in found if isinstance(finding, Fault)),
        tuple(finding for finding in found if isinstance(finding, PassedOver)),
    )
