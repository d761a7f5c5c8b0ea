"""How results came about and changed: the pages they were read from, revisions, rejections."""

from typing import Final

from sqlalchemy import ColumnElement, Select, and_, case, func, literal, select

from perfdb.db.ingest_log import RUN_LOGGED_AS, Action
from perfdb.db.tables import (
    cases,
    ingest_log,
    models,
    releases,
    results,
    runs,
    sources,
    systems,
)
from perfdb.queries.results import identified, representative
from perfdb.record import Origin


def printed() -> Select[int, int, int]:
    """The ids of the results that tables print, with the numbers of all and of finished repeats."""
    question = representative()
    known = question.selected_columns
    return question.with_only_columns(known.result_id, known.num_results, known.num_finished)


def keys() -> Select[int, str]:
    """The key of each current result, by its id: the same in every revision."""
    return select(results.c.id, results.c.key).where(~results.c.superseded)


def published_sources() -> Select[*tuple[object, ...]]:
    """The states of the pages that published current results were read from, by SHA-256.

    Path, SHA-256, when it was first read, when a result was last read from it, the URL and the day
    of its original. The empty state of a page that was withdrawn is left out.
    """
    published = results.c.origin == Origin.PUBLISHED.value
    read = select(sources.c.path).join(results, results.c.source_id == sources.c.id)
    return (
        select(
            sources.c.path,
            sources.c.sha256,
            func.min(sources.c.ingested_at).label("ingested_at"),
            func.max(results.c.created_at).label("created_at"),
            func.max(sources.c.source_url).label("source_url"),
            func.max(sources.c.published_on).label("published_on"),
        )
        .outerjoin(results, results.c.source_id == sources.c.id)
        .where(sources.c.path.in_(read.where(~results.c.superseded, published)))
        .where(sources.c.size_bytes > 0)
        .group_by(sources.c.path, sources.c.sha256)
        .order_by(sources.c.sha256, sources.c.path)
    )


_OF_A_REVISION: Final = (
    results.c.key,
    results.c.revision,
    results.c.created_at,
    results.c.superseded,
    results.c.superseded_at,
    cases.c.framework,
    releases.c.version.label("release"),
    systems.c.name.label("system"),
    systems.c.title.label("system_title"),
    models.c.name.label("model"),
    models.c.title.label("model_title"),
    *(cases.c[name] for name in ("qualifiers", "task", "variant", "precision", "num_gpus")),
    *(cases.c[name] for name in ("global_batch_size", "sequence_length")),
    results.c.origin,
    sources.c.path.label("source"),
    sources.c.sha256.label("source_sha256"),
    results.c.source_line,
    runs.c.run_id,
    runs.c.recipe,
    runs.c.withdrawn,
    ingest_log.c.stated_reason,
    results.c.outcome,
    results.c.withheld,
    results.c.window,
    results.c.step_time_s,
    results.c.tokens_per_sec,
    results.c.tokens_per_sec_per_gpu,
    results.c.flops_convention,
    results.c.model_tflops_per_sec_per_gpu,
    results.c.mfu,
    results.c.peak_memory_bytes,
    results.c.raw,
    results.c.notes,
    results.c.id.label("result_id"),
)
"""What a revision of a result is told by."""


def all_revisions() -> Select[*tuple[object, ...]]:
    """Every result, superseded or not, ordered by its key and revision.

    `stated_reason`: why somebody withdrew its page or run when it was superseded, if they did.
    """
    return (
        identified(select(*_OF_A_REVISION))
        .outerjoin(runs, results.c.run_id == runs.c.id)
        .outerjoin(ingest_log, _ended_a_row())
        .order_by(results.c.key, results.c.revision)
    )


def _ended_a_row() -> ColumnElement[bool]:
    """Whether an entry of the log is of the change that superseded a result or withdrew its run."""
    run = literal(RUN_LOGGED_AS) + runs.c.run_id
    return and_(
        ingest_log.c.path == case((results.c.run_id.is_(None), sources.c.path), else_=run),
        ingest_log.c.at == results.c.superseded_at,
        ingest_log.c.action == Action.REVISED,
    )


def all_rejections() -> Select[*tuple[object, ...]]:
    """Everything that was rejected, as it was logged: time, path, line and reason."""
    return (
        select(ingest_log.c.at, ingest_log.c.path, ingest_log.c.line, ingest_log.c.reason)
        .where(ingest_log.c.action == Action.REJECTED)
        .order_by(ingest_log.c.id)
    )
