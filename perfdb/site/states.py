"""States of a published page: which line of a newer one says what a result was read for."""

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Sequence
from difflib import SequenceMatcher

from perfdb.site.data import Result, SourcePage

Place = tuple[str, int | None]
"""The SHA-256 of a state, and a line of it."""


def by_page(pages: Iterable[SourcePage]) -> list[list[SourcePage]]:
    """The states of each page, the newest last."""
    states: dict[str, list[SourcePage]] = defaultdict(list)
    for page in pages:
        states[page.path].append(page)
    return [sorted(some, key=_when) for some in states.values()]


def _when(page: SourcePage) -> tuple[bool, object]:
    return page.read_at is not None, page.read_at


def at_newest(results: Sequence[Result], pages: Iterable[SourcePage]) -> list[Result]:
    """Published results, each at the newest state of its page that has its line unchanged.

    The store keeps where a result was read first. A line that gave another result says that one: a
    page may state its next release in the same words.
    """
    taken: set[Place] = {(one.source_sha256, one.source_line) for one in results}
    now: dict[Place, Place] = {}
    for states in by_page(pages):
        for number in reversed(range(len(states) - 1)):
            found = _followed(states[number], states[number + 1 :], taken)
            taken |= set(found.values())
            now |= found
    return [_moved(one, now.get((one.source_sha256, one.source_line))) for one in results]


def _followed(
    earlier: SourcePage, later: Iterable[SourcePage], taken: Container[Place]
) -> dict[Place, Place]:
    """Where lines that were read are now: in the last of the later states that has them."""
    return {
        (earlier.sha256, old): (one.sha256, new)
        for one in later
        for old, new in _unchanged(earlier.text, one.text)
        if (earlier.sha256, old) in taken and (one.sha256, new) not in taken
    }


def _unchanged(old: str, new: str) -> Iterator[tuple[int, int]]:
    """The numbers of the lines that two texts share, in the one and in the other."""
    blocks = SequenceMatcher(None, old.splitlines(), new.splitlines()).get_matching_blocks()
    for block in blocks:
        for number in range(1, block.size + 1):
            yield block.a + number, block.b + number


def _moved(result: Result, place: Place | None) -> Result:
    if place is None:
        return result
    return result.model_copy(update={"source_sha256": place[0], "source_line": place[1]})
