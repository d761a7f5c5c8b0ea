"""The charts of the pages: ratios of two releases, best figures as bars, steps of a run.

They are Vega-Lite specifications: to build and check one with Altair takes a hundred times as long.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import pandas as pd
import streamlit as st

from dashboards import axes
from dashboards.axes import AXES, PALETTE
from dashboards.tables import COMPUTED
from perfdb.catalog import titles
from perfdb.catalog.colors import Shade
from perfdb.compare import Match, Verdict, report
from perfdb.metrics import CONVENTION_BOUND, Metric
from perfdb.record import Origin, Result
from perfdb.stated import figure, is_computed

GREY, BLUE, VERMILION, ORANGE = "#808080", "#0072B2", "#D55E00", "#E69F00"
"""Okabe and Ito (2008): distinct in every common color blindness. Grey is for marks, 3.9:1 on white
and 4.6:1 on the dark theme's background, and too faint for words (`ink`)."""

LEGEND: Final = {"orient": "top", "columns": 4, "labelLimit": 180}
"""How systems are beside one another in a legend."""

MATCH_PX, BAR_PX, LINES_PX = 46, 58, 300
"""The height of a ratio, of a bar with two lines of text above it, and of lines."""

Spec = dict[str, Any]
"""A chart in Vega-Lite, or a part of one."""


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


def nominal(field: str, **more: object) -> Spec:
    """What a mark shows of a field of words."""
    return {"field": field, "type": "nominal", **more}


def quantitative(field: str, **more: object) -> Spec:
    """What a mark shows of a field of numbers."""
    return {"field": field, "type": "quantitative", **more}


TOOLTIP: Final = [nominal(name) for name in ("case", "figure", "release", "origin")]
"""What the mark of a result shows where it is pointed at."""


def layered(rows: object, shared: Spec, *layers: tuple[Spec, Spec]) -> Spec:
    """Marks with their own channels over rows, beside those channels that they share."""
    drawn = [{"mark": mark, "encoding": shared | own} for mark, own in layers]
    return {"data": {"values": rows}, "layer": drawn}


def tall(chart: Spec, rows_px: int) -> Spec:
    """The chart with rows of this height in pixels, plus its axes and legend.

    Streamlit's own choice, `fit`, takes axes and legend out of the height: one row vanishes.
    """
    return chart | {"height": rows_px, "autosize": {"type": "fit-x", "contains": "padding"}}


def verdict_mark(verdict: Verdict, metric: str) -> str:
    """A verdict as it is printed: '▲ faster'."""
    return f"{VERDICT_STYLES[verdict].sign} {report.named(verdict, metric)}"


def work(result: Result) -> str:
    """The work of a case next to its model, precision and GPUs."""
    sizes = f"sequence {result.sequence_length:,}, GBS {result.global_batch_size:,}"
    return f"{titles.task(result.task)}, {sizes}"


def ratios(numbered: Sequence[tuple[int, Match]], *, verdicts: bool = True) -> Spec:
    """A mark for each ratio with its interval, and a tick where nothing has changed.

    Each match has the number of its row in the table. `verdicts`: whether there are any.
    """
    rows, metric = _ratio_rows(numbered), numbered[0][1].metric
    known = {match.judgement.verdict for _, match in numbered}
    seen = {report.named(one, metric): VERDICT_STYLES[one] for one in Verdict if one in known}
    legend = {"title": "Verdict", "orient": "top"} if verdicts else None
    if not verdicts:
        seen = {name: VerdictStyle("", BLUE, "circle") for name in seen}
    colors = {"domain": [*seen], "range": [on_theme(style.color) for style in seen.values()]}
    shapes = {"domain": [*seen], "range": [style.shape for style in seen.values()]}
    color = nominal("verdict", scale=colors, legend=legend)
    shape = nominal("verdict", scale=shapes, legend=legend)
    axis = {"tickCount": 6, "format": ".4~f"}
    ratio = quantitative("ratio", title="B/A", scale={"zero": False, "padding": 20}, axis=axis)
    numbers, words = ("ratio", "low", "high"), ("verdict", "how")
    shared = {
        "y": nominal("case", sort=None, axis=None, scale={"padding": 0.7}),
        "tooltip": [nominal("work"), *map(quantitative, numbers), *map(nominal, words)],
    }
    unchanged = {"type": "tick", "size": 12, "color": GREY}, {"x": {"datum": 1}}  # below the words
    names = _words(-15), {"x": {"value": 0}, "text": nominal("case")}
    interval = {"x": quantitative("low"), "x2": {"field": "high"}, "color": color}
    span = {"type": "rule", "size": 2}, interval
    spans = [span] if any(row["low"] is not None for row in rows) else []
    marks = points(110), {"x": ratio, "shape": shape, "color": color}
    return tall(layered(rows, shared, unchanged, names, *spans, marks), MATCH_PX * len(rows))


def _words(dy: int, **more: object) -> Spec:
    return {"type": "text", "align": "left", "dy": dy, "fontSize": 12, "color": ink(), **more}


def points(size: int) -> Spec:
    """Filled marks of so many square pixels."""
    return {"type": "point", "filled": True, "size": size, "opacity": 1}


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


def figures(results: Sequence[Result], layout: ChartAxes, releases: Sequence[str] = ()) -> Spec:
    """Lines along releases and numbers, and bars along everything else.

    `releases`: the titles of all releases in their order.
    """
    if layout.along == "release":
        names = set(map(axes.release_name, results))
        return lines(results, layout, [name for name in releases if name in names])
    return lines(results, layout) if AXES[layout.along].is_number else bars(results, layout)


def bars(results: Sequence[Result], layout: ChartAxes) -> Spec:
    """A bar for each result with its words above it; published ones are paler."""
    words = labels(results, layout)
    rows = [
        {**row, "place": place, "label": label}
        for place, (row, label) in enumerate(zip(_rows(results, layout), words, strict=True))
    ]
    drawn = {
        "x": quantitative("value", title=layout.metric.title, axis=_axis(layout.metric)),
        "color": _color(results, layout),
        "fillOpacity": PALER,
    }
    shared = {"y": {"field": "place", "type": "ordinal", "sort": None, "axis": None}}
    names = (
        _words(-22, lineBreak="\n", lineHeight=15),
        {"x": {"value": 0}, "text": nominal("label")},
    )
    bar = {"type": "bar", "height": 14, "yOffset": 15}
    return tall(
        layered(rows, shared | {"tooltip": TOOLTIP}, (bar, drawn), names), BAR_PX * len(rows)
    )


PALER: Final = {"condition": {"test": "datum.origin === 'measured'", "value": 1}, "value": 0.45}


def lines(results: Sequence[Result], layout: ChartAxes, order: Sequence[str] = ()) -> Spec:
    """A line for each color over releases in their order, or over a number on a log scale."""
    rows = _rows(results, layout)
    if order:
        axis = {"labelAngle": -40, "labelLimit": 190}
        x = nominal("along", title=None, sort=list(order), axis=axis)
    else:
        x = log_axis("along", AXES[layout.along].title, (row["along"] for row in rows))
    shared = {
        "x": x,
        "y": quantitative("value", title=layout.metric.title, axis=_axis(layout.metric)),
        "color": _color(results, layout),
        "detail": [nominal("framework"), nominal("origin")],
        "tooltip": TOOLTIP,
    }
    shape = {"shape": nominal("origin", legend=None)}
    return tall(layered(rows, shared, ({"type": "line"}, {}), (points(70), shape)), LINES_PX)


def log_axis(field: str, title: str, values: Iterable[Any]) -> Spec:
    """An axis of numbers that double, with a tick at each value."""
    axis = {"values": sorted(set(map(int, values))), "format": ",d", "labelOverlap": True}
    scale = {"type": "log", "base": 2, "padding": 20, "nice": False}
    return quantitative(field, title=title, axis=axis, scale=scale)


def _axis(metric: Metric) -> Spec:
    return {"tickCount": 5, "format": "%"} if metric.name == "mfu" else {"tickCount": 5}


def scale(names: Sequence[str]) -> Spec:
    """Colors for names that have none of their own."""
    return _scale({name: PALETTE[place % len(PALETTE)] for place, name in enumerate(names)})


def _scale(known: Mapping[str, Shade]) -> Spec:
    is_dark = st.context.theme.type == "dark"
    shades = [one.dark if is_dark else one.light for one in known.values()]
    return {"domain": list(known), "range": shades}


def _color(results: Sequence[Result], layout: ChartAxes) -> Spec:
    known = axes.shades(layout.color, results)
    title = AXES[layout.color].title if len(known) > 1 else None
    return nominal("color", scale=_scale(known), legend=LEGEND | {"title": title})


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


def overlaid(official: Sequence[Result], mine: Result, metric: Metric) -> Spec:
    """A mark for each official result, in the color of its system, and a star for one's own."""
    layout = ChartAxes(metric, "gpus", "system")
    colors = axes.shades("system", official) | {UNOFFICIAL: Shade("#000000", "#ffffff")}
    own = {"color": UNOFFICIAL, "release": "your file", "origin": "unofficial"}
    rows = [*_rows(official, layout), _rows([mine], layout)[0] | own]
    shared = {
        "x": log_axis("along", "GPUs", (row["along"] for row in rows)),
        "y": quantitative("value", title=metric.title, scale={"zero": False, "padding": 24}),
        "color": nominal("color", scale=_scale(colors), legend=LEGEND | {"title": None}),
        "tooltip": TOOLTIP,
    }
    is_own = {"test": "datum.origin === 'unofficial'"}
    star = {
        "shape": {"condition": is_own | {"value": STAR}, "value": "circle"},
        "size": {"condition": is_own | {"value": 420}, "value": 80},
    }
    return tall(layered(rows, shared, (points(80), star)), LINES_PX)


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


def step_times(steps: pd.DataFrame) -> Spec:
    """Seconds of each step; those that no figure is taken over are triangles of another color."""
    phase = steps["is_measured"].map({False: "left out", True: "measured"})
    phases, legend = ["left out", "measured"], {"title": None, "orient": "top"}
    shades = {"domain": phases, "range": [ORANGE, on_theme(BLUE)]}
    shapes = {"domain": phases, "range": ["triangle-up", "circle"]}
    marks = {
        "color": nominal("phase", scale=shades, legend=legend),
        "shape": nominal("phase", scale=shapes, legend=legend),
    }
    line = {"type": "line", "color": "#999999", "size": 1}
    named = ("step_time_s", "Step time (s)")
    return _over_steps(steps.assign(phase=phase), named, (line, {}), (points(50), marks))


CURVES = (
    ("loss", "Loss", "Loss"), ("grad_norm", "Gradient norm", "Gradient norm"),
    ("peak_memory_bytes", "Peak memory", "Bytes"),
)  # fmt: skip


def curves(steps: pd.DataFrame) -> Iterator[tuple[str, Spec]]:
    """What else was recorded of each step, with its title."""
    line = {"type": "line", "color": on_theme(BLUE)}
    for name, title, axis in CURVES:
        if name in steps and steps[name].notna().any():
            yield title, _over_steps(steps, (name, axis), (line, {}))


def _over_steps(steps: pd.DataFrame, named: tuple[str, str], *layers: tuple[Spec, Spec]) -> Spec:
    """Marks of a column, which comes with the title of its axis."""
    name, title = named
    words = ["phase"] if "phase" in steps else []
    rows = steps.loc[steps[name].notna(), ["step", name, *words]]
    shared = {
        "x": quantitative("step", title="Step", axis={"tickMinStep": 1, "format": "d"}),
        "y": quantitative(name, title=title, scale={"zero": False}),
        "tooltip": [quantitative("step"), quantitative(name), *map(nominal, words)],
    }
    return layered(rows.astype({"step": int, name: float}), shared, *layers)
