"""Standard output and error that say what is the matter where they cannot be written."""

import io
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from perfdb.errors import Diagnostic, InputError, PerfdbError
from perfdb.text import visible

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer
    from rich.console import Console

CLOSED = 141
"""The exit code where the reader of a pipe has gone: 128 + SIGPIPE, as of any other program."""


class OutputError(PerfdbError):
    """The output cannot be written."""

    exit_code = 2


class ReaderGoneError(Exception):
    """Nobody reads the output any more. No OSError: libraries end the program at a broken pipe."""


class _Checked(io.FileIO):
    """A file that is already open."""

    def write(self, data: "ReadableBuffer", /) -> int:
        """Raises OutputError and ReaderGoneError, each time: libraries try again."""
        try:
            return super().write(data)
        except BlockingIOError:
            raise
        except BrokenPipeError:
            raise ReaderGoneError from None
        except OSError as error:
            raise OutputError(f"cannot write the output: {error.strerror}") from error


class _Shown(io.TextIOWrapper):
    """Standard error, on which what files and logs hold must not move a terminal's cursor."""

    def write(self, text: str, /) -> int:
        """Write a text whose control characters are shown."""
        return super().write(visible(text))


def console() -> "Console":
    """A console on stderr that moves the cursor; what it is given must be visible already."""
    from rich.console import Console

    shown = sys.stderr
    file = _checked(shown, io.TextIOWrapper) if isinstance(shown, _Shown) else shown
    return Console(file=file, highlight=False, soft_wrap=True)


def write_bytes(written: bytes, path: Path | None) -> None:
    """Write a file, or to stdout without one. Raises InputError where it cannot be written."""
    if path is None:
        sys.stdout.buffer.write(written)
        sys.stdout.flush()
        return
    try:
        path.write_bytes(written)
    except OSError as error:
        raise InputError(Diagnostic(str(path), error.strerror or str(error))) from error


def drop(file: TextIO | None) -> None:
    """Write the rest nowhere: else the interpreter would fail at it again when it exits."""
    if file is not None:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, file.fileno())
        os.close(nowhere)


def flush() -> None:
    """Write what is left of the output. Raises OutputError and ReaderGoneError."""
    for file in (sys.stdout, sys.stderr):
        if file is not None:
            file.flush()


def check() -> None:
    """Have what is written to stdout and stderr checked, unless something else reads them."""
    if sys.stdout is sys.__stdout__ and sys.stdout is not None:
        sys.stdout = _checked(sys.stdout, io.TextIOWrapper)
    if sys.stderr is sys.__stderr__ and sys.stderr is not None:
        sys.stderr = _checked(sys.stderr, _Shown)


def _checked(file: TextIO, kind: type[io.TextIOWrapper]) -> TextIO:
    assert isinstance(file, io.TextIOWrapper)
    raw = _Checked(file.fileno(), "w", closefd=False)
    return kind(
        raw if file.write_through else io.BufferedWriter(raw),
        encoding=file.encoding,
        errors=file.errors,
        line_buffering=file.line_buffering,
        write_through=file.write_through,
    )
