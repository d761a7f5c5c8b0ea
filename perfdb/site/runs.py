"""The parts of a run's page as HTML: how it ended, its figures, its case, its steps."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from perfdb import catalog, metrics, units
from perfdb.metrics import METRICS, TRILLION
from perfdb.site import addresses, bests, charts, environment, profiles, tables
from perfdb.site.addresses import Address
from perfdb.site.data import MOST_STEPS, Link, Result, RunPage, Step
from perfdb.site.glossary import TERMS
from perfdb.site.markup import Cell, Content, Head, Html, Table, facts, joined, link, table, tag
from perfdb.site.origin import flag_mark
from perfdb.site.profile import Column
from perfdb.site.sources import numbered
from perfdb.site.tables import moment, outcome_badge
from perfdb.site.words import release_title, section_title

Line = tuple[str, str, str, str]
"""A figure, its value, its formula, and the formula with numbers."""

_NO_RATE: Final = "not computed: its steps do not all have GBS × sequence length tokens"


def outcome(page: RunPage, address: Address) -> Html:
    """How the run ended and why, when and where it ran."""
    run, result = page.run, page.result
    release = addresses.of_release(result.framework, result.release)
    known: list[tuple[str, Content]] = [
        ("Outcome", outcome_badge(run.outcome)),
        ("Why no figures", result.withheld or units.UNKNOWN),
        ("Audit", flag_mark(result, address) or units.UNKNOWN),
        ("Error", tag("pre", run.error) if run.error else units.UNKNOWN),
        ("Exit code", units.text(run.exit_code)),
        ("Release", link(release_title(result.framework, result.release), address(release))),
        ("Recipe", _recipe(run.recipe, address)),
        ("Recipe's checkout", _changes(run.environment)),
        ("System", result.system_title),
        ("Started", _in_utc(run.started_at)),
        ("Ended", _in_utc(run.ended_at)),
        ("Repeat", _repeat(run.attempt)),
        ("Other runs of the case", _others(page.others, address)),
    ]
    always = {"Outcome", "Release", "Recipe", "Started", "Ended"}
    shown = [(name, said) for name, said in known if name in always or said != units.UNKNOWN]
    return facts("Outcome", shown)


def _recipe(name: str | None, address: Address) -> Content:
    return link(name, address(addresses.of_recipe(name))) if name else units.UNKNOWN


def _changes(environment: Mapping[str, object]) -> str:
    """That what was run is not what the commit says; – where nobody knows of changes."""
    if not environment.get("git_dirty"):
        return units.UNKNOWN
    return f"made with uncommitted changes to {str(environment.get('git_commit'))[:12]}"


def _repeat(number: int) -> str:
    """Which of the runs that were asked for of its case; a run that failed does not count."""
    return f"run {number:,} of those that --repeat asked for" if number > 1 else units.UNKNOWN


def _others(runs: Iterable[Link], address: Address) -> Content:
    links = [link(one.text, address(one.document)) for one in runs]
    return joined(links, ", ") if links else units.UNKNOWN


def _in_utc(when: datetime | None) -> str:
    return f"{moment(when)} UTC" if when else units.UNKNOWN


def figures(page: RunPage, address: Address) -> Html:
    """Each figure with its formula, the numbers put into it, and what it rests on."""
    result = page.result
    if result.withheld:
        return tag("p", f"There are no figures: {result.withheld}.")
    heads = [
        Head("Figure"),
        Head("Value", numeric=True),
        Head("Formula", wide=True),
        Head("With numbers", wide=True),
    ]
    every = (*_derived(result), *_spread(result), *_of_the_job(result), *_memory(page))
    rows = [list(map(Cell, row)) for row in every]
    made = table(Table("Figures", heads, rows, sortable=False))
    return joined((made, facts("What the figures rest on", _grounds(result, address))))


def _grounds(result: Result, address: Address) -> list[tuple[str, Content]]:
    """Why the figures are to be believed: what was measured, how it was computed, what is found."""
    steps = f"{result.num_steps} steps, {result.window}" if result.window else units.UNKNOWN
    known: list[tuple[str, Content]] = [
        ("Origin", f"{result.origin}, from {result.source}"),
        ("Window", steps),
        ("Formulas", units.text(result.formula_version and f"version {result.formula_version}")),
        ("FLOPs convention", result.flops_convention or units.UNKNOWN),
        *(("Note", note) for note in result.notes),
        ("Audit", flag_mark(result, address) or "no error and no warning"),
    ]
    return [(name, said) for name, said in known if said != units.UNKNOWN]


def _derived(result: Result) -> list[Line]:
    """Each metric as tables print it, and its formula with this run's numbers."""
    tokens, flops = result.tokens_per_sec_per_gpu, result.model_tflops_per_sec_per_gpu
    per_token = flops / tokens * 1e3 if flops and tokens else None
    shown = {
        name: tables.formatted(column, getattr(result, name))
        for name, column in bests.COLUMNS.items()
    }
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
            f"{shown[bests.FLOPS]} ÷ {result.peak_tflops:,g}"
            if result.peak_tflops else _no_peak(result)
        ),
    }  # fmt: skip
    return [
        (METRICS[name].title, shown[name], METRICS[name].formula, said)
        for name, said in numbers.items()
    ]


def _no_flops(result: Result) -> str:
    known = result.tokens_per_sec_per_gpu is not None
    return "no formula for this model and task" if known else "no tokens/s/GPU"


def _no_peak(result: Result) -> str:
    stated = result.precision is not None
    return "no peak for this system and precision" if stated else "the precision is not stated"


def _spread(result: Result) -> Iterator[Line]:
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


def _of_the_job(result: Result) -> Iterator[Line]:
    """The rate of all GPUs, and how long a trillion tokens would take at it."""
    each = result.tokens_per_sec_per_gpu
    if each is None:
        return
    total = metrics.global_tokens_per_sec(each, result.num_gpus)
    printed, said = (tables.formatted(bests.COLUMNS[bests.RATE], it) for it in (each, total))
    days, numbers = metrics.days_to_train(TRILLION, total), f"{printed} × {result.num_gpus:,}"
    yield "Tokens/s, all GPUs", said, "tokens/s/GPU × GPUs", numbers
    formula = "10¹² ÷ tokens/s of all GPUs ÷ 86,400"
    yield "Days to 1T tokens", units.significant(days), formula, f"10¹² ÷ {said} ÷ 86,400"


def _memory(page: RunPage) -> Iterator[Line]:
    """The peak of a GPU's memory, and how much of it that left free."""
    peak = page.result.peak_memory_bytes
    if peak is None:
        return
    yield "Peak memory", units.gib(peak), "largest of the steps", f"{peak:,} bytes"
    if catalog.has_gpus(page.result.system):
        size, sayer = _gpu_memory(page)
        free = metrics.memory_headroom(peak, size) if size else None
        numbers = f"1 − {units.gib(peak)} ÷ {units.gib(size)}, as {sayer} says"
        known = numbers if free is not None else "the memory of its GPUs is not known"
        yield "Memory headroom", units.percent(free), "1 − peak memory ÷ memory of the GPU", known


def _gpu_memory(page: RunPage) -> tuple[int | None, str]:
    """The bytes that a GPU of the run has, and who says so."""
    said = page.run.environment.get("gpu_memory_bytes")
    if isinstance(said, int):
        return said, "the run"
    system = catalog.systems().get(page.result.system)
    mib = system.gpu_memory_mib if system else None
    return mib and mib * 2**20, f"nvidia-smi on {page.result.system_title}"


def case(page: RunPage, address: Address) -> Html:
    """Every field of the resolved case that it has, and the options of the framework."""
    fields = [
        (_named(column), tables.printed(column, page.result, address).content)
        for column in profiles.CASE.columns
    ]
    options = [
        (f"option {name}", environment.plain(value)) for name, value in page.result.options.items()
    ]
    known = [(name, said) for name, said in fields if said != units.UNKNOWN]
    return facts("Case", [("Task", section_title(page.result.task, None)), *known, *options])


def _named(column: Column) -> str:
    """An abbreviation with what it is short for."""
    term = TERMS[column.term] if column.term and column.title.isupper() else None
    return f"{column.title} ({term.name.lower()})" if term else column.title


def chart(page: RunPage, _address: Address) -> Html:
    """The step times as a drawing."""
    return charts.step_times(page) or tag("p", "The run left no step.")


def steps(page: RunPage, _address: Address) -> Html:
    """The steps, each with the line of the steps file it is from."""
    if not page.steps:
        return Html("")
    heads = [
        Head(title, numeric=True)
        for title in ("Step", "Step time (s)", "Loss", "Grad norm", "Peak memory", "Line")
    ]
    rows = [_step_row(step, page) for step in page.steps[:MOST_STEPS]]
    made = table(Table("Steps", heads, rows))
    left = len(page.steps) - len(rows)
    more = (
        tag("p", f"In the steps file: {units.counted(left, 'more step')}.")
        if left > 0
        else Html("")
    )
    return joined((made, more, _lines_shown(page)))


def _lines_shown(page: RunPage) -> Html:
    """The lines of a file that the steps are from, as they stand in it."""
    if not page.lines or page.measured_file is None:
        return Html("")
    name = page.measured_file.name
    said = tag("summary", ("The lines of ", tag("code", name), " that the steps are from"))
    return tag("details", (said, numbered(sorted(page.lines.items()), f"Lines of {name}")))


def _step_row(step: Step, page: RunPage) -> Sequence[Cell]:
    warmup_steps, line = page.run.warmup_steps, str(step.source_line)
    mark = " warm-up" if step.step <= warmup_steps else " skipped" if step.skipped else ""
    number = joined((str(step.step), tag("small", mark) if mark else ""))
    return (
        Cell(number, sort=step.step),
        Cell(units.significant(step.step_time_s, 5)),
        Cell(units.significant(step.loss, 6)),
        Cell(units.significant(step.grad_norm, 5)),
        Cell(units.gib(step.peak_memory_bytes), sort=step.peak_memory_bytes),
        Cell(link(line, f"#L{line}") if step.source_line in page.lines else line),
    )


PARTS: Final[Mapping[str, Callable[[RunPage, Address], Html]]] = {
    "outcome": outcome,
    "figures": figures,
    "chart": chart,
    "steps": steps,
    "case": case,
    "environment": environment.facts_of,
}
"""What the page of a run is made of."""
