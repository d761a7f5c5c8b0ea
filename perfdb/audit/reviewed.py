"""The reviewed file: which findings somebody looked at and accepts."""

from pathlib import Path

from perfdb.audit import acknowledged
from perfdb.audit.acknowledged import Entry
from perfdb.errors import Diagnostic, InputError

REVIEWED = Path("data/acknowledged.yaml")


def accepted(reviewed: Path | None) -> tuple[Entry, ...]:
    """The findings that a reviewed file accepts: the one given, or the project's, or none.

    Raises InputError with all that is wrong with it.
    """
    path = reviewed or REVIEWED
    if not path.is_file():
        return ()
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(Diagnostic(str(path), f"cannot be read: {error}")) from error
    return acknowledged.entries(str(path), text)
