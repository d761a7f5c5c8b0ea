"""A visitor's own run, laid over the official results. It is stored nowhere."""

from collections.abc import Sequence

import streamlit as st

from dashboards import axes, charts, data, matches, upload
from dashboards.choices import one_of
from dashboards.findings import plain
from dashboards.tables import PER_RESULT, listing
from dashboards.upload import MOST_MIB, Upload
from perfdb import catalog
from perfdb.catalog import titles
from perfdb.compare import Match, comparison, marked
from perfdb.compare.comparability import why_nothing
from perfdb.metrics import METRICS
from perfdb.queries.best import Narrowing
from perfdb.record import Result
from perfdb.stated import RATE, figure

SETTINGS = "What the file does not state"
EXAMPLE = "model=llama3-8b\nsystem=dgx-h100\nnum_gpus=8\nrelease=25.04"
CHARTED = (RATE, "model_tflops_per_sec_per_gpu", "step_time_s")
KEPT = "own file"
"""Under this name the session has the last file and what was read of it, until it is left."""


def show() -> None:
    """The page."""
    st.title("Mine")
    st.caption("Your own run over the official results. The file is read in a temporary folder "
               "that is gone afterwards: nothing is stored, and nobody else sees it.")  # fmt: skip
    left, right = st.columns([3, 2])
    file = left.file_uploader(
        f"A log, a results file, or a run directory as .zip or .tar, of {MOST_MIB} MiB at most",
        key="mine", max_upload_size=MOST_MIB,
    )  # fmt: skip
    stated = right.text_area(
        SETTINGS, key="stated", placeholder=EXAMPLE, height=120,
        help="One FIELD=VALUE on each line, as `perfdb ingest --set` takes them.",
    )  # fmt: skip
    if file is None:
        st.session_state.pop(KEPT, None)
        return
    asked = (file.file_id, stated)
    if st.session_state.get(KEPT, (None, None))[0] != asked:
        settings = [line.strip() for line in stated.splitlines() if line.strip()]
        with st.spinner("Reading the file …"):
            st.session_state[KEPT] = (asked, upload.read(file.name, file.getvalue(), settings))
    _shown(st.session_state[KEPT][1])


def _shown(found: Upload) -> None:
    for problem in found.rejected:
        st.error(plain(problem))
    if found.notes:
        with st.expander(f"Notes: {len(found.notes)}"):
            st.markdown("\n".join(f"- {plain(note)}" for note in found.notes))
    if not found.results:
        return
    st.subheader("Unofficial: your file")
    listing(found.results, PER_RESULT, "The results of your file", "perfdb-mine.csv")
    store = data.store()
    for mine in _one_of_each(found.results):
        _overlaid(store, mine)
    _against(store, found.results)
    for run_id, steps in found.steps:
        if len(steps):
            st.subheader(f"Steps of {plain(run_id)}")
            st.vega_lite_chart(charts.step_times(steps.assign(is_measured=True)))


def _one_of_each(results: Sequence[Result]) -> list[Result]:
    """A result of each model and precision of the file, at most four."""
    return list({(it.model, it.precision, it.task): it for it in results}.values())[:4]


def _overlaid(store: data.Store, mine: Result) -> None:
    """The official results of the same model and precision, and the visitor's beside them."""
    metric = next((METRICS[name] for name in CHARTED if figure(mine, name)), None)
    if metric is None:
        return
    where = Narrowing.of(model=[mine.model], precision=[mine.precision], task=[mine.task])
    systems = data.systems_to_draw(store) if catalog.has_gpus(mine.system) else [mine.system]
    where = where.but(system=systems)
    by = ("system", "num_gpus")
    official = data.ranked(store, metric.name, by, where, data.wrong(store)).results
    if metric.name == "step_time_s":  # of other sizes it says nothing
        official = tuple(it for it in official if it.workload_key == mine.workload_key)
    name = f"{mine.model_title or titles.model(mine.model)}, {titles.precision(mine.precision)}"
    st.subheader(f"{plain(name)}: official results and yours")
    if not official:
        st.info("The store has no official result of this model, task and precision.")
    ordered = sorted(official, key=lambda it: (axes.system_order(it.system), it.num_gpus))
    drawn = charts.overlaid(ordered[: charts.MOST_OVERLAID], mine, metric)
    st.vega_lite_chart(drawn, alt="Official results, and the unofficial one of your file")


def _against(store: data.Store, results: Sequence[Result]) -> None:
    """The verdicts of `perfdb compare` on the visitor's results against a release."""
    known = data.releases(store)
    models = {it.model for it in results}
    where = Narrowing.of(model=sorted(models))
    here = set(data.values(store, "release_id", where))
    of_models = [one for one in known if here.intersection(one.release_ids)]
    if not of_models:
        return
    names = [one.name for one in of_models]
    st.subheader("Against a release")
    name = one_of("Release", names, names[-1], "against", titles.release)
    choice = next(one for one in of_models if one.name == name)
    official = marked(data.results_of(store, choice, tuple(sorted(models))), data.wrong(store))
    found = comparison(official, results)
    both: list[Match] = [*found.matched, *found.best]
    if both:
        st.caption("A is the release, B is your file (unofficial).")
        matches.shown(matches.frame(both[:20], data.findings_of(store)))
    else:
        st.info(plain(why_nothing(titles.release(name), "your file", found)))
