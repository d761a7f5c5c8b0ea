"""The figures of a run: each with its formula, the numbers put into it, and what it rests on."""

from collections.abc import Iterator
from typing import Final

from markupsafe import Markup

from perfdb import catalog, metrics, units
from perfdb.metrics import METRICS, TRILLION
from perfdb.site.cells import FLOPS, HtmlCell, flag_mark, formatted
from perfdb.site.columns import FIGURES
from perfdb.site.data import RunData, SiteResult
from perfdb.site.tables import HtmlHead, HtmlRow, HtmlTable
from perfdb.site.templates import facts, joined, paragraph
from perfdb.stated import RATE

FigureLine = tuple[str, str, str, str]
"""A figure, its value, its formula, and the formula with numbers."""

_NO_RATE: Final = "not computed: its steps do not all have GBS × sequence length tokens"


def figures_table(page: RunData) -> Markup:
    """Each figure with its formula, the numbers put into it, and what it rests on."""
    result = page.result
    if result.withheld:
        return paragraph(f"There are no figures: {result.withheld_text}.")
    heads = [
        HtmlHead("Figure"),
        HtmlHead("Value", numeric=True),
        HtmlHead("Formula", wide=True),
        HtmlHead("With numbers", wide=True),
    ]
    every = (*_derived(result), *_spread(result), *_of_the_job(result), *_memory(page))
    rows = [HtmlRow(list(map(HtmlCell, row))) for row in every]
    made = HtmlTable("Figures", heads, rows, sortable=False).html
    return joined((made, facts("What the figures rest on", _grounds(result))))


def _grounds(result: SiteResult) -> list[tuple[str, str]]:
    """Why the figures are to be believed: what was measured, how it was computed, what is found."""
    steps = f"{result.num_steps} steps, {result.window}" if result.window else units.UNKNOWN
    known: list[tuple[str, str]] = [
        ("Origin", f"{result.origin}, from {result.source}"),
        ("Window", steps),
        ("Formulas", units.text(result.formula_version and f"version {result.formula_version}")),
        ("FLOPs convention", result.flops_convention or units.UNKNOWN),
        *(("Note", note) for note in result.note_texts),
        ("Audit", flag_mark(result) or "no error and no warning"),
    ]
    return [(name, text) for name, text in known if text != units.UNKNOWN]


def _derived(result: SiteResult) -> list[FigureLine]:
    """Each metric as tables print it, and its formula with this run's numbers."""
    tokens, flops = result.tokens_per_sec_per_gpu, result.model_tflops_per_sec_per_gpu
    per_token = flops / tokens * 1e3 if flops and tokens else None
    shown = {name: formatted(column, getattr(result, name)) for name, column in FIGURES.items()}
    numbers = {
        "step_time_s": f"median of {result.num_steps} steps: {result.window}",
        "tokens_per_sec_per_gpu": (
            f"{result.global_batch_size:,} × {result.sequence_length:,} ÷ {shown['step_time_s']} ÷ "
            f"{result.num_gpus:,}" if tokens else _NO_RATE
        ),
        "model_tflops_per_sec_per_gpu": (
            f"{units.significant(per_token)} GFLOP per token, convention "
            f"{result.flops_convention}" if per_token else _no_flops(result)
        ),
        "mfu": (
            f"{shown[FLOPS]} ÷ {result.peak_tflops:,g}"
            if result.peak_tflops else _no_peak(result)
        ),
    }  # fmt: skip
    return [
        (METRICS[name].title, shown[name], METRICS[name].formula, text)
        for name, text in numbers.items()
    ]


def _no_flops(result: SiteResult) -> str:
    known = result.tokens_per_sec_per_gpu is not None
    return "no formula for this model and task" if known else "no tokens/s/GPU"


def _no_peak(result: SiteResult) -> str:
    stated = result.precision is not None
    return "no peak for this system and precision" if stated else "the precision is not stated"


def _spread(result: SiteResult) -> Iterator[FigureLine]:
    known = {
        "Mean step time (s)": result.step_time_mean_s,
        "Standard deviation (s)": result.step_time_stdev_s,
        "10th percentile (s)": result.step_time_p10_s,
        "90th percentile (s)": result.step_time_p90_s,
        "Last step (s)": result.step_time_last_s,
    }
    for title, seconds in known.items():
        if seconds is not None:
            yield title, units.significant(seconds), "over the same steps", ""


def _of_the_job(result: SiteResult) -> Iterator[FigureLine]:
    """The rate of all GPUs, and how long a trillion tokens would take at it."""
    each = result.tokens_per_sec_per_gpu
    if each is None:
        return
    total = metrics.global_tokens_per_sec(each, result.num_gpus)
    printed, text = (formatted(FIGURES[RATE], it) for it in (each, total))
    days, numbers = metrics.days_to_train(TRILLION, total), f"{printed} × {result.num_gpus:,}"
    yield "Tokens/s, all GPUs", text, "tokens/s/GPU × GPUs", numbers
    formula = "10¹² ÷ tokens/s of all GPUs ÷ 86,400"
    yield "Days to 1T tokens", units.significant(days), formula, f"10¹² ÷ {text} ÷ 86,400"


def _memory(page: RunData) -> Iterator[FigureLine]:
    """The peak of a GPU's memory, and how much of it that left free."""
    peak = page.result.peak_memory_bytes
    if peak is None:
        return
    yield "Peak memory", units.gib(peak), "largest of the steps", f"{peak:,} bytes"
    if catalog.has_gpus(page.result.system):
        size, stated_by = _gpu_memory(page)
        free = metrics.memory_headroom(peak, size) if size else None
        numbers = f"1 − {units.gib(peak)} ÷ {units.gib(size)}, as {stated_by} says"
        known = numbers if free is not None else "the memory of its GPUs is not known"
        yield "Memory headroom", units.percent(free), "1 − peak memory ÷ memory of the GPU", known


def _gpu_memory(page: RunData) -> tuple[int | None, str]:
    """The bytes that a GPU of the run has, and who says so."""
    text = page.run.environment.get("gpu_memory_bytes")
    if isinstance(text, int):
        return text, "the run"
    system = catalog.systems().get(page.result.system)
    mib = system.gpu_memory_mib if system else None
    return mib and mib * 2**20, f"nvidia-smi on {page.result.system_title}"
