"""What a terminal would show of the bytes of a log."""

import re
from typing import Final

ESCAPE: Final = re.compile(
    rb"\x1b(?:\[(?:[0-9;:?]+[A-Za-z]|[mKJH])|\][^\x07\n]{0,200}\x07|[()][A-Z0-9])"
)
"""Colours and movements of the cursor. A sequence that was cut off takes no text with it."""


def plain(text: bytes) -> bytes:
    """Bytes without escape sequences, and with newlines for the ends of lines."""
    if b"\x1b" in text:
        text = ESCAPE.sub(b"", text)
    return text.replace(b"\r\n", b"\n") if b"\r" in text else text


def decoded(text: bytes) -> str:
    """Bytes as text; what is no UTF-8 is shown as such."""
    return text.decode("utf-8", errors="replace")
