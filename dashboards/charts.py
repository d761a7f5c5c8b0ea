"""The charts of the pages: ratios of two releases, best figures as bars, steps of a run."""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

import altair as alt
import pandas as pd
import streamlit as st

from dashboards import data
from dashboards.tables import COMPUTED, column, printed
from perfdb.catalog import colors, titles
from perfdb.compare import Match, Verdict, report
from perfdb.metrics import CONVENTION_BOUND, Metric
from perfdb.record import Origin, Result

GREY, BLUE, VERMILION, ORANGE = "#808080", "#0072B2", "#D55E00", "#E69F00"
"""Okabe and Ito (2008): distinct in every common color blindness. Grey is for marks, 3.9:1 on white
and 4.6:1 on the dark theme's background, and too faint for words (`ink`)."""

LEGEND_COLUMNS = 4
"""Systems beside one another in a legend."""

MATCH_PX, BAR_PX = 46, 58
"""The height of a ratio, and of a bar with two lines of text above it."""

PARTS = {
    "model_title": "model",
    "system_title": "system",
    "task": "task",
    "precision": "precision",
    "num_gpus": "number of GPUs",
    "release_name": "release",
    "origin": "origin",
}
"""The columns that each bar is one value of, and how the caption names them."""

DETAILS = ("variant", "sequence_length", "flops_convention")
"""What else distinguishes bars; printed only if it is not the same in all of them."""

Layers = alt.LayerChart | alt.FacetChart
"""The type that `alt.layer` returns."""


class VerdictStyle(NamedTuple):
    """The sign before its word, its color and its shape in a chart, and how its cell is filled.

    A fill is a tint, through which the theme's own background and words show.
    """

    sign: str
    color: str
    shape: str
    fill: str = ""


_FASTER = "background-color: rgba(0, 114, 178, 0.22)"
_SLOWER = "background-color: rgba(213, 94, 0, 0.25)"

VERDICT_STYLES: Mapping[Verdict, VerdictStyle] = {
    Verdict.FASTER: VerdictStyle("▲", BLUE, "triangle-up", _FASTER),
    Verdict.SLOWER: VerdictStyle("▼", VERMILION, "triangle-down", _SLOWER),
    Verdict.FAILED: VerdictStyle("✗", GREY, "cross", _SLOWER),
    Verdict.RECOVERED: VerdictStyle("△", GREY, "triangle-up"),
    Verdict.SAME: VerdictStyle("=", GREY, "circle"),
    Verdict.UNKNOWN: VerdictStyle("?", GREY, "diamond"),
    Verdict.NOT_COMPARABLE: VerdictStyle("≠", GREY, "diamond"),
    Verdict.NOT_JUDGED: VerdictStyle("⚑", GREY, "square"),
}


def ink() -> str:
    """The color of text in a chart, which does not follow the theme by itself."""
    return "#d5d5d5" if st.context.theme.type == "dark" else "#4a4a4a"


def tall(chart: Layers, rows_px: int) -> Layers:
    """The chart with rows of this height in pixels, plus its axes and legend.

    Streamlit's own choice, `fit`, takes axes and legend out of the height: one row vanishes.
    """
    return chart.properties(
        height=rows_px, autosize=alt.AutoSizeParams(type="fit-x", contains="padding")
    )


def verdict_mark(verdict: Verdict, metric: str) -> str:
    """A verdict as it is printed: '▲ faster'."""
    return f"{VERDICT_STYLES[verdict].sign} {report.named(verdict, metric)}"


def model(result: Result) -> str:
    """The model of a result, with its qualifiers."""
    return titles.qualified(result.model_title, result.qualifiers)


def work(result: Result) -> str:
    """The work of a case next to its model, precision and GPUs."""
    sizes = f"sequence {result.sequence_length:,}, GBS {result.global_batch_size:,}"
    return f"{titles.task(result.task)}, {sizes}"


def ratios(numbered: Sequence[tuple[int, Match]]) -> Layers:
    """A mark for each ratio with its interval, and a tick where nothing has changed.

    Each match has the number of its row in the table.
    """
    rows, metric = _ratio_rows(numbered), numbered[0][1].metric
    verdicts = {match.judgement.verdict for _, match in numbered}
    seen = {report.named(one, metric): VERDICT_STYLES[one] for one in Verdict if one in verdicts}
    legend = alt.Legend(title="B is", orient="top")
    colors = alt.Scale(domain=list(seen), range=[style.color for style in seen.values()])
    shapes = alt.Scale(domain=list(seen), range=[style.shape for style in seen.values()])
    color = alt.Color("verdict:N", scale=colors, legend=legend)
    shape = alt.Shape("verdict:N", scale=shapes, legend=legend)
    scale, axis = alt.Scale(zero=False, padding=20), alt.Axis(tickCount=6, format=".4~f")
    ratio = alt.X("ratio:Q", title="B/A", scale=scale, axis=axis)
    base = alt.Chart(pd.DataFrame(rows)).encode(
        y=alt.Y("case:N", sort=None, axis=None, scale=alt.Scale(padding=0.7)),
        tooltip=["work", "ratio", "low", "high", "verdict", "how"],
    )
    marks = base.mark_point(filled=True, size=110, opacity=1).encode(ratio, shape, color)
    spans = base.mark_rule(size=2).encode(alt.X("low:Q"), alt.X2("high:Q"), color)
    names = base.mark_text(align="left", dy=-15, fontSize=12, color=ink()).encode(
        x=alt.value(0), text="case"
    )
    unchanged = base.mark_tick(size=18, color=GREY).encode(x=alt.datum(1))  # below the words
    spanned = [spans] if any(row["low"] is not None for row in rows) else []
    return tall(alt.layer(unchanged, names, *spanned, marks), MATCH_PX * len(rows))


def _ratio_rows(numbered: Sequence[tuple[int, Match]]) -> list[dict[str, str | float | None]]:
    """Each match with its case in few enough words for a telephone; more if two are the same."""
    names = []
    for _, match in numbered:
        result = match.a.shown
        gpus = f"{result.num_gpus:,} × {result.system_title}"
        parts = (model(result), titles.precision(result.precision), gpus)
        names.append(", ".join(filter(None, parts)))
    count = Counter(names)
    return [
        {
            "case": f"{place}. {name}" + (f", {work(match.a.shown)}" if count[name] > 1 else ""),
            "work": report.workload(match.a.shown),
            "ratio": match.judgement.ratio,
            "low": match.judgement.low,
            "high": match.judgement.high,
            "verdict": report.named(match.judgement.verdict, match.metric),
            "how": report.how(match),
        }
        for (place, match), name in zip(numbered, names, strict=True)
    ]


def details(metric: Metric) -> list[str]:
    """The columns in DETAILS that a metric depends on."""
    bound = metric.name in CONVENTION_BOUND
    return [name for name in DETAILS if bound or name != "flops_convention"]


def bars(best: pd.DataFrame, metric: Metric) -> Layers:
    """A bar for each result, in the color of its system; published ones are paler.

    Labels of measured results end in “measured”.
    """
    described = best[[*PARTS, *details(metric)]]
    rows = described.assign(
        place=range(len(described)),
        figure=best[metric.name].astype(float),
        label=labels(best, metric),
    )
    base = alt.Chart(rows).encode(
        y=alt.Y("place:O", sort=None, axis=None), tooltip=[*described.columns, "figure"]
    )
    axis = alt.Axis(tickCount=5, format="%") if metric.name == "mfu" else alt.Axis(tickCount=5)
    shades = {
        title: colors.of_system(name)
        for title, name in sorted(zip(best["system_title"], best["system"], strict=True))
    }
    is_dark = st.context.theme.type == "dark"
    of_systems = alt.Scale(
        domain=list(shades),
        range=[one.dark if is_dark else one.light for one in shades.values()],
    )
    legend = alt.Legend(title=None, orient="top", columns=LEGEND_COLUMNS)
    drawn = base.mark_bar(height=14, yOffset=15).encode(
        x=alt.X("figure:Q", title=metric.title, axis=axis),
        color=alt.Color("system_title:N", scale=of_systems, legend=legend),
        fillOpacity=alt.condition("datum.origin === 'measured'", alt.value(1), alt.value(0.45)),
    )
    names = base.mark_text(
        align="left", dy=-22, fontSize=12, color=ink(), lineBreak="\n", lineHeight=15
    ).encode(x=alt.value(0), text="label")
    return tall(alt.layer(drawn, names), BAR_PX * len(rows))


def labels(best: pd.DataFrame, metric: Metric) -> list[str]:
    """'Llama 3 8B · 8 × DGX-H100: 13,812', and below it what else distinguishes bars."""
    differing = [name for name in details(metric) if best[name].nunique(dropna=False) > 1]
    return [_label(row, metric, differing) for row in data.records(best)]


def _label(row: Mapping[Hashable, object], metric: Metric, differing: Sequence[str]) -> str:
    texts = row["printed"]
    value = float(str(row[metric.name]))
    figure = printed(metric, value, texts if isinstance(texts, dict) else None)
    figure += COMPUTED if row.get(column(metric.name)) is not None else ""
    others = (
        row["task"],
        row["precision"] or "precision unknown",
        row["release_name"],
        *(_detail(name, row[name]) for name in differing if row[name] not in (None, "")),
        "" if row["origin"] == Origin.PUBLISHED else row["origin"],
    )
    where = f"{row['num_gpus']:,} × {row['system_title']}"
    below = " · ".join(str(part) for part in others if part)
    return f"{row['model_title']} · {where}: {figure}\n{below}"


def _detail(name: str, value: object) -> str:
    if name == "variant":
        return f"variant {titles.framework(str(value))}"
    return f"sequence {value:,}" if name == "sequence_length" else str(value)


def step_times(steps: pd.DataFrame) -> Layers:
    """Seconds of each step; those that no figure is taken over are triangles of another color."""
    phase = steps["is_measured"].map({False: "left out", True: "measured"})
    base = _line(steps.assign(phase=phase), "step_time_s", "Step time (s)")
    phases, legend = ["left out", "measured"], alt.Legend(title=None, orient="top")
    shades = alt.Scale(domain=phases, range=[ORANGE, BLUE])
    shapes = alt.Scale(domain=phases, range=["triangle-up", "circle"])
    points = base.mark_point(size=50, filled=True, opacity=1).encode(
        color=alt.Color("phase:N", scale=shades, legend=legend),
        shape=alt.Shape("phase:N", scale=shapes, legend=legend),
    )
    return alt.layer(base.mark_line(color="#999999", size=1), points)


def losses(steps: pd.DataFrame) -> alt.Chart:
    """The loss of each step."""
    drawn: alt.Chart = _line(steps, "loss", "Loss").mark_line(color=BLUE)
    return drawn


def _line(steps: pd.DataFrame, name: str, title: str) -> alt.Chart:
    rows = steps[["step", name, *(["phase"] if "phase" in steps else [])]]
    known = rows[rows[name].notna()].astype({"step": int, name: float})
    return alt.Chart(known).encode(
        x=alt.X("step:Q", title="Step", axis=alt.Axis(tickMinStep=1, format="d")),
        y=alt.Y(f"{name}:Q", title=title, scale=alt.Scale(zero=False)),
        tooltip=list(known.columns),
    )
