"""Temporary files without a name: nothing is left of them, however their process ends."""

import tempfile
import weakref
from typing import IO


def file_of(owner: object) -> IO[bytes]:
    """A file that lies where TMPDIR says, and is gone with its owner and all maps of it."""
    file = tempfile.TemporaryFile(prefix="perfdb-")  # noqa: SIM115  its owner closes it
    weakref.finalize(owner, file.close)
    return file
