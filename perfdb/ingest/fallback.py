"""Results that a page no longer states fall back to another page whose last state does."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from sqlalchemy import Connection

from perfdb.db import pages, results, sources
from perfdb.db.results import Withdrawn
from perfdb.db.rows import ResultRow, SourceFile
from perfdb.errors import Diagnostic
from perfdb.fields import FIGURES
from perfdb.ingest.find import Source
from perfdb.ingest.page import read_page
from perfdb.ingest.read import PAGE, PageRows
from perfdb.pages.base import PageContext


@dataclass(frozen=True)
class FellBack:
    """How many results each page holds from now on, by its path, and which may state more."""

    counts: Mapping[str, int]
    notes: tuple[Diagnostic, ...] = ()


def fall_back(
    connection: Connection, page: SourceFile, gone: Sequence[Withdrawn], when: datetime
) -> FellBack:
    """Give the results that a page no longer states to the other pages that do.

    Of several pages the one that was read last holds. One that does not say its release is not
    taken at the word of this page's release: a note says that it is to be read again.
    """
    left = {one.key: one for one in gone}
    counts: dict[str, int] = {}
    notes: list[Diagnostic] = []
    others = pages.other_pages(connection, PAGE, page.path) if left else {}
    for path, source_id in others.items():
        content = b"".join(sources.content_of(connection, source_id))
        stated = _read(path, content, PageContext())
        found = [row for row in stated.rows if row.key in left]
        if found:
            pages.fall_back(connection, stated.source, found, when)
            counts[path] = len(found)
            left = {key: one for key, one in left.items() if key not in {row.key for row in found}}
        notes += _notes(path, content, left)
        if not left:
            break
    notes += _copies(connection, page, left.values())
    return FellBack(counts, tuple(notes))


def known_path(connection: Connection, page: SourceFile) -> str | None:
    """The path under which the store has a page, if only by another name of its file."""
    return pages.spelled(connection, page, spellings(page.path))


def spellings(path: str) -> tuple[str, ...]:
    """The names of a file: as it is given, relative to the working directory, absolute, and where
    a link leads to it.
    """
    real = os.path.realpath(path)
    return (path, os.path.relpath(path), str(Path(path).absolute()), real, os.path.relpath(real))


def withdraw_unstated(
    connection: Connection, read: PageRows, when: datetime
) -> tuple[Withdrawn, ...]:
    """Withdraw what a page no longer states, where the state that did tells that it is this page.

    The cases that it still shows may be in force as other pages state them.
    """
    path = read.source.path
    left = results.no_longer_stated(connection, path, read.rows, same_page=True)
    states = {one.source_id for one in left}
    same = {
        it for it in states if _is_same_page(read, b"".join(sources.content_of(connection, it)))
    }
    gone = tuple(one for one in left if one.source_id in same)
    results.withdraw(connection, gone, when)
    return gone


def _is_same_page(read: PageRows, content: bytes) -> bool:
    """Whether an earlier state is of the same page, and not of another one of its name.

    They share a case; or the figures of most rows, where what the rows are of was corrected.
    """
    case, release = read.rows[0].case, read.rows[0].release
    context = PageContext(
        case.framework, release.version, release.container, case.system, case.precision
    )
    before = _read(read.source.path, content, context).rows
    if not {row.case.key for row in read.rows}.isdisjoint(row.case.key for row in before):
        return True
    known = {_figures(row) for row in before}
    return sum(_figures(row) in known for row in read.rows) * 2 > len(read.rows)


def _figures(row: ResultRow) -> tuple[object, ...]:
    return tuple(getattr(row, name) for name in sorted(FIGURES))


def _copies(
    connection: Connection, page: SourceFile, left: Iterable[Withdrawn]
) -> Iterator[Diagnostic]:
    """Which other files hold the bytes that results were read from: nobody kept of what they are.

    A page says that itself, and was read.
    """
    ids = [one.id for one in left]
    if page.parser == PAGE or not ids:
        return
    same = pages.of_the_same_bytes(connection, ids, page)
    for path, source_id in pages.other_pages(connection, page.parser, page.path).items():
        if source_id in same:
            remedy = "read it again with its options to keep them, or withdraw it as well"
            yield Diagnostic(path, "holds the bytes of results that are withdrawn", remedy=remedy)


def _notes(path: str, content: bytes, left: Mapping[str, Withdrawn]) -> Iterator[Diagnostic]:
    """What a page would state if it were of the release of results that are left."""
    contexts = {PageContext(one.framework, one.release, one.container) for one in left.values()}
    told = {row.key for context in contexts for row in _read(path, content, context).rows}
    if told & left.keys():
        message = "prints results that another page no longer states, and not their release"
        yield Diagnostic(path, message, remedy="read it again with its --release to keep them")


def _read(path: str, content: bytes, context: PageContext) -> PageRows:
    """What a page of the store states; it was a page when it was stored."""
    read = read_page(Source(Path(path), "page", named=True), [content], context)
    if not isinstance(read, PageRows):
        return PageRows(SourceFile(path, content, "", 0), (), (), ())
    return replace(read, source=replace(read.source, path=path))
