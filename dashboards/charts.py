"""The charts of the pages: ratios of two releases, best figures as bars, steps of a run."""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import cycle, islice
from typing import Final, NamedTuple

import altair as alt
import pandas as pd

from dashboards import data
from dashboards.tables import COMPUTED, GREY, PALETTE, Layers, column, ink, printed, tall
from perfdb.catalog import titles
from perfdb.compare import Match, Verdict, report
from perfdb.metrics import CONVENTION_BOUND, Metric
from perfdb.record import Origin, Result

ROW_PX = 58
"""The height of a bar with two lines of text above it, which have the chart's whole width."""


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


LEFT_OUT, MEASURED = "#E69F00", "#0072B2"
PHASES = ("left out", "measured")


class VerdictStyle(NamedTuple):
    """The sign before its word, its colour and its shape in a chart, and how its cell is filled.

    A fill is a tint, through which the theme's own background and words show.
    """

    sign: str
    colour: str
    shape: str
    fill: str = ""


BLUE, VERMILION = "#0072B2", "#D55E00"
"""Of Okabe and Ito (2008): distinct in every common colour blindness."""
_FASTER = "background-color: rgba(0, 114, 178, 0.22)"
_SLOWER = "background-color: rgba(213, 94, 0, 0.25)"

VERDICT_STYLES: Mapping[Verdict, VerdictStyle] = {
    Verdict.FASTER: VerdictStyle("▲", BLUE, "triangle-up", _FASTER),
    Verdict.SLOWER: VerdictStyle("▼", VERMILION, "triangle-down", _SLOWER),
    Verdict.FAILED: VerdictStyle("✗", GREY, "cross", _SLOWER),
    Verdict.SAME: VerdictStyle("=", GREY, "circle"),
    Verdict.UNKNOWN: VerdictStyle("?", GREY, "diamond"),
    Verdict.NOT_JUDGED: VerdictStyle("⚑", GREY, "square"),
}


def verdict_mark(verdict: Verdict, metric: str) -> str:
    """A verdict as it is printed: '▲ faster'."""
    return f"{VERDICT_STYLES[verdict].sign} {report.named(verdict, metric)}"


_WORK: Final[Sequence[Callable[[Result], str]]] = (
    lambda one: titles.task(one.task),
    lambda one: f"sequence {one.sequence_length:,}",
    lambda one: f"GBS {one.global_batch_size:,}",
)
"""The work of a case next to its model, precision and GPUs."""


def model(result: Result) -> str:
    """The model of a result, with its qualifiers."""
    return titles.qualified(result.model_title, result.qualifiers)


def work(result: Result) -> str:
    """The work of a case next to its model, precision and GPUs."""
    return ", ".join(part(result) for part in _WORK)


def ratios(numbered: Sequence[tuple[int, Match]]) -> Layers:
    """A mark for each ratio with its interval, and a tick where nothing has changed.

    Each match has the number of its row in the table.
    """
    rows, matches = _rows(numbered), [match for _, match in numbered]
    tooltip = ["work", "ratio", "low", "high", "verdict", "how"]
    base = alt.Chart(pd.DataFrame(rows)).encode(
        y=alt.Y("case:N", sort=None, axis=None, scale=alt.Scale(padding=0.7)), tooltip=tooltip
    )
    seen = [v for v in Verdict if v in {match.judgement.verdict for match in matches}]
    legend = alt.Legend(title="B is", orient="top")
    labels = [report.named(verdict, matches[0].metric) for verdict in seen]
    colours = alt.Scale(domain=labels, range=[VERDICT_STYLES[verdict].colour for verdict in seen])
    shapes = alt.Scale(domain=labels, range=[VERDICT_STYLES[verdict].shape for verdict in seen])
    colour = alt.Color("verdict:N", scale=colours, legend=legend)
    shape = alt.Shape("verdict:N", scale=shapes, legend=legend)
    ratio = alt.X(
        "ratio:Q",
        title="B/A",
        scale=alt.Scale(zero=False, padding=20),
        axis=alt.Axis(tickCount=6, format=".4~f"),
    )
    marks = base.mark_point(filled=True, size=110, opacity=1).encode(ratio, shape, colour)
    spans = base.mark_rule(size=2).encode(alt.X("low:Q"), alt.X2("high:Q"), colour)
    names = base.mark_text(align="left", dy=-15, fontSize=12, color=ink()).encode(
        x=alt.value(0), text="case"
    )
    unchanged = base.mark_tick(size=18, color=GREY).encode(x=alt.datum(1))  # below the words
    spanned = [spans] if any(row["low"] is not None for row in rows) else []
    layers = alt.layer(unchanged, names, *spanned, marks)
    return tall(layers, 46 * len(rows))


def _rows(numbered: Sequence[tuple[int, Match]]) -> list[dict[str, str | float | None]]:
    names = _names([match for _, match in numbered])
    return [
        {
            "case": f"{place}. {name}",
            "work": report.workload(match.a.shown),
            "ratio": match.judgement.ratio,
            "low": match.judgement.low,
            "high": match.judgement.high,
            "verdict": report.named(match.judgement.verdict, match.metric),
            "how": report.how(match),
        }
        for (place, match), name in zip(numbered, names, strict=True)
    ]


def _names(matches: Sequence[Match]) -> list[str]:
    """Each case briefly, and those of the same name with what distinguishes them."""
    results = [match.a.shown for match in matches]
    names = [_briefly(it) for it in results]
    for part in _WORK:
        distinct = {(name, part(it)) for it, name in zip(results, names, strict=True)}
        count = Counter(name for name, _ in distinct)
        names = [
            f"{name}, {part(it)}" if count[name] > 1 else name
            for it, name in zip(results, names, strict=True)
        ]
    return report.told_apart(names, matches)


def _briefly(result: Result) -> str:
    """A case in few enough words for the screen of a telephone."""
    precision = titles.precision(result.precision)
    gpus = f"{result.num_gpus:,} × {result.system_title}"
    return ", ".join(filter(None, (model(result), precision, gpus)))


def details(metric: Metric) -> list[str]:
    """The columns in DETAILS that a metric depends on."""
    bound = metric.name in CONVENTION_BOUND
    return [name for name in DETAILS if bound or name != "flops_convention"]


def bars(best: pd.DataFrame, metric: Metric, systems: Sequence[str]) -> Layers:
    """A bar for each result; published ones are paler, the label of the others says “measured”."""
    described = best[[*PARTS, *details(metric)]]
    rows = described.assign(
        place=range(len(described)),
        figure=best[metric.name].astype(float),
        label=labels(best, metric),
    )
    base = alt.Chart(rows).encode(
        y=alt.Y("place:O", sort=None, axis=None), tooltip=[*described.columns, "figure"]
    )
    colours = alt.Scale(domain=list(systems), range=list(islice(cycle(PALETTE), len(systems))))
    drawn = base.mark_bar(height=14, yOffset=15).encode(
        x=alt.X("figure:Q", title=metric.title, axis=_axis(metric)),
        color=alt.Color("system_title:N", scale=colours, legend=None),
        fillOpacity=alt.condition("datum.origin === 'measured'", alt.value(1), alt.value(0.45)),
    )
    names = base.mark_text(
        align="left", dy=-22, fontSize=12, color=ink(), lineBreak="\n", lineHeight=15
    ).encode(x=alt.value(0), text="label")
    return tall(alt.layer(drawn, names), ROW_PX * len(rows))


def _axis(metric: Metric) -> alt.Axis:
    return alt.Axis(tickCount=5, format="%") if metric.name == "mfu" else alt.Axis(tickCount=5)


def labels(best: pd.DataFrame, metric: Metric) -> list[str]:
    """'Llama 3 8B · 8 × DGX-H100: 13,812', and below it what else distinguishes bars."""
    differing = [name for name in details(metric) if best[name].nunique(dropna=False) > 1]
    return [_label(row, metric, differing) for row in data.records(best)]


def _label(row: Mapping[Hashable, object], metric: Metric, differing: Sequence[str]) -> str:
    cell_texts = row["printed"]
    figure = printed(
        metric, float(str(row[metric.name])), cell_texts if isinstance(cell_texts, dict) else None
    )
    figure += COMPUTED if row.get(column(metric.name)) is not None else ""
    others = (
        row["task"],
        row["precision"] or "precision unknown",
        row["release_name"],
        *(_detail(name, row[name]) for name in differing),
        "" if row["origin"] == Origin.PUBLISHED else row["origin"],
    )
    words = " · ".join(str(part) for part in others if part)
    where = f"{row['num_gpus']:,} × {row['system_title']}"
    return f"{row['model_title']} · {where}: {figure}\n{words}"


def _detail(name: str, value: object) -> str:
    if value is None or value == "":
        return ""
    if name == "variant":
        return f"variant {titles.framework(str(value))}"
    return f"sequence {value:,}" if name == "sequence_length" else str(value)


def step_times(steps: pd.DataFrame) -> alt.LayerChart | alt.FacetChart:
    """Seconds of each step; those that no figure is taken over are triangles of another colour."""
    phase = steps["is_measured"].map({False: "left out", True: "measured"})
    base = _line(steps.assign(phase=phase), "step_time_s", "Step time (s)")
    shades = alt.Scale(domain=PHASES, range=[LEFT_OUT, MEASURED])
    shapes = alt.Scale(domain=PHASES, range=["triangle-up", "circle"])
    legend = alt.Legend(title=None, orient="top")
    points = base.mark_point(size=50, filled=True, opacity=1).encode(
        color=alt.Color("phase:N", scale=shades, legend=legend),
        shape=alt.Shape("phase:N", scale=shapes, legend=legend),
    )
    return alt.layer(base.mark_line(color="#999999", size=1), points)


def losses(steps: pd.DataFrame) -> alt.Chart:
    """The loss of each step."""
    drawn: alt.Chart = _line(steps, "loss", "Loss").mark_line(color=MEASURED)
    return drawn


def _line(steps: pd.DataFrame, name: str, title: str) -> alt.Chart:
    rows = steps[["step", name, *(["phase"] if "phase" in steps else [])]]
    known = rows[rows[name].notna()].astype({"step": int, name: float})
    return alt.Chart(known).encode(
        x=alt.X("step:Q", title="Step", axis=alt.Axis(tickMinStep=1, format="d")),
        y=alt.Y(f"{name}:Q", title=title, scale=alt.Scale(zero=False)),
        tooltip=list(known.columns),
    )
