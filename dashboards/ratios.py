"""The chart of the ratios of two releases, case by case, and how it names a case."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

import altair as alt
import pandas as pd

from dashboards.look import GREY, Layers, ink, tall
from dashboards.verdicts import LOOKS
from perfdb.catalog import titles
from perfdb.compare import Match, Result, Verdict, words

_WORK: Final[Sequence[Callable[[Result], str]]] = (
    lambda one: titles.task(one.task),
    lambda one: f"sequence {one.sequence_length:,}",
    lambda one: f"GBS {one.global_batch_size:,}",
)
"""The work of a case beside its model, precision and GPUs."""


def model(result: Result) -> str:
    """The model of a result, with its qualifiers."""
    return titles.qualified(result.model_title, result.qualifiers)


def work(result: Result) -> str:
    """The work of a case beside its model, precision and GPUs."""
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
    labels = [words.named(verdict, matches[0].metric) for verdict in seen]
    colours = alt.Scale(domain=labels, range=[LOOKS[verdict].colour for verdict in seen])
    shapes = alt.Scale(domain=labels, range=[LOOKS[verdict].shape for verdict in seen])
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
            "work": words.workload(match.a.shown),
            "ratio": match.judgement.ratio,
            "low": match.judgement.low,
            "high": match.judgement.high,
            "verdict": words.named(match.judgement.verdict, match.metric),
            "how": words.how(match),
        }
        for (place, match), name in zip(numbered, names, strict=True)
    ]


def _names(matches: Sequence[Match]) -> list[str]:
    """Each case briefly, and those that are named alike with what tells them apart."""
    results = [match.a.shown for match in matches]
    names = [_briefly(it) for it in results]
    for part in _WORK:
        told = {(name, part(it)) for it, name in zip(results, names, strict=True)}
        count = Counter(name for name, _ in told)
        names = [
            f"{name}, {part(it)}" if count[name] > 1 else name
            for it, name in zip(results, names, strict=True)
        ]
    return words.told_apart(names, matches)


def _briefly(result: Result) -> str:
    """A case in few enough words for the screen of a telephone."""
    precision = titles.precision(result.precision)
    gpus = f"{result.num_gpus:,} × {result.system_title}"
    return ", ".join(filter(None, (model(result), precision, gpus)))
