"""`perfdb ingest` and `withdraw`: take runs, pages and logs into the store, and out again."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import click

from perfdb import ingest as ingestion
from perfdb.audit.report import counts, objects
from perfdb.audit.review import accepted, explained
from perfdb.cli import options
from perfdb.cli.options import print_json, print_table
from perfdb.db.session import store_url
from perfdb.db.sources import Action
from perfdb.errors import Diagnostic, InputError
from perfdb.groups import grouped
from perfdb.ingest import Change
from perfdb.ingest.report import Status
from perfdb.messages import note_text
from perfdb.pages.base import PageContext
from perfdb.pages.columns import title_by_field
from perfdb.record import Finding, Result
from perfdb.units import UNKNOWN, number, percent, significant

DEFAULT_PATH = Path("runs")
MANY = 20
"""From so many sources on, progress is worth showing."""

MOST_LISTED = 5
"""Files that a line names where all are refused for one reason."""

FILLED = ("framework", "release", "container", "system", "precision")
"""Options that each state one field where a file leaves it open."""

WORK = ("system", "model", "task", "precision", "num_gpus", "global_batch_size")
"""What a result is of, by the fields of `perfdb.record.Result`."""

FIGURES: Mapping[str, tuple[str, Callable[[float | None], str]]] = {
    "step_time_s": ("Step time (s)", significant),
    "tokens_per_sec_per_gpu": ("Tokens/s/GPU", number),
    "model_tflops_per_sec_per_gpu": ("TFLOP/s/GPU", significant),
    "mfu": ("MFU", percent),
}
"""The figures of a result, the title of each, and how it is printed."""

STATED = ("tokens_per_sec", "flops_convention", "window", "outcome", "source", "source_line")
"""What else JSON has of a result."""


def _filling(command: options.Command) -> options.Command:
    for name in reversed(FILLED):
        text = f"The {name}, if the file does not name it."
        command = click.option(f"--{name}", metavar="NAME", help=text)(command)
    return command


@click.command(
    epilog=options.examples(
        "perfdb ingest",
        "perfdb ingest page.md --system dgx-h100 --release 25.09 --dry-run",
        "perfdb ingest train.log --set model=llama3-8b --set num_gpus=8",
    )
)
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path), metavar="[PATH]...")
@options.db_option
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="FIELD=VALUE",
    help="State a field of the results, such as num_gpus=8, for pages and logs. Overrides what a "
    "log says. May be repeated.",
)
@_filling
@click.option(
    "--attribution",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False),
    help="A YAML file that states fields for each PATH, GLOB, or PATH#ITEM.",
)
@click.option("--format", metavar="NAME", help="The log format. [default: detected]")
@options.window_option("the log format's window; for a run, its measured steps")
@click.option(
    "--archive-limit",
    type=click.IntRange(min=1),
    metavar="GIB",
    help="The most that an archive or compressed file may unpack to. A member may take a quarter. "
    "[default: 64]",
)
@options.dry_run_option
@options.wide_option
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
    """Read run directories, published pages, and logs into the store.

    The default PATH is runs/. perfdb searches folders and archives, and detects log formats.
    Reading the same files again changes nothing. A changed result becomes a new revision, and the
    store keeps the old one. The command exits with 1 if it rejects anything.
    """
    if not (paths or DEFAULT_PATH.exists()):
        remedy = "name a folder, page, or log to read, or run `perfdb run` first"
        raise InputError(
            Diagnostic("PATH", f"there is no folder {DEFAULT_PATH} here", remedy=remedy)
        )
    places, db = paths or [DEFAULT_PATH], words.pop("db")
    log_format, window, attribution = map(words.pop, ("format", "window", "attribution"))
    of_logs = ingestion.LogOptions(settings, log_format, window, attribution, archive_limit)
    context = PageContext(
        words["framework"], words["release"], words["container"], words["system"],
        words["precision"],
    )  # fmt: skip
    chosen = ingestion.Options(context, _watched, of_logs)
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
    lines = _by_reason("rejected", report.rejected)
    lines += [f"still running: {path}" for path in report.still_running]
    lines += [f"note: {note}" for note in report.notes]
    lines += _by_reason("unattributed", report.unattributed)
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
        click.echo("Nothing to read: no run directory, page, or log with results.", err=True)


def _by_reason(word: str, problems: Iterable[Diagnostic]) -> list[str]:
    """A line for each reason, with the files that have it."""
    lines = []
    for reason, some in grouped(problems, lambda it: it.reason).items():
        if len(some) == 1:
            lines.append(f"{word}: {some[0]}")
            continue
        places = [it.where for it in some]
        more = f", and {len(places) - MOST_LISTED} more (--json lists all)"
        named = ", ".join(places[:MOST_LISTED]) + (more if places[MOST_LISTED:] else "")
        lines.append(f"{word}: {len(some)} files: {reason}\n  {named}")
    return lines


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
    from perfdb.cli import gates  # it loads what compares releases

    written = {one.result.result_id for one in changes if one.is_written}
    for it in findings:
        if it.result_id in written and not it.acknowledged:
            for line in gates.finding_lines(it):
                click.echo(click.unstyle(line), err=True)
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
    """The results that would be new, revised or withdrawn, with the figures that any has."""
    from perfdb.compare.report import workload

    shown = [change for change in changes if change.status is not Status.UNCHANGED]
    if not shown:
        click.echo("Nothing would change.")
        return
    known = [
        name for name in FIGURES if any(one.result.figure(name) is not None for one in shown)
    ]  # fmt: skip
    rows = []
    for change in shown:
        one = change.result
        rows.append(
            (
                options.cell(f"{one.release_name}: {workload(one)}", *_others(change)),
                change.status.value,
                *(_figure(change.before or one, one, name) for name in known),
                note_text(one.withheld) if one.withheld else one.outcome,
                one.place,
            )
        )
    figures = (FIGURES[name][0] for name in known)
    print_table("Would change", ("Result", "Status", *figures, "Outcome", "Source"), rows)


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
    return FIGURES[name][1](value) if value is None or result.run_id else _exactly(name, value)


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


@click.command(
    epilog=options.examples(
        "perfdb withdraw old.md --reason 'superseded'",
        "perfdb withdraw runs/a --reason 'wrong clock'",
        "perfdb withdraw runs/a --undo",
    )
)
@click.argument("words", nargs=-1, required=True, metavar="FILE|RUN...")
@click.option("--reason", metavar="TEXT", help="The reason, for the changelog. Required for runs.")
@click.option("--undo", is_flag=True, help="Restore withdrawn runs.")
@options.db_option
@options.json_option
def withdraw(
    words: Sequence[str], reason: str | None, db: str | None, *, undo: bool, as_json: bool
) -> int:
    """Withdraw every result of pages, result files, or runs.

    FILE is the path that perfdb read, even if the file no longer exists. RUN is a run ID, a run
    directory, or a log. The store keeps withdrawn results. If another page states the same result,
    read that page again. To restore a page or file, read it again. To restore a run, use --undo.
    """
    if undo:
        restored = ingestion.restore(words, store_url(db))
        print_json({"restored": restored}) if as_json else click.echo(f"{len(restored)} restored")
        return 0
    report = ingestion.withdraw(words, store_url(db), reason)
    if as_json:
        print_json({"withdrawn": report.withdrawn, "revised": report.revised})
        return 0
    for note in report.notes:
        click.echo(f"note: {note}", err=True)
    revised = f", {report.revised} revised" if report.revised else ""
    click.echo(f"{report.withdrawn} withdrawn{revised}")
    if report.findings:
        click.echo(f"findings: {counts(report.findings)} (perfdb audit)", err=True)
    return 0
