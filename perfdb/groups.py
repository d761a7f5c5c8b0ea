"""Groups values by a key."""

from collections.abc import Callable, Iterable
from typing import TypeVar

Value = TypeVar("Value")
Key = TypeVar("Key")


def grouped(values: Iterable[Value], key: Callable[[Value], Key]) -> dict[Key, list[Value]]:
    """The values by their key; keys and values stay in the order in which they come."""
    found: dict[Key, list[Value]] = {}
    for one in values:
        found.setdefault(key(one), []).append(one)
    return found
