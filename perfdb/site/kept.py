"""What a build has read of each release, kept next to the documents for the next build."""

import hashlib
import pickle
from pathlib import Path

from perfdb.site import files
from perfdb.site.read import Kept

_DIGITS = 64


class KeptRows:
    """The rows of releases in a folder, a file for each. `rows` is what is known now.

    What was made with other code, or is damaged, is left out: it is read from the store again.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rows: Kept = {}
        for path in folder.glob("*.pickle"):
            content = path.read_bytes()
            if content[:_DIGITS] == _seal(content[_DIGITS:]):
                name, rows = pickle.loads(content[_DIGITS:])
                self.rows[name] = rows
        self._written = dict(self.rows)

    def save(self) -> set[Path]:
        """Write what was read anew; the files of all that is known."""
        paths = set()
        for name, rows in self.rows.items():
            named = hashlib.sha256(repr(name).encode(errors="surrogatepass")).hexdigest()
            path = self.folder / f"{named[:16]}.pickle"
            if self._written.get(name) is not rows:
                content = pickle.dumps((name, rows), pickle.HIGHEST_PROTOCOL)
                files.replace(path, _seal(content) + content)
            paths.add(path)
        return paths


def _seal(content: bytes) -> bytes:
    """The same for the same content of the same code and settings."""
    known = hashlib.sha256(f"{files.code()} {files.own_catalog()!r}".encode())
    known.update(content)
    return known.hexdigest().encode()
