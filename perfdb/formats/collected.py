"""The text of a log that a collector has put into JSON, an object for each line.

Docker's json-file has it under `log`, an export of Loki under `line`, one of CloudWatch under
`message`, one of Google Cloud under `textPayload`, one of the journal of systemd under `MESSAGE`,
one of Azure under `LogMessage` or `LogEntry`, one of Splunk under `result._raw`, one of
Elasticsearch under `_source.message` or `_source.log`. Only `log` ends in the line's own newline;
Docker cuts a longer line into parts of 16 KiB, of which the last has it. The journal has a text
with colours as a list of its bytes. Pure.
"""

import json
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final

from perfdb.formats.scan import LONGEST_LINE
from perfdb.log_text import decoded

KEYS: Final = (
    "log", "line", "message", "textPayload", "MESSAGE", "LogMessage", "LogEntry", "result._raw",
    "_source.message", "_source.log",
)  # fmt: skip
"""Where collectors have the text of a line; behind a dot within an object."""

_NAMES: Final = "|".join(dict.fromkeys(key.rpartition(".")[2] for key in KEYS)).encode()
_FIRST = re.compile(
    rb'(?:\xef\xbb\xbf)?\s*\{[ \t]*"(%s)"[ \t]*:[ \t]*"'
    % "|".join(key for key in KEYS if "." not in key).encode()
)
_PART_BYTES: Final = 16 << 10
_WHOLE: Final = (
    r'(?:[^"\\]|\\[^u]|\\u(?:[dD][89abAB]\w\w\\u[dD][c-fC-F]|(?![dD][89abAB])\w\w)\w\w)*+'
)
"""A string as far as its characters are whole: one may take two escapes."""
_DOCUMENT = re.compile(rb'\s*(?:\[\s*)?\{\s*(?=")[^\0]{0,4096}?"(?:%s)"\s*:\s*"' % _NAMES)


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


def has_objects(head: bytes) -> bool:
    """Whether a file begins with a line that is a JSON object."""
    return bool(_object(head.lstrip().partition(b"\n")[0]))


def _key(head: bytes) -> str | None:
    """Where the first line of a file has the text of a log; None where it is no such object."""
    if found := _FIRST.match(head):
        return decoded(found[1])
    said = _object(head.lstrip().partition(b"\n")[0])
    return next((key for key in KEYS if _said(said, key) is not None), None)


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
    said = _said(_object(line.lstrip()), key)
    return line if said is None else said


def _said(found: object, key: str) -> bytes | None:
    """What an object has under a key; None where that is no text."""
    for name in key.split("."):
        found = found.get(name) if isinstance(found, dict) else None
    if isinstance(found, str):
        return found.encode(errors="replace")
    if not isinstance(found, list) or key != "MESSAGE":
        return None
    return bytes(found) if all(type(one) is int and 0 <= one < 256 for one in found) else None


def _cut(line: bytes, key: str) -> bytes:
    """The text of the last line, of which the end may be missing."""
    text, name = _text(line, key), key.rpartition(".")[2]
    begun = re.search(rf'"{name}"[ \t]*:[ \t]*"({_WHOLE})', decoded(line))
    return _text(f'{{"{name}":"{begun[1]}"}}'.encode(), name) if text == line and begun else text
