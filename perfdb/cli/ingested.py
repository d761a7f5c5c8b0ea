"""What `perfdb ingest --dry-run` would change, as a table and as JSON."""

from collections.abc import Iterable, Iterator

import click

from perfdb.cli.options import print_table
from perfdb.ingest import Change
from perfdb.ingest.changes import FIGURES, exactly, figure_text
from perfdb.messages import note_text
from perfdb.pages.columns import title_by_field
from perfdb.record import Release, Result
from perfdb.units import UNKNOWN

COLUMNS = (
    "Status", "Release", "System", "Model", "Task", "Precision", "GPUs", "GBS", "Step time (s)",
    "Tokens/s/GPU", "TFLOP/s/GPU", "MFU", "Outcome", "Source",
)  # fmt: skip
OTHERS = "Otherwise"
"""The column of what has changed besides figures, where anything has."""

RELEASE = ("framework", "release")
WORK = ("system", "model", "task", "precision", "num_gpus", "global_batch_size")
"""What a result is of, by the fields of `perfdb.record.Result`."""

STATED = ("tokens_per_sec", "flops_convention", "window", "notes", "outcome", "withheld", "source",
          "source_line")  # fmt: skip
"""What else is said of a result in JSON."""


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


def _said(one: Result) -> dict[str, object]:
    stated = {name: getattr(one, name) for name in (*FIGURES, *STATED)}
    stated["notes"] = [note_text(note) for note in one.notes]
    stated["withheld"] = note_text(one.withheld) if one.withheld else None
    return stated | {"printed": one.raw}


def print_changes(changes: Iterable[Change]) -> None:
    """The results that would be new, revised or withdrawn."""
    shown = [change for change in changes if change.is_change]
    others = ["; ".join(_others(change)) for change in shown]
    cells = [tuple(_cells(change)) for change in shown]
    if any(others):
        cells = [(*row, other) for row, other in zip(cells, others, strict=True)]
        print_table("Would change", (*COLUMNS, OTHERS), cells)
    elif cells:
        print_table("Would change", COLUMNS, cells)
    else:
        click.echo("nothing would change")


def _cells(change: Change) -> Iterator[object]:
    one = change.result
    yield change.status.value
    yield Release(framework=one.framework, version=one.release).name
    yield from (getattr(one, name) for name in WORK)
    yield from (_figure(change.before or one, one, name) for name in FIGURES)
    yield note_text(one.withheld) if one.withheld else one.outcome
    yield f"{one.source}:{one.source_line}" if one.source_line else one.source


def _figure(before: Result, one: Result, name: str) -> str:
    """'14,079 → 14,709', to so many digits that they differ."""
    was, is_ = getattr(before, name), getattr(one, name)
    if was == is_:
        return figure_text(one, name)
    if figure_text(before, name) == figure_text(one, name):
        return f"{exactly(name, was)} → {exactly(name, is_)}"
    return f"{figure_text(before, name)} → {figure_text(one, name)}"


def _others(change: Change) -> Iterator[str]:
    """'Cooling: air → liquid': what a revision says otherwise, where no figure's column says it."""
    before, one = change.before, change.result
    if before is None:
        return
    old, new = _besides(before), _besides(one)
    for name in dict.fromkeys([*old, *new]):
        if old.get(name) != new.get(name):
            yield f"{name}: {old.get(name) or UNKNOWN} → {new.get(name) or UNKNOWN}"


def _besides(one: Result) -> dict[str, str | None]:
    """What a result says besides its figures: the cells of its row, its notes and its method."""
    figures = title_by_field(tuple(one.raw))
    shown = {figures.get(name) for name in FIGURES}
    cells = {title: text for title, text in one.raw.items() if title not in shown}
    method = {"FLOPs convention": one.flops_convention, "window": one.window}
    return {**cells, **method, "note": "; ".join(map(note_text, one.notes))}
