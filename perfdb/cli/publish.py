"""`perfdb publish`: the pages of releases as plain text, for another project's documents."""

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from sqlalchemy import Connection

from perfdb.audit import report
from perfdb.audit.review import REVIEWED, accepted
from perfdb.cli import gates, options
from perfdb.cli.options import NEVER, print_json, print_table
from perfdb.compare import named
from perfdb.compare.releases import known_releases
from perfdb.db.session import reading_current, store_url
from perfdb.errors import Diagnostic, InputError
from perfdb.record import Finding, Severity
from perfdb.site import publish as pages
from perfdb.site import settings
from perfdb.site.data import SiteResult
from perfdb.site.publish import Layout, Marked, Publication, Style


@click.command(
    epilog=options.examples(
        "perfdb publish 'nemo 25.04' --output docs/performance",
        "perfdb publish --format markdown --fail-on never",
    )
)
@click.argument("releases", nargs=-1, metavar="[RELEASE]...")
@options.format_option(
    ["myst", "markdown"], "MyST with a tab per system, or Markdown with a heading per system."
)
@click.option("--output", "folder", type=click.Path(path_type=Path, file_okay=False),
              metavar="FOLDER", default=Path("published"), show_default=True,
              help="The output folder.")  # fmt: skip
@click.option("--fragments", "fragmented", is_flag=True,
              help="Write each table as a file to include, instead of pages.")  # fmt: skip
@click.option("--into", "documents", multiple=True, metavar="FILE",
              type=click.Path(path_type=Path, exists=True, dir_okay=False), help="Fill the blocks "
              "between markers in a page of your own. Repeatable.")  # fmt: skip
@click.option("--notes", is_flag=True,
              help="Add footnotes: audit findings, windows, numbers of runs.")  # fmt: skip
@click.option("--profile", "profile_name", metavar="NAME",
              help="Order systems and columns as [publish.NAME] in perfdb.toml.")  # fmt: skip
@click.option("--label", metavar="NAME",
              help="An additional MyST label for the page, such as ref-performance.")  # fmt: skip
@gates.severity_option(
    str(Severity.ERROR), "Write nothing if an open finding is this severe or worse."
)
@gates.acknowledged_option
@options.json_option
@options.db_option
def publish(
    releases: Sequence[str],
    style: Style,
    folder: Path,
    documents: Sequence[Path],
    **words: Any,
) -> int:
    """Write a page for each RELEASE, such as 'nemo 25.04'. The default is every release.

    Pages are plain text that needs no perfdb: tab-sets and pipe tables. The command never
    overwrites a page that a person wrote. To add tables to your own page, include the files of
    --fragments. Or put markers into the page, and fill them with --into:

    \b
      <!-- perfdb:begin nemo/25.04/pretrain/dgx-h100 -->
      <!-- perfdb:end -->
    """
    _check(releases, documents, words)
    layout = Layout(style, words["notes"], settings.profile(words["profile_name"]))
    marked = pages.into(documents)
    with reading_current(store_url(words["db"])) as connection:
        is_wanted = _wanted(connection, releases, marked.values())
        known = accepted(words["reviewed"])
        read = pages.read(connection, known, is_wanted, notes=layout.notes)
    if grave := gates.findings_at_gate(read.findings, words["gate"] or NEVER):
        _refuse(grave)
        return 1
    parts = pages.parts(read.pages, layout) if words["fragmented"] or marked else None
    if parts is None:
        texts = pages.texts(read.pages, layout, words["label"] or "")
    else:
        texts = pages.files_of(parts)
    if hidden := pages.with_secrets(texts):
        for problem in hidden:
            click.echo(f"error: {problem}", err=True)
        remedy = "Remove the secrets from the sources, then ingest them again."
        click.echo(f"Wrote nothing. {remedy}", err=True)
        return 1
    if marked and parts is not None:
        written = pages.write(pages.filled(marked, parts), marked=True)
    else:
        written = pages.write({folder / path: text for path, text in texts.items()})
        _say_left_behind(folder, read.paths)
    _say_written(written, read, as_json=words["as_json"])
    return 1 if read.refused else 0


def _check(releases: Sequence[str], documents: Sequence[Path], words: Mapping[str, object]) -> None:
    """Raises InputError where options exclude each other."""
    others = {"RELEASE": releases, "--fragments": words["fragmented"], "--label": words["label"]}
    wrong = [name for name, value in others.items() if value and documents]
    if words["fragmented"] and words["label"]:
        wrong.append("--label")
    if wrong:
        remedy = f"leave out {', '.join(wrong)}"
        where = "--into" if documents else "--fragments"
        raise InputError(Diagnostic(where, "its names say what is written", remedy=remedy))


def _wanted(
    connection: Connection, releases: Sequence[str], marked: Collection[Marked]
) -> Callable[[SiteResult], bool]:
    """Whether a result is of a release that is asked for. Raises InputError."""
    if marked:
        names = {name for one in marked for name in one.releases}
        return lambda result: pages.release_name(result) in names
    if not releases:
        return lambda _: True
    known = known_releases(connection)
    ids = frozenset(it for name in releases for it in named(name, known).release_ids)
    return lambda result: result.release_id in ids


def _say_written(written: Mapping[Path, bool], read: Publication, *, as_json: bool) -> None:
    rows = [(str(path), "written" if new else "unchanged") for path, new in written.items()]
    if as_json:
        print_json([{"path": path, "action": action} for path, action in rows])
    elif rows:
        print_table("Pages", ("Page", "Action"), rows)
    elif not read.refused:
        click.echo("No results with figures. Wrote nothing.", err=True)
    for problem in read.refused:
        click.echo(f"error: not published: {problem}", err=True)


def _say_left_behind(folder: Path, paths: frozenset[Path]) -> None:
    why = "perfdb publish wrote this page, but the store no longer has the release; remove it"
    for page in pages.left_behind(folder, paths):
        click.echo(f"note: {page}: {why}", err=True)


def _refuse(grave: Sequence[Finding]) -> None:
    for it in report.ordered(grave):
        for line in gates.finding_lines(it):
            click.echo(click.unstyle(line), err=True)
    click.echo(
        f"Wrote nothing: {report.counts(grave)}. Correct them, accept them in {REVIEWED}, or "
        "publish them with their footnotes: --fail-on never --notes.",
        err=True,
    )
