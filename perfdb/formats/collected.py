"""The text of a log that a collector has put into JSON, an object for each line.

Docker's json-file has it under `log`, an export of Loki under `line`, one of CloudWatch under
`message`, one of Google Cloud under `textPayload`. Only `log` ends in the line's own newline;
Docker cuts a longer line into parts of 16 KiB, of which the last has it. Pure.
"""

import json
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final

from perfdb.formats.scan import LONGEST_LINE
from perfdb.log_text import decoded

KEYS: Final = ("log", "line", "message", "textPayload")
"""Where collectors have the text of a line."""

_FIRST = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{[ \t]*"(%s)"[ \t]*:[ \t]*"' % "|".join(KEYS).encode())
_PART_BYTES: Final = 16 << 10
_WHOLE: Final = (
    r'(?:[^"\\]|\\[^u]|\\u(?:[dD][89abAB]\w\w\\u[dD][c-fC-F]|(?![dD][89abAB])\w\w)\w\w)*+'
)
"""A string as far as its characters are whole: one may take two escapes."""
_DOCUMENT = re.compile(
    rb'\s*(?:\[\s*)?\{\s*(?=")[^\0]{0,4096}?"(?:%s)"\s*:\s*"' % "|".join(KEYS).encode()
)


def opened(content: Iterable[bytes]) -> tuple[Iterator[bytes], bool]:
    """The text of a log, and whether that is as it lies there: no collector put it into JSON.

    Its lines have the numbers of the objects, where none of these holds several.
    """
    left = iter(content)
    first = next(left, b"")
    key = _key(first)
    whole = chain([first], left)
    return (_texts(whole, key), False) if key else (whole, True)


def is_document(head: bytes) -> bool:
    """Whether a file begins as one JSON document that holds lines of a log."""
    return bool(_DOCUMENT.match(head))


def _key(head: bytes) -> str | None:
    """Where the first line of a file has the text of a log; None where it is no such object."""
    if found := _FIRST.match(head):
        return decoded(found[1])
    said = _object(head.lstrip().partition(b"\n")[0])
    return next((key for key in KEYS if isinstance(said.get(key), str)), None)


def _object(line: bytes) -> dict[str, object]:
    if not line.startswith(b"{"):
        return {}
    try:
        said = json.loads(decoded(line), strict=False)
    except (ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


def _texts(content: Iterable[bytes], key: str) -> Iterator[bytes]:
    """The text of each line; a line that is no such object is kept as it is."""
    left, owed = b"", 0
    for chunk in content:
        *lines, left = (left + chunk).split(b"\n")
        texts: list[bytes] = []
        for line in lines:
            text = _text(line, key)
            if key == "log" and len(text) >= _PART_BYTES and not text.endswith(b"\n"):
                owed += 1
            else:
                end = b"" if text.endswith(b"\n") else b"\n"
                text, owed = text + end + b"\n" * owed, 0
            texts.append(text)
        yield b"".join(texts)
        if len(left) > LONGEST_LINE:
            yield left
            left = b""
    yield _cut(left, key)


def _text(line: bytes, key: str) -> bytes:
    said = _object(line.lstrip()).get(key)
    return said.encode(errors="replace") if isinstance(said, str) else line


def _cut(line: bytes, key: str) -> bytes:
    """The text of the last line, of which the end may be missing."""
    text = _text(line, key)
    begun = re.search(rf'"{key}"[ \t]*:[ \t]*"({_WHOLE})', decoded(line))
    return _text(f'{{"{key}":"{begun[1]}"}}'.encode(), key) if text == line and begun else text
