"""The reviewed file: which findings somebody looked at and accepts."""

from pathlib import Path

from perfdb.audit import acknowledged
from perfdb.audit.acknowledged import Entry

REVIEWED = Path("data/acknowledged.yaml")


def accepted(reviewed: Path | None) -> tuple[Entry, ...]:
    """The findings that a reviewed file accepts: the one given, or the project's, or none."""
    path = reviewed or REVIEWED
    return acknowledged.entries(str(path), path.read_text()) if path.is_file() else ()
