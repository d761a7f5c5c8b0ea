"""Makes the items of an iterator in another thread while those before are worked on."""

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

T = TypeVar("T")

ITEMS_AHEAD = 4


def ahead(items: Iterable[T]) -> Iterator[T]:
    """The same items in the same order, a few of them made before they are asked for.

    For no more than one item no thread is started.
    """
    made = iter(items)
    first = _next(made)
    yield from first
    if not first:
        return
    waiting: deque[Future[list[T]]] = deque()
    with ThreadPoolExecutor(1) as thread:
        waiting.extend(thread.submit(_next, made) for _ in range(ITEMS_AHEAD))
        while found := waiting.popleft().result():
            waiting.append(thread.submit(_next, made))
            yield from found


def _next(made: Iterator[T]) -> list[T]:
    return list(islice(made, 1))
