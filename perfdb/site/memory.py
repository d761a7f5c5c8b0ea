"""The data of pages between the build that makes it and the directives that show it.

A build makes the data of every page and reads many of them at once: what was made in this process
is at hand. Where it was made by an earlier build, it is read from its file, once.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from perfdb.record import Frozen

Data = TypeVar("Data", bound=Frozen)

_KNOWN: dict[Path, Frozen] = {}


def remember(made: Mapping[Path, Frozen]) -> None:
    """Have at hand what is in these files now, and nothing else."""
    _KNOWN.clear()
    _KNOWN.update(made)


def recall(path: Path, kind: type[Data]) -> Data:
    """The data in a file. Raises FileNotFoundError, and ValidationError where it is no such."""
    known = _KNOWN.get(path)
    if isinstance(known, kind):
        return known
    read = kind.model_validate_json(path.read_bytes())
    _KNOWN[path] = read
    return read
