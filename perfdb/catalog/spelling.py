"""How people spell the names of entries."""

import re
from collections.abc import Iterator

from perfdb.catalog.base import Model, System


def squeezed(words: str) -> str:
    """A name without case, spaces and punctuation, to compare how people spell it."""
    return re.sub(r"[\s._\-/]+", "", words).lower()


def spellings(entry: Model | System) -> Iterator[str]:
    """What an entry is called: its name, title and aliases, of a repository its own name too."""
    for alias in (entry.name, entry.title, *entry.aliases):
        yield alias
        if " " not in alias:
            yield alias.rpartition("/")[2]
