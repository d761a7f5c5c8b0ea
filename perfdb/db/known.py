"""Whether what was read is in the store already."""

from sqlalchemy import Connection, select

from perfdb.db.rows import RunFiles, SourceFile
from perfdb.db.tables import results, run_files, runs, sources


def holds_run(connection: Connection, run_id: str, files: RunFiles) -> bool:
    """Whether a run is there, read from these very bytes."""
    stored = connection.execute(
        select(sources.c.sha256, sources.c.parser_version)
        .join(run_files, run_files.c.source_id == sources.c.id)
        .join(runs, run_files.c.run_id == runs.c.id)
        .where(runs.c.run_id == run_id)
    )
    given = [(file.sha256, file.parser_version) for file in files.by_name.values()]
    return sorted(given) == sorted((row.sha256, row.parser_version) for row in stored)


def holds_result(
    connection: Connection, source: SourceFile, run_id: str | None, line: int | None
) -> bool:
    """Whether a result of these bytes is in force: of a run, or of a line where there is none."""
    of_run = runs.c.run_id == run_id if run_id else results.c.source_line == line
    found = connection.scalar(
        select(results.c.id)
        .join(sources, results.c.source_id == sources.c.id)
        .outerjoin(runs, results.c.run_id == runs.c.id)
        .where(
            sources.c.sha256 == source.sha256,
            sources.c.parser_version == source.parser_version,
            ~results.c.superseded,
            of_run,
        )
        .limit(1)
    )
    return found is not None
