"""What people write of a release: a Markdown file in version control, merged into its report.

What stands above the first heading is the front of the report. A heading of two `#` is a section of
the report and a note on it; one of three begins with the key of a row, as the report prints it.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Final

from perfdb.errors import Diagnostic, InputError, suggestion
from perfdb.queries.results import KEY_LENGTH

FOLDER: Final = Path("data/release-notes")
"""Where the notes on a release are, unless another file is named: FOLDER/FRAMEWORK/VERSION.md."""
_ROW: Final = 3
"""The level of the heading of a note on a row."""


@dataclass(frozen=True)
class Part:
    """A heading, its level and line, and the text below it; the first part has no heading."""

    level: int
    heading: str
    line: int
    text: str


@dataclass(frozen=True)
class ReleaseNotesFile:
    """The parts of a file, of which it is not known yet whether they name anything."""

    where: str
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class ReleaseNotes:
    """The notes on a report: its front, and texts by the titles of sections and by row."""

    front: str = ""
    of_sections: Mapping[str, str] = field(default_factory=dict)
    of_rows: Mapping[str, str] = field(default_factory=dict)


def parse(where: str, text: str) -> ReleaseNotesFile:
    """The parts of a text. Raises InputError with every heading of another level."""
    from markdown_it import MarkdownIt  # noqa: PLC0415  only where there are notes

    lines = text.splitlines()
    tokens = MarkdownIt("commonmark").parse(text)
    headings = [
        (int(token.tag[1]), inline.content, token.map)
        for token, inline in pairwise(tokens)
        if token.type == "heading_open" and token.level == 0 and token.map
    ]
    cuts = [(0, "", (0, 0)), *(it for it in headings if it[0] <= _ROW)]
    ends = [*(start for _, _, (start, _) in cuts[1:]), len(lines)]
    parts = tuple(
        Part(level, heading, start + 1, "\n".join(lines[after:end]).strip())
        for (level, heading, (start, after)), end in zip(cuts, ends, strict=True)
    )
    remedy = "write ## and the name of a section, or ### and the key of a row"
    if wrong := [it for it in parts if it.level == 1]:
        message = "a heading of one #: the report makes its title"
        raise InputError(Diagnostic(where, message, line=it.line, remedy=remedy) for it in wrong)
    return ReleaseNotesFile(where, parts)


def of_file(path: Path) -> ReleaseNotesFile:
    """The parts of a file. Raises InputError."""
    try:
        return parse(str(path), path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(Diagnostic(str(path), f"cannot be read: {error}")) from error


def path_of(folder: Path, framework: str, version: str | None) -> Path:
    """Where a folder has the notes on a release."""
    return folder / framework / f"{version}.md"


def settled(file: ReleaseNotesFile, sections: Sequence[str], rows: Collection[str]) -> ReleaseNotes:
    """The notes on a report with these sections and rows, by their whole keys.

    Raises InputError with every part that names none of them, or one that is named above.
    """
    found: dict[tuple[int, str], Part] = {}
    problems = []
    for part in file.parts[1:]:
        names = list(_named(part, sections, rows))
        if len(names) == 1 and (part.level, names[0]) not in found:
            found[part.level, names[0]] = part
            continue
        message, remedy = _wrong(part, names, sections)
        problems.append(Diagnostic(file.where, message, line=part.line, remedy=remedy))
    if problems:
        raise InputError(problems)
    of_rows = {name: it.text for (level, name), it in found.items() if level == _ROW}
    of_sections = {name: it.text for (level, name), it in found.items() if level != _ROW}
    return ReleaseNotes(file.parts[0].text, of_sections, of_rows)


def _named(part: Part, sections: Sequence[str], rows: Collection[str]) -> Iterator[str]:
    """The sections, or the keys of rows, that a heading may mean."""
    if part.level != _ROW:
        yield from (name for name in sections if name.lower() == part.heading.strip().lower())
        return
    key = _key(part)
    if len(key) >= KEY_LENGTH:
        yield from (row for row in rows if row.startswith(key))


def _key(part: Part) -> str:
    return next(iter(part.heading.split()), "").strip("`").lower()


def _wrong(part: Part, names: Sequence[str], sections: Sequence[str]) -> tuple[str, str]:
    """What is wrong with a part that does not name one thing, and what to do."""
    what = repr(_key(part) if part.level == _ROW else part.heading)
    if len(names) == 1:
        return f"a second note on {what}", "make them one"
    if part.level != _ROW:
        return f"the report has no section {what}", suggestion(part.heading, sections)
    if names:
        return f"{what} begins the keys of {len(names)} rows", "give more of the key"
    remedy = f"begin the heading with {KEY_LENGTH} characters or more of a key that `perfdb report`"
    return f"the report has no row {what}", f"{remedy} prints, or remove the note"
