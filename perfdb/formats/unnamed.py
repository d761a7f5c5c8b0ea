"""Temporary files without a name: nothing is left of them, however their process ends."""

import mmap
import tempfile
import weakref
from typing import IO, Final

_AT_ONCE: Final = 1 << 20


def file_of(owner: object) -> IO[bytes]:
    """A file that lies where TMPDIR says, and is gone with its owner and all maps of it."""
    file = tempfile.TemporaryFile(prefix="perfdb-")  # noqa: SIM115  its owner closes it
    weakref.finalize(owner, file.close)
    return file


def room(size_bytes: int) -> mmap.mmap:
    """A map of so many zeros, at least one. Raises OSError where there is no room for them."""
    with tempfile.TemporaryFile(prefix="perfdb-") as file:
        # Written, and not left to the map: a process that writes to a full disk there is killed.
        for start in range(0, size_bytes, _AT_ONCE):
            file.write(bytes(min(_AT_ONCE, size_bytes - start)))
        file.flush()
        return mmap.mmap(file.fileno(), size_bytes)
