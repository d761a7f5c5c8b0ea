"""Proves that a store is consistent: all of it follows from the bytes that it keeps.

To add a check: write a function in a module of this package, and add it to CHECKS.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import URL, Connection

from perfdb.db import migrate
from perfdb.db.session import reading_current
from perfdb.verify import checks, reread
from perfdb.verify.checks import Check, Fault, PassedOver

__all__ = ["CHECKS", "Fault", "PassedOver", "Verified", "Watched", "verify"]

CHECKS: dict[str, Check] = {
    "database": checks.database,
    "values": checks.values,
    "sources": checks.sources,
    "originals": reread.originals,
    "references": checks.references,
    "revisions": checks.revisions,
    "orphans": checks.orphans,
    "keys": checks.keys,
    "figures": checks.figures,
    "runs": reread.runs,
    "published": reread.published,
    "findings": checks.findings,
    "log": checks.log,
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
    """Run every check over one consistent state of the store.

    Raises StoreError if there is no store, or if it has the schema of another version.
    """
    with reading_current(url) as connection:
        found = checked(connection, watched)
    differences = tuple(Fault("schema", text) for text in migrate.differences(url))
    return (Verified("schema", 1, differences, ()), *found)


def checked(connection: Connection, watched: Watched) -> tuple[Verified, ...]:
    """Run every check but that of the schema over a store of this version."""
    found: list[Verified] = []
    for name in CHECKS:
        is_damaged = any(one.faults for one in found)
        found.append(_verified(name, connection, watched, is_damaged=is_damaged))
    return tuple(found)


def _verified(name: str, connection: Connection, watched: Watched, *, is_damaged: bool) -> Verified:
    """One check. In a damaged store it may end at a value that it cannot read."""
    count = 0

    def watch(items: Sequence[Any]) -> Iterator[Any]:
        nonlocal count
        count += len(items)
        done = watched(name, len(items))
        for item in items:
            yield item
            done()

    found: list[Fault | PassedOver] = []
    try:
        found.extend(CHECKS[name](connection, watch))
    except (ValueError, TypeError, LookupError, ArithmeticError) as error:
        if not is_damaged:
            raise
        found.append(PassedOver(name, f"ended at a damaged value, which is a fault: {error}"))
    faults = tuple(one for one in found if isinstance(one, Fault))
    return Verified(name, count, faults, tuple(one for one in found if isinstance(one, PassedOver)))
