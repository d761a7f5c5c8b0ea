"""The pages of runs and of the recipes that they were made from, and their lists."""

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Final

from markupsafe import Markup

from perfdb import catalog, metrics, units
from perfdb.groups import grouped
from perfdb.hardware import without_secrets
from perfdb.metrics import METRICS, TRILLION
from perfdb.record import RunKind
from perfdb.site import addresses, cells, charts, columns, redaction
from perfdb.site.cells import FLOPS, HtmlCell, formatted, moment
from perfdb.site.columns import FIGURES, TERMS
from perfdb.site.data import MOST_STEPS, Link, RunData, RunStep, SiteData, SiteResult
from perfdb.site.grouping import section_title
from perfdb.site.page import Block, Code, FileLinks, Section, SitePage, no_data, offered
from perfdb.site.pages.parts import heads, href, link_cell, release_of
from perfdb.site.pages.revisions import corrections
from perfdb.site.tables import HtmlRow, HtmlTable, plain
from perfdb.site.templates import facts, joined, link, paragraph, render, render_text
from perfdb.stated import RATE

NO_RUNS: Final = "The store has no runs that count: every figure is from a published page."
PUBLISHED: Final = (
    "Published rows have none: where their page names configuration files, so does a note below "
    "the table."
)


def pages(data: SiteData) -> Iterator[SitePage]:
    """The page of each run, and their list."""
    results = tuple(page.result for page in latest_first(data.runs))
    number = units.counted(len(results), "run")
    about = f"{number} with the case, the outcome and the figures of each."
    yield SitePage(addresses.RUNS, "Runs", about, partial(_index, results, bool(data.results)))
    corrected = corrections(data.revisions)
    for run in _with_others(data):
        result, name = run.result, run.run.run_id
        seconds = units.significant(result.step_time_s)
        figure = f", {seconds} s/step" if result.step_time_s is not None else ""
        kind = "" if run.run.kind == RunKind.BENCHMARK else f"a {run.run.kind} run, "
        outcome = f"{kind}{run.run.outcome.replace('_', ' ')}{figure}."
        about = f"{cells.work(result)} on {result.system_title}: {outcome}"
        shown = _redacted(run, names=data.hostnames)
        body = partial(_run, shown, corrected.get(result.result_id, ""))
        yield SitePage(addresses.of_run(name), name, about, body)


def latest_first(runs: Iterable[RunData]) -> list[RunData]:
    """The last started run first; logs, which do not say, count by when they were read."""
    return sorted(
        runs,
        key=lambda it: (bool(at := it.run.started_at or it.run.ingested_at), at, it.run.id),
        reverse=True,
    )


def _index(results: Sequence[SiteResult], any_results: bool) -> list[Block]:
    if not results:
        return [paragraph(NO_RUNS) if any_results else no_data()]
    intro = render_text(
        "<p>Every run that counts, however it ended; the "
        "{{ link('changelog of the data', changelog) }} has those withdrawn. The last one that was "
        "started stands first; of logs, which do not say when, the last that was read.</p>\n",
        changelog=addresses.CHANGELOG,
    )
    return [intro, *offered("Runs", results, columns.RUNS)]


def _with_others(data: SiteData) -> Iterator[RunData]:
    """The runs, each with links to the others of its case: tables show only one of several.

    'two (in the tables, 1 error)': no table shows what the audit found in the others.
    """
    in_tables = {result.run_id for result in data.results}
    links = []
    for page in data.runs:
        remarks = ["in the tables"] if page.run.run_id in in_tables else []
        remarks += [page.result.flag.counts] if page.result.flag else []
        more = f" ({', '.join(remarks)})" if remarks else ""
        links.append(Link(f"{page.run.run_id}{more}", addresses.of_run(page.run.run_id)))
    rows = [addresses.result_row(page.result) for page in data.runs]
    same = grouped(zip(rows, links, strict=True), itemgetter(0))
    for page, own, row in zip(data.runs, links, rows, strict=True):
        yield replace(page, others=tuple(link for _, link in same[row] if link is not own))


def _redacted(page: RunData, *, names: bool) -> RunData:
    """The run without secrets.

    Unless `names`, it is without the names of machines, and has paths as they are in its folder.
    """
    run, options = page.run, page.result.options
    redact: redaction.Redactor = without_secrets
    if not names:
        redact = redaction.redactor(run.run_id, run.environment.get("hostname"))
        options = redaction.redacted_options(options, redact)
    fields = partial(redaction.redacted_fields, redact=redact, names=names)
    return replace(
        page,
        run=replace(
            run,
            error=run.error and redact(run.error),
            environment=fields(run.environment),
            command=tuple(map(redact, run.command)),
            summary=None if run.summary is None else fields(run.summary),
        ),
        result=replace(page.result, options=options),
        lines={number: redact(line) for number, line in page.lines.items()},
    )


def _run(page: RunData, corrected: str) -> list[Block]:
    def code(text: str | None, language: str, what: str) -> Block:
        return Code(text, language) if text else paragraph(f"The run kept no {what}.")

    changed = render_text(
        "<p>{{ text }}; see the {{ link('changelog', changelog) }}.</p>\n",
        text=corrected[:1].upper() + corrected[1:],
        changelog=addresses.CHANGELOG,
    )
    summary = page.run.summary or {}
    worker = {f"worker: {name}": _of_ranks(value) for name, value in summary.items()}
    environment = _flat({**page.run.environment, **worker})
    none = paragraph("The run kept nothing of its machine and software.")
    return [
        _outcome(page),
        *([changed] if corrected else []),
        *_checkpoint(page),
        Section("Figures", [figures_table(page)]),
        Section("Step times", [charts.step_times(page) or paragraph("The run left no step.")]),
        Section("Steps", [_steps(page)]),
        Section("Case", [_case(page.result)]),
        Section("Recipe", [code(page.recipe_text, "yaml", "recipe file")]),
        Section("Command", [code(shell(page.run.command), "bash", "command")]),
        Section("Files", [FileLinks(page.files)]),
        Section("Environment", [facts("Environment", environment) if environment else none]),
    ]


def _checkpoint(page: RunData) -> list[Block]:
    """What a checkpoint took, and the losses of the next step that prove it."""
    found = (page.run.summary or {}).get("checkpoint")
    if not isinstance(found, Mapping):
        return []
    return [Section("Checkpoint", [facts("Checkpoint", _flat(found))])]


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
    started, ended = (
        f"{moment(when)} UTC" if when else units.UNKNOWN for when in (run.started_at, run.ended_at)
    )
    known: list[tuple[str, str]] = [
        ("Kind of run", "" if run.kind == RunKind.BENCHMARK else run.kind),
        ("Outcome", cells.outcome_badge(run.outcome)),
        ("Why no figures", result.withheld_text),
        ("Audit", cells.flag_mark(result)),
        ("Error", error),
        ("Exit code", "" if run.exit_code is None else str(run.exit_code)),
        ("Release", link(release_of(result), release)),
        ("Recipe", recipe),
        ("Recipe's checkout", f"made with uncommitted changes to {commit}" if is_dirty else ""),
        ("System", result.system_title),
        ("Started", started),
        ("Ended", ended),
        ("Repeat", many),
        ("Other runs of the case", others),
    ]
    return facts("Outcome", [(name, text) for name, text in known if text])


def figures_table(page: RunData) -> Markup:
    """Each figure with its formula, the numbers put into it, and what it is computed from."""
    result = page.result
    if result.withheld:
        return paragraph(f"There are no figures: {result.withheld_text}.")
    every = (*_derived(result), *_spread(result), *_memory(page))
    rows = [HtmlRow(list(map(HtmlCell, row))) for row in every]
    titles = heads("Figure", "#Value", "~Formula", "~With numbers")
    made = HtmlTable("Figures", titles, rows, sortable=False).html
    steps = f"{result.num_steps} steps, {result.window}" if result.window else units.UNKNOWN
    version = result.formula_version and f"version {result.formula_version}"
    known: list[tuple[str, str]] = [
        ("Origin", f"{result.origin}, from {result.source}"),
        ("Window", steps),
        ("Formulas", units.text(version)),
        ("FLOPs convention", result.flops_convention or units.UNKNOWN),
        *(("Note", note) for note in result.note_texts),
        ("Audit", cells.flag_mark(result) or "no error and no warning"),
    ]
    grounds = [(name, text) for name, text in known if text != units.UNKNOWN]
    return joined((made, facts("What the figures rest on", grounds)))


def _derived(result: SiteResult) -> list[tuple[str, ...]]:
    """Each metric as tables print it, and its formula with this run's numbers."""
    tokens, flops = result.tokens_per_sec_per_gpu, result.model_tflops_per_sec_per_gpu
    per_token = units.significant(flops / tokens * 1e3) if flops and tokens else None
    no_flops = "no tokens/s/GPU" if tokens is None else "no formula for this model and task"
    no_peak = "no peak for this system and precision"
    if result.precision is None:
        no_peak = "the precision is not stated"
    shown = {name: formatted(column, getattr(result, name)) for name, column in FIGURES.items()}
    numbers = {
        "step_time_s": f"median of {result.num_steps} steps: {result.window}",
        RATE: (
            f"{result.global_batch_size:,} × {result.sequence_length:,} ÷ {shown['step_time_s']} ÷ "
            f"{result.num_gpus:,}" if tokens
            else "not computed: its steps do not all have GBS × sequence length tokens"
        ),
        FLOPS: (
            f"{per_token} GFLOP per token, convention {result.flops_convention}"
            if per_token else no_flops
        ),
        "mfu": f"{shown[FLOPS]} ÷ {result.peak_tflops:,g}" if result.peak_tflops else no_peak,
    }  # fmt: skip
    return [
        (METRICS[name].title, shown[name], METRICS[name].formula, text)
        for name, text in numbers.items()
    ]


def _spread(result: SiteResult) -> Iterator[tuple[str, ...]]:
    """How the step times spread, the rate of all GPUs, and how long a trillion tokens take."""
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
    each = result.tokens_per_sec_per_gpu
    if each is None:
        return
    total = metrics.global_tokens_per_sec(each, result.num_gpus)
    printed, text = (formatted(FIGURES[RATE], it) for it in (each, total))
    days, numbers = metrics.days_to_train(TRILLION, total), f"{printed} × {result.num_gpus:,}"
    yield "Tokens/s, all GPUs", text, "tokens/s/GPU × GPUs", numbers
    formula = "10¹² ÷ tokens/s of all GPUs ÷ 86,400"
    yield "Days to 1T tokens", units.significant(days), formula, f"10¹² ÷ {text} ÷ 86,400"


def _memory(page: RunData) -> Iterator[tuple[str, ...]]:
    """The peak of a GPU's memory, and how much of it that left free."""
    peak = page.result.peak_memory_bytes
    if peak is None:
        return
    yield "Peak memory", units.gib(peak), "largest of the steps", f"{peak:,} bytes"
    if not catalog.has_gpus(page.result.system):
        return
    system = catalog.systems().get(page.result.system)
    mib = system.gpu_memory_mib if system else None
    size, stated_by = mib and mib * 2**20, f"nvidia-smi on {page.result.system_title}"
    recorded = page.run.environment.get("gpu_memory_bytes")
    if isinstance(recorded, int):
        size, stated_by = recorded, "the run"
    free = metrics.memory_headroom(peak, size) if size else None
    numbers = f"1 − {units.gib(peak)} ÷ {units.gib(size)}, as {stated_by} says"
    known = numbers if free is not None else "the memory of its GPUs is not known"
    yield "Memory headroom", units.percent(free), "1 − peak memory ÷ memory of the GPU", known


def _case(result: SiteResult) -> Markup:
    """Every field of the resolved case that it has, and the options of the framework."""
    known: list[tuple[str, str]] = [("Task", section_title(result.task))]
    for column in columns.CASE.columns:
        text = cells.cell(column, result).content
        # an abbreviation is printed with what it is short for
        term = TERMS[column.term] if column.term and column.title.isupper() else None
        if text != units.UNKNOWN:
            known.append((f"{column.title} ({term.name.lower()})" if term else column.title, text))
    options = [(f"option {name}", _plain(value)) for name, value in result.options.items()]
    return facts("Case", [*known, *options])


def _steps(page: RunData) -> Markup:
    """The steps, each with the line of the steps file it is from."""
    if not page.steps:
        return Markup("")
    titles = ("#Step", "#Step time (s)", "#Loss", "#Grad norm", "#Peak memory", "#Line")
    rows = [_step_row(step, page) for step in page.steps[:MOST_STEPS]]
    return render(
        "steps",
        table=plain("Steps", heads(*titles), rows),
        left=len(page.steps) - len(rows),
        name=page.measured_file.name if page.measured_file else "",
        lines=sorted(page.lines.items()),
    )


def _step_row(step: RunStep, page: RunData) -> list[HtmlCell | str]:
    is_warmup = step.step <= page.run.warmup_steps
    mark = " warm-up" if is_warmup else " skipped" if step.skipped else ""
    small = Markup("{}<small>{}</small>").format(step.step, mark) if mark else str(step.step)
    line = str(step.source_line)
    return [
        HtmlCell(small, sort=step.step),
        units.significant(step.step_time_s, 5),
        units.significant(step.loss, 6),
        units.significant(step.grad_norm, 5),
        HtmlCell(units.gib(step.peak_memory_bytes), sort=step.peak_memory_bytes),
        href(line, f"#L{line}") if step.source_line in page.lines else line,
    ]


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


Texts = tuple[tuple[RunData, ...], ...]
"""The runs of each text of a recipe; the text that was run last comes first."""


def recipe_pages(data: SiteData) -> Iterator[SitePage]:
    """The page of each recipe that runs were made from, and their list."""
    named = grouped(latest_first(data.runs), lambda page: page.run.recipe or "")
    recipes: dict[str, Texts] = {}
    for name in sorted(filter(None, named)):
        by_text = grouped(named[name], lambda page: page.recipe_text)
        recipes[name] = tuple(map(tuple, by_text.values()))
    number = units.counted(len(recipes), "recipe")
    about = f"{number} that runs were made from, with the runs of each."
    lines = tuple(
        (name, sum(map(len, texts)), len(texts), moment(texts[0][0].run.started_at))
        for name, texts in recipes.items()
    )
    below = [addresses.of_recipe(name) for name in recipes]
    yield SitePage(addresses.RECIPES, "Recipes", about, partial(_recipes, lines), below=below)
    for name, texts in recipes.items():
        runs = units.counted(sum(map(len, texts)), "run")
        about = f"The recipe {name}, to copy and to run again, and {runs} made from it."
        yield SitePage(addresses.of_recipe(name), name, about, partial(_recipe, texts))


def _recipes(lines: Sequence[tuple[str, int, int, str]]) -> list[Block]:
    if not lines:
        return [paragraph(f"No run in the store keeps a recipe. {PUBLISHED}")]
    intro = "Each recipe that runs in the store were made from, as the runs keep it."
    versions = "#Versions|different texts that the recipe had in the runs that were made from it"
    rows: list[list[HtmlCell | str]] = [
        [link_cell(name, addresses.of_recipe(name)), f"{runs:,}", f"{texts:,}", last]
        for name, runs, texts, last in lines
    ]
    titles = heads("Recipe", "#Runs", versions, "Last run started (UTC)")
    return [paragraph(f"{intro} {PUBLISHED}"), plain("Recipes", titles, rows)]


def _recipe(texts: Texts) -> list[Block]:
    """Each text, to copy, to download, with the command that runs it, and its runs."""
    made: list[Block] = []
    for number, runs in enumerate(texts):
        until = moment(runs[0].run.started_at)
        title = "Recipe" if number == 0 else f"As it was until {until} UTC"
        text, file = runs[0].recipe_text, runs[0].recipe_file
        shown: list[Block] = [paragraph("The runs kept no recipe file.")]
        if text is not None and file is not None:
            after = " to the folder that you are in, and run it again:"
            command = f"perfdb run {shlex.quote(Path(file.name).name)}"
            download = FileLinks([file], "Download ", after)
            shown = [Code(text, "yaml"), download, Code(command, "bash")]
        rows: list[list[HtmlCell | str]] = [
            [
                link_cell(it.run.run_id, addresses.of_run(it.run.run_id)),
                cells.outcome_badge(it.run.outcome),
                it.result.system_title,
                f"{it.result.num_gpus:,}",
                moment(it.run.started_at),
            ]
            for it in runs
        ]
        titles = heads("Run", "Outcome", "System", "#GPUs", "Started (UTC)")
        made.append(Section(title, [*shown, plain("Runs of this recipe", titles, rows)]))
    return made
