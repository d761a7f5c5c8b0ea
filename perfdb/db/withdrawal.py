"""Results that their page no longer states, and the last states of the pages that may state them.

The last state of a page is the source of its path that was ingested last; no bytes at all stand
for a page that was withdrawn.
"""

import zlib
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, Connection, Select, or_, select, update

from perfdb.db import files, marks, revisions
from perfdb.db.revisions import Place
from perfdb.db.rows import ResultRow, SourceFile, Withdrawn
from perfdb.db.tables import cases, releases, results, sources
from perfdb.record import Origin


def no_longer_stated(
    connection: Connection, path: str, given: Sequence[ResultRow], *, same_page: bool = False
) -> tuple[Withdrawn, ...]:
    """The results in force that an earlier state of a page said and this one does not.

    It is the same page if it still shows one of their cases, or is known to be. Only rows of the
    releases it states now are withdrawn, or of no stated release: a page that now shows the next
    release leaves the last one as it was.
    """
    versions = {row.release.version for row in given if row.release.version}
    of_these = or_(releases.c.version.in_(sorted(versions)), releases.c.version.is_(None))
    earlier = list(_of_page(connection, path, of_these))
    stated = {row.key for row in given}
    shown = {row.case.key for row in given}
    if not same_page and not any(case_key in shown for case_key, _ in earlier):
        return ()
    return tuple(one for _, one in earlier if one.key not in stated)


def all_stated(connection: Connection, path: str) -> tuple[Withdrawn, ...]:
    """Every result in force that was read from a page."""
    return tuple(one for _, one in _of_page(connection, path))


def withdraw(connection: Connection, gone: Sequence[Withdrawn], when: datetime) -> None:
    """Say of results that no page states them."""
    marks.take_away(connection, revisions.supersede(connection, [one.id for one in gone], when))


def _of_page(
    connection: Connection, path: str, *which: ColumnElement[bool]
) -> Iterator[tuple[str, Withdrawn]]:
    """The published results in force of a path, each behind the key of its case."""
    question = (
        select(
            cases.c.key.label("case_key"),
            results.c.id,
            results.c.key,
            releases.c.framework,
            releases.c.version.label("release"),
            releases.c.container,
        )
        .join(sources, results.c.source_id == sources.c.id)
        .join(cases, results.c.case_id == cases.c.id)
        .join(releases, results.c.release_id == releases.c.id)
        .where(
            sources.c.path == path,
            results.c.origin == Origin.PUBLISHED.value,
            ~results.c.superseded,
            *which,
        )
    )
    for case_key, *said in connection.execute(question):
        yield case_key, Withdrawn(*said)


def fall_back(
    connection: Connection, source: SourceFile, given: Sequence[ResultRow], when: datetime
) -> None:
    """Add a revision to results that were withdrawn: what another page states of them.

    It begins a moment after they were withdrawn: no page corrected the other.
    """
    number = files.ids(connection, [source], when)[files.natural(source)]
    past = revisions.written(connection, [row.key for row in given])
    place = Place(number, None, when + timedelta(microseconds=1))
    marks.take_away(connection, revisions.append(connection, [(row, place) for row in given], past))


def keep_state(connection: Connection, page: SourceFile, when: datetime) -> None:
    """Store the bytes of a page as its last state, also where an earlier one has returned."""
    number = files.ids(connection, [page], when)[files.natural(page)]
    last = connection.scalar(_states(page.parser).where(sources.c.path == page.path).limit(1))
    if last != number:
        connection.execute(update(sources).where(sources.c.id == number).values(ingested_at=when))


def last_state(connection: Connection, page: SourceFile) -> bytes | None:
    """The bytes of a page's last state; None where there is none."""
    last = connection.scalar(_states(page.parser).where(sources.c.path == page.path).limit(1))
    return None if last is None else content_of(connection, last)


def other_pages(connection: Connection, page: SourceFile) -> dict[str, int]:
    """The last state of every other page: ids of sources by their path, the newest first."""
    question = _states(page.parser).where(sources.c.path != page.path)
    last: dict[str, int] = {}
    for id_, path in connection.execute(question):
        last.setdefault(path, id_)
    return last


def spelled(connection: Connection, page: SourceFile, spellings: Sequence[str]) -> str | None:
    """The first of these spellings of a page's path that the store has it under."""
    question = _states(page.parser).where(sources.c.path.in_(spellings))
    there = {path for _, path in connection.execute(question)}
    return next((path for path in spellings if path in there), None)


def content_of(connection: Connection, source_id: int) -> bytes:
    """The bytes of a page."""
    found = select(sources.c.content).where(sources.c.id == source_id)
    return zlib.decompress(connection.execute(found).scalar_one())


def _states(parser: str) -> Select[int, str]:
    """The states of all pages, the newest first."""
    return (
        select(sources.c.id, sources.c.path)
        .where(sources.c.parser == parser)
        .order_by(sources.c.ingested_at.desc(), sources.c.id.desc())
    )
