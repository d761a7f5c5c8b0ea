"""The spellings of the names of catalogue entries."""

import re
from collections.abc import Iterator

from perfdb.catalog.entries import Model, System
from perfdb.yamlfile import Place

_SIZE = re.compile(r"(?<![0-9])[0-9]+(?:\.[0-9]+)?(?=\s*b(?![a-z]))", re.IGNORECASE)
"""A number of billions: of parameters, or of those that are active."""


def squeezed(words: str) -> str:
    """A name without case, spaces and punctuation, to compare how people spell it."""
    return re.sub(r"[\s._\-/]+", "", words).lower()


def sized(words: str) -> str:
    """A model's name as `squeezed`, and its sizes: `Qwen2-57B` is no `Qwen2.5-7B`."""
    return " ".join((squeezed(words), *_SIZE.findall(words)))


def resized(words: str, size: str) -> str:
    """A model's name with a size in place of its own, or behind it where it has none."""
    found = _SIZE.search(size)
    has_own = found and _SIZE.search(words)
    return _SIZE.sub(found[0], words, count=1) if found and has_own else f"{words} {size}"


def spellings(entry: Model | System) -> Iterator[str]:
    """All names of an entry: its name, title and aliases; of a repository also the last part."""
    return (word for _, word in placed(entry))


def placed(entry: Model | System) -> Iterator[tuple[Place, str]]:
    """The names of an entry, each with its place in the file."""
    words: list[tuple[Place, str]] = [(("name",), entry.name), (("title",), entry.title)]
    words += [(("aliases", number), alias) for number, alias in enumerate(entry.aliases)]
    for place, word in words:
        yield place, word
        if " " not in word:
            yield place, word.rpartition("/")[2]
