"""Two releases side by side: what became faster, what slower, and what cannot be compared."""

from collections import Counter
from collections.abc import Mapping, Sequence

import altair as alt
import pandas as pd
import streamlit as st
from pandas.io.formats.style import Styler

from dashboards import data
from dashboards.findings import Findings, is_wrong, listed, mark
from dashboards.look import (
    COLOURS,
    FILLS,
    GREY,
    MARKS,
    SHAPES,
    Layers,
    ink,
    printed,
    remembered,
    tall,
)
from dashboards.opening import newest_pair, offered
from perfdb.audit import Finding
from perfdb.compare import (
    Choice,
    Comparison,
    Match,
    Result,
    Side,
    Verdict,
    comparison,
    metric_for,
    words,
)
from perfdb.metrics import METRICS
from perfdb.units import UNKNOWN

AUTOMATIC = "Tokens/s/GPU, where known"
NO_BREAK = "\u00a0"

TABLED = 300
"""Up to so many matches stand on the page as text, to be read, searched and printed; more are in a
grid that draws only what is in view."""

CHARTED = 40
"""A chart of more matches is a wall; the table has them all."""


def show() -> None:
    """The page."""
    st.title("Compare releases")
    now = data.store()
    known = data.releases(now)
    if not known:
        st.info("Nothing to compare: no release in the store has results yet.")
        return
    a, b, metric = _chosen(now, known)
    found = comparison(data.results_of(now, a), data.results_of(now, b), metric)
    if found.matched:
        audited = data.findings_of(now)
        _matches(found.matched, audited, a.name, b.name)
        _charted(found.matched, audited)
    else:
        st.info(words.why_nothing(a.name, b.name, found))
    _unmatched(found, a.name, b.name)


def _chosen(now: data.Store, known: Sequence[Choice]) -> tuple[Choice, Choice, str | None]:
    """What to compare, kept in the address, so that a link shows the same comparison."""
    by_name = {choice.name: choice for choice in offered(known)}
    names = list(by_name)
    pair = newest_pair(known, data.work(now))
    first = (pair.a.name, pair.b.name) if pair else (names[0], names[-1])
    left, middle, right = st.columns(3)
    with left:
        a = remembered("Release A", names, first[0], "a")
    with middle:
        b = remembered("Release B", names, first[1], "b")
    titles = {AUTOMATIC: None} | {metric.title: metric.name for metric in METRICS.values()}
    with right:
        figure = st.selectbox("Figure", list(titles), key="figure", bind="query-params")
    return by_name[a], by_name[b], titles[figure]


def _matches(matches: Sequence[Match], audited: Findings, name_a: str, name_b: str) -> None:
    counts = Counter(match.judgement.verdict for match in matches)
    with st.container(horizontal=True):
        for verdict in Verdict:
            st.metric(MARKS[verdict], counts[verdict], border=True, width=140)
    figures = " or ".join(dict.fromkeys(METRICS[match.metric].title for match in matches))
    st.caption(
        f"A is {name_a}, B is {name_b}, in {figures}. B/A is their ratio, 95 % its interval where "
        "the spread of the runs gives one. Verdicts speak of B; “same” means that no difference "
        "can be told."
    )
    if len(matches) > TABLED:
        st.dataframe(styled(matches, audited), hide_index=True, placeholder=UNKNOWN)
    else:
        st.table(styled(matches, audited), hide_index=True)
    listed(
        (f"{letter}: {words.workload(side.shown)}", _findings(side, audited))
        for match in matches
        for letter, side in (("A", match.a), ("B", match.b))
    )


def _findings(side: Side, audited: Findings) -> tuple[Finding, ...]:
    return audited.get(side.shown.result_id, ())


def _charted(matches: Sequence[Match], audited: Findings) -> None:
    known = [match for match in matches if match.judgement.ratio is not None]
    right = [
        match
        for match in known
        if not any(is_wrong(_findings(side, audited)) for side in (match.a, match.b))
    ]
    wrong = len(known) - len(right)
    if known:
        st.subheader("B/A by case")
    if wrong:
        st.caption(f"Left out: {wrong:,} with an error that the audit found.")
    if right:
        st.altair_chart(ratios(right[:CHARTED]))


def styled(matches: Sequence[Match], audited: Findings) -> Styler:
    """The matches as a table, its verdicts on their colours."""
    table = pd.DataFrame([_row(match, audited) for match in matches])
    if not table["Audit"].any():
        table = table.drop(columns="Audit")
    if table["Figure"].nunique() == 1:
        table = table.drop(columns="Figure")  # the caption says it once
    fills = {MARKS[verdict]: fill for verdict, fill in FILLS.items()}
    coloured = table.style.map(lambda mark: fills[str(mark)], subset=["B is"])
    return coloured.format("{:.3f}", subset=["B/A"], na_rep=UNKNOWN)


def _audit(match: Match, audited: Findings) -> str:
    """'A ⚑ 1 error, B ⚑ 1 info'; empty where the audit has nothing to say."""
    marks = {"A": mark(_findings(match.a, audited)), "B": mark(_findings(match.b, audited))}
    return ", ".join(f"{letter} {said}" for letter, said in marks.items() if said)


def _row(match: Match, audited: Findings) -> dict[str, str | float | None]:
    metric, it = METRICS[match.metric], match.a.shown
    return {
        **_subject(it),
        "B/A": match.judgement.ratio,
        "B is": MARKS[match.judgement.verdict],
        "95 %": words.interval(match.judgement).replace(" ", NO_BREAK),
        "A": printed(metric, it.figure(match.metric)),
        "B": printed(metric, match.b.shown.figure(match.metric)),
        "Figure": metric.title,
        "Audit": _audit(match, audited),
        **_work(it),
        "Configuration": words.how(match),
        "Figures are": words.remark(match),
    }


def ratios(matches: Sequence[Match]) -> Layers:
    """A mark for each ratio with its interval, and a rule where nothing changed."""
    rows = [
        {
            "case": f"{place}. {_briefly(match.a.shown)}",
            "work": words.workload(match.a.shown),
            "ratio": match.judgement.ratio,
            "low": match.judgement.low,
            "high": match.judgement.high,
            "verdict": match.judgement.verdict.value,
            "how": words.how(match),
        }
        for place, match in enumerate(matches, start=1)
    ]
    told = ["work", "ratio", "low", "high", "verdict", "how"]
    base = alt.Chart(pd.DataFrame(rows)).encode(
        y=alt.Y("case:N", sort=None, axis=None, scale=alt.Scale(padding=0.7)), tooltip=told
    )
    seen = [one for one in Verdict if one in {match.judgement.verdict for match in matches}]
    legend = alt.Legend(title="B is", orient="top")
    colour = alt.Color("verdict:N", scale=_scale(COLOURS, seen), legend=legend)
    shape = alt.Shape("verdict:N", scale=_scale(SHAPES, seen), legend=legend)
    ratio = alt.X(
        "ratio:Q", title="B/A", scale=alt.Scale(zero=False, padding=20), axis=alt.Axis(tickCount=6)
    )
    marks = base.mark_point(filled=True, size=110, opacity=1).encode(ratio, shape, colour)
    spans = base.mark_rule(size=2).encode(alt.X("low:Q"), alt.X2("high:Q"), colour)
    names = base.mark_text(align="left", dy=-15, fontSize=12, color=ink()).encode(
        x=alt.value(0), text="case"
    )
    unchanged = alt.Chart().mark_rule(strokeDash=[2, 4], color=GREY).encode(x=alt.datum(1))
    spanned = [spans] if any(row["low"] is not None for row in rows) else []
    layers = alt.layer(unchanged, names, *spanned, marks)
    return tall(layers, 46 * len(rows))


def _briefly(it: Result) -> str:
    """A case in so few words that they fit on a telephone."""
    return f"{it.model_title}, {it.precision or UNKNOWN}, {it.num_gpus:,} × {it.system_title}"


def _scale(of: Mapping[Verdict, str], seen: Sequence[Verdict]) -> alt.Scale:
    return alt.Scale(domain=[one.value for one in seen], range=[of[one] for one in seen])


def _unmatched(found: Comparison, name_a: str, name_b: str) -> None:
    for name, sides in ((name_a, found.only_a), (name_b, found.only_b)):
        if sides:
            with st.expander(f"Only in {name}: {len(sides)}", expanded=not found.matched):
                st.dataframe(pd.DataFrame([_lone(side) for side in sides]), hide_index=True)


def _lone(side: Side) -> dict[str, str]:
    metric, it = METRICS[metric_for([side], [side], None)], side.shown
    return {
        **_subject(it),
        "Value": printed(metric, it.figure(metric.name)),
        "Figure": metric.title,
        **_work(it),
        "Configuration": words.configuration(it),
        "Figures are": words.remark_of(side),
    }


def _subject(it: Result) -> dict[str, str]:
    return {
        "Model": " ".join(filter(None, (it.model_title, it.qualifiers))),
        "System": f"{it.num_gpus:,} × {it.system_title}",
    }


def _work(it: Result) -> dict[str, str]:
    return {
        "Precision": it.precision or UNKNOWN,
        "Work": f"{it.task}, sequence {it.sequence_length:,}, GBS {it.global_batch_size:,}",
    }
