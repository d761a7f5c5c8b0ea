"""Says which names of files cannot be kept, and shows any name on one line."""

import re
from typing import Final

LONGEST_NAME: Final = 4096
LONGEST_PART: Final = 255
"""Bytes that Linux allows in a path, and between two slashes of it."""

LONGEST_SHOWN: Final = 200

_ODD = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""Characters that would break a line of output or a row of the store; lone surrogates stand for
bytes that are no UTF-8."""


def fault(name: str) -> str | None:
    """Why a name cannot be kept; None for one that can."""
    if not (odd := _ODD.search(name)):
        return None
    if odd[0] >= "\ud800":
        return "the name is not UTF-8"
    return "the name holds a line break or another control character"


def member_fault(name: str) -> str | None:
    """Why a name in an archive cannot be read; None for a relative path that stays below it."""
    if found := fault(name):
        return found
    if name.startswith("/") or re.match(r"[A-Za-z]:", name):
        return "the name is an absolute path"
    if "\\" in name:
        return "the name holds a backslash"
    parts = name.split("/")
    if ".." in parts:
        return "the name leads out of the archive"
    sizes = [len(part.encode()) for part in parts]
    if max(sizes) > LONGEST_PART or sum(sizes) + len(sizes) > LONGEST_NAME:
        return "the name is too long"
    return None


def shown(name: str) -> str:
    """A name on one line that any terminal and any store takes."""
    plain = _ODD.sub(lambda odd: ascii(odd[0])[1:-1], name)
    return plain if len(plain) <= LONGEST_SHOWN else f"{plain[:LONGEST_SHOWN]}…"
