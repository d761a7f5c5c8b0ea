"""How versions of releases are ordered, and other names that hold numbers."""

import re
from functools import lru_cache

from packaging.version import VERSION_PATTERN, Version

Precedence = tuple[object, ...]
"""What sorts versions."""

_VERSION = re.compile(VERSION_PATTERN, re.VERBOSE | re.IGNORECASE)
"""A version by PEP 440, also within other words: `core_r0.10.0rc1`."""
_BUILD = re.compile(
    r"(?<![0-9a-z])(?:git|g)?(?!d?20[0-9]{6})[0-9a-f]{7,40}(?:[.-]dirty)?(?![0-9a-z])"
)
_COMMIT = re.compile(
    r"(?:^|(?<=-))(?:git|g)?(?![0-9]*[abc]?20[0-9]{6})(?=[0-9]*[a-f])(?=[a-f]*[0-9])"
    r"[0-9a-f]{7,40}(?:-dirty)?(?=-|$)"
)
"""The hash of a commit: behind a + any that is no date, elsewhere one of digits and letters."""


@lru_cache(maxsize=10_000)
def natural(words: str) -> tuple[str | int, ...]:
    """A key that sorts numbers as numbers: 0.9 before 0.10, Llama 3 8B before Llama 3 70B."""
    parts = re.split(r"([0-9]+)", words)
    return tuple(int(part) if place % 2 else part for place, part in enumerate(parts))


def plain(version: str) -> str:
    """A version without the v of its tag: v0.2.0 is 0.2.0."""
    return re.sub("^[vV](?=[0-9])", "", version)


def is_same(one: str, other: str) -> bool:
    """Whether two spellings are one version: 25.09 and 25.09.00 are, 25.04 and 25.04.01 are not."""
    return canonical(one) == canonical(other)


def canonical(version: str) -> str:
    """The one spelling of a version: of numbers alone, without the zeros at its end."""
    version = plain(version)
    if not re.fullmatch(r"[0-9]+(\.[0-9]+)+", version):
        return version
    return re.sub(r"(\.0+)+$", "", version)


def is_rolling(version: str | None) -> bool:
    """Whether a version is a branch that moves on: it has no number, as main has none."""
    return version is not None and not re.search(r"[0-9]", version)


@lru_cache(maxsize=10_000)
def is_numbered(version: str | None) -> bool:
    """Whether a version has a place in the order of releases."""
    return version is not None and not is_rolling(version)


@lru_cache(maxsize=10_000)
def version_order(version: str | None, build: int = 0) -> Precedence:
    """A key that sorts versions: what nobody stated, releases by number, rolling branches.

    By number is in the order of PEP 440, 1.0.dev1 < 1.0a1 < 1.0rc1 < 1.0 < 1.0+cu128 < 1.0.post1;
    what PEP 440 does not have comes after it, in the order of its numbers and letters.
    Builds that differ only by the hash of a commit come by `build`, the place of each among them.
    """
    return *stage_order(version), build, natural(version or "")


@lru_cache(maxsize=10_000)
def stage_order(version: str | None) -> Precedence:
    """The same for builds that differ only by the hash of a commit: 1.0rc1+1a2b3c4 and +c4d5e6f."""
    rank = 0 if version is None else 2 if is_rolling(version) else 1
    public, plus, local = (version or "").lower().partition("+")
    words = f"{_COMMIT.sub('', public)}{plus}{_BUILD.sub('', local)}"
    found = _VERSION.search(words)
    rest = words[: found.start()] + words[found.end() :] if found else words
    return rank, Version(found[0] if found else "0"), natural(rest)


def newness(version: str | None, build: int = 0) -> Precedence:
    """The same, but rolling branches before what has a number: its highest is the newest."""
    return is_numbered(version), *version_order(version, build)
