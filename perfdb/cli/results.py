"""`perfdb releases`, `results` and `diff`: what the store has, and how two runs differ."""

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path

import click

from perfdb import units
from perfdb.cli import options
from perfdb.record import Origin, Release, Result
from perfdb.units import counted


@click.command(epilog=options.examples("perfdb releases", "perfdb releases --json"))
@options.db_option
@options.wide_option
@options.json_option
def releases(db: str | None, *, as_json: bool) -> None:
    """List the releases in the store, with their measured and published results."""
    from perfdb.compare.releases import KnownRelease as Known
    from perfdb.compare.releases import choices, in_order
    from perfdb.db.session import reading_current, store_url
    from perfdb.queries import catalog

    with reading_current(store_url(db)) as connection:
        rows = connection.execute(catalog.all_releases()).mappings().all()
    known = {row["release_id"]: row for row in rows}
    counts = Counter({(row["release_id"], row["origin"]): row["num_results"] for row in rows})
    places = list(in_order(choices(map(Known.model_validate, rows))))
    found = [
        {
            **{name: known[it][name] for name in ("framework", "release", "container")},
            "results": sum(counts[it, origin] for origin in Origin),
            "measured": counts[it, Origin.MEASURED],
            "published": counts[it, Origin.PUBLISHED],
        }
        for it in sorted(known, key=places.index)
    ]
    if as_json:
        options.print_json(found)
        return
    shown = [
        (Release(framework=one["framework"], version=one["release"]).name, *list(one.values())[2:])
        for one in found
    ]
    columns = ("Release", "Container", "Results", "Measured", "Published")
    options.print_table(counted(len(found), "release"), columns, shown, ("Container",))


CELLS: Mapping[str, Callable[[Result], object]] = {
    "Release": lambda it: it.release_name, "Model": lambda it: it.model, "Task": lambda it: it.task,
    "System": lambda it: it.system, "GPUs": lambda it: it.num_gpus,
    "Precision": lambda it: it.precision, "GBS": lambda it: it.global_batch_size,
    "Tokens/s/GPU": lambda it: units.number(it.tokens_per_sec_per_gpu),
    "TFLOP/s/GPU": lambda it: units.significant(it.model_tflops_per_sec_per_gpu),
    "MFU": lambda it: units.percent(it.mfu),
    "Step time (s)": lambda it: units.significant(it.step_time_s),
    "Origin": lambda it: it.origin, "Source": lambda it: it.place,
}  # fmt: skip
"""The columns of the table, and what is in each."""
SPARE = ("Source", "Step time (s)", "MFU", "Origin", "GBS", "TFLOP/s/GPU", "Task")
"""What a narrow terminal does without, the first first."""


@click.command(
    epilog=options.examples(
        "perfdb results --system dgx-h100 --model llama3-8b",
        "perfdb results --release 'nemo 25.04' --json",
    )
)
@options.only_options("release", "framework", "system", "model", several=True)
@options.db_option
@options.wide_option
@options.json_option
def results(db: str | None, *, as_json: bool, **only: tuple[str, ...]) -> None:
    """List the current results, measured and published.

    With --json a result has the fields of `perfdb export results --format json`.
    """
    from perfdb.compare.releases import known_releases, named
    from perfdb.db.session import reading_current, store_url
    from perfdb.export import FORMATS
    from perfdb.export.results import table
    from perfdb.queries.results import current, read
    from perfdb.queries.scope import Scope, within

    with reading_current(store_url(db)) as connection:
        words = only.pop("release")
        all_releases = known_releases(connection) if words else ()
        ids = [it for word in words for it in named(word, all_releases).release_ids]
        scope = Scope(**only, release_ids=tuple(ids) if words else None)
        if as_json:
            click.echo(FORMATS["json"].render(table(connection, scope)).decode(), nl=False)
            return
        found = read(connection, within(connection, current(), scope))
    rows = [[text(it) for text in CELLS.values()] for it in found]
    options.print_table(counted(len(found), "result"), [*CELLS], rows, SPARE)


@click.command(epilog=options.examples("perfdb diff runs/a runs/b"))
@click.argument("run_a")
@click.argument("run_b")
@options.db_option
@options.wide_option
@options.json_option
def diff(run_a: str, run_b: str, db: str | None, *, as_json: bool) -> None:
    """Show the differences between two runs: configuration, environment, versions, and steps.

    RUN_A and RUN_B are run directories, or IDs of runs in the store. For the steps, this compares
    their number, the median step time after warm-up, and the last loss. The exit code is 0 even
    if the runs differ. For verdicts and gates, use `perfdb compare`.
    """
    from perfdb.compare import run_diff
    from perfdb.db.session import reading_current, store_url
    from perfdb.rundir import RunDir

    with ExitStack() as stack:
        found = []
        for word in (run_a, run_b):
            if (run := RunDir(Path(word))).is_run():
                found.append(run_diff.of_directory(run))
            else:
                connection = stack.enter_context(reading_current(store_url(db)))
                found.append(run_diff.of_stored(connection, word))
    apart = run_diff.differences(*found)
    if as_json:
        options.print_json({"a": run_a, "b": run_b, "differences": apart})
    elif apart:
        options.print_table(f"A: {run_a}, B: {run_b}", ("Field", "A", "B"), run_diff.rows(apart))
    else:
        click.echo("No difference.")
