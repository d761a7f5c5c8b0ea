"""Several files in one input: each behind a line `%% PATH`, so that any bytes are some tree."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

_HEAD = re.compile(rb"(?:\A|\n)%% (\w[\w.\-]{0,80}(?:/\w[\w.\-]{0,80}){0,4})\n")
MOST_FILES = 40


def joined(files: Iterable[tuple[str, bytes]]) -> bytes:
    """The input that holds these files."""
    return b"\n".join(b"%%%% %s\n%s" % (path.encode(), content) for path, content in files)


def files(content: bytes) -> Iterator[tuple[str, bytes]]:
    """The files of an input; what stands before the first is none."""
    parts = _HEAD.split(content)[1 : 2 * MOST_FILES + 1]
    yield from ((path.decode(), text) for path, text in zip(parts[::2], parts[1::2], strict=True))


def write(content: bytes, folder: Path) -> None:
    """Write the files below a folder; one whose path another one makes a folder of is left out."""
    for path, text in files(content):
        place = folder / path
        if not any(one.is_file() for one in place.parents) and not place.is_dir():
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(text)
