"""What tables, comparisons and exports show: one row for each result, with its case and release."""

import dataclasses
from collections.abc import Callable
from itertools import compress
from typing import Final

from sqlalchemy import ColumnElement, Connection, Select, and_, case, func, select

from perfdb.db.tables import cases, models, originals, releases, results, runs, sources, systems
from perfdb.record import Origin, Result

IDENTITY = (
    cases.c.framework,
    releases.c.version.label("release"),
    releases.c.container,
    systems.c.name.label("system"),
    models.c.name.label("model"),
    cases.c.qualifiers,
    cases.c.task,
    cases.c.precision,
    cases.c.num_gpus,
    cases.c.global_batch_size,
    cases.c.micro_batch_size,
    cases.c.local_batch_size,
    results.c.gradient_accumulation,
    cases.c.sequence_length,
    cases.c.tensor_parallel,
    cases.c.pipeline_parallel,
    cases.c.context_parallel,
    cases.c.expert_parallel,
    cases.c.expert_tensor_parallel,
    cases.c.virtual_pipeline,
    results.c.data_parallel,
    cases.c.fsdp_enabled,
    cases.c.fsdp_size,
    cases.c.sequence_parallel,
    cases.c.kernels,
    cases.c.variant,
)
FIGURES = (
    results.c.step_time_s,
    results.c.tokens_per_sec_per_gpu,
    results.c.model_tflops_per_sec_per_gpu,
    results.c.mfu,
    results.c.peak_memory_bytes,
    results.c.flops_convention,
    results.c.window,
    results.c.num_steps,
    results.c.origin,
    results.c.outcome,
)
PROVENANCE = (
    sources.c.path.label("source"),
    results.c.source_line,
    results.c.id.label("result_id"),
    results.c.withheld,
    results.c.num_means,
    results.c.step_time_mean_s,
    results.c.step_time_stdev_s,
    results.c.step_time_p10_s,
    results.c.step_time_p90_s,
    results.c.step_time_last_s,
    results.c.peak_tflops,
    results.c.formula_version,
    results.c.tokens_per_sec,
    results.c.emitted,
    results.c.raw,
    results.c.extras,
    results.c.notes,
    cases.c.key.label("case_key"),
    cases.c.workload_key,
    cases.c.options,
    releases.c.id.label("release_id"),
    models.c.title.label("model_title"),
    systems.c.title.label("system_title"),
    runs.c.run_id,
    runs.c.recipe,
    runs.c.started_at,
    sources.c.sha256.label("source_sha256"),
    originals.c.source_url,
    originals.c.published_on,
)


def identified(select_: Select[*tuple[object, ...]]) -> Select[*tuple[object, ...]]:
    """A question about results, with the case, release, system, model and source of each."""
    return (
        select_.join(cases, results.c.case_id == cases.c.id)
        .join(releases, results.c.release_id == releases.c.id)
        .join(systems, cases.c.system_id == systems.c.id)
        .join(models, cases.c.model_id == models.c.id)
        .join(sources, results.c.source_id == sources.c.id)
    )


def current() -> Select[*tuple[object, ...]]:
    """Every result in force (not superseded), with its case, release, source and its original.

    Ordered so that the same store always gives the same order.
    """
    return (
        identified(select(*IDENTITY, *FIGURES, *PROVENANCE).select_from(results))
        .outerjoin(runs, results.c.run_id == runs.c.id)
        .outerjoin(originals, originals.c.source_id == results.c.source_id)
        .where(~results.c.superseded)
        .order_by(
            cases.c.framework,
            releases.c.version,
            systems.c.name,
            models.c.name,
            cases.c.num_gpus,
            cases.c.key,
            runs.c.run_id,
            results.c.id,
        )
    )


def representative() -> Select[*tuple[object, ...]]:
    """One result for each case, release and origin: the one a table prints.

    Of several finished runs it is the one with the median step time (the faster of the middle
    two), so that it can be traced to a run; if none finished, it is one without figures.
    """
    group = (results.c.case_id, results.c.release_id, results.c.origin)
    order = (_has_no_figures(), results.c.step_time_s.nulls_last(), results.c.id)
    finished = func.sum(case((_has_no_figures(), 0), else_=1)).over(partition_by=group)
    ranked = (
        select(
            results.c.id,
            func.row_number().over(partition_by=group, order_by=order).label("place"),
            finished.label("num_finished"),
            func.count().over(partition_by=group).label("num_results"),
        )
        .where(~results.c.superseded)
        .subquery()
    )
    middle = case((ranked.c.num_finished < 2, 1), else_=(ranked.c.num_finished + 1) / 2)
    return (
        current()
        .join(ranked, and_(ranked.c.id == results.c.id, ranked.c.place == func.floor(middle)))
        .add_columns(ranked.c.num_results, ranked.c.num_finished)
    )


def _has_no_figures() -> ColumnElement[bool]:
    return results.c.withheld.is_not(None)


def measured(select_: Select[*tuple[object, ...]]) -> Select[*tuple[object, ...]]:
    """Only results derived from runs."""
    return select_.where(results.c.origin == Origin.MEASURED.value)


def of_release(
    select_: Select[*tuple[object, ...]], release_id: int
) -> Select[*tuple[object, ...]]:
    """Only results of one release."""
    return select_.where(results.c.release_id == release_id)


def read(connection: Connection, statement: Select[*tuple[object, ...]]) -> list[Result]:
    """The results of a statement that is made from `current` or `representative`."""
    answer = connection.execute(statement)
    columns = list(answer.keys())
    known = [name in _ATTRIBUTES for name in columns]
    names = tuple(compress(columns, known))
    make: Callable[..., Result] = Result
    return [
        make(**{**dict(zip(names, compress(row, known), strict=True)), "notes": tuple(row.notes)})
        for row in answer
    ]


_ATTRIBUTES: Final = frozenset(field.name for field in dataclasses.fields(Result))
