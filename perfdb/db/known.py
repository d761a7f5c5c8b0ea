"""What is in the store already of what was read, and which version of a parser read it."""

from dataclasses import dataclass

from sqlalchemy import Connection, select

from perfdb.db.rows import ResultRow, RunFiles, SourceFile
from perfdb.db.tables import cases, releases, results, run_files, runs, sources


@dataclass(frozen=True)
class Held:
    """What was read of these very bytes before: by whom, and its content hash or its subject."""

    parser_version: int
    said: str


def run(connection: Connection, run_id: str, files: RunFiles) -> Held | None:
    """The run of an id, if it was read from these very bytes; with its content hash."""
    stored = connection.execute(
        select(sources.c.sha256, sources.c.parser_version, runs.c.content_hash)
        .join(run_files, run_files.c.source_id == sources.c.id)
        .join(runs, run_files.c.run_id == runs.c.id)
        .where(runs.c.run_id == run_id)
    ).all()
    given = [file.sha256 for file in files.by_name.values()]
    if not stored or sorted(given) != sorted(row.sha256 for row in stored):
        return None
    return Held(min(row.parser_version for row in stored), stored[0].content_hash)


def result(
    connection: Connection, source: SourceFile, run_id: str | None, line: int | None
) -> Held | None:
    """The result of these bytes: of a run, or that in force of a line where there is none; what of.

    A run that was withdrawn has none in force.
    """
    in_force = ~results.c.superseded & (results.c.source_line == line)
    of_run = runs.c.run_id == run_id if run_id else in_force
    found = connection.execute(
        select(sources.c.parser_version, cases.c.key.label("case"), releases.c.key.label("release"))
        .select_from(results)
        .join(cases, results.c.case_id == cases.c.id)
        .join(releases, results.c.release_id == releases.c.id)
        .join(sources, results.c.source_id == sources.c.id)
        .outerjoin(runs, results.c.run_id == runs.c.id)
        .where(sources.c.sha256 == source.sha256, of_run)
        .order_by(results.c.superseded, sources.c.parser_version.desc())
        .limit(1)
    ).first()
    return Held(found.parser_version, f"{found.case} {found.release}") if found else None


def subject(row: ResultRow) -> str:
    """What a result is of, whatever its figures."""
    return f"{row.case.key} {row.release.key}"
