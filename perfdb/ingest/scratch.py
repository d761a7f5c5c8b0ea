"""The temporary folder of an ingest. What a killed one leaves behind, a later one removes.

A folder is held by a lock that the kernel releases however its process ends: a folder whose lock
can be had has no process any more.
"""

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

PREFIX: Final = "perfdb-ingest-"
LOCK: Final = "lock"

SETTLED_S: Final = 3600.0
"""A folder without a lock may be one that is being made, unless it is older than this."""


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder that is gone at the end, after those that nobody holds any more."""
    sweep(Path(tempfile.gettempdir()))
    with tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True) as name:
        folder = Path(name)
        with (folder / f"{LOCK}.new").open("w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            (folder / f"{LOCK}.new").rename(folder / LOCK)
            yield folder


def sweep(parent: Path) -> None:
    """Remove the folders of processes that were killed; of this user alone."""
    with suppress(OSError):  # a temporary folder that cannot be listed is somebody else's matter
        for folder in parent.glob(f"{PREFIX}*"):
            if folder.stat().st_uid == os.getuid() and _is_left(folder):
                shutil.rmtree(folder, ignore_errors=True)


def _is_left(folder: Path) -> bool:
    try:
        with (folder / LOCK).open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return time.time() - folder.stat().st_mtime > SETTLED_S
    except BlockingIOError:
        return False
    return True
