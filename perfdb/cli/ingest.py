"""`perfdb ingest`: read runs, published pages and logs into the store."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import click

from perfdb import ingest as ingestion
from perfdb.audit.report import counts, objects, place, sentence
from perfdb.audit.review import accepted, explained
from perfdb.cli import options
from perfdb.cli.options import print_json, print_table
from perfdb.db.session import store_url
from perfdb.db.sources import Action
from perfdb.errors import Diagnostic, InputError
from perfdb.ingest import Change
from perfdb.ingest.options import unknown_model
from perfdb.ingest.report import Status
from perfdb.messages import note_text
from perfdb.pages.base import PageContext
from perfdb.pages.columns import title_by_field
from perfdb.record import Finding, Release, Result
from perfdb.units import UNKNOWN, number, percent, significant

DEFAULT_PATH = Path("runs")
MANY = 20
"""From so many sources on, progress is worth showing."""

MOST_LISTED = 5
"""Unattributed results that are listed one by one."""

COLUMNS = (
    "Status", "Release", "System", "Model", "Task", "Precision", "GPUs", "GBS", "Step time (s)",
    "Tokens/s/GPU", "TFLOP/s/GPU", "MFU", "Outcome", "Source",
)  # fmt: skip
WORK = ("system", "model", "task", "precision", "num_gpus", "global_batch_size")
"""What a result is of, by the fields of `perfdb.record.Result`."""

FIGURES: Mapping[str, Callable[[float | None], str]] = {
    "step_time_s": significant,
    "tokens_per_sec_per_gpu": number,
    "model_tflops_per_sec_per_gpu": significant,
    "mfu": percent,
}
"""The figures of a result, and how each is printed."""

STATED = ("tokens_per_sec", "flops_convention", "window", "outcome", "source", "source_line")
"""What else JSON has of a result."""


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path), metavar="[PATH]...")
@options.db_option
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
    help="A field of the case, such as num_gpus=8, or the release, of logs and of pages that "
    "leave it open; may be repeated.",
)
@click.option(
    "--attribution",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False),
    help="A YAML file of what --set would state of each file: PATH, GLOB or PATH#ITEM with fields.",
)
@click.option("--format", metavar="NAME", help="The format of logs. [default: by their content]")
@options.window_option("of a log by its format, of a run its measured steps")
@click.option(
    "--archive-limit",
    type=click.IntRange(min=1),
    metavar="GIB",
    help="How much an archive or a compressed file may unpack to; a member a quarter of it. "
    "[default: 64]",
)
@options.dry_run_option
@options.json_option
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
    if not (paths or DEFAULT_PATH.exists()):
        remedy = "name the folder or the page to read, or run `perfdb run` first"
        raise InputError(
            Diagnostic("PATH", f"there is no folder {DEFAULT_PATH} here", remedy=remedy)
        )
    places, db = paths or [DEFAULT_PATH], words.pop("db")
    log_format, window, attribution = map(words.pop, ("format", "window", "attribution"))
    of_logs = ingestion.LogOptions(settings, log_format, window, attribution, archive_limit)
    chosen = ingestion.Options(_page_context(words), _watched, of_logs)
    if note := unknown_model(chosen):
        click.echo(f"note: {note}", err=True)
    known, url = accepted(None), store_url(db)
    changes: Sequence[Change] = ()
    if dry_run:
        report, changes = ingestion.preview(places, url, chosen)
    else:
        report = ingestion.ingest(places, url, chosen)
    findings = explained(report.findings, known)
    if as_json:
        planned = {"results": [_object(one) for one in changes]} if dry_run else {}
        print_json(_document(report) | {"findings": objects(findings)} | planned)
    else:
        if dry_run:
            _print_changes(changes)
        _print(report)
        _print_findings(findings, changes, dry_run=dry_run)
    return 1 if report.failed else 0


def _page_context(words: Mapping[str, str | None]) -> PageContext:
    return PageContext(
        framework=words["framework"],
        release=words["release"],
        container=words["container"],
        system=words["system"],
        precision=words["precision"],
    )


def _watched(sources: Sequence[ingestion.Source]) -> Iterator[ingestion.Source]:
    """The sources, with a progress bar if they are many."""
    if len(sources) < MANY:
        yield from sources
        return
    with options.progress_bar() as bar:
        yield from bar.track(sources, description="Reading")


def _document(report: ingestion.Report) -> dict[str, object]:
    unattributed = [
        {"path": one.path, "line": one.line, "reason": one.reason, "missing": one.missing}
        for one in report.nameless
    ]
    rejected, notes = (
        [{"path": one.where, "line": one.line, "reason": one.reason} for one in problems]
        for problems in (report.rejected, report.notes)
    )
    return {
        "new": report.new,
        "revised": report.revised,
        "unchanged": report.unchanged,
        "withdrawn": report.withdrawn,
        "rejected": rejected,
        "still_running": report.still_running,
        "unattributed": unattributed,
        "notes": notes,
        "duplicates": [vars(one) for one in report.duplicates],
        "completed": [vars(one) for one in report.completed],
        "passed_over": report.unknown,
    }


def _print(report: ingestion.Report) -> None:
    lines = [f"rejected: {problem}" for problem in report.rejected]
    lines += [f"still running: {path}" for path in report.still_running]
    lines += [f"note: {note}" for note in report.notes]
    lines += [f"unattributed: {source}" for source in report.unattributed[:MOST_LISTED]]
    if (more := len(report.unattributed) - MOST_LISTED) > 0:
        lines.append(f"unattributed: and {more} more (--json lists all)")
    for line in lines:
        click.echo(line, err=True)
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
    shown = [
        f"{count} {word}{_without_figures(report, word)}"
        for word, count in numbers.items()
        if count or word in ("new", "revised", "unchanged", "rejected")
    ]
    click.echo(", ".join(shown))
    if not any(numbers.values()):
        click.echo("nothing to read: no run directory, page or log with results there", err=True)


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


def _print_findings(
    findings: Sequence[Finding], changes: Iterable[Change], *, dry_run: bool
) -> None:
    """Of a dry run those of what would change: no other command can show them."""
    written = {one.result.result_id for one in changes if one.is_written}
    for it in findings:
        if it.result_id in written and not it.acknowledged:
            click.echo(f"finding: {place(it)}: {it.severity}: {sentence(it)}", err=True)
    if findings:
        where = "--json lists them" if dry_run else "perfdb audit"
        click.echo(f"findings: {counts(findings)} ({where})", err=True)


def _object(change: Change) -> dict[str, object]:
    """A result with its status; of a revised one what it stated before."""
    return {
        "status": change.status,
        **{name: getattr(change.result, name) for name in ("framework", "release", *WORK)},
        **_stated(change.result),
        "before": _stated(change.before) if change.before else None,
    }


def _stated(one: Result) -> dict[str, object]:
    return {
        **{name: getattr(one, name) for name in (*FIGURES, *STATED)},
        "notes": [note_text(note) for note in one.notes],
        "withheld": note_text(one.withheld) if one.withheld else None,
        "printed": one.raw,
    }


def _print_changes(changes: Iterable[Change]) -> None:
    """The results that would be new, revised or withdrawn."""
    shown = [change for change in changes if change.status is not Status.UNCHANGED]
    rows = [(*_cells(change), "; ".join(_others(change))) for change in shown]
    if any(row[-1] for row in rows):
        print_table("Would change", (*COLUMNS, "Otherwise"), rows)
    elif rows:
        print_table("Would change", COLUMNS, [row[:-1] for row in rows])
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
        return _text(one, name)
    if _text(before, name) == _text(one, name):
        return f"{_exactly(name, was)} → {_exactly(name, is_)}"
    return f"{_text(before, name)} → {_text(one, name)}"


def _text(result: Result, name: str) -> str:
    """A figure by its field: with all digits of a page, and with those that a run's means."""
    value = result.figure(name)
    return FIGURES[name](value) if value is None or result.run_id else _exactly(name, value)


def _exactly(name: str, value: float) -> str:
    """A figure with every digit that it was read with."""
    return f"{value * 100:.10g}%" if name == "mfu" else f"{value:,.10g}"


def _others(change: Change) -> Iterator[str]:
    """'Cooling: air → liquid': what a revision changes besides its figures."""
    old, new = (_besides_figures(one) for one in (change.before or change.result, change.result))
    for name in {**old, **new}:
        if old.get(name) != new.get(name):
            yield f"{name}: {old.get(name) or UNKNOWN} → {new.get(name) or UNKNOWN}"


def _besides_figures(one: Result) -> dict[str, str | None]:
    """The cells of a result's row that are no figures, its notes and its method."""
    titles = title_by_field(tuple(one.raw))
    shown = {titles.get(name) for name in FIGURES}
    cells = {title: text for title, text in one.raw.items() if title not in shown}
    method = {"FLOPs convention": one.flops_convention, "window": one.window}
    return {**cells, **method, "note": "; ".join(map(note_text, one.notes))}
