"""Has another process read the second half of a large log, while this one reads the first."""

import multiprocessing
import os
import signal
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO, Final, Generic, TypeVar

from perfdb.formats import unnamed
from perfdb.formats.block import LOOKBACK
from perfdb.formats.scan import BLOCK_BYTES, Scan
from perfdb.log_text import ESCAPE

LARGE_BYTES: Final = 128 << 20
"""Of less, one process reads a half as fast as another is started and hands over what it found."""
SEAM_BYTES: Final = 1 << 16
"""How far behind the middle of a file the halves may part: at the end of a line."""

Found = TypeVar("Found")


@dataclass(frozen=True, eq=False)
class OnDisk:
    """The bytes of a file that lies on disk as they are, so that another process can read them."""

    content: Iterator[bytes]
    path: Path
    size_bytes: int

    def __iter__(self) -> Iterator[bytes]:
        return self.content


@dataclass(eq=False)
class Halves(Generic[Found]):
    """The bytes of a file, of which another process reads those behind the seam.

    They are passed on all the same where that process has failed; else `found` is what it found.
    `shared`: a file that both have, for what is too much to be handed over.
    """

    content: Iterable[bytes]
    seam: int
    result: Callable[[], Found | None]
    shared: IO[bytes]
    found: Found | None = None

    def __iter__(self) -> Iterator[bytes]:
        left = self.seam
        for chunk in self.content:
            if 0 < left <= len(chunk):
                yield chunk[:left]
                self.found = self.result()
                if self.found is not None:
                    return
                yield chunk[left:]
            else:
                yield chunk
            left -= len(chunk)


def halved(scan: Scan, read: Callable[[Scan, IO[bytes]], Found | None]) -> Halves[Found] | None:
    """Let a fork of this process read the second half of a large file, and a scan the first.

    `read` is given a file as well, which both have. None where the scan is to read all of it: it is
    not large, or no other process can help.
    """
    file = scan.content
    if not isinstance(file, OnDisk) or file.size_bytes < LARGE_BYTES or not _can_fork():
        return None
    middle = file.size_bytes // 2
    piece = b"".join(_from(file.path, middle, min(SEAM_BYTES, file.size_bytes - middle)))
    end = scan.end_of(piece)
    if not end:
        return None
    seam, before = middle + end, ESCAPE.sub(b"", piece[:end])[-LOOKBACK:]
    content = _from(file.path, seam, file.size_bytes - seam)
    rest = Scan(content, *scan.markers, before=before, starts=scan.starts.marks)
    shared = unnamed.file_of(scan)
    scan.content = halves = Halves(file, seam, _in_a_fork(lambda: read(rest, shared)), shared)
    return halves


def _can_fork() -> bool:
    """Whether there is a second processor, on a system where a fork is safe."""
    return hasattr(os, "sched_getaffinity") and len(os.sched_getaffinity(0)) > 1


def _from(path: Path, start: int, size_bytes: int) -> Iterator[bytes]:
    """So many bytes of a file from a place on, in chunks."""
    with path.open("rb") as file:
        file.seek(start)
        while chunk := file.read(min(BLOCK_BYTES, size_bytes)):
            size_bytes -= len(chunk)
            yield chunk


def _in_a_fork(work: Callable[[], Found | None]) -> Callable[[], Found | None]:
    """Start some work in a fork of this process; its result is None where the fork has failed."""
    fork = multiprocessing.get_context("fork")
    receiver, sender = fork.Pipe(duplex=False)
    process = fork.Process(target=_send, args=(receiver, sender, work), daemon=True)
    with sender, warnings.catch_warnings():
        # Of threads beside this one, such as a progress bar's: the fork takes no lock of theirs.
        warnings.simplefilter("ignore", DeprecationWarning)
        process.start()

    def result() -> Found | None:
        found: Found | None = None
        with receiver, suppress(EOFError, OSError):
            found = receiver.recv()
        process.join()
        return found

    return result


def _send(receiver: Connection, sender: Connection, work: Callable[[], object]) -> None:
    # Who interrupts the command interrupts all its processes: the one that waits tells of it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    receiver.close()  # else nothing would end the sending where the one that waits has died
    with sender, suppress(OSError, MemoryError):
        sender.send(work())
