"""The files of a build: where they are, which of them are stale, and what they were made from.

Nothing is written that has the same content already, so that Sphinx redoes only what has changed.
This module loads nothing of the store: a build with nothing to do needs no more than it.
"""

import hashlib
import json
import os
import shutil
import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypedDict, cast
from urllib.parse import unquote

import perfdb
from perfdb import config
from perfdb.site.addresses import FOLDERS, slug

if TYPE_CHECKING:
    from perfdb.site.data import RunFile

GENERATED: Final = "_generated/perfdb"
"""The folder, inside the documents, for what is no document; it is ours alone."""
DOWNLOADS: Final = "_generated/perfdb-data"
"""The folder, inside the documents, of the files of tables: a folder for each document."""
PUBLISHED: Final = "_data"
"""The folder of the files of tables in the site."""
EVERYTHING: Final = "results"
"""The name of the file of all results."""
MARK: Final = "# Made by perfdb.site from the store; what is changed here is lost."
"""On the second line of every page that is made, and of no other."""
DECLARING: Final = ("{perfdb-release-page}", "{perfdb-table}")
"""What a page written by hand has in it when it takes the place of one that is made."""

_SQLITE: Final = "sqlite:///"
_SECOND_NS: Final = 1_000_000_000
_SETTLED_NS: Final = 50_000_000
"""A file that was written a moment ago may be written again without looking younger: Linux keeps
times in steps of up to ten milliseconds."""
_SETTLED_SECONDS_NS: Final = 2 * _SECOND_NS
"""The same where a time is a whole second: file systems such as FAT keep steps of two seconds."""


@dataclass(frozen=True)
class BuildOptions:
    """What a build is made from.

    `address` names the store; None is perfdb.sqlite here, which need not exist yet. `accepted` is
    the file of accepted findings, `recipes` and `notes` the folders of recipes and of what people
    say of releases. With `hostnames`, pages of runs name the machine. `profile` says for whom the
    site is.
    """

    address: str | None
    accepted: Path | None
    hostnames: bool = False
    recipes: Path | None = None
    notes: Path | None = None
    profile: str = "internal"

    def key(self) -> str | None:
        """The same for as long as a build would make the same; None where that is not known."""
        address = self.address or ""
        if address.startswith(_SQLITE):
            store = state_of_file(Path(unquote(address.removeprefix(_SQLITE))))
        elif "://" not in address:
            store = state_of_file(Path(address))
        else:  # nothing that speaks to a server is loaded for a file
            from perfdb.site import read  # noqa: PLC0415

            store = read.state(address)
        path = self.accepted
        accepted = path.read_text() if path and path.is_file() else None
        folders = [folder for folder in (self.recipes, self.notes) if folder]
        read_files = [
            (str(one), one.read_bytes())
            for folder in folders
            for one in sorted(folder.rglob("*.*"))
            if one.is_file()
        ]
        options = (self.hostnames, self.profile)
        files = (own_catalog(), read_files)
        known = (address, store, (str(path), accepted), options, code(), files)
        return None if store is None else hashlib.sha256(repr(known).encode()).hexdigest()


@dataclass(frozen=True)
class SiteLayout:
    """Where everything is. `root` is the folder of the documents."""

    root: Path

    def page(self, name: str) -> Path:
        return self.root / f"{name}.md"

    def run_file(self, file: "RunFile") -> Path:
        """A file of a run; the same bytes are kept once for each name."""
        name = slug(Path(file.name).name)
        return self.root / GENERATED / "files" / file.sha256[:16] / name

    @property
    def kept(self) -> Path:
        """The folder of what the last build has made of the store."""
        return self.root / GENERATED / "kept"

    @property
    def done(self) -> Path:
        """The note of what the last build was made from."""
        return self.root / GENERATED / "done.json"

    def remove_others(self, kept: Collection[Path]) -> None:
        """Remove what an earlier build has made and this one has not."""
        pages = (page for folder in FOLDERS for page in (self.root / folder).rglob("*.md"))
        files = (path for path in (self.root / GENERATED).rglob("*") if path.is_file())
        for path in (*filter(is_made, pages), *files):
            if path not in kept:
                path.unlink()
        for folder in (*FOLDERS, GENERATED):
            prune(self.root / folder)


def is_made(page: Path) -> bool:
    """Whether a page was made from the store, not written by hand."""
    with page.open(encoding="utf-8", errors="replace") as file:
        return MARK in (file.readline(), file.readline().rstrip("\n"))


def write(path: Path, content: bytes) -> Path:
    """Write a file unless it has just this content."""
    is_same = path.is_file() and path.stat().st_size == len(content)
    if not is_same or path.read_bytes() != content:
        replace(path, content)
    return path


def replace(path: Path, content: bytes) -> None:
    """Write a file beside its place and rename it: on a full disk the one before stays whole.

    Unlike `jsonfile.write_atomically` this does not wait for the disk, since there are many files.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{os.getpid()}.tmp")
    try:
        temporary.write_bytes(content)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_page(path: Path, text: str) -> Path:
    """Write a page unless one written by hand takes its place.

    Raises FileExistsError where a page written by hand that declares no results is in the way.
    """
    if not path.exists() or is_made(path):
        return write(path, text.encode())
    if any(one in path.read_text(encoding="utf-8", errors="replace") for one in DECLARING):
        return path
    raise FileExistsError(
        f"{path}: this page is made from the store; rename yours, or declare in it what it shows "
        f"with {DECLARING[0]}"
    )


def prune(folder: Path) -> None:
    """Remove a folder, and each in it, that holds no file."""
    for path, _, _ in os.walk(folder, topdown=False):
        with suppress(OSError):  # it holds something
            Path(path).rmdir()


def publish(root: Path, out: Path, used: Iterable[Path]) -> None:
    """Copy the files that documents use into the site, and remove those that none uses."""
    made, site = root / DOWNLOADS, out / PUBLISHED
    wanted = {path for path in used if made in path.parents and path.is_file()}
    wanted |= set(made.glob(f"{EVERYTHING}.*"))
    copies = {site / path.relative_to(made): path for path in wanted}
    for copy, path in copies.items():
        if not copy.is_file() or _hash(copy) != _hash(path):
            replace(copy, path.read_bytes())
            shutil.copystat(path, copy)  # of the same age, by which the next build knows it
    for path in [*made.rglob("*.*"), *site.rglob("*.*")]:
        if path not in wanted and path not in copies and path.is_file():
            path.unlink()
    for folder in (made, site):
        prune(folder)


@cache
def code() -> str:
    """The digest of the code that pages are made with."""
    root, found = Path(perfdb.__file__).parent, hashlib.sha256()
    for path in sorted(root.rglob("*")):
        if path.is_file() and path.parent.name != "__pycache__":
            content = path.read_bytes()
            found.update(f"{path.relative_to(root)} {len(content)}\n".encode() + content)
    return found.hexdigest()


def own_catalog() -> bytes | None:
    """The file of people's own systems and models; None where there is none."""
    own = Path(os.environ.get(config.VARIABLE) or config.FILE)
    return own.read_bytes() if own.is_file() else None


def state_of_file(path: Path) -> str | None:
    """The state of a SQLite file and of its journals.

    None where there is no such file, where it was written a moment ago, or where the clock has
    been set back since. A file that is made to look older still tells when it was.
    """
    if not path.is_file():
        return None
    journals = [path.with_name(f"{path.name}{suffix}") for suffix in ("-wal", "-journal")]
    read = [path, *(one for one in journals if one.is_file() and one.stat().st_size)]
    stats = {one.name: one.stat() for one in read}
    newest = max(one.st_mtime_ns for one in stats.values())
    settled = _SETTLED_NS if newest % _SECOND_NS else _SETTLED_SECONDS_NS
    if time.time_ns() - newest < settled:
        return None
    known = {
        name: (one.st_dev, one.st_ino, one.st_size, one.st_mtime_ns, one.st_ctime_ns)
        for name, one in stats.items()
    }
    return f"{path.resolve()} {known}"


class DoneNote(TypedDict, total=False):
    """What the last build was made from, the hashes of its files, and what documents show."""

    key: str | None
    code: str
    files: dict[str, str]
    keys: dict[str, str]


def read_note(path: Path) -> dict[str, Any]:
    """A note of an earlier build; empty where there is none, or a broken one."""
    try:
        found = json.loads(path.read_bytes())
    except (ValueError, OSError):
        return {}
    return found if isinstance(found, dict) else {}


def noted(layout: SiteLayout) -> DoneNote:
    """The note of the last build; empty where there is none, or a broken one."""
    return cast("DoneNote", read_note(layout.done))


def is_done(layout: SiteLayout, key: str | None) -> bool:
    """Whether the last build was made from the same, and nobody has touched what it made."""
    done = noted(layout)
    is_same = done.get("key") == key is not None
    return is_same and changed(layout.root, done.get("files", {})) is None


def untouched(layout: SiteLayout) -> set[Path]:
    """What the last build of this perfdb has made that nobody has changed."""
    done = noted(layout)
    made = done.get("files", {}) if done.get("code") == code() else {}
    return {
        layout.root / name for name, its in made.items() if not changed(layout.root, {name: its})
    }


def note_done(
    layout: SiteLayout, key: str | None, made: Iterable[Path], keys: dict[str, str]
) -> None:
    """Note what the files were made from, and the keys of what documents show."""
    of_files = hashes(layout.root, sorted(made))
    done: DoneNote = {"key": key, "code": code(), "files": of_files, "keys": keys}
    replace(layout.done, json.dumps(done).encode())


def hashes(root: Path, paths: Iterable[Path]) -> dict[str, str]:
    """The hashes of the files among some paths, by their names below a folder."""
    return {path.relative_to(root).as_posix(): _hash(path) for path in paths if path.is_file()}


def changed(root: Path, known: Mapping[str, str]) -> str | None:
    """The first file that is gone or holds something else, whatever its size and times say."""
    for name, its_hash in known.items():
        try:
            is_same = _hash(root / name) == its_hash
        except OSError:
            is_same = False
        if not is_same:
            return name
    return None


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
