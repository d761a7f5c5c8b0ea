"""Whether anything has changed since the last build; where nothing has, the store is not read.

What a build was made from is kept beside what it made: the state of the store, the code, the
accepted findings, and the age of each file, so that one that was changed by hand is made again.
"""

import hashlib
import json
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import perfdb
from perfdb.site.files import Layout

_SQLITE: Final = "sqlite:///"
_SETTLED_NS: Final = 2_000_000_000
"""A file that was written a moment ago may be written again without looking younger: file systems
keep times by steps of up to two seconds."""


@dataclass(frozen=True)
class Origin:
    """What a build is made from. `address` is the store's, `accepted` the file of findings."""

    address: str
    accepted: Path | None

    def key(self) -> str | None:
        """The same for as long as a build would make the same; None where that cannot be told."""
        store = self._store()
        if store is None:
            return None
        accepted = self.accepted.read_text() if self.accepted and self.accepted.is_file() else None
        findings = str(self.accepted), accepted
        known = (self.address, store, findings, code(), find_spec("pyarrow") is not None)
        return hashlib.sha256(repr(known).encode()).hexdigest()

    def _store(self) -> str | None:
        """The state of the store: of the file it is, or what the server says of its rows."""
        if "://" not in self.address or self.address.startswith(_SQLITE):
            return of_file(Path(self.address.removeprefix(_SQLITE)))
        # nothing that speaks to a server is loaded for a file
        from perfdb.site.read import state  # noqa: PLC0415

        return state(self.address)


@cache
def code() -> str:
    """The digest of the code and the catalogue that pages are made with."""
    found = hashlib.sha256()
    root = Path(perfdb.__file__).parent
    for path in sorted(path for path in root.rglob("*") if path.suffix in (".py", ".yaml")):
        content = path.read_bytes()
        found.update(f"{path.relative_to(root)} {len(content)}\n".encode() + content)
    return found.hexdigest()


def of_file(path: Path) -> str | None:
    """The state of a SQLite file and of what is not merged into it yet.

    None where there is no such file, or where it was written a moment ago.
    """
    if not path.is_file():
        return None
    beside = path.with_name(f"{path.name}-wal")
    stats = [one.stat() for one in (path, beside) if one.is_file() and one.stat().st_size]
    newest = max((one.st_mtime_ns for one in stats), default=0)
    if not stats or time.time_ns() - newest < _SETTLED_NS:
        return None
    said = [(one.st_ino, one.st_size, one.st_mtime_ns, one.st_ctime_ns) for one in stats]
    return f"{path.resolve()} {said}"


def holds(layout: Layout, key: str | None) -> bool:
    """Whether the last build was made from the same, and what it made is as it left it."""
    if key is None or not layout.done.is_file():
        return False
    try:
        done = json.loads(layout.done.read_text())
        return bool(done["key"] == key) and all(
            _age(layout.root / name) == age for name, age in done["files"].items()
        )
    except (ValueError, OSError):  # cut off as it was written, or a file is gone
        return False


def keep(layout: Layout, key: str | None, files: Iterable[Path]) -> Path:
    """Note what the files were made from; nothing where that cannot be told."""
    ages = {path.relative_to(layout.root).as_posix(): _age(path) for path in sorted(files)}
    layout.done.parent.mkdir(parents=True, exist_ok=True)
    layout.done.write_text(json.dumps({"key": key, "files": ages}))
    return layout.done


def _age(path: Path) -> list[int]:
    found = os.stat(path)  # noqa: PTH116  ten thousand files: a Path asks the same more slowly
    return [found.st_size, found.st_mtime_ns]
