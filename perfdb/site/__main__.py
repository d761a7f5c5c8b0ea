"""`python -m perfdb.site [OPTIONS OF SPHINX] DOCS BUILD`: build a site beside the last one.

BUILD/html is the site, and BUILD/doctrees what Sphinx keeps for the next build. A build changes
copies of both, which take their place once Sphinx has succeeded. So a full disk, a kill or a
warning leaves the last site whole. After an error that Sphinx did not expect, such as a damaged
file of its own, and after somebody has changed a file of the site, the next is built from nothing.
"""

import fcntl
import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from sphinx.cmd.build import main as build

from perfdb.site import files

_KEPT: Final = ("doctrees", "html")
"""What a build changes; without the first, the next begins from nothing."""
_NOTE: Final = "site.json"
"""The hashes of the files of the site."""
_FAILED: Final = 2
"""The exit code of Sphinx for anything but warnings."""


def main(arguments: Sequence[str]) -> int:
    """The exit code of Sphinx, or 2 where there is no room; if it is not 0, the site stays."""
    *options, docs, folder = arguments
    root = Path(folder)
    new, last = root / "new", root / "last"
    try:
        root.mkdir(parents=True, exist_ok=True)
        with (root / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (root / "html").exists() and (last / "html").exists():  # killed as they moved
                shutil.move(last / "html", root / "html")
            _remove(new, last)
            try:
                _copy(root, new)
                code = build([*options, "-b", "html", "-d", f"{new}/doctrees", docs, f"{new}/html"])
                if code == 0:
                    _move(root, new, last)
                elif code == _FAILED:
                    _remove(root / "doctrees")
            finally:
                _remove(new, last)
    except OSError as error:
        sys.stderr.write(f"error: {root} cannot be written: {error}\n")
        return _FAILED
    return code


def _remove(*folders: Path) -> None:
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


def _move(root: Path, new: Path, last: Path) -> None:
    """Put what was made into its place."""
    html, made = root / "html", new / "html"
    known = files.read_note(root / _NOTE)
    there = {path.relative_to(html).as_posix() for path in html.rglob("*") if path.is_file()}
    others = there - known.keys() if known else set()
    hashes = files.hashes(made, made.rglob("*"))
    hashes = {name: its_hash for name, its_hash in hashes.items() if name not in others}
    last.mkdir()
    for name in _KEPT:
        if (root / name).exists():
            shutil.move(root / name, last / name)
    for name in reversed(_KEPT):
        shutil.move(new / name, root / name)
    files.replace(root / _NOTE, json.dumps(hashes).encode())


def _copy(root: Path, new: Path) -> None:
    """Copy what a build begins with; where it begins from nothing, what others put into the site.

    The name of a server's file, or a repository: the site has been made of the files in `hashes`.
    """
    html, hashes = root / "html", files.read_note(root / _NOTE)
    changed = files.changed(html, hashes)
    if changed:
        sys.stderr.write(f"note: {html / changed} was changed: the site is built from nothing\n")
    is_whole = bool(hashes) and not changed and (root / "doctrees").is_dir()

    def made(folder: str, names: Sequence[str]) -> set[str]:
        where = Path(folder).relative_to(html)
        return {name for name in names if not is_whole and (where / name).as_posix() in hashes}

    if hashes and html.is_dir():
        shutil.copytree(html, new / "html", symlinks=True, ignore=made)
        files.prune(new / "html")
    if is_whole:
        shutil.copytree(root / "doctrees", new / "doctrees")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
