"""What `perfdb ingest --dry-run` would change, as a table and as JSON."""

from collections.abc import Callable, Iterable, Iterator

import click

from perfdb.cli.options import print_table
from perfdb.ingest import Change, Shown
from perfdb.record import Release
from perfdb.units import number, significant

COLUMNS = (
    "Status", "Release", "System", "Model", "Task", "Precision", "GPUs", "GBS", "Step time (s)",
    "Tokens/s/GPU", "TFLOP/s/GPU", "Outcome", "Source",
)  # fmt: skip

RELEASE = ("framework", "release")
WORK = ("system", "model", "task", "precision", "num_gpus", "global_batch_size")
"""What a result is of, by the fields of `perfdb.ingest.Shown`."""

FIGURES: dict[str, Callable[[float | None], str]] = {
    "step_time_s": significant,
    "tokens_per_sec_per_gpu": number,
    "model_tflops_per_sec_per_gpu": significant,
}
"""The figures of a row, and how each is printed."""


def objects(changes: Iterable[Change]) -> list[dict[str, object]]:
    """Each result with its status; of a revised one what it said before."""
    return [
        {
            "status": change.status,
            **{name: getattr(change.result, name) for name in (*RELEASE, *WORK)},
            **_said(change.result),
            "before": _said(change.before) if change.before else None,
        }
        for change in changes
    ]


def _said(one: Shown) -> dict[str, object]:
    return {
        **{name: getattr(one, name) for name in FIGURES},
        "outcome": one.outcome,
        "withheld": one.withheld,
        "source": one.source,
        "source_line": one.source_line,
    }


def print_changes(changes: Iterable[Change]) -> None:
    """The results that would be new, revised or withdrawn."""
    cells = [tuple(_cells(change)) for change in changes if change.is_change]
    if cells:
        print_table("Would change", COLUMNS, cells)
    else:
        click.echo("nothing would change")


def _cells(change: Change) -> Iterator[object]:
    one = change.result
    yield change.status.value
    yield Release(framework=one.framework, version=one.release).name
    yield from (getattr(one, name) for name in WORK)
    for name, printed in FIGURES.items():
        was = getattr(change.before or one, name)
        yield _figure(was, getattr(one, name), printed)
    yield one.withheld or one.outcome
    yield f"{one.source}:{one.source_line}" if one.source_line else one.source


def _figure(was: float | None, is_: float | None, printed: Callable[[float | None], str]) -> str:
    """'14,079 → 14,709', to so many digits that they differ."""
    if was == is_:
        return printed(is_)
    if printed(was) == printed(is_):
        return f"{was:,.10g} → {is_:,.10g}"
    return f"{printed(was)} → {printed(is_)}"
