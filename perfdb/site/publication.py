"""What `perfdb publish` reads from the store, and the files it leaves."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sqlalchemy import Connection, RowMapping

from perfdb.audit.report import sentence
from perfdb.audit.review import Entry, explained
from perfdb.errors import Diagnostic, InputError
from perfdb.groups import grouped
from perfdb.jsonfile import write_atomically
from perfdb.messages import note_text
from perfdb.queries import findings, results
from perfdb.record import Finding, Severity
from perfdb.site import addresses, places, plain
from perfdb.site.data import ReleasePage, Result
from perfdb.site.releases import release_pages

_LABEL: Final = re.compile(r"[\w.-]+", re.ASCII)
_HTML: Final = frozenset("<>")


@dataclass(frozen=True)
class Publication:
    """The pages of releases, and every finding about what they print.

    `paths` are those of the pages of all releases of the store, asked for or not; `refused` says
    of which of those asked for no page can be made.
    """

    pages: tuple[ReleasePage, ...]
    findings: tuple[Finding, ...]
    paths: frozenset[Path]
    refused: tuple[Diagnostic, ...] = ()


def read(
    connection: Connection, known: Sequence[Entry], releases: frozenset[int] | None
) -> Publication:
    """The pages of these releases, or of all; what the audit objects to is among a result's notes.

    `known` are the findings that are accepted.
    """
    rows = connection.execute(results.representative()).mappings().all()
    wanted = [row for row in rows if releases is None or row["release_id"] in releases]
    shown = {row["result_id"] for row in wanted}
    stored = connection.execute(findings.current()).mappings()
    of_shown = [Finding.model_validate(dict(row)) for row in stored if row["result_id"] in shown]
    found = explained(of_shown, known)
    objections = grouped(
        (it for it in found if it.severity.reaches(Severity.WARNING)), lambda it: it.result_id
    )
    pages = release_pages(_result(row, objections.get(row["result_id"], ())) for row in wanted)
    paths = frozenset(_path(row["framework"], row["release"]) for row in rows)
    printable = tuple(page for page in pages if not _named(page))
    return Publication(printable, tuple(found), paths, tuple(filter(None, map(_named, pages))))


def _result(row: RowMapping, objections: Iterable[Finding]) -> Result:
    notes = (*map(note_text, row["notes"]), *(f"Audit: {sentence(it)}" for it in objections))
    return Result.model_validate(places.of_row(dict(row)) | {"notes": notes})


def texts(pages: Sequence[ReleasePage], style: plain.Style, label: str = "") -> dict[Path, str]:
    """The text of each page by its path, such as nemo/25.04.md.

    Raises InputError where a page cannot be called so: by a label that two would share.
    """
    if problems := list(_labelled(pages, style, label)):
        raise InputError(problems)
    return {_path(one.framework, one.release): plain.page(one, style, label) for one in pages}


def _labelled(pages: Sequence[ReleasePage], style: plain.Style, label: str) -> Iterator[Diagnostic]:
    """What keeps a label from being one."""
    if not label:
        return
    if style != "myst":
        yield Diagnostic(
            "--label", "Markdown has no labels", remedy="leave it out, or --format myst"
        )
    if len(pages) > 1:
        message = f"{len(pages)} pages cannot share {label!r}"
        yield Diagnostic("--label", message, remedy="name one release; each has a label of its own")
    if not _LABEL.fullmatch(label):
        message = f"{label!r} is no label"
        yield Diagnostic("--label", message, remedy="write letters, digits and . _ - alone")


def _named(page: ReleasePage) -> Diagnostic | None:
    """What is wrong with the name of a release: themes print the titles of pages as they are."""
    name = f"{page.framework} {page.release or ''}".rstrip()
    if not _HTML & set(name):
        return None
    remedy = "read its pages and runs again under another name: --framework, --release"
    return Diagnostic(repr(name), "a site would run the < > of its name as HTML", remedy=remedy)


def _path(framework: str, release: str | None) -> Path:
    return Path(f"{addresses.of_release(framework, release)}.md").relative_to("performance")


def left_behind(folder: Path, paths: frozenset[Path]) -> list[Path]:
    """Pages that were made of releases which the store has no more; `paths` are those it has.

    What cannot be read is passed over: it may be anybody's.
    """
    others = (it for it in sorted(folder.glob("*/*.md")) if it.relative_to(folder) not in paths)
    return [page for page in others if _is_made(page)]


def _is_made(page: Path) -> bool:
    try:
        return plain.MARK in page.read_text(errors="replace")
    except OSError:
        return False


def write(folder: Path, wanted: Mapping[Path, str]) -> dict[Path, bool]:
    """Write the pages that are not there as they should be; says of each whether it was written.

    Raises InputError, and writes nothing, where a page that somebody wrote stands in the way.
    """
    try:
        before = {path: _content(folder / path) for path in wanted}
        foreign = [path for path, text in before.items() if text and plain.MARK not in text]
        if foreign:
            remedy = "choose another --output, or move the page away"
            raise InputError(
                Diagnostic(str(folder / path), "was not made by perfdb publish", remedy=remedy)
                for path in foreign
            )
        for path, text in wanted.items():
            if before[path] != text:
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                write_atomically(folder / path, text)
    except OSError as error:
        where = str(error.filename or folder)
        raise InputError(Diagnostic(where, error.strerror or str(error))) from error
    return {folder / path: before[path] != text for path, text in wanted.items()}


def _content(path: Path) -> str | None:
    return path.read_text(errors="replace") if path.exists() else None
