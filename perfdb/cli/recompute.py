"""`perfdb recompute`: the figures of measured results, again from their stored steps."""

import click

from perfdb import aggregation
from perfdb.cli import options
from perfdb.compare.releases import release_ids
from perfdb.db.session import reading_current, store_url
from perfdb.errors import Diagnostic
from perfdb.flops import CONVENTIONS
from perfdb.messages import note_text
from perfdb.queries.scope import Scope
from perfdb.record import Note
from perfdb.units import UNKNOWN, significant
from perfdb.verify import recompute as recomputing
from perfdb.verify.figures import Asked
from perfdb.verify.recompute import Recomputed, RecomputeReport

SHORT = {
    "step_time_s": "step time (s)",
    "tokens_per_sec_per_gpu": "tokens/s/GPU",
    "model_tflops_per_sec_per_gpu": "model TFLOP/s/GPU",
    "mfu": "MFU",
    "peak_tflops": "peak TFLOP/s",
    "flops_convention": "convention",
    "window": "window",
    "num_steps": "steps",
    "outcome": "outcome",
    "withheld": "withheld",
}
"""What the table shows of a change; the JSON has every column."""


@click.command(
    epilog=options.examples(
        "perfdb recompute --dry-run",
        "perfdb recompute --window 'last_n(10)' --release 25.09",
    )
)
@options.db_option
@options.only_options("release", "framework", "system", "model")
@options.window_option("the window of each result")
@options.convention_option(
    "Count model FLOPs in this convention, such as megatron-lm. [default: the convention of each "
    "result]"
)
@options.dry_run_option
@options.wide_option
@options.json_option
def recompute(
    window: str | None,
    convention: str | None,
    *,
    dry_run: bool,
    as_json: bool,
    **only: str | None,
) -> int:
    """Recompute measured figures from the stored steps.

    Use this after a change to a formula or to a peak in the catalog, or to average other steps. A
    changed result becomes a new revision, and the store keeps the old one. Published figures never
    change. A run keeps its figures if it has too few steps for WINDOW, or if most were skipped. The
    command names such runs and exits with 1. One transaction writes everything or nothing.
    """
    asked = Asked(
        aggregation.named(window) if window else None,
        CONVENTIONS[convention] if convention else None,
    )
    url, release = store_url(only.pop("db")), only.pop("release")
    with reading_current(url) as connection:
        scope = Scope(**only, release_ids=release_ids(connection, release))
    act = recomputing.preview if dry_run else recomputing.recompute
    report = act(url, scope, asked)
    if as_json:
        options.print_json(_document(report, dry_run=dry_run))
    else:
        _print(report, dry_run=dry_run)
    return 1 if report.left else 0


def _document(report: RecomputeReport, *, dry_run: bool) -> dict[str, object]:
    changes = [
        {
            **_identity(one),
            "before": {name: before for name, (before, _) in one.changes.items()},
            "after": {name: after for name, (_, after) in one.changes.items()},
        }
        for one in report.changed
    ]
    return {
        "dry_run": dry_run,
        "examined": report.examined,
        "changed": len(report.changed),
        "unchanged": report.unchanged,
        "changes": changes,
        "left": [{**_identity(one), "reason": one.reason} for one in report.left],
    }


def _identity(one: Recomputed) -> dict[str, object]:
    result = one.stored.result
    return {
        "run_id": one.stored.run_id,
        "framework": result.case.framework,
        "release": result.release.version,
        "system": result.case.system,
        "model": result.case.model,
    }


def _print(report: RecomputeReport, *, dry_run: bool) -> None:
    word = "would change" if dry_run else "changed"
    if report.changed:
        columns = ("Release", "System", "Run", "Before → after")
        options.print_table(word.capitalize(), columns, map(_row, report.changed))
    left = f", {len(report.left):,} not recomputed" if report.left else ""
    click.echo(f"{len(report.changed):,} {word}, {report.unchanged:,} unchanged{left}")
    for one in report.left:
        remedy, where = f"it keeps its figures; {one.remedy}", f"run {one.stored.run_id}"
        click.echo(Diagnostic(where, one.reason or "", remedy=remedy), err=True)
    if not report.examined:
        click.echo("Nothing to recompute: no measured results.", err=True)


def _row(one: Recomputed) -> tuple[str, ...]:
    lines = [
        f"{short} {_text(one.changes[name][0])} → {_text(one.changes[name][1])}"
        for name, short in SHORT.items()
        if name in one.changes
    ]
    result = one.stored.result
    text = "\n".join([*(lines or [f"{', '.join(one.changes)} (--json has them)"]), ""])
    return result.release.name, result.case.system, one.stored.run_id, text


def _text(value: object) -> str:
    if value is None:
        return UNKNOWN
    if isinstance(value, Note):
        return note_text(value)
    return significant(value, 5) if isinstance(value, float) else str(value)
