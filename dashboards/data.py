"""The pages' queries of the store: read-only, cached, and asked again when the store changes."""

from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import streamlit as st
from sqlalchemy import URL, Select, make_url

from dashboards.findings import Findings, by_result, is_wrong
from perfdb import aggregation, selection
from perfdb.audit.review import Entry, accepted, explained
from perfdb.catalog import has_gpus
from perfdb.compare import Comparison, run_diff
from perfdb.compare import releases as named_releases
from perfdb.compare.across import SystemPairs, of_systems
from perfdb.compare.releases import Choice
from perfdb.compare.run_diff import RunFacts
from perfdb.db import sources, tables
from perfdb.db.session import HEAD, current, is_missing, option, reading, reading_current, store_url
from perfdb.errors import InputError, StoreError
from perfdb.queries import best, catalog, results
from perfdb.queries import runs as run_queries
from perfdb.queries.best import EVERYTHING, Narrowing
from perfdb.queries.scope import EVERY, Scope
from perfdb.record import Finding, Result, release_name
from perfdb.verify.figures import with_steps

MOST_RUNS = 500
"""The most runs that are listed; a browser takes long to show more, and nobody reads them."""

MOST_ROWS = 100
"""The most results that a table has: filters lead to the others."""

MOST_GROUPS = 400
"""The most groups that are ranked for a chart."""

TAIL_LINES, TAIL_BYTES = 200, 1 << 16
"""How much of the end of a log is shown."""

KEPT = 32
"""How many answers are cached for each query: a few states of the store, for a few people."""


class Store(NamedTuple):
    """The store in one state: cached answers are of one address and one state."""

    address: str
    state: str


def store() -> Store:
    """The store in its present state. Raises StoreError if it is missing or has another schema.

    The state changes with every write: sizes and times of SQLite's files, or the last rows. An
    empty write-ahead log does not count: opening the database to read may have made it.
    """
    url = store_url()
    with reading_current(url) as connection:
        if url.get_backend_name() == "sqlite":
            files = (Path(f"{url.database}{ending}") for ending in ("", "-wal"))
            found = (file.stat() for file in files if file.exists())
            state = " ".join(f"{stat.st_mtime_ns}/{stat.st_size}" for stat in found if stat.st_size)
        else:
            state = str(connection.execute(catalog.last_change()).one())
    return Store(url.render_as_string(hide_password=False), state)


@st.cache_resource(max_entries=KEPT, show_spinner=False)
def releases(store: Store) -> tuple[Choice, ...]:
    """The releases that have results."""
    with reading(make_url(store.address)) as connection:
        return named_releases.known_releases(connection)


@st.cache_resource(max_entries=KEPT, show_spinner="Reading the results …")
def compared(
    store: Store, pair: tuple[Choice, Choice], wrong: frozenset[int], metric: str | None
) -> Comparison:
    """Two releases, as `perfdb compare` has them. Frozen, so that people share it without copies.

    `wrong` are the results, by their number, that have open errors.
    """
    with reading(make_url(store.address)) as connection:
        how = named_releases.Judging(wrong, metric)
        return named_releases.compared(connection, pair, EVERY, how)


@st.cache_resource(max_entries=KEPT, show_spinner="Reading the results …")
def across(
    store: Store, pair: tuple[Choice, Choice], systems: tuple[str, str], metric: str | None
) -> SystemPairs:
    """A system at a release against another one. Raises InputError for what the store lacks."""
    with reading(make_url(store.address)) as connection:
        wrong_ones = named_releases.open_errors(connection, accepted(None))
        return of_systems(connection, pair, Scope(system=systems), wrong_ones, metric)


@st.cache_resource(max_entries=KEPT, show_spinner="Reading the results …")
def results_of(store: Store, choice: Choice, models: tuple[str, ...]) -> tuple[Result, ...]:
    """Every current result of some models at a release."""
    with reading(make_url(store.address)) as connection:
        return named_releases.results_of(connection, choice, Scope(model=models))


class Ranked(NamedTuple):
    """The best results of groups, the best first, and how many groups there are."""

    results: tuple[Result, ...]
    num_groups: int


@st.cache_resource(max_entries=KEPT, show_spinner="Reading the results …")
def ranked(
    store: Store,
    metric: str,
    by: Sequence[str],
    where: Narrowing,
    wrong: frozenset[int] = frozenset(),
) -> Ranked:
    """The best result of each group, at most MOST_GROUPS; none of those that are wrong."""
    question = best.ranked(metric, by, where, wrong, MOST_GROUPS)
    with reading(make_url(store.address)) as connection:
        found = connection.execute(question).mappings().all()
    results_of = named_releases.of_rows(dict(row) for row in found)
    return Ranked(results_of, int(found[0]["num_groups"]) if found else 0)


@st.cache_resource(max_entries=KEPT, show_spinner="Reading the results …")
def rows(store: Store, where: Narrowing) -> Sequence[Mapping[str, object]]:
    """The results that tables print, narrowed down, by column: at most MOST_ROWS."""
    with reading(make_url(store.address)) as connection:
        return [dict(row) for row in connection.execute(best.page(where, MOST_ROWS)).mappings()]


@st.cache_data(max_entries=KEPT, show_spinner=False)
def totals(store: Store, where: Narrowing) -> tuple[int, int]:
    """How many results tables print, and how many they stand for."""
    with reading(make_url(store.address)) as connection:
        printed, of = connection.execute(best.totals(where)).one()
    return int(printed), int(of)


@st.cache_data(max_entries=KEPT, show_spinner=False)
def values(store: Store, axis: str, where: Narrowing = EVERYTHING) -> dict[object, int]:
    """The values of an axis that current results have, with how many cases have each."""
    with reading(make_url(store.address)) as connection:
        answer = connection.execute(best.values_of(axis, where))
        return {row[0]: int(str(row[1])) for row in answer}


@st.cache_data(max_entries=KEPT, show_spinner=False)
def scaled_releases(store: Store, where: Narrowing) -> frozenset[int]:
    """The releases, by their number, with results on two or more numbers of GPUs."""
    with reading(make_url(store.address)) as connection:
        return frozenset(connection.scalars(best.scaled_releases(where)))


@st.cache_data(max_entries=KEPT, show_spinner=False)
def widest(store: Store) -> tuple[str, str, str | None]:
    """The model, system and precision with results on the most numbers of GPUs."""
    with reading(make_url(store.address)) as connection:
        model, system, precision = connection.execute(best.widest()).one()
    return str(model), str(system), None if precision is None else str(precision)


def systems_to_draw(store: Store) -> list[str]:
    """The systems of a chart that nobody has narrowed: CPUs only where there are no GPUs."""
    known = list(map(str, values(store, "system")))
    return [name for name in known if has_gpus(name)] or known


@st.cache_data(max_entries=KEPT, show_spinner="Reading the runs …")
def runs(store: Store, outcomes: Sequence[str], run_ids: Sequence[str]) -> pd.DataFrame:
    """The newest runs of some outcomes, or of all if none is named, and those of some ids."""
    return _query(store, run_queries.newest(MOST_RUNS, outcomes, run_ids))


@st.cache_data(max_entries=KEPT, show_spinner=False)
def outcomes(store: Store) -> dict[str, int]:
    """How many runs ended how."""
    found = _query(store, run_queries.outcomes())
    return dict(found.itertuples(index=False, name=None))


def findings_of(store: Store) -> Findings:
    """What the last audit found, by result; those that the reviewed file accepts are marked so."""
    known = accepted(None)
    return _explained(store, repr(known), known)


@st.cache_resource(max_entries=KEPT, show_spinner=False)
def _explained(store: Store, words: str, _known: Sequence[Entry]) -> Findings:
    """`words` tells the accepted findings from those of another time."""
    with reading(make_url(store.address)) as connection:
        rows = connection.execute(results.current_findings()).mappings()
        found = [Finding.model_validate(dict(row)) for row in rows]
    return by_result(explained(found, _known))


def wrong(store: Store) -> frozenset[int]:
    """The results, by their number, with errors that nobody has accepted."""
    return frozenset(number for number, those in findings_of(store).items() if is_wrong(those))


@st.cache_data(max_entries=KEPT, show_spinner=False)
def num_shared(store: Store, a: tuple[int, ...], b: tuple[int, ...]) -> int:
    """How many workloads two releases both have results of."""
    with reading(make_url(store.address)) as connection:
        return connection.execute(best.num_shared(a, b)).scalar_one()


def results_of_run(store: Store, run_id: str) -> pd.DataFrame:
    """The results of a run: usually one."""
    return _query(store, results.of_run(run_id))


@st.cache_data(max_entries=KEPT, show_spinner="Reading the steps …")
def steps(store: Store, run_id: str) -> pd.DataFrame:
    """The steps of a run; `is_measured`: whether figures that are not withheld are of it."""
    measured: set[int] = set()
    question = results.with_runs().where(tables.runs.c.run_id == run_id)
    with reading(make_url(store.address)) as connection:
        for one, recorded in with_steps(connection, connection.execute(question).mappings()):
            if one.result.window and one.result.withheld is None:
                window = aggregation.named(one.result.window, "window")
                taken = selection.pick_steps(recorded, window, averages=one.averages)
                measured.update(taken.steps.step.tolist())
    found = _query(store, run_queries.steps_of(run_id))
    return found.assign(is_measured=found["step"].isin(measured))


def tail(store: Store, sha256: str) -> str:
    """The last lines of a file that a run was read from, as text."""
    with reading(make_url(store.address)) as connection:
        content = sources.content(connection, sha256)
    return "\n".join(content[-TAIL_BYTES:].decode(errors="replace").splitlines()[-TAIL_LINES:])


@st.cache_data(max_entries=KEPT, show_spinner="Reading the files …")
def files(store: Store, run_id: str) -> pd.DataFrame:
    """The files a run was read from: name, SHA-256 and size."""
    return _query(store, run_queries.files_of(run_id))


@st.cache_resource(max_entries=KEPT, show_spinner=False)
def facts(store: Store, run_id: str) -> RunFacts:
    """What a run was asked to do, on what and with which software, and how it went."""
    with reading(make_url(store.address)) as connection:
        return run_diff.of_stored(connection, run_id)


def release_names(rows: pd.DataFrame) -> list[str]:
    """'nemo 25.04': the release of each row."""
    stated = records(rows[["framework", "release"]])
    return [release_name(row["framework"], row["release"]) for row in stated]  # type: ignore[arg-type]  # of any frame


def records(rows: pd.DataFrame) -> list[dict[Hashable, object]]:
    """The rows of a frame as mappings, with None for what is unknown."""
    columns = [rows[name].to_numpy(dtype=object, na_value=None) for name in rows]  # type: ignore[call-overload]  # its types lack None
    return [dict(zip(rows, row, strict=True)) for row in zip(*columns, strict=True)]


def _query(store: Store, question: Select[*tuple[object, ...]]) -> pd.DataFrame:
    """The rows as a frame of nullable columns, so that ids stay integers if some are unknown."""
    with reading(make_url(store.address)) as connection:
        found = connection.execute(question)
        columns = list(found.keys())
        rows = pd.DataFrame([tuple(row) for row in found], columns=columns, dtype=object)
    return rows.convert_dtypes()


# ------------------------------------------------------------ why the store cannot be shown


class Obstacle(NamedTuple):
    """Why there is nothing to show, and the commands that change it."""

    sentence: str
    commands: str


OTHER = "perfdb dashboard --db sqlite:///FILE"
"""The command that shows another store, if this one cannot be read."""


def obstacle() -> Obstacle | None:
    """What keeps the store from being shown; None if nothing does."""
    try:
        url = store_url()
    except InputError as error:
        return Obstacle(str(error), OTHER)
    filling = f"perfdb run recipes/\n{storing(url)}"
    try:
        found = store()
        accepted(None)
    except StoreError as error:
        return Obstacle(str(error), _remedy(url, filling))
    except InputError as error:
        return Obstacle(str(error), f"perfdb audit {_named(url)}")
    is_empty = not releases(found) and not outcomes(found)
    return Obstacle("The store is empty.", filling) if is_empty else None


def _remedy(url: URL, filling: str) -> str:
    """The commands to create the store, to upgrade its schema, or to show another one."""
    try:
        if is_missing(url):
            return filling
        with reading(url) as connection:
            version = current(connection)
    except StoreError:
        return OTHER
    return OTHER if version and version > HEAD else f"perfdb db upgrade {_named(url)}"


def storing(url: URL) -> str:
    """The command that stores runs in the store of this address."""
    return f"perfdb ingest runs/ {_named(url)}"


def _named(url: URL) -> str:
    return option(url.render_as_string())
