"""`perfdb releases` and `perfdb results`: what the store has."""

from collections import Counter
from collections.abc import Iterator, Sequence

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


COLUMNS = ("Release", "Model", "Task", "System", "GPUs", "Precision", "GBS", "Tokens/s/GPU",
           "TFLOP/s/GPU", "MFU", "Step time (s)", "Origin", "Source")  # fmt: skip
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
    options.print_table(counted(len(found), "result"), COLUMNS, _rows(found), SPARE)


def _rows(found: Sequence[Result]) -> Iterator[Sequence[object]]:
    for it in found:
        line = f":{it.source_line}" if it.source_line else ""
        yield (
            Release(framework=it.framework, version=it.release).name,
            it.model,
            it.task,
            it.system,
            it.num_gpus,
            it.precision,
            it.global_batch_size,
            units.number(it.tokens_per_sec_per_gpu),
            units.significant(it.model_tflops_per_sec_per_gpu),
            units.percent(it.mfu),
            units.significant(it.step_time_s),
            it.origin,
            f"{it.source}{line}",
        )
