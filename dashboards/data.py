"""The pages' queries of the store: read-only, cached, and asked again when the store changes."""

from collections.abc import Hashable, Mapping, Sequence, Set
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import streamlit as st
from sqlalchemy import URL, Select, make_url

from dashboards.findings import Findings, by_result
from perfdb import aggregation, selection
from perfdb.audit.review import accepted, explained
from perfdb.compare import Comparison, run_diff
from perfdb.compare import releases as named_releases
from perfdb.compare.releases import Choice
from perfdb.compare.run_diff import RunFacts
from perfdb.db import tables
from perfdb.db.session import HEAD, current, is_missing, option, reading, reading_current, store_url
from perfdb.errors import InputError, StoreError
from perfdb.queries import catalog, results
from perfdb.queries import runs as run_queries
from perfdb.queries.scope import EVERY
from perfdb.record import Finding, Release
from perfdb.verify.figures import with_steps

MOST_RUNS = 1_000
"""The most runs that are listed; a browser takes long to show more, and nobody reads them."""

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


@st.cache_data(max_entries=KEPT, show_spinner="Reading the results …")
def representative(store: Store) -> pd.DataFrame:
    """One result for each case, release and origin; `build` is as on the pages of the site."""
    found = _query(store, results.representative())
    place = found["release_id"].map(named_releases.builds(releases(store)))
    return found.assign(build=place.fillna(0).astype(int))


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
    return by_result(explained(_found(store), accepted(None)))


@st.cache_resource(max_entries=KEPT, show_spinner=False)
def _found(store: Store) -> Sequence[Finding]:
    with reading(make_url(store.address)) as connection:
        rows = connection.execute(results.current_findings()).mappings()
        return tuple(Finding.model_validate(dict(row)) for row in rows)


def work(store: Store) -> Mapping[int, Set[str]]:
    """The keys of the workloads that each release has results of, by release_id."""
    keys = representative(store).groupby("release_id")["workload_key"]
    return {int(str(release_id)): frozenset(group) for release_id, group in keys}


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
    return [
        Release.model_validate({"framework": row["framework"], "version": row["release"]}).name
        for row in records(rows[["framework", "release"]])
    ]


def records(rows: pd.DataFrame) -> list[dict[Hashable, object]]:
    """The rows of a frame as mappings, with None for what is unknown."""
    plain = rows.astype(object)
    return plain.where(plain.notna(), None).to_dict("records")


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
