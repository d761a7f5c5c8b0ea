"""The charts of the pages: ratios of two releases, best figures as bars, steps of a run."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import altair as alt
import pandas as pd
import streamlit as st
from altair.utils import schemapi

from dashboards import axes
from dashboards.axes import AXES, PALETTE
from dashboards.tables import COMPUTED
from perfdb.catalog import titles
from perfdb.catalog.colors import Shade
from perfdb.compare import Match, Verdict, report
from perfdb.metrics import CONVENTION_BOUND, Metric
from perfdb.record import Origin, Result
from perfdb.stated import figure, is_computed

# Streamlit validates a chart when it draws it; validating each part too takes 150 ms more.
schemapi.disable_debug_mode()

GREY, BLUE, VERMILION, ORANGE = "#808080", "#0072B2", "#D55E00", "#E69F00"
"""Okabe and Ito (2008): distinct in every common color blindness. Grey is for marks, 3.9:1 on white
and 4.6:1 on the dark theme's background, and too faint for words (`ink`)."""

LEGEND_COLUMNS = 4
"""Systems beside one another in a legend."""

MATCH_PX, BAR_PX, LINES_PX = 46, 58, 300
"""The height of a ratio, of a bar with two lines of text above it, and of lines."""

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


def on_theme(color: str) -> str:
    """A color of this module for the theme: a blue that a dark background shows is lighter."""
    return "#56B4E9" if color == BLUE and st.context.theme.type == "dark" else color


def tooltips(*names: str) -> list[alt.Tooltip]:
    """The columns that a mark shows where it is pointed at; names alone take Altair longer."""
    return list(map(alt.Tooltip, names))


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


def work(result: Result) -> str:
    """The work of a case next to its model, precision and GPUs."""
    sizes = f"sequence {result.sequence_length:,}, GBS {result.global_batch_size:,}"
    return f"{titles.task(result.task)}, {sizes}"


def ratios(numbered: Sequence[tuple[int, Match]], *, verdicts: bool = True) -> Layers:
    """A mark for each ratio with its interval, and a tick where nothing has changed.

    Each match has the number of its row in the table. `verdicts`: whether there are any.
    """
    rows, metric = _ratio_rows(numbered), numbered[0][1].metric
    known = {match.judgement.verdict for _, match in numbered}
    seen = {report.named(one, metric): VERDICT_STYLES[one] for one in Verdict if one in known}
    legend = alt.Legend(title="Verdict", orient="top") if verdicts else None
    if not verdicts:
        seen = {name: VerdictStyle("", BLUE, "circle") for name in seen}
    colors = alt.Scale(domain=list(seen), range=[on_theme(style.color) for style in seen.values()])
    shapes = alt.Scale(domain=list(seen), range=[style.shape for style in seen.values()])
    color = alt.Color("verdict:N", scale=colors, legend=legend)
    shape = alt.Shape("verdict:N", scale=shapes, legend=legend)
    scale, axis = alt.Scale(zero=False, padding=20), alt.Axis(tickCount=6, format=".4~f")
    ratio = alt.X("ratio:Q", title="B/A", scale=scale, axis=axis)
    base = alt.Chart(pd.DataFrame(rows)).encode(
        y=alt.Y("case:N", sort=None, axis=None, scale=alt.Scale(padding=0.7)),
        tooltip=tooltips("work", "ratio", "low", "high", "verdict", "how"),
    )
    marks = base.mark_point(filled=True, size=110, opacity=1).encode(ratio, shape, color)
    spans = base.mark_rule(size=2).encode(alt.X("low:Q"), alt.X2("high:Q"), color)
    names = base.mark_text(align="left", dy=-15, fontSize=12, color=ink()).encode(
        x=alt.value(0), text=alt.Text("case")
    )
    unchanged = base.mark_tick(size=12, color=GREY).encode(x=alt.datum(1))  # below the words
    spanned = [spans] if any(row["low"] is not None for row in rows) else []
    return tall(alt.layer(unchanged, names, *spanned, marks), MATCH_PX * len(rows))


def _ratio_rows(numbered: Sequence[tuple[int, Match]]) -> list[dict[str, str | float | None]]:
    """Each match with its case in few enough words for a telephone; more if two are the same."""
    names = []
    for _, match in numbered:
        result = match.a.shown
        gpus = f"{result.num_gpus:,} × {result.system_title}"
        parts = (axes.model(result), titles.precision(result.precision), gpus)
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


# ------------------------------------------------------------- figures of several results


class ChartAxes(NamedTuple):
    """What a chart of figures has along it, what its colors stand for, and its figure."""

    metric: Metric
    along: str
    color: str

    @property
    def columns(self) -> tuple[str, ...]:
        """The axes of the database that the chart has one figure for each value of."""
        of = (AXES[self.along].column, AXES[self.color].column)
        return tuple(dict.fromkeys((*of, *(["framework"] if self.along == "release" else []))))


def figures(results: Sequence[Result], layout: ChartAxes, releases: Sequence[str] = ()) -> Layers:
    """Lines along releases and numbers, and bars along everything else.

    `releases`: the titles of all releases in their order.
    """
    if layout.along == "release":
        names = set(map(axes.release_name, results))
        return lines(results, layout, [name for name in releases if name in names])
    return lines(results, layout) if AXES[layout.along].is_number else bars(results, layout)


def bars(results: Sequence[Result], layout: ChartAxes) -> Layers:
    """A bar for each result with its words above it; published ones are paler."""
    words = labels(results, layout)
    rows = pd.DataFrame(
        {**row, "place": place, "label": label}
        for place, (row, label) in enumerate(zip(_rows(results, layout), words, strict=True))
    )
    base = alt.Chart(rows).encode(
        y=alt.Y("place:O", sort=None, axis=None),
        tooltip=tooltips("case", "figure", "release", "origin"),
    )
    x = alt.X("value:Q", title=layout.metric.title, axis=_axis(layout.metric))
    drawn = base.mark_bar(height=14, yOffset=15).encode(
        x, _color(results, layout), fillOpacity=PALER
    )
    names = base.mark_text(
        align="left", dy=-22, fontSize=12, color=ink(), lineBreak="\n", lineHeight=15
    ).encode(x=alt.value(0), text=alt.Text("label"))
    return tall(alt.layer(drawn, names), BAR_PX * len(rows))


PALER = alt.condition("datum.origin === 'measured'", alt.value(1), alt.value(0.45))


def lines(results: Sequence[Result], layout: ChartAxes, order: Sequence[str] = ()) -> Layers:
    """A line for each color over releases in their order, or over a number on a log scale."""
    rows = pd.DataFrame(_rows(results, layout))
    if order:
        axis = alt.Axis(labelAngle=-40, labelLimit=190)
        x = alt.X("along:N", title=None, sort=list(order), axis=axis)
    else:
        ticks = sorted({float(one) for one in rows["along"]})
        axis = alt.Axis(values=ticks, format=",d", labelOverlap=True)
        scale = alt.Scale(type="log", base=2, padding=20, nice=False)
        x = alt.X("along:Q", title=AXES[layout.along].title, axis=axis, scale=scale)
    y = alt.Y("value:Q", title=layout.metric.title, axis=_axis(layout.metric))
    base = alt.Chart(rows).encode(
        x, y, _color(results, layout), detail=["framework:N", "origin:N"],
        tooltip=tooltips("case", "figure", "release", "origin"),
    )  # fmt: skip
    points = base.mark_point(filled=True, size=70, opacity=1).encode(
        shape=alt.Shape("origin:N", legend=None)
    )
    return tall(alt.layer(base.mark_line(), points), LINES_PX)


def _axis(metric: Metric) -> alt.Axis:
    return alt.Axis(tickCount=5, format="%") if metric.name == "mfu" else alt.Axis(tickCount=5)


def scale(names: Sequence[str]) -> alt.Scale:
    """Colors for names that have none of their own."""
    return _scale({name: PALETTE[place % len(PALETTE)] for place, name in enumerate(names)})


def _scale(known: Mapping[str, Shade]) -> alt.Scale:
    is_dark = st.context.theme.type == "dark"
    shades = [one.dark if is_dark else one.light for one in known.values()]
    return alt.Scale(domain=list(known), range=shades)


def _color(results: Sequence[Result], layout: ChartAxes) -> alt.Color:
    known = axes.shades(layout.color, results)
    title = AXES[layout.color].title if len(known) > 1 else None
    legend = alt.Legend(title=title, orient="top", columns=LEGEND_COLUMNS, labelLimit=180)
    return alt.Color("color:N", scale=_scale(known), legend=legend)


def _rows(results: Sequence[Result], layout: ChartAxes) -> list[dict[str, object]]:
    along, metric = AXES[layout.along], layout.metric
    return [
        {
            "along": getattr(it, along.column) if along.is_number else along.text(it),
            "color": AXES[layout.color].text(it),
            "value": figure(it, metric.name),
            "figure": figure_text(it, metric),
            "case": report.workload(it),
            "release": axes.release_name(it),
            "framework": it.framework,
            "origin": str(it.origin),
        }
        for it in results
    ]


def figure_text(result: Result, metric: Metric) -> str:
    """A figure with its digits; what is computed has its mark."""
    text = report.printed(metric, figure(result, metric.name), result.printed)
    return text + (COMPUTED if is_computed(result, metric.name) else "")


MOST_OVERLAID = 24
"""The most official results beside an unofficial one."""

UNOFFICIAL = "Yours (unofficial)"

STAR = (
    "M0,-1L0.23,-0.31L0.95,-0.31L0.36,0.12L0.59,0.81L0,0.38L-0.59,0.81L-0.36,0.12L-0.95,-0.31"
    "L-0.23,-0.31Z"
)
"""The path of a star with five points, in units of its radius."""


def overlaid(official: Sequence[Result], mine: Result, metric: Metric) -> Layers:
    """A mark for each official result, in the color of its system, and a star for one's own."""
    layout = ChartAxes(metric, "gpus", "system")
    known = axes.shades("system", official)
    rows = pd.DataFrame([*_rows(official, layout), _rows([mine], layout)[0] | {
        "color": UNOFFICIAL, "release": "your file", "origin": "unofficial",
    }])  # fmt: skip
    ticks = sorted({float(one) for one in rows["along"]})
    x = alt.X("along:Q", title="GPUs", scale=alt.Scale(type="log", base=2, padding=24, nice=False),
              axis=alt.Axis(values=ticks, format=",d", labelOverlap=True))  # fmt: skip
    scale = _scale({**known, UNOFFICIAL: Shade("#000000", "#ffffff")})
    legend = alt.Legend(title=None, orient="top", columns=LEGEND_COLUMNS, labelLimit=180)
    base = alt.Chart(rows).encode(
        x, alt.Y("value:Q", title=metric.title, scale=alt.Scale(zero=False, padding=24)),
        alt.Color("color:N", scale=scale, legend=legend),
        tooltip=tooltips("case", "figure", "release", "origin"),
    )  # fmt: skip
    is_own = alt.datum.origin == "unofficial"
    points = base.transform_filter(~is_own).mark_point(filled=True, size=80, opacity=0.9)
    own = base.transform_filter(is_own).mark_point(filled=True, size=420, opacity=1, shape=STAR)
    return tall(alt.layer(points, own), LINES_PX)


def labels(results: Sequence[Result], layout: ChartAxes) -> list[str]:
    """'Llama 3 8B · 8 × DGX-H100: 13,812', and below it what else distinguishes bars."""
    is_bound = layout.metric.name in CONVENTION_BOUND
    details: Mapping[str, Callable[[Result], str]] = {
        "variant": lambda it: titles.framework(it.variant or ""),
        "sequence_length": lambda it: f"sequence {it.sequence_length:,}",
        "flops_convention": lambda it: (it.flops_convention or "") if is_bound else "",
    }
    differing = [
        text for name, text in details.items() if len({getattr(it, name) for it in results}) > 1
    ]
    return [_label(it, layout.metric, differing) for it in results]


def _label(it: Result, metric: Metric, differing: Sequence[Callable[[Result], str]]) -> str:
    below = (
        titles.task(it.task),
        titles.precision(it.precision) or "precision unknown",
        axes.release_name(it),
        *(text(it) for text in differing),
        "" if it.origin == Origin.PUBLISHED else str(it.origin),
    )
    where = f"{it.num_gpus:,} × {it.system_title}"
    words = " · ".join(filter(None, below))
    return f"{axes.model(it)} · {where}: {figure_text(it, metric)}\n{words}"


# ------------------------------------------------------------------------------ steps of a run


def step_times(steps: pd.DataFrame) -> Layers:
    """Seconds of each step; those that no figure is taken over are triangles of another color."""
    phase = steps["is_measured"].map({False: "left out", True: "measured"})
    base = _line(steps.assign(phase=phase), "step_time_s", "Step time (s)")
    phases, legend = ["left out", "measured"], alt.Legend(title=None, orient="top")
    shades = alt.Scale(domain=phases, range=[ORANGE, on_theme(BLUE)])
    shapes = alt.Scale(domain=phases, range=["triangle-up", "circle"])
    points = base.mark_point(size=50, filled=True, opacity=1).encode(
        color=alt.Color("phase:N", scale=shades, legend=legend),
        shape=alt.Shape("phase:N", scale=shapes, legend=legend),
    )
    return alt.layer(base.mark_line(color="#999999", size=1), points)


CURVES = (
    ("loss", "Loss", "Loss"), ("grad_norm", "Gradient norm", "Gradient norm"),
    ("peak_memory_bytes", "Peak memory", "Bytes"),
)  # fmt: skip


def curves(steps: pd.DataFrame) -> Iterator[tuple[str, alt.Chart]]:
    """What else was recorded of each step, with its title."""
    for name, title, axis in CURVES:
        if name in steps and steps[name].notna().any():
            yield title, _line(steps, name, axis).mark_line(color=on_theme(BLUE))


def _line(steps: pd.DataFrame, name: str, title: str) -> alt.Chart:
    rows = steps[["step", name, *(["phase"] if "phase" in steps else [])]]
    known = rows[rows[name].notna()].astype({"step": int, name: float})
    return alt.Chart(known).encode(
        x=alt.X("step:Q", title="Step", axis=alt.Axis(tickMinStep=1, format="d")),
        y=alt.Y(f"{name}:Q", title=title, scale=alt.Scale(zero=False)),
        tooltip=tooltips(*known.columns),
    )
