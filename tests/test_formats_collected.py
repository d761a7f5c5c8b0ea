"""What a collector has put into JSON is read as the text that the program printed."""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from perfdb.formats import collected

LOG = '\x1b[32mstep: 1\x1b[39m  loss: 7 ▏ 😀\tC:\\a "b" <c: 1>\n\r 1%|\r 2%|\n\n - tail\n'


def opened(content: bytes) -> tuple[bytes, bool]:
    text, is_plain = collected.opened([content])
    return b"".join(text), is_plain


def docker(text: str, size: int = 16 << 10) -> bytes:
    """As Docker's json-file driver writes it: what is longer than its buffer in parts."""
    parts = [
        line[start : start + size]
        for line in re.findall(r"[^\n]*\n", text)
        for start in range(0, len(line), size)
    ]
    said = ({"log": one, "stream": "stdout", "time": "2026-01-16T07:32:24Z"} for one in parts)
    return "".join(f"{json.dumps(one)}\n" for one in said).encode()


def within(key: str, text: object) -> dict[str, object]:
    """An object that has a text under a key, behind a dot within another beside a moment."""
    group, _, name = key.rpartition(".")
    return {group: {"_time": "07:32:24", name: text}} if group else {name: text}


def exported(key: str, *, last: bool) -> Callable[[str], bytes]:
    """As an export has it: lines without their newlines, under a key among others."""
    other = {"labels": {"log": "x", "message": "y"}, "insertId": "1"}

    def write(text: str) -> bytes:
        lines = (within(key, line) for line in text.split("\n")[:-1])
        said = ({**other, **line} if last else {**line, **other} for line in lines)
        return "".join(f"{json.dumps(one, ensure_ascii=False)}\n" for one in said).encode()

    return write


@pytest.mark.parametrize(
    "written",
    [docker, *(exported(key, last=last) for key in collected.KEYS for last in (True, False))],
)
def test_the_text_is_what_the_program_printed(written: Callable[[str], bytes]) -> None:
    content = written(LOG)
    assert (LOG.encode(), False) == opened(content)
    first = content.index(b"\n") + 1
    chunks = (content[at : at + 7] for at in range(first, len(content), 7))
    assert LOG.encode() == b"".join(collected.opened([content[:first], *chunks])[0])


def test_the_journal_has_the_bytes_of_a_text_with_colours() -> None:
    texts = ("first", "\x1b[32mstep: 1\x1b[39m é", "last")
    said = ([*text.encode()] if "\x1b" in text else text for text in texts)
    content = "".join(f"{json.dumps({'_PID': '1', 'MESSAGE': one})}\n" for one in said)
    assert ("".join(f"{text}\n" for text in texts).encode(), False) == opened(content.encode())
    assert (b'a\n{"MESSAGE": [300]}\n', False) == opened(b'{"MESSAGE": "a"}\n{"MESSAGE": [300]}\n')


def test_parts_of_a_long_line_are_one_and_the_lines_behind_keep_their_numbers() -> None:
    long = "x" * 40_000
    text, _ = opened(docker(f"first\n{long}\nlast\n"))
    assert f"first\n{long}\n\n\nlast\n".encode() == text
    assert len(text.split(b"\n")) == len(docker(f"first\n{long}\nlast\n").split(b"\n"))


@pytest.mark.parametrize(
    "written", [docker, exported("line", last=True), exported("result._raw", last=True)]
)
def test_a_cut_leaves_the_beginning_of_the_text(written: Callable[[str], bytes]) -> None:
    content = written(LOG * 2)
    begun = len(b'{"log": "') if written is docker else content.index(b"\n")
    for cut in range(begun, len(content)):
        found, is_plain = opened(content[:cut])
        *whole, last = found.split(b"\n")
        text = b"\n".join([*whole, b"" if last.startswith(b"{") else last])
        text = text.removesuffix("\ufffd".encode())
        assert not is_plain
        assert LOG.encode() * 2 == text + (LOG.encode() * 2)[len(text) :]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n{",
        b'{"step": 0, "loss": 2.5, "tps": 10.0}\n{"log": "no"}\n',
        b'{"log": 1}\n',
        b'{"_source": "x", "result": ["_raw"], "line": [10]}\n',
        b'{"results": {"message": "x"}}',
        b'[{"message": "x"}]',
        b':::MLLOG {"key": "a", "message": "b"}\n',
        b'train.py: {"log": "x"}\n',
        b'{"labels": ' + b"[" * 100_000,
    ],
)
def test_any_other_file_is_as_it_was(content: bytes) -> None:
    """Its chunks are not even copied."""
    chunks: Sequence[bytes] = [content, b"more"]
    found, is_plain = collected.opened(chunks)
    assert (True, list(map(id, chunks))) == (is_plain, list(map(id, found)))


def test_a_line_that_is_no_object_is_kept() -> None:
    content = b'{"log":"a\\n"}\nkilled\n{"log":"b\\n"}\n{"log":null}\n{"log":"\\ud83d\\n"}\n'
    assert (b'a\nkilled\nb\n{"log":null}\n?\n', False) == opened(content)


def test_megabytes_without_a_line_break_are_passed_on(tmp_path: Path) -> None:
    chunks = (b"x" * (1 << 20) for _ in range(12))
    text, _ = collected.opened([b'{"log":"a\\n"}\n', *chunks])
    assert max(map(len, text)) <= 6 << 20
