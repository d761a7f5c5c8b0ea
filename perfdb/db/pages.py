"""The states of pages, and what the store has of a path or of a file's bytes.

A file that gives results and is no run is a page, too, of another parser. The last state of a page
is the source of its path that was ingested last; one that was withdrawn has no bytes.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime

from sqlalchemy import Connection, Select, func, or_, select, true, update

from perfdb.db import findings
from perfdb.db import results as stored
from perfdb.db import sources as files
from perfdb.db.rows import ResultRow, SourceFile
from perfdb.db.tables import releases, results, run_files, runs, sources, took_its_place
from perfdb.record import Origin, Original


def drop(connection: Connection, path: str, rows: Sequence[ResultRow], when: datetime) -> int:
    """Note that a page no longer prints results which another page took over; how many there were.

    Only results of the releases that it states now; of all if it states nothing.
    """
    earlier, following = results.alias("earlier"), results.alias("following")
    later, later_in = results.alias("later"), sources.alias("later_in")
    again = (
        select(later.c.id)
        .join(later_in, later.c.source_id == later_in.c.id)
        .where(later_in.c.path == path, later.c.key == earlier.c.key)
        .where(later.c.revision > earlier.c.revision)
    )
    question = (
        select(earlier.c.id, earlier.c.key, earlier.c.release_id)
        .join(sources, earlier.c.source_id == sources.c.id)
        .join(releases, earlier.c.release_id == releases.c.id)
        .join(following, took_its_place(following, earlier))
        .where(sources.c.path == path, earlier.c.superseded, ~again.exists())
        .where(earlier.c.origin == Origin.PUBLISHED.value)
        .where(stored.of_releases(rows) if rows else true())
    )
    stated = {row.key for row in rows}
    gone = [row for row in connection.execute(question) if row.key not in stated]
    if gone:
        which = results.c.id.in_([row.id for row in gone])
        connection.execute(update(results).where(which).values(superseded_at=when))
        findings.unmark(connection, {row.release_id for row in gone})
    return len(gone)


def keep_state(
    connection: Connection, page: SourceFile, original: Original, when: datetime
) -> None:
    """Store the bytes of a page as its last state, also if an earlier one has returned.

    With them goes what they state of their original; the same bytes always state the same.
    """
    number = files.id_of(connection, page, when)
    this = update(sources).where(sources.c.id == number)
    if connection.scalar(_states(page.parser, [page.path])) != number:
        connection.execute(this.values(ingested_at=when))
    if original != Original():
        connection.execute(this.values(original.model_dump()))


def last_state(connection: Connection, page: SourceFile) -> bytes | None:
    """The bytes of a page's last state; None if there is none."""
    last = connection.scalar(_states(page.parser, [page.path]))
    return None if last is None else b"".join(files.content_of(connection, last))


def spelled(connection: Connection, page: SourceFile, spellings: Sequence[str]) -> str | None:
    """The first of these spellings of a page's path that the store has it under."""
    there = {path for _, path in connection.execute(_states(page.parser, spellings))}
    return next((path for path in spellings if path in there), None)


def _states(parser: str, paths: Iterable[str]) -> Select[int, str]:
    """The states of pages at paths, the newest first."""
    return (
        select(sources.c.id, sources.c.path)
        .where(sources.c.parser == parser, sources.c.path.in_(paths))
        .order_by(sources.c.ingested_at.desc(), sources.c.id.desc())
    )


def stating(connection: Connection, spellings: Sequence[str]) -> tuple[SourceFile, ...]:
    """The pages and files of results under the first of these spellings that the store has them by.

    Without bytes: they state nothing from now on. A page that states the same as another one has no
    result of its own; the files of a run are left out, unless they give results of their own.
    """
    published = results.c.origin == Origin.PUBLISHED.value
    gave = sources.alias()
    parsers = select(gave.c.parser).join(results, results.c.source_id == gave.c.id).where(published)
    of_run = select(run_files.c.run_id).where(run_files.c.source_id == sources.c.id).exists()
    stated = select(results.c.id).where(results.c.source_id == sources.c.id, published).exists()
    question = (
        select(sources.c.path, sources.c.parser, func.max(sources.c.parser_version))
        .where(sources.c.path.in_(spellings), sources.c.parser.in_(parsers), stated | ~of_run)
        .group_by(sources.c.path, sources.c.parser)
        .order_by(sources.c.parser)
    )
    there = [SourceFile(path, b"", *read_by) for path, *read_by in connection.execute(question)]
    first = next((path for path in spellings if any(it.path == path for it in there)), None)
    return tuple(it for it in there if it.path == first)


def paths_of_bytes(connection: Connection, sha256: str) -> tuple[str, ...]:
    """The paths at which a file of these bytes was read, now or earlier."""
    question = select(sources.c.path).where(sources.c.sha256 == sha256)
    return tuple(connection.scalars(question.distinct().order_by(sources.c.path)))


def like(connection: Connection, word: str, most: int) -> tuple[str, ...]:
    """At most so many paths that end as a word does, or that are below the folder it names."""
    name = f"/{word.rstrip('/').rpartition('/')[2]}"
    below = sources.c.path.startswith(f"{word.rstrip('/')}/", autoescape=True)
    question = select(sources.c.path).where(sources.c.path.endswith(name, autoescape=True) | below)
    return tuple(connection.scalars(question.distinct().order_by(sources.c.path).limit(most)))


def _runs_with_paths() -> Select[str, str]:
    """The ids of runs, each with the path of the file that states what the run is."""
    question = select(runs.c.run_id, sources.c.path)
    joined = question.join(sources, runs.c.source_id == sources.c.id)
    return joined.order_by(sources.c.path, runs.c.run_id)


def runs_named(connection: Connection, word: str, paths: Iterable[str]) -> tuple[str, ...]:
    """The ids of the runs that a word names, or that were read from one of the paths."""
    which = or_(runs.c.run_id == word, sources.c.path.in_(paths))
    return tuple(connection.scalars(_runs_with_paths().where(which)))


def runs_of_bytes(connection: Connection, sha256: str) -> dict[str, str]:
    """The ids of the runs that are what a file of these bytes states, each with its path."""
    question = _runs_with_paths().where(sources.c.sha256 == sha256)
    return dict(connection.execute(question).all())
