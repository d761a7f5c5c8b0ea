"""Results that their page no longer states, and runs that do not count.

A file that gives results and is no run is a page, too, of another parser. The last state of a page
is the source of its path that was ingested last; no bytes at all stand for one that was withdrawn.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, Select, func, or_, select, true, update

from perfdb.db import files, keys, marks, revisions
from perfdb.db.actions import FALLS_BACK_AFTER
from perfdb.db.packing import unpacked
from perfdb.db.revisions import Place, Revision
from perfdb.db.rows import ResultRow, SourceFile, Withdrawn
from perfdb.db.session import take_turns
from perfdb.db.tables import cases, originals, releases, results, run_files, runs, sources
from perfdb.record import Origin, Original


def no_longer_stated(
    connection: Connection, path: str, given: Sequence[ResultRow], *, same_page: bool = False
) -> tuple[Withdrawn, ...]:
    """The results in force that an earlier state of a page said and this one does not.

    It is a state of the same page if this one still shows one of its cases, or is known to be:
    two pages have one path where each was read from a folder of its own. Only rows of the
    releases it states now are withdrawn, or of no stated release: a page that now shows the next
    release leaves the last one as it was.
    """
    earlier = list(_of_page(connection, path, _of_releases(given)))
    stated = {row.key for row in given}
    shown = {row.case.key for row in given}
    same = {one.source_id for one in earlier if same_page or one.case_key in shown}
    return tuple(one for one in earlier if one.source_id in same and one.key not in stated)


def drop(connection: Connection, path: str, given: Sequence[ResultRow], when: datetime) -> int:
    """Say of results that another page took over that this one does not print them any more.

    Only of the releases that it states now, as above; of all where it states nothing. The answer
    is how many there were.
    """
    said, following = results.alias("said"), results.alias("following")
    later, later_in = results.alias("later"), sources.alias("later_in")
    again = (
        select(later.c.id)
        .join(later_in, later.c.source_id == later_in.c.id)
        .where(later_in.c.path == path, later.c.key == said.c.key)
        .where(later.c.revision > said.c.revision)
    )
    question = (
        select(said.c.id, said.c.key, said.c.release_id)
        .join(sources, said.c.source_id == sources.c.id)
        .join(releases, said.c.release_id == releases.c.id)
        .join(following, revisions.took_its_place(following, said))
        .where(sources.c.path == path, said.c.superseded, ~again.exists())
        .where(said.c.origin == Origin.PUBLISHED.value, _of_releases(given) if given else true())
    )
    stated = {row.key for row in given}
    gone = [row for row in connection.execute(question) if row.key not in stated]
    if gone:
        which = results.c.id.in_([row.id for row in gone])
        connection.execute(update(results).where(which).values(superseded_at=when))
        marks.take_away(connection, {row.release_id for row in gone})
    return len(gone)


def _of_releases(given: Sequence[ResultRow]) -> ColumnElement[bool]:
    """Of the releases that a page states, or of no stated release."""
    versions = {row.release.version for row in given if row.release.version}
    return or_(releases.c.version.in_(sorted(versions)), releases.c.version.is_(None))


def all_stated(connection: Connection, path: str) -> tuple[Withdrawn, ...]:
    """Every result in force that was read from a page."""
    return tuple(_of_page(connection, path))


def under_other_keys(
    connection: Connection, file: SourceFile, given: Sequence[ResultRow]
) -> tuple[Withdrawn, ...]:
    """The results in force of a file's very bytes, at the lines of these rows, by other keys.

    Versions before parser 4 knew the result of a file by its case and release, not by its bytes.
    """
    lines = {row.source_line for row in given}
    same_line = results.c.source_line.in_(lines - {None})
    which = (
        sources.c.sha256 == file.sha256,
        sources.c.parser == file.parser,
        results.c.key.not_in([row.key for row in given]),
        or_(same_line, results.c.source_line.is_(None)) if None in lines else same_line,
    )
    return tuple(_published(connection, *which))


def withdraw(connection: Connection, gone: Sequence[Withdrawn], when: datetime) -> None:
    """Say of results that no page states them."""
    marks.take_away(connection, revisions.supersede(connection, [one.id for one in gone], when))


def _of_page(connection: Connection, path: str, *which: ColumnElement[bool]) -> Iterator[Withdrawn]:
    """The published results in force of a path."""
    return _published(connection, sources.c.path == path, *which)


def _published(connection: Connection, *which: ColumnElement[bool]) -> Iterator[Withdrawn]:
    question = (
        select(
            results.c.id,
            results.c.key,
            results.c.source_id,
            cases.c.key.label("case_key"),
            releases.c.framework,
            releases.c.version.label("release"),
            releases.c.container,
        )
        .join(sources, results.c.source_id == sources.c.id)
        .join(cases, results.c.case_id == cases.c.id)
        .join(releases, results.c.release_id == releases.c.id)
        .where(results.c.origin == Origin.PUBLISHED.value, ~results.c.superseded, *which)
    )
    yield from (Withdrawn(*said) for said in connection.execute(question))


def fall_back(
    connection: Connection, source: SourceFile, given: Sequence[ResultRow], when: datetime
) -> None:
    """Add a revision to results that were withdrawn: what another page states of them.

    It begins a moment after they were withdrawn: no page corrected the other.
    """
    number = files.ids(connection, [source], when)[files.natural(source)]
    past = revisions.written(connection, [row.key for row in given])
    place = Place(number, None, when + FALLS_BACK_AFTER)
    marks.take_away(connection, revisions.append(connection, [(row, place) for row in given], past))


def keep_state(connection: Connection, page: SourceFile, said: Original, when: datetime) -> None:
    """Store the bytes of a page as its last state, also where an earlier one has returned.

    With them goes what they say of their original; the same bytes always say the same.
    """
    number = files.ids(connection, [page], when)[files.natural(page)]
    if last_id(connection, page) != number:
        connection.execute(update(sources).where(sources.c.id == number).values(ingested_at=when))
    if said != Original():
        row = {"source_id": number, **said.model_dump()}
        connection.execute(keys.insert_new(connection, originals).values(row))


def last_state(connection: Connection, page: SourceFile) -> bytes | None:
    """The bytes of a page's last state; None where there is none."""
    last = last_id(connection, page)
    return None if last is None else content_of(connection, last)


def other_pages(connection: Connection, parser: str, but: str) -> dict[str, int]:
    """The last state of every page but that of a path: ids of sources by path, the newest first."""
    question = _states(parser).where(sources.c.path != but)
    last: dict[str, int] = {}
    for id_, path in connection.execute(question):
        last.setdefault(path, id_)
    return last


def spelled(connection: Connection, page: SourceFile, spellings: Sequence[str]) -> str | None:
    """The first of these spellings of a page's path that the store has it under."""
    question = _states(page.parser).where(sources.c.path.in_(spellings))
    there = {path for _, path in connection.execute(question)}
    return next((path for path in spellings if path in there), None)


def stating(connection: Connection, spellings: Sequence[str]) -> tuple[SourceFile, ...]:
    """The pages and files of results under the first of these spellings that the store has them by.

    Without bytes: they state nothing from now on. What states the same as another one has no result
    of its own; the files of a run are left out, but where they give results beside it.
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
    """So many paths at the most that end as a word does, or that are below the folder it names."""
    name = f"/{word.rstrip('/').rpartition('/')[2]}"
    below = sources.c.path.startswith(f"{word.rstrip('/')}/", autoescape=True)
    question = select(sources.c.path).where(sources.c.path.endswith(name, autoescape=True) | below)
    return tuple(connection.scalars(question.distinct().order_by(sources.c.path).limit(most)))


def of_the_same_bytes(
    connection: Connection, result_ids: Sequence[int], but: SourceFile
) -> set[int]:
    """The ids of all sources with the bytes that results were read from, but a file's own."""
    read = select(sources.c.sha256).join(results, results.c.source_id == sources.c.id)
    of_others = results.c.id.in_(result_ids), sources.c.sha256 != but.sha256
    same = sources.c.sha256.in_(read.where(*of_others))
    return set(connection.scalars(select(sources.c.id).where(same)))


def content_of(connection: Connection, source_id: int) -> bytes:
    """The bytes of a page."""
    found = select(sources.c.content).where(sources.c.id == source_id)
    return unpacked(connection.execute(found).scalar_one(), f"source {source_id}")


def last_id(connection: Connection, page: SourceFile) -> int | None:
    """The number of the source that is a page's last state; None where there is none."""
    question = _states(page.parser).where(sources.c.path == page.path).limit(1)
    found: int | None = connection.scalar(question)
    return found


def _states(parser: str) -> Select[int, str]:
    """The states of all pages, the newest first."""
    return (
        select(sources.c.id, sources.c.path)
        .where(sources.c.parser == parser)
        .order_by(sources.c.ingested_at.desc(), sources.c.id.desc())
    )


def withdraw_runs(
    connection: Connection, run_ids: Collection[str], reason: str, when: datetime
) -> set[str]:
    """Say of runs that they do not count, and why; the ids of those that did until now."""
    take_turns(connection, "runs")
    which = runs.c.run_id.in_(run_ids) & runs.c.withdrawn.is_(None)
    gone = dict(connection.execute(select(runs.c.run_id, runs.c.id).where(which)).all())
    connection.execute(update(runs).where(which).values(withdrawn=reason))
    marks.take_away(connection, revisions.supersede_runs(connection, gone.values(), when))
    return set(gone)


def restore_runs(connection: Connection, run_ids: Collection[str], when: datetime) -> set[str]:
    """Say of runs that they count again, with their last figures; the ids of those that did not."""
    take_turns(connection, "runs")
    which = runs.c.run_id.in_(run_ids) & runs.c.withdrawn.is_not(None)
    back = dict(connection.execute(select(runs.c.run_id, runs.c.id).where(which)).all())
    connection.execute(update(runs).where(which).values(withdrawn=None))
    last = (
        select(func.max(results.c.id))
        .where(results.c.run_id.in_(back.values()))
        .group_by(results.c.run_id)
    )
    said = select(results.c.id, results.c.content_hash).where(results.c.id.in_(last))
    again = [Revision(id_, content, {}) for id_, content in connection.execute(said)]
    revisions.revise(connection, again, when)
    return set(back)


def runs_named(connection: Connection, word: str, paths: Iterable[str]) -> tuple[str, ...]:
    """The ids of the runs that have a word for their id, or that were read from one of the paths.

    The path of a run is that of the file that says what it is.
    """
    question = (
        select(runs.c.run_id)
        .join(sources, runs.c.source_id == sources.c.id)
        .where(or_(runs.c.run_id == word, sources.c.path.in_(paths)))
        .order_by(runs.c.run_id)
    )
    return tuple(connection.scalars(question))


def runs_of_bytes(connection: Connection, sha256: str) -> dict[str, str]:
    """The ids of the runs that are what a file of these bytes says, each with its path."""
    question = (
        select(runs.c.run_id, sources.c.path)
        .join(sources, runs.c.source_id == sources.c.id)
        .where(sources.c.sha256 == sha256)
        .order_by(sources.c.path, runs.c.run_id)
    )
    return dict(connection.execute(question).all())
