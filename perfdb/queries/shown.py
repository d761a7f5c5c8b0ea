"""Results as a list shows them: the case, the figures, and where it was read."""

from sqlalchemy import ColumnElement, Select, select

from perfdb.db.tables import cases, models, releases, results, runs, sources, systems
from perfdb.queries.results import identified

_COLUMNS = (
    results.c.id.label("result_id"),
    results.c.key,
    results.c.revision,
    results.c.created_at,
    runs.c.run_id,
    cases.c.framework,
    releases.c.version.label("release"),
    systems.c.name.label("system"),
    models.c.name.label("model"),
    cases.c.task,
    cases.c.precision,
    cases.c.num_gpus,
    cases.c.global_batch_size,
    results.c.step_time_s,
    results.c.tokens_per_sec_per_gpu,
    results.c.model_tflops_per_sec_per_gpu,
    results.c.mfu,
    results.c.tokens_per_sec,
    results.c.flops_convention,
    results.c.window,
    results.c.raw,
    results.c.notes,
    results.c.outcome,
    results.c.withheld,
    sources.c.path.label("source"),
    results.c.source_line,
)


def in_force() -> Select[int]:
    """The ids of all results in force."""
    return select(results.c.id).where(~results.c.superseded)


def shown(which: ColumnElement[bool]) -> Select[*tuple[object, ...]]:
    """The results that `which` selects, superseded or not, ordered by source and line."""
    return (
        identified(select(*_COLUMNS).select_from(results))
        .outerjoin(runs, results.c.run_id == runs.c.id)
        .where(which)
        .order_by(sources.c.path, results.c.source_line, results.c.id)
    )
