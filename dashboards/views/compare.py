"""Two releases, or two systems, side by side: what is faster, what slower, and by how much."""

from collections import Counter
from collections.abc import Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboards import charts, data, matches
from dashboards.axes import system_order
from dashboards.choices import ALL, one_of, remembered, warn_of_others
from dashboards.findings import Findings, listed, plain
from dashboards.release_choice import Pair, chosen
from dashboards.tables import download
from perfdb.catalog import titles
from perfdb.compare import Choice, Comparison, Match, Verdict, report, triage
from perfdb.compare.across import SystemPairs
from perfdb.compare.comparability import why_nothing
from perfdb.errors import InputError
from perfdb.metrics import METRICS
from perfdb.queries.best import Narrowing
from perfdb.units import UNKNOWN

AUTOMATIC = "Tokens/s/GPU, where known"
RELEASES, SYSTEMS = "Two releases", "Two systems"

TABLED = 100
"""The most matches that are text on the page, to be read, searched and printed; the CSV has all."""

CHARTED = 20
"""The most matches in the chart, as more cannot be read; the table has them all."""


def show() -> None:
    """The page."""
    st.title("Compare")
    store = data.store()
    known = data.releases(store)
    if not known:
        st.info("Nothing to compare: no release in the store has results yet.")
        return
    how = st.segmented_control(
        "Compare", [RELEASES, SYSTEMS], default=RELEASES, key="compare", bind="query-params",
        label_visibility="collapsed",
    )  # fmt: skip
    if how == SYSTEMS:
        _systems(store, known)
    elif pair := chosen(store, known):
        _releases(store, pair)


def _figure() -> str | None:
    figures = {AUTOMATIC: None} | {metric.title: metric.name for metric in METRICS.values()}
    warn_of_others("figure", figures)
    return figures[st.selectbox("Figure", list(figures), key="figure", bind="query-params")]


# ---------------------------------------------------------------------------- two releases


def _releases(store: data.Store, pair: Pair) -> None:
    left, middle, right = st.columns(3)
    with left:
        metric = _figure()
    whole = data.compared(store, pair, data.wrong(store), metric)
    with middle:
        found = of_chosen_precision(whole)
    name_a, name_b = (titles.release(choice.name) for choice in pair)
    audited = data.findings_of(store)
    if found.matched:
        _counted(found.matched, name_a, name_b)
        with right:
            group = _group(found.matched)
        _matched(matches.in_order(found.matched, group), audited)
    else:
        st.info(plain(why_nothing(name_a, name_b, found)))
    for name, sides in ((name_a, found.only_a), (name_b, found.only_b)):
        if sides:
            with st.expander(f"Only in {plain(name)}: {len(sides)}", expanded=not found.matched):
                lone = matches.lone(sides[:TABLED], metric)
                st.dataframe(lone, hide_index=True, placeholder=UNKNOWN)


def of_chosen_precision(whole: Comparison) -> Comparison:
    """The part of a comparison in the precision that is chosen; at first that of most matches."""
    known = matches.precisions(whole)
    chosen_ones = _precision(known)
    return whole if chosen_ones == known else matches.of_precision(whole, chosen_ones[0])


def _precision(known: Sequence[str | None]) -> Sequence[str | None]:
    """The precisions that are chosen of those that are known: one of them, or all."""
    names = {name or UNKNOWN: name for name in known}
    if len(names) < 2:
        return known
    words = {ALL: "All"} | {
        key: titles.precision(name) or "not stated" for key, name in names.items()
    }
    first = next(iter(names))
    chosen_name = one_of("Precision", [*names, ALL], first, "precision", words.__getitem__)
    return known if chosen_name == ALL else [names[chosen_name]]


def _group(found: Sequence[Match]) -> str | None:
    """The group of verdicts that the table is narrowed to."""
    counts = {name: len(some) for name, some in triage.groups(found).items()}
    words = {ALL: f"All {len(found):,}"}
    words |= {name: f"{name.replace('-', ' ').capitalize()}: {n:,}" for name, n in counts.items()}
    group = remembered("Show", list(words), ALL, "only", lambda name: words.get(name, name))
    return None if group == ALL else group


def _counted(found: Sequence[Match], name_a: str, name_b: str) -> None:
    counts = Counter(match.judgement.verdict for match in found)
    with st.container(horizontal=True):
        for verdict in Verdict:
            if not counts[verdict] and verdict not in (Verdict.FASTER, Verdict.SLOWER):
                continue
            label = charts.verdict_mark(verdict, found[0].metric)
            st.metric(label, f"{counts[verdict]:,}", border=True, width=140)
    figures = " or ".join(dict.fromkeys(METRICS[match.metric].title for match in found))
    st.caption(
        f"A is {plain(name_a)}, B is {plain(name_b)}, in {figures}. B/A is their ratio, 99 % its "
        "interval where the runs give one. Verdicts speak of B.",
        help="**Same**: the difference is within 1 % for sure. **Can't tell**: neither that nor a "
        "change is sure. **Recovered**: B only regains what A had lost. **Not comparable**: the "
        "figures are no measure of each other. **Not judged**: the audit has open errors of a "
        "side.",
    )


def _matched(found: Sequence[Match], audited: Findings) -> None:
    _chart(found)
    matches.shown(matches.frame(found[:TABLED], audited))
    left, right = st.columns([3, 1])
    if len(found) > TABLED:
        left.caption(f"The first {TABLED} of {len(found):,} matches. The CSV has them all.")
    with right:
        download(lambda: matches.frame(found, audited), "perfdb-compare.csv")
    listed(
        (f"{letter}: {report.workload(side.shown)}", matches.findings(side, audited))
        for match in found[:TABLED]
        for letter, side in (("A", match.a), ("B", match.b))
    )


@st.fragment
def _chart(found: Sequence[Match]) -> None:
    drawable, num_wrong, num_cpu = matches.comparable(found)
    drawn, caption = matches.gravest(drawable, CHARTED), []
    if len(drawn) < len(drawable):
        first = report.named(Verdict.SLOWER, found[0].metric)
        some = f"{len(drawn)} of {len(drawable)} are drawn"
        caption.append(f"{some}: what is {first}, then the largest changes.")
    left_out = {"with an error that the audit found": num_wrong, "CPU tests": num_cpu}
    if reasons := [f"{number:,} {reason}" for reason, number in left_out.items() if number]:
        caption.append(f"Left out: {'; '.join(reasons)}.")
    if drawn or caption:
        st.subheader("B/A by case")
    if caption:
        st.caption(" ".join(caption))
    if drawn:
        st.vega_lite_chart(charts.ratios(drawn), alt="The ratio of B to A of each match")


# ----------------------------------------------------------------------------- two systems


def _systems(store: data.Store, known: Sequence[Choice]) -> None:
    names = sorted(data.systems_to_draw(store), key=system_order)
    if len(names) < 2:
        st.info("The store has results of one system: there is none to compare it with.")
        return
    left, right = st.columns(2)
    with left:
        a = remembered("System A", names, names[-1], "system_a", titles.system)
    with right:
        b = remembered("System B", names, names[0], "system_b", titles.system)
    pair = _releases_of(store, known, (a, b))
    if a == b or pair is None:
        st.info("A and B are the same system: choose another one." if a == b else "No release "
                "has results of one of the systems.")  # fmt: skip
        return
    left, right = st.columns(2)
    with right:
        metric = _figure()
    try:
        found = data.across(store, pair, (a, b), metric)
    except InputError as error:
        st.info(plain(str(error)))
        return
    _paired(found, titles.system(a), titles.system(b), left)


def _releases_of(
    store: data.Store, known: Sequence[Choice], systems: tuple[str, str]
) -> Pair | None:
    """The release of each system, at first the newest that both have, else each one's newest."""
    ids = [set(data.values(store, "release_id", Narrowing.of(system=[name]))) for name in systems]
    of_each = [[one for one in known if some.intersection(one.release_ids)] for some in ids]
    if not all(of_each):
        return None
    both = [one for one in of_each[0] if one in of_each[1]]
    found = []
    for column, key, some in zip(st.columns(2), ("a", "b"), of_each, strict=True):
        by_name = {one.name: one for one in some}
        first = (both or some)[-1].name
        with column:
            name = remembered(f"Release {key.upper()}", [*by_name], first, key, titles.release)
        found.append(by_name[name])
    return found[0], found[1]


def _paired(found: SystemPairs, name_a: str, name_b: str, left: DeltaGenerator) -> None:
    if not found.pairs:
        st.info(f"{plain(name_a)} and {plain(name_b)} share no work in these releases.")
        return
    st.caption(
        f"A is {plain(name_a)}, B is {plain(name_b)}: the best of both for each model, task, "
        "precision family and sequence length. Two systems are no regression: there is a ratio, "
        f"and no verdict. {found.only_a} only on A, {found.only_b} only on B."
    )
    frequent = matches.frequent(found.pairs)
    with left:
        precisions = _precision(frequent)
    shown = [it for it in found.pairs if it.b.shown.precision in precisions]
    pairs = sorted(shown, key=lambda it: -(it.judgement.ratio or 0.0))[:TABLED]
    numbered = [(n, it) for n, it in enumerate(pairs, 1) if it.judgement.ratio is not None]
    if numbered:
        st.vega_lite_chart(charts.ratios(numbered[:CHARTED], verdicts=False))
    left_out = ["Verdict", "99 %", "Audit", "System", "Runs"]
    table = matches.frame(pairs, {}).drop(columns=left_out)
    on = [f"{it.a.shown.num_gpus:,} → {it.b.shown.num_gpus:,}" for it in pairs]
    table.insert(2, "GPUs", on)
    matches.shown(table)
    download(table, "perfdb-systems.csv")
