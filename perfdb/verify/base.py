"""What a check of the store gives: faults, and what it had to pass over."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol, TypeVar

from sqlalchemy import Connection

Item = TypeVar("Item")


@dataclass(frozen=True)
class Fault:
    """Something in the store that does not follow from the rest of it."""

    where: str
    message: str


@dataclass(frozen=True)
class PassedOver:
    """Something that cannot be checked by this version, and why."""

    where: str
    message: str


Finding = Fault | PassedOver


class Watch(Protocol):
    """Watches the items that a check looks at, to show its progress."""

    def __call__(self, items: Iterable[Item], count: int, /) -> Iterable[Item]:
        """The same items, one by one; `count` is how many there are."""
        ...


Check = Callable[[Connection, Watch], Iterator[Finding]]


def other_version(made_by: int, newest: int) -> str | None:
    """Why this version of a parser may read something else; None if it is the same version.

    Below 0 are sources of which a downgrade has dropped something (migration 0003).
    """
    if made_by == newest:
        return None
    if made_by < 0:
        return "a downgrade has dropped some of it; `perfdb ingest` of the file reads it anew"
    return f"read by version {made_by} of the parser; this is {newest}"
