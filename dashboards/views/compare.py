"""Two releases side by side: what became faster, what slower, and what cannot be compared."""

from collections import Counter
from collections.abc import Hashable, Sequence
from functools import partial
from math import log
from operator import itemgetter

import pandas as pd
import streamlit as st
from pandas.io.formats.style import Styler

from dashboards import data
from dashboards.charts import VERDICT_STYLES, model, ratios, verdict_mark, work
from dashboards.choices import remembered, warn_of_others
from dashboards.findings import Findings, is_wrong, listed, mark, plain
from dashboards.release_pairs import offered, opened_on
from perfdb.catalog import titles
from perfdb.compare import (
    Choice,
    Comparison,
    Match,
    Side,
    Verdict,
    comparison,
    marked,
    metric_for,
    report,
    usable,
)
from perfdb.metrics import METRICS, Metric
from perfdb.record import Finding, Result
from perfdb.units import UNKNOWN, figure

AUTOMATIC = "Tokens/s/GPU, where known"
NO_BREAK = "\u00a0"

TABLED = 300
"""Up to this many matches are text on the page, to be read, searched and printed; more are in a
grid that draws only what is in view."""

CHARTED = 40
"""The most matches in the chart, as more cannot be read; the table has them all."""


def show() -> None:
    """The page."""
    st.title("Compare releases")
    store = data.store()
    known = data.releases(store)
    if not known:
        st.info("Nothing to compare: no release in the store has results yet.")
        return
    a, b, metric = _chosen(store, known)
    if len(known) == 1:
        only = plain(titles.release(a.name))
        st.info(f"Only {only} has results: there is nothing to compare it with.")
        return
    if a == b:
        both = plain(titles.release(a.name))
        st.info(f"A and B are both {both}: choose another release for one.")
        return
    if a.overlaps(b):
        parts = plain(f"{titles.release(a.name)} and {titles.release(b.name)}")
        st.info(f"{parts} have the same results in part: choose another release for one.")
        return
    audited = data.findings_of(store)
    wrong = {result_id for result_id, those in audited.items() if is_wrong(those)}
    of_a, of_b = (marked(data.results_of(store, choice), wrong) for choice in (a, b))
    found = comparison(of_a, of_b, metric)
    name_a, name_b = (titles.release(choice.name) for choice in (a, b))
    if found.matched:
        _matches(found.matched, audited, name_a, name_b)
        _charted(found)
    else:
        st.info(plain(report.why_nothing(name_a, name_b, found)))
    _unmatched(found, (name_a, name_b), metric)


def _chosen(store: data.Store, known: Sequence[Choice]) -> tuple[Choice, Choice, str | None]:
    """The releases and the metric to compare, kept in the address so that a link shows the same."""
    by_name = {choice.name: choice for choice in offered(known)}
    names = list(by_name)
    a, b = (by_name.get(st.query_params.get(key, "")) for key in ("a", "b"))
    first = opened_on(known, data.work(store), a, b)
    left, middle, right = st.columns(3)
    with left:
        name_a = remembered("Release A", names, first.a.name, "a", titles.release)
    with middle:
        name_b = remembered("Release B", names, first.b.name, "b", titles.release)
    figures = {AUTOMATIC: None} | {metric.title: metric.name for metric in METRICS.values()}
    with right:
        warn_of_others("figure", figures)
        chosen = st.selectbox("Figure", list(figures), key="figure", bind="query-params")
    return by_name[name_a], by_name[name_b], figures[chosen]


def _matches(matches: Sequence[Match], audited: Findings, name_a: str, name_b: str) -> None:
    counts = Counter(match.judgement.verdict for match in matches)
    with st.container(horizontal=True):
        for verdict in Verdict:
            label = verdict_mark(verdict, matches[0].metric)
            st.metric(label, counts[verdict], border=True, width=140)
    figures = " or ".join(dict.fromkeys(METRICS[match.metric].title for match in matches))
    st.caption(
        f"A is {plain(name_a)}, B is {plain(name_b)}, in {figures}. B/A is their ratio, 95 % its "
        "interval where the spread of the runs gives one. Verdicts speak of B; “same” means that "
        "no difference can be told, “unknown” that the figures are too noisy or no measure of each "
        "other, “not judged” that the audit has open errors of a side."
    )
    if len(matches) > TABLED:
        st.dataframe(styled(matches, audited), hide_index=True, placeholder=UNKNOWN)
    else:
        st.table(escaped(styled(matches, audited)), hide_index=True)
    listed(
        (f"{letter}: {report.workload(side.shown)}", _findings(side, audited))
        for match in matches
        for letter, side in (("A", match.a), ("B", match.b))
    )


def _findings(side: Side, audited: Findings) -> tuple[Finding, ...]:
    return audited.get(side.shown.result_id, ())


def _charted(found: Comparison) -> None:
    numbered = enumerate(found.matched, start=1)
    known = [(place, match) for place, match in numbered if match.judgement.ratio is not None]
    right = [one for one in known if one[1].judgement.verdict is not Verdict.NOT_JUDGED]
    wrong = len(known) - len(right)
    if known:
        st.subheader("B/A by case")
    drawn = gravest(right)
    first = report.named(Verdict.SLOWER, found.matched[0].metric)
    some = f"{len(drawn)} of {len(right)} are drawn: what is {first}, then the largest changes."
    sentences = (
        some if len(drawn) < len(right) else "",
        f"Left out: {wrong:,} with an error that the audit found." if wrong else "",
    )
    if caption := " ".join(filter(None, sentences)):
        st.caption(caption)
    if drawn:
        st.altair_chart(ratios(drawn))


def gravest(numbered: Sequence[tuple[int, Match]], most: int = CHARTED) -> list[tuple[int, Match]]:
    """The matches to look at first, of more than `most`, in the order of the table.

    What is slower comes before the rest, and a large change before a small one.
    """

    def gravity(one: tuple[int, Match]) -> tuple[bool, float]:
        judged = one[1].judgement
        return judged.verdict is not Verdict.SLOWER, -abs(log(judged.ratio or 1))

    return sorted(sorted(numbered, key=gravity)[:most], key=itemgetter(0))


def styled(matches: Sequence[Match], audited: Findings) -> Styler:
    """The matches as a table, with each verdict in its colour."""
    rows = [{"No.": place, **_row(match, audited)} for place, match in enumerate(matches, start=1)]
    table = pd.DataFrame(rows)
    if not table["Audit"].any():
        table = table.drop(columns="Audit")
    if table["Figure"].nunique() == 1:
        table = table.drop(columns="Figure")  # the caption says it once
    fills = {verdict_mark(v, matches[0].metric): look.fill for v, look in VERDICT_STYLES.items()}
    coloured = table.style.map(lambda mark: fills[str(mark)], subset=["B is"])
    return coloured.format(partial(figure, digits=3), subset=["B/A"], na_rep=UNKNOWN)


def escaped(table: Styler) -> Styler:
    """The table with its words as `st.table` wants them, which takes cells for Markdown."""
    worded: list[Hashable] = [name for name in table.columns if name not in ("No.", "B/A")]
    return table.format(lambda words: plain(str(words)), subset=worded)


def _audit(match: Match, audited: Findings) -> str:
    """'A ⚑ 1 error, B ⚑ 1 info'; empty if the audit has no findings."""
    marks = {"A": mark(_findings(match.a, audited)), "B": mark(_findings(match.b, audited))}
    return ", ".join(f"{letter} {text}" for letter, text in marks.items() if text)


def _row(match: Match, audited: Findings) -> dict[str, str | float | None]:
    metric, result = METRICS[match.metric], match.a.shown
    return {
        **_subject(result),
        "B/A": match.judgement.ratio,
        "B is": verdict_mark(match.judgement.verdict, match.metric),
        "95 %": report.interval(match.judgement).replace(" ", NO_BREAK),
        "A": report.figure(match.a.shown, metric.name),
        "B": report.figure(match.b.shown, metric.name),
        "Figure": metric.title,
        "Audit": _audit(match, audited),
        **_work(result),
        "Configuration": report.how(match),
        "Figures are": report.remark(match),
    }


def _unmatched(found: Comparison, names: Sequence[str], asked: str | None) -> None:
    for name, sides in zip(names, (found.only_a, found.only_b), strict=True):
        if sides:
            with st.expander(f"Only in {plain(name)}: {len(sides)}", expanded=not found.matched):
                st.dataframe(_lone(sides, asked), hide_index=True, placeholder=UNKNOWN)


def _lone(sides: Sequence[Side], asked: str | None) -> Styler:
    """A table of sides without a match: values sort as numbers, printed with their digits."""
    metrics = [METRICS[metric_for([side], [side], asked)] for side in sides]
    table = pd.DataFrame(map(_alone, sides, metrics)).astype({"Value": "Float64"})
    styled = table.style
    for place, (side, metric) in enumerate(zip(sides, metrics, strict=True)):
        as_printed = partial(_as_printed, report.figure(side.shown, metric.name))
        styled.format(as_printed, subset=([place], ["Value"]), na_rep=UNKNOWN)
    return styled


def _as_printed(figure: str, _value: float) -> str:
    return figure


def _alone(side: Side, metric: Metric) -> dict[str, str | float | None]:
    result = side.shown
    return {
        **_subject(result),
        "Value": usable(result, metric.name),
        "Figure": metric.title,
        **_work(result),
        "Configuration": report.configuration(result),
        "Figures are": report.remark_of(side),
    }


def _subject(result: Result) -> dict[str, str]:
    return {
        "Model": model(result),
        "System": f"{result.num_gpus:,} × {result.system_title}",
    }


def _work(result: Result) -> dict[str, str]:
    return {"Precision": _precision(result), "Work": work(result)}


def _precision(result: Result) -> str:
    return titles.precision(result.precision) or UNKNOWN
