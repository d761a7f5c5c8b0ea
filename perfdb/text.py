"""Text of pages and logs: printed numbers, what is no value, and what a terminal shows of bytes."""

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Final

ABSENT: Final = frozenset(
    {"", "-", "--", "–", "—", "−", "n/a", "na", "n.a.", "none", "null", "nan", "tbd"}
)
"""What pages print where there is no value, in lower case."""

THOUSANDS: Final = ",_'’ \u00a0\u2009\u202f"
"""What may separate the thousands of a number, one of them throughout."""

_NO_SEPARATORS = str.maketrans("", "", THOUSANDS)


_GROUPED: Final = "|".join(f"(?:{mark}[0-9]{{3}}){{1,12}}" for mark in THOUSANDS)
_NUMBER = re.compile(rf"(?:[1-9][0-9]{{0,2}}(?:{_GROUPED})(?![0-9])|[0-9]+)(?:\.[0-9]+)?")
"""A printed number."""
_LONGEST: Final = 30


def ungrouped(number: str) -> str:
    """A printed number without its thousands separators."""
    return number.translate(_NO_SEPARATORS)


def absent(text: str) -> bool:
    """Whether a cell holds no value."""
    return text.casefold() in ABSENT


def parsed(text: str) -> float | None:
    """The number that a text is as a whole; None where it is anything else."""
    return float(ungrouped(text)) if len(text) <= _LONGEST and _NUMBER.fullmatch(text) else None


def share(text: str) -> float | None:
    """The fraction that a percentage prints, exactly: `43.1%` is 0.431; None for other texts."""
    number = text.removesuffix("%").rstrip()
    if not text.endswith("%") or parsed(number) is None:
        return None
    return float(Decimal(ungrouped(number)).scaleb(-2))


def seconds(text: str) -> str:
    """Milliseconds in seconds with the same digits: `16,980` is `16.980`; other text unchanged."""
    return text if parsed(text) is None else f"{Decimal(ungrouped(text)).scaleb(-3):f}"


def line_ranges(numbers: Sequence[int]) -> str:
    """`line 7`, or `lines 7-9, 12`; the numbers are sorted."""
    groups: list[list[int]] = []
    for number in numbers:
        if groups and number <= groups[-1][-1] + 1:
            groups[-1].append(number)
        else:
            groups.append([number])
    spans = (f"{one[0]}-{one[-1]}" if one[-1] > one[0] else f"{one[0]}" for one in groups)
    return f"line{'s' if len(set(numbers)) > 1 else ''} {', '.join(spans)}"


ESCAPE: Final = re.compile(
    rb"\x1b(?:\[(?:[0-9;:?]+[A-Za-z]|[mKJH])|\][^\x07\n]{0,200}\x07|[()][A-Z0-9])"
)
"""Colors and movements of the cursor. A sequence that was cut off takes no text with it."""


def plain(text: bytes) -> bytes:
    """Bytes without escape sequences, and with newlines for the ends of lines."""
    if b"\x1b" in text:
        text = ESCAPE.sub(b"", text)
    return text.replace(b"\r\n", b"\n") if b"\r" in text else text


MOST_CHARACTERS: Final = 1000
"""Characters of a text that names something."""
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def plain_text(text: str) -> str:
    """The same text. Raises ValueError where it holds control characters, or is no name by far."""
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"holds {len(text):,} characters, more than {MOST_CHARACTERS:,}")
    if text != (shown := visible(text)):
        raise ValueError(f"holds a control character: {shown}")
    return text


def visible(text: str) -> str:
    """Text with visible control characters: those of a terminal may move its cursor."""
    return text if text.isprintable() else _CONTROL.sub(lambda it: f"\\x{ord(it[0]):02x}", text)


def decoded(text: bytes) -> str:
    """Bytes as text; what is no UTF-8 is shown as such."""
    return text.decode("utf-8", errors="replace")


OUT_OF_MEMORY: Final = re.compile(
    r"(?m)MemoryError(?::|[ \t]*$)|Error: (?:CUDA|HIP) out of memory"
    r"|CUDA out of memory\. Tried to allocate|CUDA (?:driver )?error: out of memory"
    r"|Cuda failure (?:\d+ )?'out of memory'|cudaErrorMemoryAllocation: out of memory"
    r"|RESOURCE_EXHAUSTED: Out of memory|can't allocate memory|\[Errno 12\]"
    r"|Detected \d+ oom[_-]kill event|srun: error: [^\n]*: Out Of Memory"
)
"""What programs, the kernel and Slurm print where the memory of a GPU or of its host ran out."""
