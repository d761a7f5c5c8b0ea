"""What befalls files: cuts, damage, two writers at once, other encodings, absurd numbers, depth."""

import re
from collections.abc import Callable, Mapping
from random import Random

Mutation = Callable[[Random, bytes, bytes], bytes]
"""Given chance, an input and another one, a damaged input."""

_NUMBER = re.compile(rb"\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
NUMBERS = [
    b"0", b"-0", b"-1", b"1e400", b"-1e400", b"1e-400", b"1e-320", b"1e308", b"nan", b"NaN", b"inf",
    b"-Infinity", b"9223372036854775807", b"9223372036854775808", b"18446744073709551616",
    b"9" * 400, b"9" * 5000, b"0x10", b"1_000", b"1,5", b"1.2.3", b"1e", b"1:30", b"010", b".5",
    "٣".encode(), "１２".encode(), "²".encode(), b"", b"null", b"true", b'"7"', b"[1]", b"+5",
    b"0x" + b"f" * 5000,
]  # fmt: skip
_JUNK = [
    b"\0", b"\xff\xfe", b"\x80", b"\r", b"\x1b[1m", b"\x1b]0;title\x07", b"\x1b[", b"\x85", b"\x0c",
    b"\xe2\x80\xa8", b"\xed\xa0\x80", b"\x1c", b"|", b"{", b"---\n", b"%% x.log\n",
]  # fmt: skip
_NESTS = [
    (b"[", b"]"), (b'{"a":', b"}"), (b"<div>", b"</div>"), (b"<table><tr><td>", b""), (b"> ", b""),
    (b"- ", b""), (b"(", b")"), (b"**", b""), (b"{a: ", b"}"), (b"*", b""), (b"`", b"`"),
    (b":::{tab-set}\n", b":::\n"), (b"? ", b""), (b"<a", b""), (b"![", b"]()"), (b"<!--", b"-->"),
]  # fmt: skip
DEPTHS = [3, 40, 200, 1200, 20_000]
LAUGHS = b"".join(
    b"l%d: &l%d [%s]\n" % (n, n, b", ".join([b"*l%d" % (n - 1)] * 9) if n else b"x")
    for n in range(12)
)
"""Twelve lines that stand for 9^11 words."""


def truncated(chance: Random, content: bytes, _other: bytes) -> bytes:
    """The beginning alone, or the end alone."""
    cut = chance.randint(0, len(content))
    return content[:cut] if chance.random() < 0.8 else content[cut:]


def flipped(chance: Random, content: bytes, _other: bytes) -> bytes:
    """A few bits the other way."""
    changed = bytearray(content)
    for _ in range(chance.randint(1, 8) if content else 0):
        changed[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def interleaved(chance: Random, content: bytes, other: bytes) -> bytes:
    """Two files, line by line."""
    ours, theirs = content.splitlines(keepends=True), other.splitlines(keepends=True)
    mixed = []
    while ours or theirs:
        one = ours if ours and (not theirs or chance.random() < 0.5) else theirs
        mixed.append(one.pop(0))
    return b"".join(mixed)


def interrupted(chance: Random, content: bytes, other: bytes) -> bytes:
    """Pieces of another file in the middle of lines."""
    for _ in range(chance.randint(1, 4)):
        start = chance.randint(0, len(other))
        piece = other[start : start + chance.randint(1, 400)]
        content = _with(chance, content, piece)
    return content


def littered(chance: Random, content: bytes, _other: bytes) -> bytes:
    """Junk, control characters and escape sequences anywhere."""
    for _ in range(chance.randint(1, 6)):
        junk = chance.choice([*_JUNK, chance.randbytes(chance.randint(1, 60))])
        content = _with(chance, content, junk)
    return content


def recoded(chance: Random, content: bytes, _other: bytes) -> bytes:
    """Another encoding, or a byte order mark."""
    text = content.decode(errors="replace")
    return chance.choice(
        [
            text.encode("utf-16"),
            text.encode("utf-16-be"),
            text.replace("e", "é").encode("latin-1", errors="replace"),
            text.encode("cp500", errors="replace"),
            b"\xef\xbb\xbf" + content,
            text.encode("utf-32"),
        ]
    )


def rebroken(chance: Random, content: bytes, _other: bytes) -> bytes:
    """Other ends of lines."""
    ends = chance.choice([[b"\r\n"], [b"\r"], [b"\n", b"\r\n", b"\r", b"\n\n"], [b"\r\r\n"], [b""]])
    return b"".join(line + chance.choice(ends) for line in content.split(b"\n"))


def relined(chance: Random, content: bytes, _other: bytes) -> bytes:
    """Lines that come twice, that are missing, or in another order."""
    lines = content.splitlines(keepends=True)
    for _ in range(chance.randint(1, 5) if lines else 0):
        line = chance.choice(lines)
        lines.insert(chance.randint(0, len(lines)), line)
        if chance.random() < 0.6:
            lines.pop(chance.randrange(len(lines)))
    if chance.random() < 0.1:
        chance.shuffle(lines)
    return b"".join(lines)


def renumbered(chance: Random, content: bytes, _other: bytes) -> bytes:
    """Absurd numbers in the place of some."""
    found = list(_NUMBER.finditer(content))
    for match in sorted(
        chance.sample(found, min(len(found), chance.randint(1, 3))), key=lambda m: -m.start()
    ):
        content = content[: match.start()] + chance.choice(NUMBERS) + content[match.end() :]
    return content


def nested(chance: Random, content: bytes, _other: bytes) -> bytes:
    """Something inside itself, a few or very many times."""
    before, behind = chance.choice(_NESTS)
    depth = chance.choice(DEPTHS)
    inner = before * depth + (behind * depth if chance.random() < 0.7 else b"")
    return _with(chance, content, inner)


def laughing(chance: Random, content: bytes, _other: bytes) -> bytes:
    """YAML anchors that stand for billions, or for themselves."""
    added = chance.choice([LAUGHS, b"a: &a [*a]\n", b"<<: &a {<<: *a}\n", b"b: &b\n  c: *b\n"])
    front = content.startswith(b"---\n")
    return b"---\n" + added + content[4:] if front else added + content


def stretched(chance: Random, content: bytes, _other: bytes) -> bytes:
    """A piece of the file many times: a long line, many cells, many steps."""
    start = chance.randint(0, len(content))
    piece = content[start : start + chance.choice([1, 3, 30, 300])]
    times = min(chance.choice([50, 1000, 20_000]), 200_000 // max(len(piece), 1))
    return content[:start] + piece * times + content[start:]


def spliced(chance: Random, content: bytes, other: bytes) -> bytes:
    """The beginning of one file and the end of another."""
    return content[: chance.randint(0, len(content))] + other[chance.randint(0, len(other)) :]


def _with(chance: Random, content: bytes, added: bytes) -> bytes:
    place = chance.randint(0, len(content))
    return content[:place] + added + content[place:]


MUTATIONS: Mapping[str, Mutation] = {
    one.__name__: one
    for one in (
        truncated, flipped, interleaved, interrupted, littered, recoded, rebroken, relined,
        renumbered, nested, laughing, stretched, spliced,
    )
}  # fmt: skip
