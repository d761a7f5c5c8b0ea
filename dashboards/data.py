"""What the pages ask of the store: read-only, cached, and fresh as soon as the store changes."""

from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import streamlit as st
from sqlalchemy import URL, Connection, Select, make_url

from dashboards.digits import Raw
from dashboards.findings import Findings, by_result
from dashboards.opening import Work
from perfdb.audit import Finding
from perfdb.audit.acknowledged import explained
from perfdb.cli.reviewed import accepted
from perfdb.compare import Choice, Result, read
from perfdb.db import schema
from perfdb.db.session import reading, store_url
from perfdb.errors import InputError, StoreError
from perfdb.queries import catalog, findings, results
from perfdb.queries.frames import frame
from perfdb.record import Release

KEPT = 32
"""Answers kept of each question: a few states of the store, for a few people."""


class Store(NamedTuple):
    """The store at a moment: every cached answer belongs to one state of it."""

    address: str
    state: str


class Obstacle(NamedTuple):
    """Why there is nothing to show, and the commands that change it."""

    sentence: str
    commands: str


OTHER = "perfdb dashboard --db sqlite:///FILE"
"""Another store, where this one cannot be had."""


def obstacle() -> Obstacle | None:
    """What stands in the way of showing the store; None where nothing does."""
    try:
        url = store_url()
    except InputError as error:
        return Obstacle(str(error), OTHER)
    try:
        now = store()
    except StoreError as error:
        return Obstacle(str(error), _remedy(url))
    try:
        accepted(None)
    except InputError as error:
        return Obstacle(str(error), f"perfdb audit {_named(url)}")
    if not releases(now) and runs(now).empty:
        return Obstacle("The store is empty.", _filling(url))
    return None


def _remedy(url: URL) -> str:
    """What helps where a store cannot be read: make it, bring it up to date, or take another."""
    if url.get_backend_name() == "sqlite" and not Path(url.database or "").is_file():
        return _filling(url)
    try:
        with reading(url) as connection:
            found = schema.current(connection)
    except StoreError:
        return OTHER
    return OTHER if found and found > schema.HEAD else f"perfdb db upgrade {_named(url)}"


def _filling(url: URL) -> str:
    return f"perfdb run recipes/\n{storing(url)}"


def storing(url: URL) -> str:
    """The command that stores runs there."""
    return f"perfdb ingest runs/ {_named(url)}"


def _named(url: URL) -> str:
    return schema.option(url.render_as_string())


def store() -> Store:
    """The store and its state now. Raises StoreError where it is missing or of another schema."""
    url = store_url()
    with reading(url) as connection:
        schema.require_current(connection, url.render_as_string())
        return Store(url.render_as_string(hide_password=False), _state(url, connection))


def _state(url: URL, connection: Connection) -> str:
    """Changes with every write: for SQLite the sizes and times of its files, else the last ingest.

    An empty write-ahead log says nothing: opening the database to read may have made it.
    """
    if url.get_backend_name() != "sqlite":
        return str(connection.execute(catalog.last_ingest()).scalar())
    files = (Path(f"{url.database}{ending}") for ending in ("", "-wal"))
    found = (file.stat() for file in files if file.exists())
    return " ".join(f"{stat.st_mtime_ns}/{stat.st_size}" for stat in found if stat.st_size)


@st.cache_resource(max_entries=KEPT, show_spinner=False)
def releases(now: Store) -> tuple[Choice, ...]:
    """The releases that have results."""
    with reading(make_url(now.address)) as connection:
        return read.known_releases(connection)


@st.cache_resource(max_entries=KEPT, show_spinner="Reading the results …")
def results_of(now: Store, choice: Choice) -> tuple[Result, ...]:
    """Every result of a release. Frozen, and so shared between people rather than copied."""
    with reading(make_url(now.address)) as connection:
        return read.results_of(connection, choice)


@st.cache_data(max_entries=KEPT, show_spinner="Reading the results …")
def representative(now: Store) -> pd.DataFrame:
    """One result for each case, release and origin."""
    return _frame(now, results.representative())


@st.cache_data(max_entries=KEPT, show_spinner="Reading the runs …")
def runs(now: Store) -> pd.DataFrame:
    """Every run with its case's main fields."""
    return _frame(now, catalog.all_runs())


def findings_of(now: Store) -> Findings:
    """What the last audit found, by result; what the reviewed file accepts is explained."""
    return by_result(explained(_found(now), accepted(None)))


@st.cache_resource(max_entries=KEPT, show_spinner=False)
def _found(now: Store) -> Sequence[Finding]:
    with reading(make_url(now.address)) as connection:
        rows = connection.execute(findings.current()).mappings()
        return tuple(Finding.model_validate(dict(row)) for row in rows)


def work(now: Store) -> Work:
    """The workloads that each release has results of."""
    keys = representative(now).groupby("release_id")["workload_key"]
    return {int(str(release_id)): frozenset(of_one) for release_id, of_one in keys}


def results_of_run(now: Store, run_id: str) -> pd.DataFrame:
    """The result of a run, or its results."""
    found = _current(now)
    return found[found["run_id"] == run_id]


def sources(now: Store) -> dict[str, str]:
    """The file that the figures of a run were read from, by run id."""
    found = _current(now)[["run_id", "source"]].dropna()
    return dict(zip(found["run_id"], found["source"], strict=True))


@st.cache_resource(max_entries=KEPT, show_spinner=False)
def printed_cells(now: Store) -> Mapping[int, Raw]:
    """What pages print of each result, by its number."""
    found = _current(now)
    return dict(zip(found["result_id"], found["raw"], strict=True))


@st.cache_data(max_entries=KEPT, show_spinner="Reading the results …")
def _current(now: Store) -> pd.DataFrame:
    return _frame(now, results.current())


@st.cache_data(max_entries=KEPT, show_spinner="Reading the steps …")
def steps(now: Store, run_id: str) -> pd.DataFrame:
    """The steps of a run."""
    return _frame(now, catalog.steps_of(run_id))


@st.cache_data(max_entries=KEPT, show_spinner="Reading the files …")
def files(now: Store, run_id: str) -> pd.DataFrame:
    """The files a run was read from: name, SHA-256 and size."""
    return _frame(now, catalog.files_of(run_id)).drop(columns="content")


def release_names(rows: pd.DataFrame) -> list[str]:
    """'nemo 25.04': the release of each row."""
    return [
        Release.model_validate({"framework": row["framework"], "version": row["release"]}).name
        for row in records(rows[["framework", "release"]])
    ]


def records(rows: pd.DataFrame) -> list[dict[Hashable, object]]:
    """The rows of a frame one by one, with None for what is unknown."""
    plain = rows.astype(object)
    return plain.where(plain.notna(), None).to_dict("records")


def _frame(now: Store, question: Select[*tuple[object, ...]]) -> pd.DataFrame:
    with reading(make_url(now.address)) as connection:
        return frame(connection, question)
