"""Results with their case and release: the current ones, those that tables print, and others."""

import dataclasses
from collections.abc import Iterable, Mapping
from itertools import compress
from typing import Final

from sqlalchemy import ColumnElement, Connection, Select, and_, case, func, or_, select

from perfdb.db.tables import (
    cases,
    models,
    releases,
    results,
    runs,
    sources,
    systems,
    took_its_place,
)
from perfdb.fields import FIELDS
from perfdb.record import Origin, Result

Rows = Select[*tuple[object, ...]]

KEY_LENGTH: Final = 6
"""The least number of characters by which a key is recognized."""

_NAMED: Final[Mapping[str, ColumnElement[object]]] = {
    "release": releases.c.version.label("release"),
    "container": releases.c.container,
    "system": systems.c.name.label("system"),
    "model": models.c.name.label("model"),
}
FIELD_COLUMNS: Final[tuple[ColumnElement[object], ...]] = tuple(
    _NAMED[field.name]
    if field.name in _NAMED
    else (results if field.name in results.c else cases).c[field.name]
    for field in FIELDS
)
"""The column of each of `perfdb.fields`, in their order."""
_OTHERS: Final = (
    sources.c.path.label("source"),
    results.c.source_line,
    results.c.id.label("result_id"),
    *(results.c[name] for name in ("withheld", "notes", "raw", "printed", "extras", "emitted")),
    cases.c.key.label("case_key"),
    cases.c.workload_key,
    releases.c.id.label("release_id"),
    models.c.title.label("model_title"),
    systems.c.title.label("system_title"),
    runs.c.run_id,
    runs.c.recipe,
    runs.c.started_at,
    sources.c.sha256.label("source_sha256"),
    sources.c.source_url,
    sources.c.published_on,
)


def identified(statement: Rows) -> Rows:
    """A statement on results, with the case, release, system, model and source of each."""
    return (
        statement.join(cases, results.c.case_id == cases.c.id)
        .join(releases, results.c.release_id == releases.c.id)
        .join(systems, cases.c.system_id == systems.c.id)
        .join(models, cases.c.model_id == models.c.id)
        .join(sources, results.c.source_id == sources.c.id)
    )


def current() -> Rows:
    """Every result that is not superseded, with its case, release and source.

    Ordered so that the same store always gives the same order.
    """
    return (
        identified(select(*FIELD_COLUMNS, *_OTHERS).select_from(results))
        .outerjoin(runs, results.c.run_id == runs.c.id)
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


def representative() -> Rows:
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


def measured(statement: Rows) -> Rows:
    """Only results of runs."""
    return statement.where(results.c.origin == Origin.MEASURED.value)


def of_release(statement: Rows, release_id: int) -> Rows:
    """Only results of one release."""
    return statement.where(results.c.release_id == release_id)


def of_words(words: Iterable[str]) -> Rows:
    """The current results whose model is a word, or whose workload or case key begins with it."""
    return current().where(or_(*map(_is_meant, words)))


def _is_meant(word: str) -> ColumnElement[bool]:
    named = models.c.name == word
    if len(word) < KEY_LENGTH:
        return named
    keys = (cases.c.workload_key, cases.c.key)
    return or_(named, *(key.startswith(word.lower(), autoescape=True) for key in keys))


def with_runs() -> Rows:
    """Every current measured result, with the columns of `current` and of its run."""
    return measured(current()).add_columns(
        results.c.key.label("result_key"),
        releases.c.container_digest,
        sources.c.parser,
        runs.c.id.label("run_row_id"),
        runs.c.outcome.label("run_outcome"),
        runs.c.error.label("run_error"),
        runs.c.content_hash.label("run_content_hash"),
    )


def current_ids() -> Select[int]:
    """The ids of all current results."""
    return select(results.c.id).where(~results.c.superseded)


def listed(which: ColumnElement[bool]) -> Rows:
    """The results that `which` selects, superseded or not, ordered by source and line."""
    columns = (results.c.key, results.c.revision, results.c.created_at)
    return (
        identified(select(*columns, *FIELD_COLUMNS, *_OTHERS).select_from(results))
        .outerjoin(runs, results.c.run_id == runs.c.id)
        .where(which)
        .order_by(sources.c.path, results.c.source_line, results.c.id)
    )


def on_other_pages() -> Rows:
    """Earlier revisions, from other files, of current published results, oldest first.

    Only the page that was read last counts. `replaced`: whether the next revision took its place,
    while its own page still prints it.
    """
    earlier, following = results.alias("earlier"), results.alias("following")
    earlier_source, source_now = sources.alias("earlier_source"), sources.alias("source_now")
    return (
        select(
            results.c.id.label("result_id"),
            earlier.c.step_time_s,
            earlier.c.tokens_per_sec_per_gpu,
            earlier.c.model_tflops_per_sec_per_gpu,
            earlier.c.mfu,
            earlier.c.tokens_per_sec,
            earlier.c.raw,
            earlier.c.printed,
            earlier_source.c.path.label("source"),
            earlier.c.source_line,
            following.c.id.is_not(None).label("replaced"),
        )
        .select_from(results)
        .join(earlier, and_(earlier.c.key == results.c.key, earlier.c.superseded))
        .join(earlier_source, earlier_source.c.id == earlier.c.source_id)
        .join(source_now, source_now.c.id == results.c.source_id)
        .outerjoin(following, took_its_place(following, earlier))
        .where(
            ~results.c.superseded,
            results.c.origin == Origin.PUBLISHED.value,
            earlier_source.c.path != source_now.c.path,
        )
        .order_by(results.c.id, earlier.c.revision)
    )


def read(connection: Connection, statement: Rows) -> list[Result]:
    """The results of a statement that is made from `current` or `representative`."""
    answer = connection.execute(statement)
    names = list(answer.keys())
    known = [name in _ATTRIBUTES for name in names]
    columns = list(compress(names, known))
    return [_result(columns, compress(row, known)) for row in answer]


def _result(columns: Iterable[str], cells: Iterable[object]) -> Result:
    """A result of some of its attributes; its constructor takes three times as long."""
    made = object.__new__(Result)
    attributes = vars(made)
    attributes.update(_DEFAULTS)
    attributes.update(zip(columns, cells, strict=True))
    return made


_DEFAULTS: Final = {
    field.name: field.default
    for field in dataclasses.fields(Result)
    if field.default is not dataclasses.MISSING
}
_ATTRIBUTES: Final = frozenset(field.name for field in dataclasses.fields(Result))
