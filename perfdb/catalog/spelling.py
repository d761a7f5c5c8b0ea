"""The spellings of the names of catalogue entries."""

import re
from collections.abc import Iterator

from perfdb.catalog.base import Model, System


def squeezed(words: str) -> str:
    """A name without case, spaces and punctuation, to compare how people spell it."""
    return re.sub(r"[\s._\-/]+", "", words).lower()


def spellings(entry: Model | System) -> Iterator[str]:
    """All names of an entry: its name, title and aliases; of a repository also the last part."""
    for alias in (entry.name, entry.title, *entry.aliases):
        yield alias
        if " " not in alias:
            yield alias.rpartition("/")[2]
