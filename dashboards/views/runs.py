"""Every run with how it ended; one of them with its steps, its machine, its command, its files."""

import shlex
from collections.abc import Mapping
from pathlib import Path

import pandas as pd
import streamlit as st
from pydantic import ConfigDict
from sqlalchemy import make_url

from dashboards import charts, data
from dashboards.choices import remembered, remembered_some
from dashboards.findings import Findings, bullets, is_wrong, mark, plain
from dashboards.tables import grid, printed
from perfdb.catalog import titles
from perfdb.compare import report, run_diff
from perfdb.compare.releases import of_rows
from perfdb.compare.run_diff import RunFacts, differences
from perfdb.messages import NoteText
from perfdb.metrics import METRICS
from perfdb.record import Figures, Frozen, Outcome
from perfdb.units import counted, text

SHOWN = (
    "run_name", "model_title", "system", "release_name", "outcome", "started_at", "error", "recipe",
    "exit_code", "attempt", "ended_at", "run_id",
)  # fmt: skip


class ChosenRun(Frozen):
    """The run that was chosen."""

    model_config = ConfigDict(extra="ignore")

    run_id: str
    run_name: str
    release_name: str
    source: str
    outcome: Outcome
    error: str | None
    command: tuple[str, ...]
    environment: Mapping[str, object]


class Measured(Figures):
    """The figures of the run and their window, or why they are withheld."""

    model_config = ConfigDict(extra="ignore")

    result_id: int
    withheld: NoteText | None
    window: str | None
    num_steps: int | None
    peak_memory_bytes: int | None


def show() -> None:
    """The page."""
    st.title("Run")
    store = data.store()
    numbers = data.outcomes(store)
    if not numbers:
        command = data.storing(make_url(store.address))
        st.info("The store holds published results only. Runs come with this command.")
        st.code(command, language="bash")
        return
    chosen = remembered_some("Outcome", {outcome: outcome for outcome in numbers}, "outcome")
    kept = (it.get(key) for it in (st.query_params, st.session_state) for key in ("run", "with"))
    asked = set(map(str, kept))
    listed = labelled(data.runs(store, sorted(chosen), sorted(asked)))
    found = listed[listed["outcome"].isin(chosen)] if chosen else listed
    newest = "" if len(listed) < data.MOST_RUNS else " The newest are listed; a link opens any."
    st.caption(f"{len(found):,} of {counted(sum(numbers.values()), 'run')}.{newest}")
    grid(found[list(SHOWN)], "The runs with their outcome")
    names = dict(zip(listed["run_id"], listed["run_name"], strict=True))
    run_ids = list(names)
    run_id = remembered("Run", run_ids, run_ids[0], "run", lambda run_id: titled(run_id, names))
    chosen_row = data.records(listed[listed["run_id"] == run_id])[0]
    _show_run(store, ChosenRun.model_validate(chosen_row))
    if others := [one for one in run_ids if one != run_id]:
        of_case = listed[listed["case_key"] == chosen_row["case_key"]]["run_id"].tolist()
        # the one before of its case, as the site shows; without one, another of its case, or any
        after = [*of_case[of_case.index(run_id) + 1 :], *of_case, *others]
        first = next(one for one in after if one != run_id)
        st.subheader("What differs from another run")
        other = remembered("Other run", others, first, "with", lambda it: titled(it, names))
        _differences(data.facts(store, other), data.facts(store, run_id))


def _differences(before: RunFacts, here: RunFacts) -> None:
    """Show in what the chosen run differs from another, as `perfdb diff` does."""
    if rows := list(run_diff.rows(differences(before, here))):
        table = pd.DataFrame(rows, columns=["Field", "Other run", "This run"])
        st.dataframe(table, hide_index=True)
    else:
        st.info("Nothing differs.")


def titled(run_id: str, names: Mapping[str, str]) -> str:
    """'train.log (log-1981…)': a run in a list; only its id if that is its name."""
    return run_id if names[run_id] == run_id else f"{names[run_id]} ({run_id})"


def labelled(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs with release and run named in words. A log has no recipe: its file names it."""
    releases = list(map(titles.release, data.release_names(runs)))
    names = [
        Path(path).name if pd.isna(recipe) else run_id
        for path, recipe, run_id in zip(runs["source"], runs["recipe"], runs["run_id"], strict=True)
    ]
    systems = [titles.system(name) for name in runs["system"]]
    return runs.assign(release_name=releases, run_name=names, system=systems)


def _show_run(store: data.Store, run: ChosenRun) -> None:
    st.header(plain(run.run_name))
    results = data.results_of_run(store, run.run_id)
    [result, *_] = of_rows(
        [{str(name): value for name, value in row.items()} for row in data.records(results)]
    )
    case = f"{report.workload(result)} · {report.configuration(result)}"
    st.markdown(plain(f"{run.release_name} · {case}"))
    named = "Read" if run.run_id == run.run_name else f"{run.run_id}, read"
    st.caption(plain(f"{named} from {run.source}"))
    if run.error:
        st.error(plain(f"{run.outcome}: {run.error}"))
    _figures(results, data.findings_of(store))
    _steps(data.steps(store, run.run_id))
    if run.command:  # a log does not say how it was started, nor where
        st.subheader("Command")
        st.code(shlex.join(run.command), language="bash", wrap_lines=True)
    if run.environment:
        _environment(run.environment)
    _files(store, run.run_id)


def _figures(results: pd.DataFrame, audited: Findings) -> None:
    """Show the run's figures and their steps, or why they are withheld."""
    for measured in map(Measured.model_validate, data.records(results)):
        if found := audited.get(measured.result_id, ()):
            (st.error if is_wrong(found) else st.info)(f"{mark(found)}\n\n{bullets(found)}")
        if measured.withheld:
            st.warning(plain(f"No figures: {measured.withheld}."))
            continue
        with st.container(horizontal=True):
            for metric in METRICS.values():
                value = printed(metric, getattr(measured, metric.name))
                st.metric(metric.title, value, border=True, width="content", help=metric.meaning)
        steps = f"the median step time of {text(measured.num_steps)} steps, {measured.window}"
        st.caption(plain(f"Measured: from {steps}."))


@st.fragment
def _steps(steps: pd.DataFrame) -> None:
    if steps.empty:
        st.info("No step of this run was recorded.")
        return
    places = iter([*st.columns(2), *st.columns(2)])
    for title, chart in (("Step time", charts.step_times(steps)), *charts.curves(steps)):
        with next(places):
            st.subheader(title)
            st.vega_lite_chart(chart, alt=f"{title} of each step")


@st.fragment
def _files(store: data.Store, run_id: str) -> None:
    """The files of the run, and the end of the one that is chosen."""
    st.subheader("Files it was read from")
    files = data.files(store, run_id)
    grid(files, "The files that the run was read from")
    hashes = dict(zip(files["name"], files["sha256"], strict=True))
    name = st.selectbox("Show the end of", list(hashes), index=None, placeholder="a file")
    if name:
        st.code(data.tail(store, hashes[name]), language=None, height=400)


def _environment(environment: Mapping[str, object]) -> None:
    st.subheader("Machine and software")
    single = {
        name: text(value) for name, value in environment.items() if not isinstance(value, dict)
    }
    st.dataframe(pd.DataFrame(single.items(), columns=["What", "Value"]), hide_index=True)
    for name, value in environment.items():
        if isinstance(value, dict) and value:
            with st.expander(f"{plain(name.capitalize())}: {len(value)}"):
                rows = pd.DataFrame(value.items(), columns=["What", "Value"])
                st.dataframe(rows, hide_index=True)
