"""The pages' queries of the store: read-only, cached, and asked again when the store changes."""

from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import streamlit as st
from sqlalchemy import URL, Connection, Select, make_url

from dashboards.findings import Findings, by_result
from dashboards.release_pairs import Work
from perfdb import aggregation, selection
from perfdb.audit.review import accepted, explained
from perfdb.compare import Choice, read
from perfdb.compare.releases import builds
from perfdb.db import tables
from perfdb.db.session import reading, reading_current, store_url
from perfdb.queries import catalog, results
from perfdb.queries import runs as run_queries
from perfdb.record import Finding, Release, Result
from perfdb.verify.figures import with_steps

KEPT = 32
"""How many answers are cached for each query: a few states of the store, for a few people."""


def frame(connection: Connection, question: Select[*tuple[object, ...]]) -> pd.DataFrame:
    """The rows as a frame of nullable columns, so that ids stay integers if some are unknown."""
    found = connection.execute(question)
    columns = list(found.keys())
    rows = pd.DataFrame([tuple(row) for row in found], columns=columns, dtype=object)
    return rows.convert_dtypes()


class Store(NamedTuple):
    """The store in one state: cached answers are of one address and one state."""

    address: str
    state: str


def store() -> Store:
    """The store in its present state. Raises StoreError if it is missing or has another schema."""
    url = store_url()
    with reading_current(url) as connection:
        return Store(url.render_as_string(hide_password=False), _state(url, connection))


def _state(url: URL, connection: Connection) -> str:
    """A text that changes with every write: sizes and times of SQLite's files, or the last rows.

    An empty write-ahead log does not count: opening the database to read may have made it.
    """
    if url.get_backend_name() != "sqlite":
        return str(connection.execute(catalog.last_change()).one())
    files = (Path(f"{url.database}{ending}") for ending in ("", "-wal"))
    found = (file.stat() for file in files if file.exists())
    return " ".join(f"{stat.st_mtime_ns}/{stat.st_size}" for stat in found if stat.st_size)


@st.cache_resource(max_entries=KEPT, show_spinner=False)
def releases(store: Store) -> tuple[Choice, ...]:
    """The releases that have results."""
    with reading(make_url(store.address)) as connection:
        return read.known_releases(connection)


@st.cache_resource(max_entries=KEPT, show_spinner="Reading the results …")
def results_of(store: Store, choice: Choice) -> tuple[Result, ...]:
    """Every result of a release. Frozen, so that people share them without copies."""
    with reading(make_url(store.address)) as connection:
        return read.results_of(connection, choice)


@st.cache_data(max_entries=KEPT, show_spinner="Reading the results …")
def representative(store: Store) -> pd.DataFrame:
    """One result for each case, release and origin; `build` is as on the pages of the site."""
    found = _query(store, results.representative())
    place = found["release_id"].map(builds(releases(store)))
    return found.assign(build=place.fillna(0).astype(int))


@st.cache_data(max_entries=KEPT, show_spinner="Reading the runs …")
def runs(store: Store) -> pd.DataFrame:
    """Every run with its case's main fields."""
    return _query(store, run_queries.all_runs())


def findings_of(store: Store) -> Findings:
    """What the last audit found, by result; those that the reviewed file accepts are marked so."""
    return by_result(explained(_found(store), accepted(None)))


@st.cache_resource(max_entries=KEPT, show_spinner=False)
def _found(store: Store) -> Sequence[Finding]:
    with reading(make_url(store.address)) as connection:
        rows = connection.execute(results.current_findings()).mappings()
        return tuple(Finding.model_validate(dict(row)) for row in rows)


def work(store: Store) -> Work:
    """The keys of the workloads that each release has results of, by release_id."""
    keys = representative(store).groupby("release_id")["workload_key"]
    return {int(str(release_id)): frozenset(group) for release_id, group in keys}


def results_of_run(store: Store, run_id: str) -> pd.DataFrame:
    """The results of a run: usually one."""
    found = _current(store)
    return found[found["run_id"] == run_id]


def sources(store: Store) -> dict[str, str]:
    """The file that the figures of a run were read from, by run id."""
    found = _current(store)[["run_id", "source"]].dropna()
    return dict(zip(found["run_id"], found["source"], strict=True))


@st.cache_data(max_entries=KEPT, show_spinner="Reading the results …")
def _current(store: Store) -> pd.DataFrame:
    return _query(store, results.current())


@st.cache_data(max_entries=KEPT, show_spinner="Reading the steps …")
def steps(store: Store, run_id: str) -> pd.DataFrame:
    """The steps of a run; `is_measured`: whether the figures are taken over it."""
    found = _query(store, run_queries.steps_of(run_id))
    with reading(make_url(store.address)) as connection:
        return found.assign(is_measured=found["step"].isin(_measured(connection, run_id)))


def _measured(connection: Connection, run_id: str) -> set[int]:
    """The steps that the figures of a run are taken over; none of those that are withheld."""
    rows = connection.execute(results.with_runs().where(tables.runs.c.run_id == run_id)).mappings()
    found: set[int] = set()
    for one, steps in with_steps(connection, rows):
        if one.result.window and one.result.withheld is None:
            window = aggregation.named(one.result.window, "window")
            found.update(
                selection.pick_steps(steps, window, averages=one.averages).steps.step.tolist()
            )
    return found


@st.cache_data(max_entries=KEPT, show_spinner="Reading the files …")
def files(store: Store, run_id: str) -> pd.DataFrame:
    """The files a run was read from: name, SHA-256 and size."""
    return _query(store, run_queries.files_of(run_id))


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
    with reading(make_url(store.address)) as connection:
        return frame(connection, question)
