"""The newest comparison, opened without a click: key figures, the largest changes, and a table."""

from collections.abc import Sequence
from math import exp, log
from statistics import fmean

import streamlit as st

from dashboards import charts, data, matches
from dashboards.findings import plain
from dashboards.release_choice import Pair, chosen
from dashboards.tables import download
from dashboards.views.compare import of_chosen_precision
from perfdb.catalog import titles
from perfdb.compare import Match, Verdict, report
from perfdb.compare.comparability import why_nothing
from perfdb.units import UNKNOWN, percent

CHANGES = 8
"""The changes that are shown; *Compare* has them all."""


def show() -> None:
    """The page."""
    st.title("Overview")
    store = data.store()
    known = data.releases(store)
    if not known:
        st.info("No release in the store has results yet.")
    elif pair := chosen(store, known):
        _compared(store, pair)


def _compared(store: data.Store, pair: Pair) -> None:
    name_a, name_b = (titles.release(choice.name) for choice in pair)
    whole = data.compared(store, pair, data.wrong(store), None)
    if not whole.matched:
        st.info(plain(why_nothing(name_a, name_b, whole)))
        return
    found = of_chosen_precision(whole)
    _key_figures(found.matched, len(found.only_b), len(found.only_a))
    ordered = matches.in_order(found.matched)
    drawable, *_ = matches.comparable(ordered)
    largest = matches.gravest(drawable, CHANGES)
    if largest:
        st.subheader(f"Largest changes from {plain(name_a)} to {plain(name_b)}")
        drawn = [(place, match) for place, (_, match) in enumerate(largest, start=1)]
        st.vega_lite_chart(charts.ratios(drawn), alt="The ratio of B to A of the largest changes")
        table = matches.frame([match for _, match in largest], data.findings_of(store))
        matches.shown(table)
        download(table, "perfdb-overview.csv")
    st.caption(f"In all precisions: {report.summary(whole)} *Compare* shows them.")


def _key_figures(found: Sequence[Match], num_new: int, num_missing: int) -> None:
    verdicts = [match.judgement.verdict for match in found]
    metric = found[0].metric
    figures: dict[str, tuple[str, str]] = {
        "Mean change": (_change(found), "The geometric mean of B/A over all judged matches"),
        **{
            charts.verdict_mark(one, metric): (
                f"{verdicts.count(one):,}",
                "Matches with this verdict",
            )
            for one in (Verdict.FASTER, Verdict.SLOWER, Verdict.SAME, Verdict.UNKNOWN)
        },
        "New": (f"{num_new:,}", "Cases that only B has"),
        "Missing": (f"{num_missing:,}", "Cases that only A has"),
    }
    with st.container(horizontal=True):
        for label, (value, meaning) in figures.items():
            st.metric(label, value, border=True, width="content", help=meaning)


def _change(found: Sequence[Match]) -> str:
    """The geometric mean of what was judged by the first figure, as a change: '+2.1%'."""
    judged = [it for it in found if it.judgement.is_told and it.metric == found[0].metric]
    ratios = [it.judgement.ratio for it in judged if it.judgement.ratio]
    if not ratios:
        return UNKNOWN
    mean = exp(fmean(map(log, ratios)))
    return f"{'+' if mean >= 1 else ''}{percent(mean - 1)}"
