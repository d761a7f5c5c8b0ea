"""The pages of runs, their list, and the pages of recipes."""

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from operator import itemgetter
from typing import Final

from markupsafe import Markup

from perfdb import catalog, metrics, units
from perfdb.groups import grouped
from perfdb.metrics import METRICS, TRILLION
from perfdb.site import addresses, charts, columns, redaction
from perfdb.site.addresses import CHANGELOG, result_row
from perfdb.site.cells import (
    FLOPS,
    HtmlCell,
    cell,
    flag_mark,
    formatted,
    moment,
    outcome_badge,
    work,
)
from perfdb.site.columns import FIGURES, TERMS, ShownColumn
from perfdb.site.data import MOST_STEPS, Link, RunData, RunStep, SiteData, SiteResult
from perfdb.site.grouping import release_title, section_title
from perfdb.site.page import Block, Code, FileLinks, Page, Section, no_data, offered
from perfdb.site.pages.revisions import corrections
from perfdb.site.pages.sources import numbered_lines
from perfdb.site.tables import HtmlHead, HtmlRow, HtmlTable, plain
from perfdb.site.templates import facts, joined, link, paragraph, render_text
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
    no_flops = "no tokens/s/GPU" if tokens is None else "no formula for this model and task"
    no_peak = "no peak for this system and precision"
    if result.precision is None:
        no_peak = "the precision is not stated"
    shown = {name: formatted(column, getattr(result, name)) for name, column in FIGURES.items()}
    numbers = {
        "step_time_s": f"median of {result.num_steps} steps: {result.window}",
        "tokens_per_sec_per_gpu": (
            f"{result.global_batch_size:,} × {result.sequence_length:,} ÷ {shown['step_time_s']} ÷ "
            f"{result.num_gpus:,}" if tokens else _NO_RATE
        ),
        "model_tflops_per_sec_per_gpu": (
            f"{units.significant(per_token)} GFLOP per token, convention "
            f"{result.flops_convention}" if per_token else no_flops
        ),
        "mfu": (
            f"{shown[FLOPS]} ÷ {result.peak_tflops:,g}"
            if result.peak_tflops else no_peak
        ),
    }  # fmt: skip
    return [
        (METRICS[name].title, shown[name], METRICS[name].formula, text)
        for name, text in numbers.items()
    ]


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


EVERY_RUN: Final = (
    "<p>Every run that counts, however it ended; the {{ link('changelog of the data', changelog) }}"
    " has those withdrawn. The last one that was started stands first; of logs, which do not say "
    "when, the last that was read.</p>\n"
)
NO_RUNS: Final = "The store has no runs that count: every figure is from a published page."


def pages(data: SiteData) -> Iterator[Page]:
    """The page of each run, and their list."""
    results = tuple(page.result for page in latest_first(data.runs))
    number = units.counted(len(results), "run")
    about = f"{number} with the case, the outcome and the figures of each."
    yield Page(addresses.RUNS, "Runs", about, partial(_index, results, bool(data.results)))
    corrected = corrections(data.revisions)
    for run in _with_others(data):
        text = corrected.get(run.result.result_id, "")
        shown = run if data.hostnames else _redacted(run)
        name = addresses.of_run(run.run.run_id)
        yield Page(name, run.run.run_id, _about(run), partial(_run, shown, text))


def latest_first(runs: Iterable[RunData]) -> list[RunData]:
    """Runs by when they started, or were read where they do not say, as logs; the last first."""
    return sorted(runs, key=_started, reverse=True)


def _started(page: RunData) -> tuple[bool, datetime | None, int]:
    moment = page.run.started_at or page.run.ingested_at
    return moment is not None, moment, page.run.id


def _index(results: Sequence[SiteResult], any_results: bool) -> list[Block]:
    if not results:
        return [paragraph(NO_RUNS) if any_results else no_data()]
    intro = render_text(EVERY_RUN, changelog=CHANGELOG)
    return [intro, *offered("Runs", results, columns.RUNS)]


def _with_others(data: SiteData) -> Iterator[RunData]:
    """The runs, each with the others of its case: of several only one is in the tables."""
    shown = {result.run_id for result in data.results}
    links = [_link(page, page.run.run_id in shown) for page in data.runs]
    rows = [result_row(page.result) for page in data.runs]
    same = grouped(zip(rows, links, strict=True), itemgetter(0))
    for page, own, row in zip(data.runs, links, rows, strict=True):
        others = tuple(link for _, link in same[row] if link is not own)
        yield replace(page, others=others) if others else page


def _link(page: RunData, is_shown: bool) -> Link:
    """'two (in the tables, 1 error)': what the audit found in a hidden run is in no table."""
    remarks = ["in the tables"] if is_shown else []
    remarks += [page.result.flag.counts] if page.result.flag else []
    more = f" ({', '.join(remarks)})" if remarks else ""
    return Link(f"{page.run.run_id}{more}", addresses.of_run(page.run.run_id))


def _redacted(page: RunData) -> RunData:
    """The run without the names of machines, and with paths as they are in its folder."""
    run = page.run
    redact = redaction.redactor(run.run_id, run.environment.get("hostname"))
    summary = None if run.summary is None else redaction.redacted_fields(run.summary, redact)
    options = redaction.redacted_options(page.result.options, redact)
    return replace(
        page,
        run=replace(
            run,
            error=run.error and redact(run.error),
            environment=redaction.redacted_fields(run.environment, redact),
            command=tuple(map(redact, run.command)),
            summary=summary,
        ),
        result=replace(page.result, options=options),
        lines={number: redact(line) for number, line in page.lines.items()},
    )


def _about(page: RunData) -> str:
    """'Llama 3 8B, Pre-training, 8 GPUs, BF16 on DGX-H100: finished, 12.15 s/step.'"""
    result = page.result
    ended = page.run.outcome.replace("_", " ")
    known = result.step_time_s is not None
    figure = f", {units.significant(result.step_time_s)} s/step" if known else ""
    return f"{work(result)} on {result.system_title}: {ended}{figure}."


def _run(page: RunData, corrected: str) -> list[Block]:
    changed = render_text(
        "<p>{{ text }}; see the {{ link('changelog', changelog) }}.</p>\n",
        text=corrected[:1].upper() + corrected[1:],
        changelog=CHANGELOG,
    )
    chart = charts.step_times(page) or paragraph("The run left no step.")
    return [
        _outcome(page),
        *([changed] if corrected else []),
        Section("Figures", [figures_table(page)]),
        Section("Step times", [chart]),
        Section("Steps", [_steps(page)]),
        Section("Case", [_case(page.result)]),
        Section("Recipe", [_code(page.recipe_text, "yaml", "recipe file")]),
        Section("Command", [_code(shell(page.run.command), "bash", "command")]),
        Section("Files", [FileLinks(page.files)]),
        Section("Environment", [_environment(page)]),
    ]


def _code(text: str | None, language: str, what: str) -> Block:
    return Code(text, language) if text else paragraph(f"The run kept no {what}.")


def shell(command: Iterable[str]) -> str:
    """A command as a person would type it: each option with its value on a line of its own."""
    words = map(shlex.quote, command)
    return "".join(f" \\\n    {it}" if it.startswith("-") else f" {it}" for it in words)[1:]


def _outcome(page: RunData) -> Markup:
    """How the run ended and why, when and where it ran."""
    run, result = page.run, page.result
    release = addresses.of_release(result.framework, result.release)
    others = joined((link(it.text, it.document) for it in page.others), ", ")
    error = Markup("<pre>{}</pre>").format(run.error) if run.error else ""
    recipe = link(run.recipe, addresses.of_recipe(run.recipe)) if run.recipe else units.UNKNOWN
    commit = str(run.environment.get("git_commit"))[:12]
    is_dirty = run.environment.get("git_dirty")
    many = f"run {run.attempt:,} of those that --repeat asked for" if run.attempt > 1 else ""
    always: list[tuple[str, str]] = [("Outcome", outcome_badge(run.outcome))]
    known: list[tuple[str, str]] = [
        *always,
        ("Why no figures", result.withheld_text),
        ("Audit", flag_mark(result)),
        ("Error", error),
        ("Exit code", "" if run.exit_code is None else str(run.exit_code)),
        ("Release", link(release_title(result.framework, result.release), release)),
        ("Recipe", recipe),
        ("Recipe's checkout", f"made with uncommitted changes to {commit}" if is_dirty else ""),
        ("System", result.system_title),
        ("Started", _in_utc(run.started_at)),
        ("Ended", _in_utc(run.ended_at)),
        ("Repeat", many),
        ("Other runs of the case", others),
    ]
    return facts("Outcome", [(name, text) for name, text in known if text])


def _in_utc(when: datetime | None) -> str:
    return f"{moment(when)} UTC" if when else units.UNKNOWN


def _case(result: SiteResult) -> Markup:
    """Every field of the resolved case that it has, and the options of the framework."""
    fields = [(_named(column), cell(column, result).content) for column in columns.CASE.columns]
    options = [(f"option {name}", _plain(value)) for name, value in result.options.items()]
    known = [(name, text) for name, text in fields if text != units.UNKNOWN]
    return facts("Case", [("Task", section_title(result.task)), *known, *options])


def _named(column: ShownColumn) -> str:
    """An abbreviation with what it is short for."""
    term = TERMS[column.term] if column.term and column.title.isupper() else None
    return f"{column.title} ({term.name.lower()})" if term else column.title


def _steps(page: RunData) -> Markup:
    """The steps, each with the line of the steps file it is from."""
    if not page.steps:
        return Markup("")
    heads = [
        HtmlHead(title, numeric=True)
        for title in ("Step", "Step time (s)", "Loss", "Grad norm", "Peak memory", "Line")
    ]
    rows = [_step_row(step, page) for step in page.steps[:MOST_STEPS]]
    left = len(page.steps) - len(rows)
    more = f"In the steps file: {units.counted(left, 'more step')}." if left > 0 else ""
    return joined((plain("Steps", heads, rows), paragraph(more), _lines(page)))


def _lines(page: RunData) -> Markup:
    """The lines of a file that the steps are from."""
    if not page.lines or page.measured_file is None:
        return Markup("")
    name = page.measured_file.name
    return render_text(
        "<details><summary>The lines of <code>{{ name }}</code> that the steps are from</summary>"
        "\n{{ lines }}</details>",
        name=name,
        lines=numbered_lines(sorted(page.lines.items()), f"Lines of {name}"),
    )


def _step_row(step: RunStep, page: RunData) -> list[HtmlCell | str]:
    is_warmup = step.step <= page.run.warmup_steps
    mark = " warm-up" if is_warmup else " skipped" if step.skipped else ""
    small = Markup("{}<small>{}</small>").format(step.step, mark) if mark else str(step.step)
    line = str(step.source_line)
    to_line = Markup('<a href="#L{0}">{0}</a>').format(line)
    return [
        HtmlCell(small, sort=step.step),
        units.significant(step.step_time_s, 5),
        units.significant(step.loss, 6),
        units.significant(step.grad_norm, 5),
        HtmlCell(units.gib(step.peak_memory_bytes), sort=step.peak_memory_bytes),
        to_line if step.source_line in page.lines else line,
    ]


def _environment(page: RunData) -> Markup:
    """The machine and the software, as the run recorded them."""
    summary = page.run.summary or {}
    worker = {f"worker: {name}": _of_ranks(value) for name, value in summary.items()}
    lines = _flat({**page.run.environment, **worker})
    if not lines:
        return paragraph("The run kept nothing of its machine and software.")
    return facts("Environment", lines)


def _flat(values: Mapping[str, object]) -> list[tuple[str, str]]:
    """Names and values, those of a mapping each on a line of its own; unknown ones left out."""
    lines: list[tuple[str, str]] = []
    for name, value in values.items():
        if isinstance(value, Mapping):
            lines += _flat({f"{name}: {key}": one for key, one in value.items()})
        elif value not in (None, ""):
            lines.append((name.replace("_", " "), _plain(value)))
    return lines


def _of_ranks(value: object) -> object:
    """What the worker wrote of every rank, in a line; anything else as it is."""
    if not isinstance(value, list) or len(value) < 2:
        return value
    if not all(isinstance(one, int | float) for one in value):
        return f"{len(value):,} entries, in worker.json"
    least, most = min(value), max(value)
    if least == most:
        return f"{least} on each of {len(value):,} ranks"
    ends = (f"{end} (rank {value.index(end):,})" for end in (least, most))
    return f"{' to '.join(ends)}, of {len(value):,} ranks"


def _plain(value: object) -> str:
    """A value as it is written in JSON; text as it is."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
