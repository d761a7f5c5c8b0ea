"""Results with their case and release: current ones, those that tables print, and revisions."""

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    Select,
    Subquery,
    and_,
    case,
    false,
    func,
    literal,
    or_,
    select,
)

from perfdb.db.sources import RUN_LOGGED_AS, Action
from perfdb.db.tables import (
    cases,
    findings,
    ingest_log,
    models,
    releases,
    results,
    runs,
    sources,
    systems,
    took_its_place,
)
from perfdb.fields import FIELDS
from perfdb.queries import Rows
from perfdb.queries.runs import IS_BENCHMARK
from perfdb.record import MOST, PROXY_OF, Origin, Outcome, Result

KEY_LENGTH: Final = 6
"""The least number of characters by which a key is recognized."""

_RELEASE, _SYSTEM, _MODEL = (
    releases.c.version.label("release"), systems.c.name.label("system"),
    models.c.name.label("model"),
)  # fmt: skip
_JOINED: Final[dict[str, ColumnElement[object]]] = {
    "release": _RELEASE, "container": releases.c.container, "system": _SYSTEM, "model": _MODEL,
}  # fmt: skip
_TITLES: Final = (models.c.title.label("model_title"), systems.c.title.label("system_title"))
_SOURCE: Final = (sources.c.path.label("source"), sources.c.sha256.label("source_sha256"))
FIELD_COLUMNS: Final[tuple[ColumnElement[object], ...]] = tuple(
    _JOINED[field.name]
    if field.name in _JOINED
    else (results if field.name in results.c else cases).c[field.name]
    for field in FIELDS
)
"""The column of each of `perfdb.fields`, in their order."""
_COLUMNS: Final = (
    *FIELD_COLUMNS, *_TITLES, *_SOURCE, sources.c.source_url, sources.c.published_on,
    results.c.id.label("result_id"), cases.c.key.label("case_key"), cases.c.workload_key,
    releases.c.id.label("release_id"), runs.c.run_id, runs.c.recipe, runs.c.started_at,
    runs.c.kind.label("run_kind"),
    *(results.c[name] for name in ("source_line", "withheld", "notes", "raw", "printed")),
    *(results.c[name] for name in ("extras", "emitted")),
)  # fmt: skip
COUNTS: Final = results.c.withheld.is_(None) & (results.c.outcome == Outcome.FINISHED.value)


_OF_A_BENCHMARK: Final = select(runs.c.id).where(runs.c.id == results.c.run_id, IS_BENCHMARK)
BENCHMARK: Final = or_(
    results.c.run_id.is_(None), results.c.withheld.is_(None),
    _OF_A_BENCHMARK.correlate(results).exists(),
)  # fmt: skip
"""What may be in a table: a row of a page, or a run that was made for its timings.

Only such a run has figures: the run is looked up where they are withheld alone.
"""
WHOLE: Final = cases.c.options[PROXY_OF].as_string().is_(None)
"""Whether a result is of a whole case. A proxy's is of its run alone: it never is in a table of
releases or in a comparison.
"""


def identified(statement: Rows) -> Rows:
    """A statement on results, joined to the case, release, system, model and source of each."""
    return (
        statement.join(cases, results.c.case_id == cases.c.id)
        .join(releases, results.c.release_id == releases.c.id)
        .join(systems, cases.c.system_id == systems.c.id)
        .join(models, cases.c.model_id == models.c.id)
        .join(sources, results.c.source_id == sources.c.id)
    )


def _with_runs(*columns: ColumnElement[object]) -> Rows:
    statement = identified(select(*columns).select_from(results))
    return statement.outerjoin(runs, results.c.run_id == runs.c.id)


def current() -> Rows:
    """Every current result with its case, release and source, always in the same order.

    Runs made for another end than their timings have none: profiles, checkpoints.
    """
    return every().where(BENCHMARK)


def published() -> Rows:
    """The results that `current` has of pages."""
    return current().where(results.c.origin == Origin.PUBLISHED.value)


def every() -> Rows:
    """The results that `current` has, and those of profiles and checkpoints, without figures."""
    return (
        _with_runs(*_COLUMNS)
        .where(~results.c.superseded)
        .order_by(cases.c.framework, releases.c.version, systems.c.name, models.c.name)
        .order_by(cases.c.num_gpus, cases.c.key, runs.c.run_id, results.c.id)
    )


_COMPARED: Final = (
    "framework", "num_gpus", "global_batch_size", "sequence_length", "origin", "outcome",
    "withheld", "notes", "window", "flops_convention", "num_steps", "num_means", "step_time_s",
    "step_time_mean_s", "step_time_stdev_s", "step_time_p10_s", "step_time_p90_s",
    "tokens_per_sec_per_gpu", "tokens_per_sec", "model_tflops_per_sec_per_gpu", "mfu",
    "peak_memory_bytes", "printed",
)  # fmt: skip


def compared(asked: Collection[str] = _COMPARED) -> Rows:
    """What verdicts read of each result that `current` has: its figures, and how they spread.

    Nothing is known of its layout, titles and source: there may be many, for later ones alone.
    """
    names = [it for it in _COMPARED if it in asked or it not in results.c]
    columns = [(results if name in results.c else cases).c[name] for name in names]
    keys = (
        cases.c.key.label("case_key"), cases.c.workload_key, releases.c.id.label("release_id"),
        results.c.id.label("result_id"), _RELEASE, _SYSTEM, _MODEL,
    )  # fmt: skip
    statement = select(*columns, *keys).select_from(results).join(cases)
    return statement.where(~results.c.superseded, BENCHMARK).order_by(results.c.id)


def representative(which: Iterable[ColumnElement[bool]] = ()) -> Rows:
    """One result for each case, release and origin: the one that tables print.

    Of several finished runs it is the one with the median step time (of an even number, the faster
    of the middle two), so that the figure belongs to a run. If none finished, it has no figures.
    Figures of a run that did not finish are in no table. `which`: as of `chosen`.
    """
    ids = chosen(which)
    statement = current().join(ids, ids.c.id == results.c.id).where(WHOLE)
    return statement.add_columns(ids.c.num_results, ids.c.num_finished)


def chosen(
    which: Iterable[ColumnElement[bool]] = (), columns: Sequence[ColumnElement[Any]] = ()
) -> Subquery:
    """The ids of the results that `representative` has, of proxies too, with their two counts.

    `which`: conditions on the case, release and origin, so that no other result is ranked.
    `columns` of results, cases, systems and models that each has too. `rank` is 0 for figures.
    """
    group = (results.c.case_id, results.c.release_id, results.c.origin)
    rank = case((COUNTS, 0), (results.c.withheld.is_not(None), 1), else_=2)
    order = (rank, results.c.step_time_s.nulls_last(), results.c.id)
    finished = func.sum(case((COUNTS, 1), else_=0)).over(partition_by=group)
    asked = select(
        results.c.id,
        rank.label("rank"),
        func.row_number().over(partition_by=group, order_by=order).label("place"),
        finished.label("num_finished"),
        func.count().over(partition_by=group).label("num_results"),
        *columns,
    )
    if columns:
        asked = asked.join(cases, results.c.case_id == cases.c.id).join(systems).join(models)
    ranked = asked.where(~results.c.superseded, BENCHMARK, *which).subquery()
    middle = case((ranked.c.num_finished < 2, 1), else_=(ranked.c.num_finished + 1) / 2)
    is_middle = ranked.c.place == func.floor(middle)
    return select(ranked).where(is_middle, ranked.c.rank < 2).subquery()


def printed() -> Select[int, int, int]:
    """The ids of the results that tables print, with the numbers of all and of finished runs."""
    question = representative()
    known = question.selected_columns
    return question.with_only_columns(known.result_id, known.num_results, known.num_finished)


def of_release(statement: Rows, release_id: int) -> Rows:
    """A statement narrowed to the results of one release."""
    return statement.where(results.c.release_id == release_id)


def of_words(words: Collection[str]) -> Rows:
    """The current results with a word as model, or as start of the workload or case key.

    Without words all of them. Of each there is what trends read.
    """
    columns = [it for it in current().selected_columns if it.name not in _NOT_FOLLOWED]
    everything = current().with_only_columns(*columns)
    if not words:
        return everything
    wanted: list[ColumnElement[bool]] = []
    for word in words:
        wanted.append(models.c.name == word)
        if len(word) >= KEY_LENGTH:
            keys = (cases.c.workload_key, cases.c.key)
            wanted += [key.startswith(word.lower(), autoescape=True) for key in keys]
    of_cases = select(cases.c.id).join(models, cases.c.model_id == models.c.id)
    of_cases = of_cases.where(or_(*wanted)).correlate(None)
    return everything.where(results.c.case_id.in_(of_cases))


_NOT_FOLLOWED: Final = (
    "step_time_last_s", "formula_version", "extras", "emitted", "recipe", "run_kind",
    "source_sha256", "source_url", "published_on",
)  # fmt: skip


def of_cases(ids: Collection[int]) -> Rows:
    """The same of cases, by their numbers."""
    return of_words(()).where(results.c.case_id.in_(ids))


def of_run(run_id: str) -> Rows:
    """The current results of a run of any kind, by its run id."""
    return every().where(runs.c.run_id == run_id)


def referred_to(word: str) -> Rows:
    """The current results of this id, or with a word as start of the run id or case key."""
    wanted: list[ColumnElement[bool]] = []
    if word.isdecimal() and len(word) < len(str(MOST)):
        wanted.append(results.c.id == int(word))
    if len(word) >= KEY_LENGTH:
        wanted.append(runs.c.run_id.startswith(word, autoescape=True))
        wanted.append(cases.c.key.startswith(word.lower(), autoescape=True))
    return current().where(or_(false(), *wanted))


def with_runs() -> Rows:
    """Every current measured result, with the columns of `current` and of its run."""
    measured = current().where(results.c.origin == Origin.MEASURED.value)
    return measured.add_columns(
        results.c.key.label("result_key"),
        releases.c.container_digest,
        sources.c.parser,
        runs.c.id.label("run_row_id"),
        runs.c.outcome.label("run_outcome"),
        runs.c.error.label("run_error"),
        runs.c.content_hash.label("run_content_hash"),
    )


def current_keys() -> Select[int, str]:
    """The id and the key of each current result; every revision of a result has the same key."""
    return select(results.c.id, results.c.key).where(~results.c.superseded)


def listed(which: ColumnElement[bool]) -> Rows:
    """The results that `which` selects, superseded or not, ordered by source and line."""
    statement = _with_runs(results.c.key, results.c.revision, results.c.created_at, *_COLUMNS)
    return statement.where(which).order_by(sources.c.path, results.c.source_line, results.c.id)


@cache
def on_other_pages() -> Rows:
    """Earlier revisions, from other files, of current published results, oldest first.

    The page that was read last counts. `replaced`: the next revision took the place of this one,
    whose page still prints it.
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
        .where(~results.c.superseded, results.c.origin == Origin.PUBLISHED.value)
        .where(earlier_source.c.path != source_now.c.path)
        .order_by(results.c.id, earlier.c.revision)
    )


_OF_A_REVISION: Final = (
    "key", "revision", "created_at", "superseded", "superseded_at", "origin", "source_line",
    "outcome", "withheld", "window", "step_time_s", "tokens_per_sec", "tokens_per_sec_per_gpu",
    "flops_convention", "model_tflops_per_sec_per_gpu", "mfu", "peak_memory_bytes", "raw", "notes",
)  # fmt: skip
"""The columns of `results` that a revision has."""


def all_revisions() -> Rows:
    """Every result, superseded or not, ordered by its key and revision.

    `stated_reason`: why a person withdrew its page or run when it was superseded.
    """
    logged_as = literal(RUN_LOGGED_AS) + runs.c.run_id
    its_entry = and_(
        ingest_log.c.path == case((results.c.run_id.is_(None), sources.c.path), else_=logged_as),
        ingest_log.c.at == results.c.superseded_at,
        ingest_log.c.action == Action.REVISED,
    )
    of_case = ("framework", "qualifiers", "task", "variant", "precision", "num_gpus")
    of_work = ("global_batch_size", "sequence_length")
    columns = (
        *(results.c[name] for name in _OF_A_REVISION),
        *(cases.c[name] for name in (*of_case, *of_work)),
        _RELEASE, _SYSTEM, _MODEL, *_TITLES, *_SOURCE, runs.c.run_id, runs.c.recipe,
        runs.c.withdrawn, ingest_log.c.stated_reason, results.c.id.label("result_id"),
    )  # fmt: skip
    statement = _with_runs(*columns).outerjoin(ingest_log, its_entry)
    return statement.order_by(results.c.key, results.c.revision)


def current_findings() -> Rows:
    """The findings of the last audit on current results, ordered by result, rule and message."""
    names = ("rule", "severity", "fields", "expected", "found", "message", "suggestion")
    columns = (
        *(findings.c[name] for name in names), _MODEL, _SYSTEM, _RELEASE, _SOURCE[0],
        results.c.source_line, cases.c.framework, findings.c.result_id,
    )  # fmt: skip
    return (
        identified(select(*columns).join(results, findings.c.result_id == results.c.id))
        .where(~results.c.superseded)
        .order_by(findings.c.result_id, findings.c.rule, findings.c.message)
    )


def findings_of_releases(release_ids: Iterable[int]) -> Rows:
    """The findings on the current results of some releases."""
    return current_findings().where(results.c.release_id.in_(release_ids))


def current_errors() -> Rows:
    """The findings on current results that are errors."""
    return current_findings().where(findings.c.severity == "error")


_SHARED: Final = (
    (results.c.case_id, cases, cases.join(systems).join(models)),
    (results.c.release_id, releases, releases),
)
"""What many results have in common: its number, its table, and those that it is joined to."""
_ATTRIBUTES: Final = frozenset(it.name for it in dataclasses.fields(Result))
_AT_ONCE: Final = 1_000
"""Numbers that are asked for together."""


@dataclass(frozen=True)
class Fetched:
    """Rows of results, of which objects are made where these are asked for.

    `names` are those of the columns, behind which a row has the numbers of its case and release.
    What results of the same case or release share is there once, by these numbers.
    """

    names: Sequence[str]
    rows: Sequence[Sequence[Any]]
    cases: Mapping[int, Mapping[str, Any]]
    releases: Mapping[int, Mapping[str, Any]]

    def results(self, rows: Iterable[Sequence[Any]] | None = None) -> list[Result]:
        """The results of some of its rows, or of all."""
        found = []
        for row in self.rows if rows is None else rows:
            result = object.__new__(Result)  # its constructor takes three times as long
            values = vars(result)
            values |= self.cases[row[-2]]
            values |= self.releases[row[-1]]
            values |= zip(self.names, row, strict=False)
            found.append(result)
        return found


def read(connection: Connection, statement: Rows) -> list[Result]:
    """The results of a statement that `current`, `compared` and others make."""
    return fetched(connection, statement).results()


def fetched(connection: Connection, statement: Rows) -> Fetched:
    """The same, of which none is made yet."""
    asked = [it for it in statement.selected_columns if it.name in _ATTRIBUTES]
    shared = [[it for it in asked if _is_of(it, tables)] for *_, tables in _SHARED]
    own = [it for it in asked if not any(_is_of(it, tables) for *_, tables in _SHARED)]
    links, names = [link for link, *_ in _SHARED], [it.name for it in own]
    rows = connection.execute(statement.with_only_columns(*own, *links)).fetchall()
    lacking = _lacking({it.name for it in asked}) | dict.fromkeys(names)
    of_cases, of_releases = (
        _rows(connection, place, columns, {row[place - len(links)] for row in rows})
        for place, columns in enumerate(shared)
    )
    return Fetched(names, rows, {it: lacking | row for it, row in of_cases.items()}, of_releases)


def _lacking(asked: Collection[str]) -> dict[str, object]:
    """The values of attributes that are not asked for, but for the defaults that the class has."""
    some = [it for it in dataclasses.fields(Result) if it.name not in asked]
    return {it.name: it.default_factory() for it in some if callable(it.default_factory)}


def _is_of(column: ColumnElement[object], tables: FromClause) -> bool:
    """Whether a column is one of some tables, whatever it is called."""
    found = getattr(next(iter(column.base_columns)), "table", None)
    return found is not None and tables.is_derived_from(found)


def _rows(
    connection: Connection, place: int, columns: Sequence[ColumnElement[Any]], ids: set[int]
) -> dict[int, dict[str, object]]:
    """The rows of these numbers of one of `_SHARED`, by their number."""
    _, table, tables = _SHARED[place]
    question = select(*columns, table.c.id).select_from(tables)
    names, wanted, found = [it.name for it in columns], sorted(ids), {}
    for at in range(0, len(wanted), _AT_ONCE):
        some = table.c.id.in_(wanted[at : at + _AT_ONCE])
        for row in connection.execute(question.where(some)):
            found[row[-1]] = dict(zip(names, row, strict=False))
    return found
