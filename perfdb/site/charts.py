"""Step times as an SVG that stands in the page: same steps, same bytes; colours from the theme."""

import io
import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Final

from perfdb import units
from perfdb.site.data import RunPage, Step
from perfdb.site.markup import Html

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS: Final[Mapping[str, str]] = {
    "#010101": "var(--pst-color-text-base, currentColor)",
    "#020202": "var(--pst-color-border, #ccc)",
    "#030303": "var(--perf-step, #0072b2)",
    "#040404": "var(--perf-warmup, #e69f00)",
    "#050505": "var(--perf-median, #d55e00)",
}
"""Colours that are drawn with, and what of the theme stands in their place on the page."""

TEXT, RULE, STEP, WARMUP, MEDIAN = COLOURS

NOTHING: Final[dict[str, str | None]] = dict.fromkeys(("Creator", "Date", "Format", "Type"))
"""No metadata: a date would make each drawing another one."""


def step_times(page: RunPage) -> Html | None:
    """Seconds over steps, warm-up shaded, with the median of the window; None without a step."""
    return _labelled(_svg(page), page) if page.steps else None


def _svg(page: RunPage) -> str:
    # matplotlib takes half a second to import, and only a page of a run that has changed needs it
    from matplotlib import rc_context  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    drawn = io.StringIO()
    with rc_context(
        {
            "svg.fonttype": "none",
            "svg.hashsalt": "perfdb",
            "font.family": "sans-serif",
            "text.color": TEXT,
            "axes.labelcolor": TEXT,
            "axes.edgecolor": RULE,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "xtick.color": TEXT,
            "ytick.color": TEXT,
        }
    ):
        figure = Figure(figsize=(9, 3))
        figure.subplots_adjust(left=0.08, right=0.99, top=0.97, bottom=0.17)
        _draw(figure.add_subplot(), page)
        figure.savefig(drawn, format="svg", metadata=NOTHING, transparent=True)
    return drawn.getvalue()


def _draw(axes: "Axes", page: RunPage) -> None:
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415  as above

    numbers = [step.step for step in page.steps]
    times = [step.step_time_s for step in page.steps]
    if page.run.warmup_steps:
        end = page.run.warmup_steps + 0.5
        axes.axvspan(0.5, end, color=WARMUP, alpha=0.18, linewidth=0, label="warm-up")
    marker = "o" if len(times) <= 100 else ""
    axes.plot(numbers, times, color=STEP, marker=marker, markersize=3, linewidth=1.2, label="step")
    if page.result.step_time_s is not None:
        label = f"median of {page.result.window}"
        axes.axhline(page.result.step_time_s, color=MEDIAN, linestyle="--", label=label)
    axes.set(xlabel="step", ylabel="step time (s)", xlim=(0.5, max(numbers) + 0.5))
    axes.set_ylim(bottom=0)
    axes.grid(axis="y", color=RULE, linewidth=0.6)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axes.legend(frameon=False, ncols=3, loc="lower right", fontsize="small")


def _labelled(svg: str, page: RunPage) -> Html:
    """The drawing alone, with a title and a description that a screen reader says."""
    title = f"<title>Step times of {escape(page.run.run_id)}</title>"
    said = f"{title}<desc>{escape(description(page.steps, page))}</desc>"
    drawing = re.sub(r' (?:width|height)="[^"]*"', "", svg[svg.index("<svg") :].strip(), count=2)
    drawing = drawing.replace("<svg", '<svg role="img" class="perf-chart"', 1)
    drawing = re.sub(r"(<svg[^>]*>)", lambda start: start[1] + said, drawing, count=1)
    for drawn, themed in COLOURS.items():
        drawing = drawing.replace(drawn, themed)
    return Html(f'<figure class="perf-figure">{drawing}</figure>')


def description(steps: Sequence[Step], page: RunPage) -> str:
    """The chart in a sentence."""
    times = [step.step_time_s for step in steps]
    low, high = units.significant(min(times)), units.significant(max(times))
    median = units.significant(page.result.step_time_s)
    return (
        f"{len(times)} steps, of which {page.run.warmup_steps} are warm-up and shaded; "
        f"between {low} and {high} seconds, median of the window {median} seconds."
    )
