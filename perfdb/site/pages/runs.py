"""The pages of runs, and their list."""

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from operator import itemgetter
from typing import Final

from markupsafe import Markup

from perfdb import catalog, metrics, units
from perfdb.compare import run_diff
from perfdb.compare.run_diff import RunFacts
from perfdb.groups import grouped
from perfdb.hardware import without_secrets
from perfdb.metrics import METRICS, TRILLION
from perfdb.record import NoteCode, RunKind
from perfdb.site import addresses, cells, charts, columns, redaction
from perfdb.site.cells import FLOPS, HtmlCell, formatted, marked, moment
from perfdb.site.columns import FIGURES, TERMS
from perfdb.site.data import MOST_STEPS, Link, RunData, RunStep, SiteData, SiteResult
from perfdb.site.grouping import apart, section_title
from perfdb.site.page import (
    Block,
    Code,
    FileLinks,
    IndexEntry,
    Section,
    SitePage,
    no_data,
    offered,
)
from perfdb.site.pages.parts import drawer, flat, heads, json_text, release_of
from perfdb.site.tables import HtmlRow, HtmlTable, plain
from perfdb.site.templates import code, facts, href, joined, link, paragraph, render, render_text
from perfdb.stated import RATE, figure

NO_RUNS: Final = "There are no runs: every figure is from a published page."
NO_RUNS_ON_GPUS: Final = "There are no runs on GPUs."


def pages(data: SiteData) -> Iterator[SitePage]:
    """The page of each run, and their list."""
    results, tests = apart([page.result for page in latest_first(data.runs)], data.current)
    number = units.counted(len(results), "run")
    about = f"{number} with the case, the outcome and the figures of each."
    yield SitePage(
        addresses.RUNS,
        "Runs",
        about,
        partial(_index, tuple(results), len(tests), bool(data.results)),
    )
    corrected = data.corrected
    shown = [_redacted(run, names=data.hostnames) for run in _with_others(data)]
    before = dict(_since_before(shown))
    for run in shown:
        result, name = run.result, run.run.run_id
        seconds = units.significant(result.step_time_s)
        figure = f", {seconds} s/step" if result.step_time_s is not None else ""
        kind = "" if run.run.kind == RunKind.BENCHMARK else f"a {run.run.kind} run, "
        outcome = f"{kind}{run.run.outcome.replace('_', ' ')}{figure}."
        about = f"{cells.work(result)} on {result.system_title}: {outcome}"
        body = partial(_run, run, before.get(name), corrected.get(result.result_id, ""))
        title = f"{cells.work(result)} on {result.system_title}"
        yield SitePage(addresses.of_run(name), title, about, body)


def latest_first(runs: Iterable[RunData]) -> list[RunData]:
    """The last started run first; logs, which do not say, count by when they were read."""
    return sorted(
        runs,
        key=lambda it: (bool(at := it.run.started_at or it.run.ingested_at), at, it.run.id),
        reverse=True,
    )


def _index(results: Sequence[SiteResult], num_tests: int, any_results: bool) -> list[Block]:
    aside = render_text(
        "<p>{{ count|counted('run') }} without a GPU {{ 'is' if count == 1 else 'are' }} on the "
        "page of {{ link('CPU tests', tests) }}.</p>\n",
        count=num_tests,
        tests=addresses.CPU_TESTS,
    )
    aside = aside if num_tests else Markup("")
    if not results:
        none = NO_RUNS_ON_GPUS if num_tests else NO_RUNS
        return [paragraph(none), aside] if any_results else [no_data()]
    intro = render_text(
        "<p>All runs, newest first. Logs without a start time are sorted by when they were "
        "ingested. Withdrawn runs are in the {{ link('changelog of the data', changelog) }}.</p>\n",
        changelog=addresses.CHANGELOG,
    )
    return [joined((intro, aside)), *offered("Runs", results, columns.RUNS)]


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


Since = tuple[Link, run_diff.Differences]
"""The run of the same case before a run, and where the two differ."""


def _since_before(shown: Iterable[RunData]) -> Iterator[tuple[str, Since]]:
    """What has changed in each run since the one of its case that was started before it."""
    for runs in grouped(latest_first(shown), lambda it: it.result.case_key).values():
        for run, earlier in pairwise(runs):
            name = earlier.run.run_id
            apart = run_diff.differences(earlier.facts, run.facts)
            yield run.run.run_id, (Link(name, addresses.of_run(name)), apart)


def _redacted(page: RunData, *, names: bool) -> RunData:
    """The run without secrets.

    Unless `names`, it is without the names of machines, and has paths as they are in its folder.
    """
    run, options = page.run, page.result.options
    redact: redaction.Redactor = without_secrets
    if not names:
        redact = redaction.redactor(run.run_id, run.environment)
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
        facts=RunFacts(**{name: fields(values) for name, values in vars(page.facts).items()}),
        provenance=fields(page.provenance),
        lines={number: redact(line) for number, line in page.lines.items()},
    )


def _run(page: RunData, since: Since | None, corrected: str) -> list[Block]:
    def kept(text: str | None, language: str, what: str) -> Block:
        return Code(text, language) if text else paragraph(f"The run has no {what}.")

    changed = render_text(
        "<p>{{ text }}; see the {{ link('changelog', changelog) }}.</p>\n",
        text=corrected[:1].upper() + corrected[1:],
        changelog=addresses.CHANGELOG,
    )
    summary = page.run.summary or {}
    worker = {f"worker: {name}": _of_ranks(value) for name, value in summary.items()}
    environment = flat({**page.run.environment, **worker})
    none = paragraph("The run has no record of its machine and software.")
    return [
        _key_figures(page.result),
        IndexEntry(page.run.run_id),
        _outcome(page),
        *([changed] if corrected else []),
        *_checkpoint(page),
        Section("By step", [_charts(page) or paragraph("The run has no steps.")]),
        Section("Figures", [*_reproduced(page), figures_table(page)]),
        Section("Steps", [_steps(page)]),
        Section("Case", [_case(page.result)]),
        *([Section("Since the run before", _changed(page, since))] if since else []),
        Section("Recipe", [kept(page.recipe_text, "yaml", "recipe file")]),
        Section("Command", [kept(shell(page.run.command), "bash", "command")]),
        Section("Files", [FileLinks(page.files)]),
        Section("Environment", [facts("Environment", environment) if environment else none]),
    ]


def _key_figures(result: SiteResult) -> Markup:
    """The figures of a run, large, with their names; nothing where it has none."""
    shown = [
        (marked(result, name), METRICS[name].title)
        for name in (RATE, FLOPS, "mfu", "step_time_s")
        if figure(result, name) is not None
    ]
    if result.peak_memory_bytes is not None and shown:
        shown.append((units.gib(result.peak_memory_bytes), "Peak memory"))
    return render("key_figures", figures=shown)


STEP_FIGURES: Final[Mapping[str, Callable[[RunStep], float | None]]] = {
    "Loss": lambda step: step.loss,
    "Gradient norm": lambda step: step.grad_norm,
    "Peak memory (GiB)": lambda step: step.peak_memory_bytes and step.peak_memory_bytes / 2**30,
}
"""What steps have besides their times, by the name of its axis."""


def _charts(page: RunData) -> Markup:
    """Step time, throughput, loss, gradient norm and memory over the steps, as far as known."""
    result = page.result
    tokens = result.global_batch_size * result.sequence_length / result.num_gpus
    measures = dict(STEP_FIGURES)
    if figure(result, RATE) is not None and not result.has_note(NoteCode.VARIABLE_LENGTH_STEPS):
        measures = {METRICS[RATE].title: lambda step: tokens / step.step_time_s, **measures}
    others = (charts.over_steps(page, name, of) for name, of in measures.items())
    drawn = joined((charts.step_times(page), *others))
    return charts.with_note(drawn, Markup("")) if drawn else drawn


def _reproduced(page: RunData) -> list[Block]:
    """The drawer, with the raw log that says most, and the script of a launcher."""
    recipe = page.run.recipe
    where = link(recipe, addresses.of_recipe(recipe)) if recipe else ""
    head, foot = drawer(page.run.run_id, page.provenance, where, addresses.drawer_anchor())
    logs = [it for it in page.files if it.name.endswith(".log")] or [*page.files]
    links = [("Raw log: ", it) for it in sorted(logs, key=lambda it: -it.size_bytes)[:1]]
    links += [("Launcher script: ", it) for it in page.files if it.name.endswith(".sh")]
    return [head, *(FileLinks([it], what) for what, it in links), foot]


def _changed(page: RunData, since: Since) -> list[Block]:
    """In what the run differs from the one of its case that was started before it."""
    earlier, apart = since
    run = link(earlier.text, earlier.document)
    if not apart:
        return [joined((Markup("<p>Nothing differs from "), run, Markup(".</p>\n")))]
    intro = Markup("<p>Differences from {}; to see them in a terminal, run {}:</p>\n")
    command = shlex.join(["perfdb", "diff", earlier.text, page.run.run_id])
    titles = heads("Field", "~Before", "~Here")
    return [intro.format(run, code(command)), plain("Since", titles, run_diff.rows(apart))]


def _checkpoint(page: RunData) -> list[Block]:
    """What a checkpoint took, and the losses of the next step that prove it."""
    found = (page.run.summary or {}).get("checkpoint")
    if not isinstance(found, Mapping):
        return []
    return [Section("Checkpoint", [facts("Checkpoint", flat(found))])]


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
    many = f"repeat {run.attempt:,}" if run.attempt > 1 else ""
    started, ended = (
        f"{moment(when)} UTC" if when else units.UNKNOWN for when in (run.started_at, run.ended_at)
    )
    known: list[tuple[str, str]] = [
        ("Run", code(run.run_id)),
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
    return joined((made, facts("Basis of the figures", grounds)))


def _derived(result: SiteResult) -> list[tuple[str, ...]]:
    """Each metric as tables print it, and its formula with this run's numbers."""
    tokens, flops = result.tokens_per_sec_per_gpu, result.model_tflops_per_sec_per_gpu
    per_token = units.significant(flops / tokens * 1e3) if flops and tokens else None
    no_flops = "no tokens/s/GPU" if tokens is None else "no FLOPs formula for this model and task"
    no_peak = "no peak for this system and precision"
    if result.precision is None:
        no_peak = "precision not stated"
    shown = {name: formatted(column, getattr(result, name)) for name, column in FIGURES.items()}
    numbers = {
        "step_time_s": f"median of {result.num_steps} steps: {result.window}",
        RATE: (
            f"{result.global_batch_size:,} × {result.sequence_length:,} ÷ {shown['step_time_s']} ÷ "
            f"{result.num_gpus:,}" if tokens
            else "not computed: steps differ in tokens"
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
    known = numbers if free is not None else "GPU memory unknown"
    yield "Memory headroom", units.percent(free), "1 − peak memory ÷ memory of the GPU", known


def _case(result: SiteResult) -> Markup:
    """Every field of the resolved case that it has, and the options of the framework."""
    known: list[tuple[str, str]] = [("Task", section_title(result.task))]
    for column in columns.CASE.columns:
        text = cells.cells(column, [result])[0].content
        # an abbreviation is printed with what it is short for
        term = TERMS[column.term] if column.term and column.title.isupper() else None
        if text != units.UNKNOWN:
            known.append((f"{column.title} ({term.name.lower()})" if term else column.title, text))
    options = [(f"option {name}", json_text(value)) for name, value in result.options.items()]
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
