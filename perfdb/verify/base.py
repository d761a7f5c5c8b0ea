"""What a check of the store is, and what it yields."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection


@dataclass(frozen=True)
class Fault:
    """Something in the store that does not follow from the rest of it."""

    where: str
    message: str


@dataclass(frozen=True)
class PassedOver:
    """Something that this version cannot check, and why."""

    where: str
    message: str


Watch = Callable[[Sequence[Any]], Iterator[Any]]
"""Gives the items that a check looks at one by one, counts them and shows the progress."""

Check = Callable[[Connection, Watch], Iterator[Fault | PassedOver]]
