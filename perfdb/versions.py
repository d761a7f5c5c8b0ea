"""How versions of releases are ordered, and other names that hold numbers."""

import re
from collections.abc import Iterable
from functools import lru_cache


@lru_cache(maxsize=10_000)
def natural(words: str) -> tuple[str | int, ...]:
    """A key that sorts numbers as numbers: 0.9 before 0.10, Llama 3 8B before Llama 3 70B."""
    parts = re.split(r"([0-9]+)", words)
    return tuple(int(part) if place % 2 else part for place, part in enumerate(parts))


def is_same(one: str, other: str) -> bool:
    """Whether two spellings are one version: 25.09 and 25.09.00 are, 25.04 and 25.04.01 are not."""
    return _without_zeros(one) == _without_zeros(other)


def _without_zeros(version: str) -> str:
    """A version of numbers alone without the parts of zeros at its end; any other as it is."""
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)+", version):
        return version
    return re.sub(r"(\.0+)+$", "", version)


def is_rolling(version: str | None) -> bool:
    """Whether a version is a branch that moves on: it has no number, as main has none."""
    return version is not None and not re.search(r"[0-9]", version)


def version_order(version: str | None) -> tuple[int, tuple[str | int, ...]]:
    """A key that sorts versions: what nobody stated, releases by number, rolling branches."""
    rank = 0 if version is None else 2 if is_rolling(version) else 1
    return rank, natural(version or "")


def newest_version(versions: Iterable[str | None]) -> str | None:
    """The release of the highest number; a rolling branch only where nothing has a number."""
    given = sorted(versions, key=version_order, reverse=True)
    numbered = [one for one in given if one is not None and not is_rolling(one)]
    return next(iter([*numbered, *given]), None)
