"""Whether anything has changed since the last build; where nothing has, the store is not read.

What a build was made from is kept next to what it made: the state of the store, the code, the
accepted findings, and the age of each file, so that one that was changed by hand is made again.
So is the age of each file of the site, of which Sphinx only notices those that are gone.
"""

import hashlib
import json
import os
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final
from urllib.parse import unquote

import perfdb
from perfdb.site.files import SiteLayout as Layout

_SQLITE: Final = "sqlite:///"
_SETTLED_NS: Final = 2_000_000_000
"""A file that was written a moment ago may be written again without looking younger: file systems
keep times by steps of up to two seconds."""


@dataclass(frozen=True)
class BuildOptions:
    """What a build is made from: the store, the file of accepted findings.

    `address`: None is perfdb.sqlite here, which need not be there yet. `hostnames`: pages of runs
    name the machine.
    """

    address: str | None
    accepted: Path | None
    hostnames: bool = False


def key_of(options: BuildOptions) -> str | None:
    """The same for as long as a build would make the same; None where that is not known."""
    store = _store(options.address or "")
    if store is None:
        return None
    path = options.accepted
    accepted = path.read_text() if path and path.is_file() else None
    known = (options.address or "", store, (str(path), accepted), options.hostnames, code())
    return hashlib.sha256(repr(known).encode()).hexdigest()


def _store(address: str) -> str | None:
    """The state of the store: of the file it is, or what the server reports of its rows."""
    if "://" not in address:
        return of_file(Path(address))
    if address.startswith(_SQLITE):
        return of_file(Path(unquote(address.removeprefix(_SQLITE))))
    # nothing that speaks to a server is loaded for a file
    from perfdb.site.data import state  # noqa: PLC0415

    return state(address)


@cache
def code(root: Path = Path(perfdb.__file__).parent) -> str:
    """The digest of all that pages are made with: a folder of code, and what is installed.

    What is installed is told by its folders, which are called by name and version.
    """
    found = hashlib.sha256()
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for path in (Path(folder, name) for name in sorted(names)):
            if path.is_file():
                content = path.read_bytes()
                found.update(f"{path.relative_to(root)} {len(content)}\n".encode() + content)
    there = [folder for folder in sys.path if Path(folder).is_dir()]
    installed = (os.listdir(folder or os.curdir) for folder in there)  # noqa: PTH208
    versions = {name for names in installed for name in names if name.endswith(".dist-info")}
    found.update(repr((sys.version, sorted(versions))).encode())
    return found.hexdigest()


def of_file(path: Path) -> str | None:
    """The state of a SQLite file and of what is not merged into it, or not taken back, yet.

    None where there is no such file, where it was written a moment ago, or where the clock has
    been set back since. A file that is made to look older than it is still tells when it was.
    """
    if not path.is_file():
        return None
    companions = [path.with_name(f"{path.name}{suffix}") for suffix in ("-wal", "-journal")]
    files = [path, *(one for one in companions if one.is_file() and one.stat().st_size)]
    stats = [one.stat() for one in files]
    if time.time_ns() - max(one.st_mtime_ns for one in stats) < _SETTLED_NS:
        return None
    known = [
        (one.st_dev, one.st_ino, one.st_size, one.st_mtime_ns, one.st_ctime_ns) for one in stats
    ]
    return f"{path.resolve()} {[one.name for one in files]} {known}"


def holds(layout: Layout, key: str | None) -> bool:
    """Whether the last build was made from the same, and what it made is as it left it."""
    done = _noted(layout.done)
    return (
        key is not None
        and done.get("key") == key
        and done.get("pages") == layout.pages()
        and _are(layout.root, done.get("files"))
    )


def keep(layout: Layout, key: str | None, files: Iterable[Path]) -> None:
    """Note what the files were made from; nothing where that is not known."""
    note = {"key": key, "pages": layout.pages(), "files": _ages(layout.root, files)}
    _note(layout.done, note)


def is_as_left(out: Path, note: Path) -> bool:
    """Whether the files of the site are those that were noted, and none was touched."""
    return _are(out, _noted(note).get("files"))


def leave(out: Path, note: Path) -> None:
    """Note the files of the site as they are; doctrees among them are for Sphinx to look after."""
    files = (Path(root, name) for root, _, names in os.walk(out) for name in names)
    kept = (path for path in files if note.parent not in path.parents)
    _note(note, {"files": _ages(out, kept)})


def _noted(note: Path) -> Mapping[str, object]:
    """What was noted; nothing where the note is missing, or was cut off as it was written."""
    try:
        noted = json.loads(note.read_bytes())
    except (ValueError, OSError):
        return {}
    return noted if isinstance(noted, dict) else {}


def _note(path: Path, noted: Mapping[str, object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(noted))


def _are(root: Path, ages: object) -> bool:
    """Whether each file is as old and as large as noted."""
    if not isinstance(ages, dict):
        return False
    try:
        return all(_age(f"{root}/{name}") == age for name, age in ages.items())
    except OSError:  # one is gone
        return False


def _ages(root: Path, files: Iterable[Path]) -> dict[str, list[int]]:
    return {path.relative_to(root).as_posix(): _age(str(path)) for path in sorted(files)}


def _age(path: str) -> list[int]:
    found = os.stat(path)  # noqa: PTH116  ten thousand files: a Path asks the same more slowly
    return [found.st_size, found.st_mtime_ns]
