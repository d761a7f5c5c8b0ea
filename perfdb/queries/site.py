"""What the site asks beside results and runs: the files runs were read from, and their bytes."""

from sqlalchemy import Select, select

from perfdb.db.tables import results, run_files, runs, sources
from perfdb.record import Origin


def all_run_files() -> Select[*tuple[object, ...]]:
    """The files of every run, without their bytes: run id, name, SHA-256 and size."""
    return (
        select(runs.c.run_id, run_files.c.name, sources.c.sha256, sources.c.size_bytes)
        .join(runs, run_files.c.run_id == runs.c.id)
        .join(sources, run_files.c.source_id == sources.c.id)
        .order_by(runs.c.run_id, run_files.c.name)
    )


def published_sources() -> Select[*tuple[object, ...]]:
    """The pages that published results in force were read from: path and SHA-256."""
    read = select(results.c.source_id).where(
        ~results.c.superseded, results.c.origin == Origin.PUBLISHED.value
    )
    return (
        select(sources.c.path, sources.c.sha256)
        .where(sources.c.id.in_(read))
        .order_by(sources.c.sha256, sources.c.path)
    )


def content_of(sha256: str) -> Select[*tuple[bytes]]:
    """The zlib-compressed bytes of a source. The same bytes may stand there more than once."""
    return select(sources.c.content).where(sources.c.sha256 == sha256).limit(1)
