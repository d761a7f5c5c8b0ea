"""Matches of a comparison: which are shown, and the table with verdicts in their colors."""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from html import escape
from math import log
from operator import itemgetter
from typing import Any, Final
from urllib.parse import urlencode

import pandas as pd
import streamlit as st
from pandas.io.formats.style import Styler

from dashboards import axes, charts
from dashboards.findings import Findings, mark
from perfdb.catalog import has_gpus, titles
from perfdb.compare import Comparison, Match, Side, Verdict, metric_for, report, triage, usable
from perfdb.metrics import METRICS
from perfdb.record import Finding, Result
from perfdb.units import UNKNOWN, figure

NO_BREAK = "\u00a0"

Numbered = Sequence[tuple[int, Match]]
"""Matches with the numbers of their rows in the table."""


def precisions(found: Comparison) -> list[str | None]:
    """The precisions of B's matches, the most frequent first; without any, those of its sides."""
    if found.matched:
        return frequent(found.matched)
    sides = (side.shown.precision for side in (*found.only_a, *found.only_b))
    return [name for name, _ in Counter(sides).most_common()]


def frequent(matches: Iterable[Match]) -> list[str | None]:
    """The precisions of matches, the most frequent first."""
    return [name for name, _ in Counter(it.b.shown.precision for it in matches).most_common()]


def of_precision(found: Comparison, precision: str | None) -> Comparison:
    """What a comparison has in a precision."""
    return replace(
        found,
        matched=tuple(it for it in found.matched if it.b.shown.precision == precision),
        only_a=tuple(it for it in found.only_a if it.shown.precision == precision),
        only_b=tuple(it for it in found.only_b if it.shown.precision == precision),
    )


def in_order(matches: Sequence[Match], group: str | None = None) -> list[Match]:
    """The matches group by group, what is slower first, the largest change of each first."""
    groups = triage.groups(matches)
    return [one for name, some in groups.items() for one in some if group in (None, name)]


def comparable(matches: Iterable[Match]) -> tuple[list[tuple[int, Match]], int, int]:
    """The matches to draw, with their numbers, and how many have open errors or are CPU tests.

    CPU tests are never in one chart with GPUs.
    """
    known = [one for one in enumerate(matches, start=1) if one[1].judgement.ratio is not None]
    right = [one for one in known if one[1].judgement.verdict is not Verdict.NOT_JUDGED]
    on_gpus = [one for one in right if has_gpus(one[1].b.shown.system)] or right
    return on_gpus, len(known) - len(right), len(right) - len(on_gpus)


def gravest(numbered: Numbered, most: int) -> list[tuple[int, Match]]:
    """The matches to look at first, of more than `most`, in the order of the table.

    What is slower comes before the rest, and a large change before a small one.
    """

    def gravity(one: tuple[int, Match]) -> tuple[bool, float]:
        judged = one[1].judgement
        return judged.verdict is not Verdict.SLOWER, -abs(log(judged.ratio or 1))

    return sorted(sorted(numbered, key=gravity)[:most], key=itemgetter(0))


STYLE: Final = """<style>
.matches {overflow-x: auto}
.matches table {width: 100%; min-width: 60rem; border-collapse: collapse; font-size: 0.875rem}
.matches th, .matches td {padding: 0.35rem 0.6rem; border: 1px solid rgba(128, 128, 128, 0.3);
  text-align: left; vertical-align: top}
.matches th {font-weight: 400; opacity: 0.75}
.matches a {color: inherit}
.matches .verdict, .matches .number {white-space: nowrap}
.matches .number {text-align: right; font-variant-numeric: tabular-nums}
</style>"""
"""Lines and tints let the background of a light and of a dark theme through."""


def shown(table: pd.DataFrame) -> None:
    """Show matches, with each verdict in its color, and without the columns that say nothing.

    In one piece of HTML: `st.table` renders each cell as Markdown, for half a second on a page.
    """
    silent = [name for name in ("Audit", "Runs", "99 %") if name in table
              and table[name].isin(["", UNKNOWN]).all()]  # fmt: skip
    if table["Figure"].nunique() == 1:
        silent.append("Figure")  # it is in the caption
    table = table.drop(columns=silent)
    head = "".join(f'<th scope="col">{escape(str(name))}</th>' for name in table)
    body = "".join(
        f"<tr>{''.join(map(_cell, row, row.values()))}</tr>" for row in table.to_dict("records")
    )
    st.html(f'<div class="matches">{STYLE}<table><tr>{head}</tr>{body}</table></div>')


def _cell(name: Hashable, value: Any) -> str:
    if name == "B/A":
        value = figure(None if pd.isna(value) else value, 3)
    words = escape(str(value))
    if name in ("No.", "B/A", "A", "B"):
        return f'<td class="number">{words}</td>'
    if name == "Runs" and value != UNKNOWN:
        words = f'<a href="{words}" target="_blank">steps</a>'
    if name == "Verdict":
        return f'<td class="verdict" style="{FILLS[words[0]]}">{words}</td>'
    return f"<td>{words}</td>"


FILLS: Final = {it.sign: it.fill for it in charts.VERDICT_STYLES.values()}
"""How the cell of a verdict is filled, by the sign before its word."""


def frame(matches: Sequence[Match], audited: Findings) -> pd.DataFrame:
    """The matches as rows of text and numbers."""
    rows = [{"No.": place, **_row(match, audited)} for place, match in enumerate(matches, start=1)]
    return pd.DataFrame(rows)


def _row(match: Match, audited: Findings) -> dict[str, str | float | None]:
    """The cells of a match; of its audit 'A ⚑ 1 error, B ⚑ 1 info', or nothing."""
    result, metric = match.a.shown, match.metric
    marks = {"A": mark(findings(match.a, audited)), "B": mark(findings(match.b, audited))}
    return {
        **subject(result),
        "B/A": match.judgement.ratio,
        "Verdict": charts.verdict_mark(match.judgement.verdict, metric),
        "99 %": report.interval(match.judgement).replace(" ", NO_BREAK),
        "A": report.figure(result, metric),
        "B": report.figure(match.b.shown, metric),
        "Runs": run_link(match.b.shown, result),
        "Figure": METRICS[metric].title,
        "Audit": ", ".join(f"{letter} {text}" for letter, text in marks.items() if text),
        **work(result),
        "Configuration": report.how(match),
        "Source": report.remark(match),
    }


def findings(side: Side, audited: Findings) -> tuple[Finding, ...]:
    """What the audit found in the result of a side that tables print."""
    return audited.get(side.shown.result_id, ())


def run_link(result: Result, other: Result) -> str:
    """The page of a result's run and what differs from another one; – for a published row."""
    if result.run_id is None:
        return UNKNOWN
    asked = {"run": result.run_id} | ({"with": other.run_id} if other.run_id else {})
    return f"runs?{urlencode(asked)}"


def lone(sides: Sequence[Side], asked: str | None) -> Styler:
    """A table of sides without a match: values sort as numbers, printed with their digits."""
    rows, texts = [], []
    for side in sides:
        result, metric = side.shown, metric_for([side], [side], asked)
        texts.append(report.figure(result, metric))
        rows.append({
            **subject(result),
            "Value": usable(result, metric),
            "Figure": METRICS[metric].title,
            **work(result),
            "Configuration": report.configuration(result),
            "Source": report.remark_of(side),
        })  # fmt: skip
    table = pd.DataFrame(rows).astype({"Value": "Float64"}).style
    for place, text in enumerate(texts):
        # The text is bound to each row: the formatter's own argument is the value.
        table.format(partial(_text_of, text), subset=([place], ["Value"]), na_rep=UNKNOWN)
    return table


def _text_of(text: str, _value: float) -> str:
    return text


def subject(result: Result) -> dict[str, str]:
    """The model and the GPUs of a result."""
    systems = f"{result.num_gpus:,} × {result.system_title}"
    return {"Model": axes.model(result), "System": systems}


def work(result: Result) -> dict[str, str]:
    """The rest of what a result is of."""
    precision = titles.precision(result.precision) or UNKNOWN
    return {"Precision": precision, "Work": charts.work(result)}
