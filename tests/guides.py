"""What a page of the documentation tells its reader to write and to run."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

_FENCE = re.compile(r"^(?P<marks>`{3,})(?P<kind>.*?)\s*$")
_REMARK = re.compile(r"^(?:%|<!--)\s*(?P<said>not run|exits with):?\s*(?P<what>.*?)\s*(?:-->)?$")
_ONE = re.compile(r"^(?:%|<!--) not run: (?P<what>[^:`]+): `(?P<only>[^`]+)`", re.MULTILINE)
_FILE = re.compile(r"`(?P<name>[\w./-]+\.[a-z]+)`[^`]*:$")
_INLINE = re.compile(r"`(perfdb(?: [^`]+)?)`")


@dataclass(frozen=True)
class Command:
    """A command of a page, and what the page says will come of it.

    `not_run` is why it cannot be run here. `shown` are lines that it prints; `…` in one of them is
    whatever stands there.
    """

    line: int
    text: str
    not_run: str | None = None
    exit_code: int = 0
    shown: tuple[str, ...] = ()


@dataclass(frozen=True)
class File:
    """A file that a page shows, to be written by the reader."""

    line: int
    name: str
    text: str


@dataclass(frozen=True)
class _Block:
    line: int
    kind: str
    text: Sequence[str]
    before: str
    remarks: dict[str, str] = field(default_factory=dict)


def steps(text: str) -> list[Command | File]:
    """The commands and the files of a page, in their order; then those that end a row of a table.

    A remark above a block says why it is not run; one that ends with a command speaks of that one.
    """
    found = [step for block in _blocks(text) for step in _steps_of(block)]
    known = {step.text for step in found if isinstance(step, Command)}
    found += [row for row in _table_commands(text) if row.text not in known]
    reasons = {only: why for why, only in _ONE.findall(text)}
    return [
        replace(step, not_run=reasons[step.text])
        if isinstance(step, Command) and step.text in reasons
        else step
        for step in found
    ]


def inline_commands(text: str) -> list[str]:
    """The commands of perfdb that stand in sentences and in tables, each once."""
    prose = re.sub(r"^(`{3,}).*?^\1\s*$", "", text, flags=re.MULTILINE | re.DOTALL)
    return list(dict.fromkeys(_INLINE.findall(prose)))


def _table_commands(text: str) -> list[Command]:
    rows = re.compile(r"^\| [^|]+ \| `((?:perfdb|export|make) [^`]+)` \|$")
    found = ((number, rows.match(line)) for number, line in enumerate(text.splitlines(), start=1))
    return [Command(number, row[1]) for number, row in found if row]


def _blocks(text: str) -> Iterator[_Block]:
    lines = text.splitlines()
    number = 0
    while number < len(lines):
        fence = _FENCE.match(lines[number])
        if fence is None:
            number += 1
            continue
        end = lines.index(fence["marks"], number + 1)
        before, remarks = _above(lines[:number])
        yield _Block(number + 2, fence["kind"], lines[number + 1 : end], before, remarks)
        number = end + 1


def _above(lines: Sequence[str]) -> tuple[str, dict[str, str]]:
    """The sentence above a block, and the remarks between the two."""
    remarks: dict[str, str] = {}
    for line in reversed(lines):
        remark = _REMARK.match(line)
        if remark and "`" not in remark["what"]:
            remarks[remark["said"]] = remark["what"]
        elif line.strip() and not remark:
            return line, remarks
    return "", remarks


def _steps_of(block: _Block) -> list[Command | File]:
    named = _FILE.search(block.before)
    if named and block.kind not in ("", "console"):
        return [File(block.line, named["name"], "\n".join(block.text) + "\n")]
    if block.kind not in ("bash", "console"):
        return []
    found = list(_commands(block))
    if found and "exits with" in block.remarks:
        last = found[-1]
        code = int(block.remarks["exits with"])
        found[-1] = Command(last.line, last.text, last.not_run, code, last.shown)
    return list(found)


def _commands(block: _Block) -> Iterator[Command]:
    """The commands of a block: after `$ ` in a console, each line of a script."""
    prompt = "$ " if block.kind == "console" else ""
    number = 0
    while number < len(block.text):
        first, line = block.line + number, block.text[number]
        number += 1
        if not line.startswith(prompt) or not line.strip() or line.startswith("#"):
            continue
        text = line.removeprefix(prompt)
        while text.endswith("\\"):
            text += "\n" + block.text[number].removeprefix("> ")
            number += 1
        shown = []
        while prompt and number < len(block.text) and not block.text[number].startswith(prompt):
            shown.append(block.text[number])
            number += 1
        text = re.sub(r"\s+# .*$", "", text)
        yield Command(first, text, block.remarks.get("not run"), shown=tuple(filter(None, shown)))


def shows(printed: str, shown: Sequence[str]) -> str | None:
    """The first line that a page shows and the command does not print, in this order; None: all."""
    lines = iter(printed.splitlines())
    for wanted in shown:
        if wanted.strip() == "…":
            continue
        pattern = r"\s+".join(".*".join(map(re.escape, word.split("…"))) for word in wanted.split())
        if not any(re.fullmatch(rf"\s*{pattern}\s*", line) for line in lines):
            return wanted
    return None
