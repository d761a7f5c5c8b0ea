"""`perfdb verify` and `perfdb recompute`: figures, and what they follow from in the store."""

from collections.abc import Callable, Sequence

import click

from perfdb import aggregation
from perfdb import verify as verifying
from perfdb.cli import options
from perfdb.compare.releases import scope_of
from perfdb.db.session import reading_current, store_url
from perfdb.errors import Diagnostic
from perfdb.flops import CONVENTIONS
from perfdb.messages import note_text
from perfdb.record import Note
from perfdb.units import UNKNOWN, counted, significant
from perfdb.verify import Verified
from perfdb.verify import recompute as recomputing
from perfdb.verify.figures import Asked
from perfdb.verify.recompute import Recomputed, RecomputeReport

MANY = 1_000
"""From so many things on that a check looks at, its progress is worth showing."""


@click.command(epilog=options.examples("perfdb verify", "perfdb verify --json"))
@options.db_option
@options.json_option
def verify(db: str | None, *, as_json: bool) -> int:
    """Check the store against the original files that it keeps.

    \b
    schema      the tables match this version
    database    the database's own check passes
    values      every value is readable
    sources     every file unpacks to its size and SHA-256
    originals   the stated originals of pages match the pages
    references  every row that another row refers to exists
    revisions   revision numbers have no gaps, and only the newest is current
    orphans     every run, case, release, system, and model has results
    keys        the keys of cases and releases match their columns
    figures     measured figures follow from the stored steps
    runs        runs, steps, and results match the stored files
    published   published results match the stored pages
    findings    the findings match a new audit
    log         the ingest log is complete

    The command changes nothing. It reports every problem, then exits with 1 if there is any.
    """
    with options.progress_bar(quiet=as_json) as progress:

        def watched(check: str, count: int) -> Callable[[], None]:
            if count < MANY:
                return lambda: None
            task = progress.add_task(check, total=count)
            return lambda: progress.advance(task)

        found = verifying.verify(store_url(db), watched)
    if as_json:
        faults = [{"check": one.check, **vars(it)} for one in found for it in one.faults]
        passed = [{"check": one.check, **vars(it)} for one in found for it in one.passed_over]
        checked = {one.check: one.count for one in found}
        options.print_json({"checked": checked, "faults": faults, "passed_over": passed})
    else:
        _print(found)
    return 1 if any(one.faults for one in found) else 0


def _print(found: Sequence[Verified]) -> None:
    columns = ("Check", "Checked", "Skipped", "Problems")
    rows = [(one.check, one.count, len(one.passed_over), len(one.faults)) for one in found]
    options.print_table("Checks", columns, rows)
    for one in found:
        for note in one.passed_over:
            click.echo(f"skipped: {one.check}: {note.where}: {note.message}", err=True)
    for one in found:
        for fault in one.faults:
            click.echo(f"problem: {one.check}: {fault.where}: {fault.message}")
    faults = sum(len(one.faults) for one in found)
    click.echo(counted(faults, "problem") if faults else "OK")


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
    url = store_url(only.pop("db"))
    with reading_current(url) as connection:
        scope = scope_of(connection, **only)
    act = recomputing.preview if dry_run else recomputing.recompute
    report = act(url, scope, asked)
    if as_json:
        options.print_json(_document(report, dry_run=dry_run))
    else:
        _print_recomputed(report, dry_run=dry_run)
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


def _print_recomputed(report: RecomputeReport, *, dry_run: bool) -> None:
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
    text = "\n".join(lines or [f"{', '.join(one.changes)} (--json has them)"])
    return result.release.name, result.case.system, one.stored.run_id, text


def _text(value: object) -> str:
    if value is None:
        return UNKNOWN
    if isinstance(value, Note):
        return note_text(value)
    return significant(value, 5) if isinstance(value, float) else str(value)
