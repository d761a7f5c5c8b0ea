"""Tells the format of a file by its content, and why a format that the user names gives nothing."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from perfdb import formats
from perfdb.formats import LogFormat, ParsedLog
from perfdb.ingest.compression import Budget, chunks, plain_name

HEAD_BYTES: Final = 1 << 16
"""Bytes that a format is recognised by, before the rest of the file is looked at."""

EMPTY: Final = "the file is empty"


def recognised(path: Path, budget: Budget) -> LogFormat | None:
    """The format of a file, by as little of it as tells: its head, or the head and a part."""
    name, content = plain_name(path), chunks(path, budget)
    first = next(content, b"")
    head, before = first[:HEAD_BYTES], first
    if found := formats.recognised(head, name) or formats.recognised(first, name):
        return found
    for chunk in content:
        if found := formats.recognised(b"".join((head, before[-HEAD_BYTES:], chunk)), name):
            return found
        before = chunk
    return None


def is_empty(path: Path, budget: Budget) -> bool:
    """Whether a file holds nothing but white space."""
    return not any(chunk.strip() for chunk in chunks(path, budget))


def nothing_of(name: str, logs: Sequence[ParsedLog], looks: str | None) -> str | None:
    pass
