"""`perfdb publish`: the pages of releases as plain text, for another project's documents."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import click
from sqlalchemy import Connection

from perfdb.audit import report
from perfdb.audit.review import REVIEWED, accepted
from perfdb.cli.gate import NEVER
from perfdb.cli.options import db_option, json_option, print_json, print_table
from perfdb.cli.reviewed import acknowledged_option, closing, severity_option
from perfdb.compare import named
from perfdb.compare.read import known_releases
from perfdb.db.session import reading_current, store_url
from perfdb.record import Finding, Severity
from perfdb.site import publish as pages
from perfdb.site.publish import Publication, Style


@click.command()
@click.argument("releases", nargs=-1, metavar="[RELEASE]...")
@click.option(
    "--format",
    "style",
    type=click.Choice(["myst", "markdown"]),
    default="myst",
    show_default=True,
    help="MyST with a tab for each system, or Markdown with a heading for each.",
)
@click.option(
    "--output",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    default=Path("published"),
    show_default=True,
    help="Where to write.",
)
@click.option(
    "--label",
    metavar="NAME",
    help="Another label of the page, such as ref-performance, which {ref} finds it by in MyST.",
)
@severity_option(
    str(Severity.ERROR),
    "Write nothing where a finding that nobody has accepted is as grave as this, or graver.",
)
@acknowledged_option
@json_option
@db_option
def publish(
    releases: Sequence[str],
    style: Style,
    folder: Path,
    reviewed: Path | None,
    *,
    as_json: bool,
    **words: str | None,
) -> int:
    """Write the page of each RELEASE, such as 'nemo 25.04'; without one, of every release.

    The pages are plain text that another project's documents include as they are: tab-sets, pipe
    tables and footnotes, nothing that needs perfdb. Findings of the audit are footnotes. A
    page that somebody wrote is never overwritten.
    """
    known = accepted(reviewed)
    with reading_current(store_url(words["db"])) as connection:
        read = pages.read(connection, known, _wanted(connection, releases))
    if grave := closing(read.findings, words["gate"] or NEVER):
        _refuse(grave)
        return 1
    made = pages.texts(read.pages, style, words["label"] or "")
    _report(pages.write(folder, made), read, as_json)
    for page in pages.left_behind(folder, read.paths):
        message = "made by perfdb publish, and the store has no such release any more; remove it"
        click.echo(f"note: {page}: {message}", err=True)
    for problem in read.refused:
        click.echo(f"error: not published: {problem}", err=True)
    return 1 if read.refused else 0


def _wanted(connection: Connection, names: Sequence[str]) -> frozenset[int] | None:
    known = known_releases(connection)
    chosen = [named(name, known) for name in names]
    return frozenset(one for choice in chosen for one in choice.release_ids) if chosen else None


def _refuse(grave: Sequence[Finding]) -> None:
    for it in grave:
        place, of = report.place(it), report.subject(it)
        click.echo(f"{place}: {it.severity}: {of}: {report.sentence(it)}", err=True)
    click.echo(
        f"Nothing is written: {report.counts(grave)}. Correct them, accept them in {REVIEWED}, "
        "or publish them with their footnotes: --fail-on never.",
        err=True,
    )


def _report(written: Mapping[Path, bool], of: Publication, as_json: bool) -> None:
    rows = [(str(path), "written" if new else "unchanged") for path, new in written.items()]
    if as_json:
        print_json([{"path": path, "action": action} for path, action in rows])
    elif rows:
        print_table("Pages", ("Page", "Action"), rows)
    elif not of.refused:
        click.echo("The store holds no results: nothing is written.", err=True)
