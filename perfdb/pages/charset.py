"""From the bytes of a page to its text."""

import codecs
import re
from contextlib import suppress

_NAMED = re.compile(
    rb"""<(?:meta|\?xml)\b[^<>]{0,200}?\b(?:charset|encoding)\s*=\s*["']?\s*
    (utf-?16|iso-8859-\d{1,2}|latin-?\d{1,2}|(?:windows|cp)-?\d{3,4}|us-ascii|shift[_-]jis
    |euc-\w{2}|gbk|gb2312|gb18030|big5|koi8-\w)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_HEAD = 4096
"""Bytes at the start of a page that may say how it is encoded."""


def decoded(content: bytes) -> str:
    """The text of a page: UTF-8, or else what its byte order mark or its `<meta>` says.

    Raises UnicodeDecodeError where it is none of these.
    """
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return content.decode("utf-16")
    try:
        return content.decode()
    except UnicodeDecodeError:
        named = _NAMED.search(content[:_HEAD])
        if named:
            with suppress(LookupError):  # Python may not know it
                return content.decode(named[1].decode())
        raise
