"""Two releases side by side: what became faster, what slower, and what cannot be compared."""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from functools import partial
from itertools import combinations
from math import log
from operator import itemgetter

import pandas as pd
import streamlit as st
from pandas.io.formats.style import Styler

from dashboards import charts, data
from dashboards.choices import remembered, warn_of_others
from dashboards.findings import Findings, is_wrong, listed, mark, plain
from perfdb import compare
from perfdb.catalog import titles
from perfdb.compare import Choice, Match, Side, Verdict, report
from perfdb.groups import grouped
from perfdb.metrics import METRICS
from perfdb.record import UNATTRIBUTED, Finding, Result
from perfdb.units import UNKNOWN, figure

AUTOMATIC = "Tokens/s/GPU, where known"
NO_BREAK = "\u00a0"

TABLED = 300
"""Up to this many matches are text on the page, to be read, searched and printed; more are in a
grid that draws only what is in view."""

CHARTED = 40
"""The most matches in the chart, as more cannot be read; the table has them all."""


Work = Mapping[int, Set[str]]
"""The keys of the workloads that a release has results of, by release_id."""

Pair = tuple[Choice, Choice]
"""Two releases, the older one first."""


def show() -> None:
    """The page."""
    st.title("Compare releases")
    store = data.store()
    known = data.releases(store)
    if not known:
        st.info("Nothing to compare: no release in the store has results yet.")
        return
    a, b, metric = _chosen(store, known)
    name_a, name_b = (titles.release(choice.name) for choice in (a, b))
    reason = ""
    if len(known) == 1:
        reason = f"Only {plain(name_a)} has results: there is nothing to compare it with."
    elif a == b:
        reason = f"A and B are both {plain(name_a)}: choose another release for one."
    elif a.overlaps(b):
        both = plain(f"{name_a} and {name_b}")
        reason = f"{both} have the same results in part: choose another release for one."
    if reason:
        st.info(reason)
    else:
        _compared(store, (a, b), metric)


def _compared(store: data.Store, pair: Pair, metric: str | None) -> None:
    name_a, name_b = (titles.release(choice.name) for choice in pair)
    audited = data.findings_of(store)
    wrong = frozenset(result_id for result_id, those in audited.items() if is_wrong(those))
    found = data.compared(store, pair, wrong, metric)
    if found.matched:
        _matches(found.matched, audited, name_a, name_b)
        _charted(found.matched)
    else:
        st.info(plain(report.why_nothing(name_a, name_b, found)))
    for name, sides in ((name_a, found.only_a), (name_b, found.only_b)):
        if sides:
            with st.expander(f"Only in {plain(name)}: {len(sides)}", expanded=not found.matched):
                st.dataframe(_lone(sides, metric), hide_index=True, placeholder=UNKNOWN)


def _chosen(store: data.Store, known: Sequence[Choice]) -> tuple[Choice, Choice, str | None]:
    """The releases and the metric to compare, kept in the address so that a link shows the same."""
    by_name = {choice.name: choice for choice in offered(known)}
    names = list(by_name)
    a, b = (by_name.get(st.query_params.get(key, "")) for key in ("a", "b"))
    first_a, first_b = opened_on(known, data.work(store), a, b)
    left, middle, right = st.columns(3)
    with left:
        name_a = remembered("Release A", names, first_a.name, "a", titles.release)
    with middle:
        name_b = remembered("Release B", names, first_b.name, "b", titles.release)
    figures = {AUTOMATIC: None} | {metric.title: metric.name for metric in METRICS.values()}
    with right:
        warn_of_others("figure", figures)
        chosen = st.selectbox("Figure", list(figures), key="figure", bind="query-params")
    return by_name[name_a], by_name[name_b], figures[chosen]


def _matches(matches: Sequence[Match], audited: Findings, name_a: str, name_b: str) -> None:
    counts = Counter(match.judgement.verdict for match in matches)
    with st.container(horizontal=True):
        for verdict in Verdict:
            label = charts.verdict_mark(verdict, matches[0].metric)
            st.metric(label, counts[verdict], border=True, width=140)
    figures = " or ".join(dict.fromkeys(METRICS[match.metric].title for match in matches))
    st.caption(
        f"A is {plain(name_a)}, B is {plain(name_b)}, in {figures}. B/A is their ratio, 99 % its "
        "interval where the runs give one. Verdicts speak of B; “same” means that the difference "
        "is within 1 % for sure, “can't tell” that neither that nor a change is sure, “recovered” "
        "that B only regains what A had lost, “not comparable” that the figures are no measure of "
        "each other, “not judged” that the audit has open errors of a side."
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


def _charted(matches: Sequence[Match]) -> None:
    numbered = enumerate(matches, start=1)
    known = [(place, match) for place, match in numbered if match.judgement.ratio is not None]
    right = [one for one in known if one[1].judgement.verdict is not Verdict.NOT_JUDGED]
    if known:
        st.subheader("B/A by case")
    drawn, caption = gravest(right), []
    if len(drawn) < len(right):
        first = report.named(Verdict.SLOWER, matches[0].metric)
        some = f"{len(drawn)} of {len(right)} are drawn"
        caption.append(f"{some}: what is {first}, then the largest changes.")
    if wrong := len(known) - len(right):
        caption.append(f"Left out: {wrong:,} with an error that the audit found.")
    if caption:
        st.caption(" ".join(caption))
    if drawn:
        st.altair_chart(charts.ratios(drawn))


def gravest(numbered: Sequence[tuple[int, Match]], most: int = CHARTED) -> list[tuple[int, Match]]:
    """The matches to look at first, of more than `most`, in the order of the table.

    What is slower comes before the rest, and a large change before a small one.
    """

    def gravity(one: tuple[int, Match]) -> tuple[bool, float]:
        judged = one[1].judgement
        return judged.verdict is not Verdict.SLOWER, -abs(log(judged.ratio or 1))

    return sorted(sorted(numbered, key=gravity)[:most], key=itemgetter(0))


def styled(matches: Sequence[Match], audited: Findings) -> Styler:
    """The matches as a table, with each verdict in its color."""
    rows = [{"No.": place, **_row(match, audited)} for place, match in enumerate(matches, start=1)]
    table = pd.DataFrame(rows)
    if not table["Audit"].any():
        table = table.drop(columns="Audit")
    if table["Figure"].nunique() == 1:
        table = table.drop(columns="Figure")  # it is in the caption
    metric = matches[0].metric
    fills = {charts.verdict_mark(v, metric): it.fill for v, it in charts.VERDICT_STYLES.items()}
    colored = table.style.map(lambda mark: fills[str(mark)], subset=["B is"])
    return colored.format(partial(figure, digits=3), subset=["B/A"], na_rep=UNKNOWN)


def escaped(table: Styler) -> Styler:
    """The table with its words as `st.table` wants them, which takes cells for Markdown."""
    worded: list[Hashable] = [name for name in table.columns if name not in ("No.", "B/A")]
    return table.format(lambda words: plain(str(words)), subset=worded)


def _row(match: Match, audited: Findings) -> dict[str, str | float | None]:
    """The cells of a match; of its audit 'A ⚑ 1 error, B ⚑ 1 info', or nothing."""
    result, metric = match.a.shown, match.metric
    marks = {"A": mark(_findings(match.a, audited)), "B": mark(_findings(match.b, audited))}
    return {
        **_subject(result),
        "B/A": match.judgement.ratio,
        "B is": charts.verdict_mark(match.judgement.verdict, metric),
        "99 %": report.interval(match.judgement).replace(" ", NO_BREAK),
        "A": report.figure(result, metric),
        "B": report.figure(match.b.shown, metric),
        "Figure": METRICS[metric].title,
        "Audit": ", ".join(f"{letter} {text}" for letter, text in marks.items() if text),
        **_work(result),
        "Configuration": report.how(match),
        "Figures are": report.remark(match),
    }


def _lone(sides: Sequence[Side], asked: str | None) -> Styler:
    """A table of sides without a match: values sort as numbers, printed with their digits."""
    rows, texts = [], []
    for side in sides:
        result, metric = side.shown, compare.metric_for([side], [side], asked)
        texts.append(report.figure(result, metric))
        rows.append({
            **_subject(result),
            "Value": compare.usable(result, metric),
            "Figure": METRICS[metric].title,
            **_work(result),
            "Configuration": report.configuration(result),
            "Figures are": report.remark_of(side),
        })  # fmt: skip
    table = pd.DataFrame(rows).astype({"Value": "Float64"}).style
    for place, text in enumerate(texts):
        # The text is bound to each row: the formatter's own argument is the value.
        table.format(partial(_text_of, text), subset=([place], ["Value"]), na_rep=UNKNOWN)
    return table


def _text_of(text: str, _value: float) -> str:
    return text


def _subject(result: Result) -> dict[str, str]:
    systems = f"{result.num_gpus:,} × {result.system_title}"
    return {"Model": charts.model(result), "System": systems}


def _work(result: Result) -> dict[str, str]:
    precision = titles.precision(result.precision) or UNKNOWN
    return {"Precision": precision, "Work": charts.work(result)}


# ------------------------------------------------------- the releases that the page opens on


def offered(known: Iterable[Choice]) -> list[Choice]:
    """The releases in their order, but those without a stated version last."""
    return sorted(known, key=lambda choice: UNATTRIBUTED in choice.name)


def opened_on(known: Sequence[Choice], work: Work, a: Choice | None, b: Choice | None) -> Pair:
    """The two releases to compare; `a` and `b` are those that a link names, None if it does not."""

    def partner(choice: Choice) -> Choice:
        """The other release that shares most work with this choice, the newest of those."""
        others = [other for other in reversed(known) if not other.overlaps(choice)]
        return max(others, key=lambda other: num_shared((choice, other), work), default=choice)

    if a is not None:
        return a, b or partner(a)
    if b is not None:
        return partner(b), b
    return opening_pair(known, work) or (partner(known[-1]), known[-1])


def opening_pair(known: Sequence[Choice], work: Work) -> Pair | None:
    """The pair that shares most work of each framework's newest two releases that share any.

    If there is none, of all releases, those without a stated version as A. None: no two share work.
    `known` is in the order of `perfdb.compare.releases.known_releases`.
    """
    released = (choice for choice in known if choice.version is not None)
    newest: list[Pair] = []
    for versions in grouped(released, lambda choice: choice.framework).values():
        pairs = ((a, b) for b, a in combinations(reversed(versions), 2))
        newest += [*(pair for pair in pairs if num_shared(pair, work))][:1]
    unattributed_first = sorted(known, key=lambda choice: UNATTRIBUTED not in choice.name)
    others = [
        (a, b)
        for a, b in combinations(unattributed_first, 2)
        if not a.overlaps(b) and num_shared((a, b), work)
    ]
    return max(newest or others, key=lambda pair: num_shared(pair, work), default=None)


def num_shared(pair: Pair, work: Work) -> int:
    """How many workloads both releases have results of."""
    a, b = ({key for number in one.release_ids for key in work.get(number, ())} for one in pair)
    return len(a & b)
