"""Time and cost of a training, from the nearest result; none where nothing is near."""

import streamlit as st

from dashboards import axes, data
from dashboards.choices import one_of
from dashboards.findings import plain
from dashboards.tables import listing
from dashboards.views.history import choose, choose_precision
from perfdb import units
from perfdb.catalog import titles
from perfdb.compare import report
from perfdb.compare.estimate import FARTHEST, Estimate, PlannedTraining, estimate
from perfdb.metrics import METRICS, TRILLION
from perfdb.queries.best import Narrowing
from perfdb.record import Origin
from perfdb.stated import RATE

ANY = "Any"
BY = ("num_gpus", "sequence_length", "origin")
"""Of each the best result may be the nearest."""


def show() -> None:
    """The page."""
    st.title("What-if")
    st.caption("How long a training takes and what it costs, if each GPU is as fast as in the "
               "nearest result of the store. Nothing is interpolated.")  # fmt: skip
    store = data.store()
    where = _work(store)
    results = data.ranked(store, RATE, BY, where, data.wrong(store)).results
    lengths = sorted({it.sequence_length for it in results})
    asked = _asked(lengths)
    found = estimate(results, asked)
    if found is None:
        _refused([it.num_gpus for it in results], asked)
    else:
        _estimated(found)
    if results:
        with st.expander(
            f"Chosen from {units.counted(len(results), 'result')}", expanded=found is None
        ):
            order = sorted(results, key=lambda it: (it.num_gpus, it.sequence_length))
            listing(order, (RATE, "step_time_s"), "The results", "perfdb-what-if.csv")


def _work(store: data.Store) -> Narrowing:
    left, middle, right = st.columns(3)
    with left:
        where = Narrowing.of(model=[choose(store, "model", titles.model)], task=["pretrain"])
    if not (names := data.values(store, "system", where)):
        where = where.but(task=[])
        names = data.values(store, "system", where)
    with middle:
        systems = sorted(map(str, names), key=axes.system_order)
        system = one_of("System", systems, systems[0], "system", titles.system)
    where = where.but(system=[system])
    with right:
        return where.but(precision=[choose_precision(store, where)])


def _asked(lengths: list[int]) -> PlannedTraining:
    columns = st.columns(4)
    tokens = columns[0].number_input(
        "Tokens (trillions)", 0.001, 1e6, 1.0, key="tokens", bind="query-params", format="%g"
    )
    gpus = columns[1].number_input("GPUs", 1, 10**7, 64, key="gpus", bind="query-params")
    words = {ANY: None} | {f"{length:,}": length for length in lengths}
    length = columns[2].selectbox(
        "Sequence length", list(words), key="sequence", bind="query-params"
    )
    price = columns[3].number_input(
        "Price of a GPU-hour", 0.0, 1e6, None, key="price", bind="query-params", format="%g",
        placeholder="none", help="In any currency: the cost is in the same.",
    )  # fmt: skip
    return PlannedTraining(tokens * TRILLION, gpus, words[length], price)


def _refused(known: list[int], asked: PlannedTraining) -> None:
    if not known:
        st.warning("No estimate: the store has no rate of this model on this system, in this "
                   "precision.")  # fmt: skip
        return
    scales = ", ".join(f"{count:,}" for count in sorted(set(known)))
    st.warning(
        f"No estimate: nothing is near. The store has results on {scales} GPUs. {asked.num_gpus:,} "
        f"GPUs are more than {FARTHEST:g} times away, or the sequence length is."
    )


def _estimated(found: Estimate) -> None:
    cost = {} if found.cost is None else {"Cost": units.number(found.cost)}
    shown = {
        "Days": units.significant(found.days, 3),
        "GPU-hours": units.number(found.gpu_hours),
        **cost,
        METRICS[RATE].title: report.printed(METRICS[RATE], found.tokens_per_sec_per_gpu),
    }
    with st.container(horizontal=True):
        for label, value in shown.items():
            st.metric(label, value, border=True, width=165)
    it = found.nearest
    nearest = plain(f"{report.workload(it)}, {axes.release_name(it)}, {it.origin}, {it.source}")
    link = f" ([its run](runs?run={it.run_id}))" if it.origin == Origin.MEASURED else ""
    if found.distance:
        words = plain("; ".join(found.distance))
        st.warning(f"From the nearest result, {words}: the rate of a GPU may be another one.")
    else:
        st.success("From a result of the same size.")
    st.markdown(f"Nearest result: {nearest}{link}")
    st.caption("Without pauses, failures, evaluation and checkpoints; of the GPUs alone.")
