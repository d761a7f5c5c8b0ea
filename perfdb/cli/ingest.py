"""`perfdb ingest`: read runs, published pages and logs into the store."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.progress import track

from perfdb import ingest as ingestion
from perfdb.audit.report import counts, objects, place, sentence
from perfdb.audit.review import accepted, explained
from perfdb.cli import ingested
from perfdb.cli.options import db_option, json_option, print_json, window_option
from perfdb.db.ingest_log import Action
from perfdb.db.session import store_url
from perfdb.errors import Diagnostic, InputError
from perfdb.ingest.attribution import stated, unknown_model
from perfdb.pages.base import PageContext
from perfdb.record import Finding

DEFAULT_PATH = Path("runs")
MANY = 20
"""From so many sources on, progress is worth showing."""

MOST_LISTED = 5
"""Unattributed results that are listed one by one."""


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path), metavar="[PATH]...")
@db_option
@click.option("--framework", help="Of pages and logs that do not say theirs.")
@click.option("--release", help="The framework's version, of pages and logs.")
@click.option("--container", help="The container image, of pages and logs.")
@click.option("--system", help="The system, of pages and logs.")
@click.option("--precision", help="The precision, of pages and logs.")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="FIELD=VALUE",
    help="A field of the case of logs, such as num_gpus=8, or their release; may be repeated.",
)
@click.option("--format", metavar="NAME", help="The format of logs. [default: by their content]")
@window_option("of a log by its format, of a run its measured steps")
@click.option(
    "--archive-limit",
    type=click.IntRange(min=1),
    metavar="GIB",
    help="How much an archive or a compressed file may unpack to; a member a quarter of it. "
    "[default: 64]",
)
@click.option("--dry-run", is_flag=True, help="Show what would change and store nothing.")
@json_option
def ingest(
    paths: Sequence[Path],
    settings: tuple[str, ...],
    archive_limit: int | None,
    *,
    dry_run: bool,
    as_json: bool,
    **words: str | None,
) -> int:
    """Read run directories, published pages and logs into the store, from ./runs by default.

    Folders and archives are searched; a log is known by its content. Reading the same things
    again changes nothing; what has changed becomes a new revision, and the old one is kept. Exits
    with 1 if something was rejected.
    """
    given = _given(paths)
    db = words.pop("db")
    of_logs = ingestion.LogOptions(
        settings, words.pop("format"), words.pop("window"), archive_limit
    )
    options = ingestion.Options(PageContext(**words), _watched, of_logs)
    if note := unknown_model(stated(options.context, settings)):
        click.echo(f"note: {note}", err=True)
    known, url = accepted(None), store_url(db)
    if dry_run:
        report, changes = ingestion.preview(given, url, options)
    else:
        report, changes = ingestion.ingest(given, url, options), ()
    findings = explained(report.findings, known)
    if as_json:
        planned = {"results": ingested.objects(changes)} if dry_run else {}
        print_json(_as_json(report) | {"findings": objects(findings)} | planned)
    else:
        if dry_run:
            ingested.print_changes(changes)
        _print(report)
        _print_findings(findings, changes, dry_run=dry_run)
    return 1 if report.failed else 0


def _given(paths: Sequence[Path]) -> Sequence[Path]:
    if paths:
        return paths
    if not DEFAULT_PATH.exists():
        remedy = "name the folder or the page to read, or run `perfdb run` first"
        raise InputError(
            Diagnostic("PATH", f"there is no folder {DEFAULT_PATH} here", remedy=remedy)
        )
    return [DEFAULT_PATH]


def _watched(sources: Sequence[ingestion.Source]) -> Iterable[ingestion.Source]:
    console = Console(stderr=True)
    if len(sources) < MANY or not console.is_terminal:
        return sources
    return track(sources, "Reading", console=console)


def _as_json(report: ingestion.Report) -> dict[str, object]:
    unattributed = [
        {"path": one.path, "line": one.line, "reason": one.reason, "missing": one.missing}
        for one in report.nameless
    ]
    return {
        "new": report.new,
        "revised": report.revised,
        "unchanged": report.unchanged,
        "withdrawn": report.withdrawn,
        "rejected": _problems(report.rejected),
        "still_running": report.still_running,
        "unattributed": unattributed,
        "notes": _problems(report.notes),
        "duplicates": [vars(one) for one in report.duplicates],
        "completed": [vars(one) for one in report.completed],
        "passed_over": report.unknown,
    }


def _problems(problems: Iterable[Diagnostic]) -> list[dict[str, object]]:
    return [
        {"path": problem.where, "line": problem.line, "reason": problem.reason}
        for problem in problems
    ]


def _print(report: ingestion.Report) -> None:
    for problem in report.rejected:
        click.echo(f"rejected: {problem}", err=True)
    for path in report.still_running:
        click.echo(f"still running: {path}", err=True)
    for note in report.notes:
        click.echo(f"note: {note}", err=True)
    for source in report.unattributed[:MOST_LISTED]:
        click.echo(f"unattributed: {source}", err=True)
    if len(report.unattributed) > MOST_LISTED:
        more = len(report.unattributed) - MOST_LISTED
        click.echo(f"unattributed: and {more} more (--json lists all)", err=True)
    numbers = {
        "new": report.new,
        "revised": report.revised,
        "unchanged": report.unchanged,
        "duplicate": len(report.duplicates),
        "withdrawn": report.withdrawn,
        "rejected": len(report.rejected),
        "still running": len(report.still_running),
        "unattributed": len(report.nameless),
    }
    always = ("new", "revised", "unchanged", "rejected")
    shown = [
        f"{count} {word}{_without_figures(report, word)}"
        for word, count in numbers.items()
        if count or word in always
    ]
    click.echo(", ".join(shown))
    if not any(numbers.values()):
        click.echo("nothing to read: no run directory, page or log with results there", err=True)


def _print_findings(
    findings: Sequence[Finding], changes: Iterable[ingestion.Change], *, dry_run: bool
) -> None:
    """Of a dry run those of what would change: no other command can tell them."""
    written = {one.result.result_id for one in changes if one.is_written}
    for it in findings:
        if it.result_id in written and not it.acknowledged:
            said = f"{place(it)}: {it.severity}: {sentence(it)}"
            click.echo(f"finding: {said}", err=True)
    if findings:
        where = "--json lists them" if dry_run else "perfdb audit"
        click.echo(f"findings: {counts(findings)} ({where})", err=True)


def _without_figures(report: ingestion.Report, word: str) -> str:
    """' (2 without figures: 1 incomplete, 1 out of memory)'; empty where each has some."""
    ended = {
        outcome.replace("_", " "): count
        for (action, outcome), count in report.without_figures.items()
        if action.value == word and action is not Action.UNCHANGED
    }
    if not ended:
        return ""
    several = [f"{count} {outcome}" for outcome, count in ended.items()]
    reasons = ", ".join(several if len(ended) > 1 else ended)
    return f" ({sum(ended.values())} without figures: {reasons})"
