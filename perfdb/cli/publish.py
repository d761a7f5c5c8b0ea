"""`perfdb publish`: the pages of releases as plain text, for another project's documents."""

from collections.abc import Sequence
from pathlib import Path

import click

from perfdb.audit import report
from perfdb.audit.review import REVIEWED, accepted
from perfdb.cli import gates, options
from perfdb.cli.options import NEVER, print_json, print_table
from perfdb.compare import named
from perfdb.compare.releases import known_releases
from perfdb.db.session import reading_current, store_url
from perfdb.errors import Diagnostic
from perfdb.record import Finding, Severity
from perfdb.site import publish as pages
from perfdb.site.publish import Publication, Style


@click.command(
    epilog=options.examples(
        "perfdb publish 'nemo 25.04' --output docs/performance",
        "perfdb publish --format markdown --fail-on never",
    )
)
@click.argument("releases", nargs=-1, metavar="[RELEASE]...")
@options.format_option(
    ["myst", "markdown"],
    "MyST with a tab per system, or Markdown with a heading per system.",
)
@click.option(
    "--output",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    default=Path("published"),
    show_default=True,
    help="The output folder.",
)
@click.option(
    "--label",
    metavar="NAME",
    help="An additional MyST label for the page, such as ref-performance.",
)
@gates.severity_option(
    str(Severity.ERROR),
    "Write nothing if an open finding is this severe or worse.",
)
@gates.acknowledged_option
@options.json_option
@options.db_option
def publish(
    releases: Sequence[str],
    style: Style,
    folder: Path,
    reviewed: Path | None,
    *,
    as_json: bool,
    **words: str | None,
) -> int:
    """Write a page for each RELEASE, such as 'nemo 25.04'. The default is every release.

    Another project's docs can include the pages as they are. They hold tabs, tables, and footnotes,
    and do not need perfdb. Audit findings become footnotes. The command never overwrites a page
    that a person wrote.
    """
    known = accepted(reviewed)
    with reading_current(store_url(words["db"])) as connection:
        all_releases = known_releases(connection) if releases else ()
        chosen = [named(name, all_releases) for name in releases]
        wanted = frozenset(one for choice in chosen for one in choice.release_ids)
        read = pages.read(connection, known, wanted if releases else None)
    if grave := gates.findings_at_gate(read.findings, words["gate"] or NEVER):
        _refuse(grave)
        return 1
    texts = pages.texts(read.pages, style, words["label"] or "")
    if hidden := pages.with_secrets(texts):
        _refuse_secrets(hidden)
        return 1
    written = pages.write(folder, texts)
    rows = [(str(path), "written" if new else "unchanged") for path, new in written.items()]
    if as_json:
        print_json([{"path": path, "action": action} for path, action in rows])
    elif rows:
        print_table("Pages", ("Page", "Action"), rows)
    elif not read.refused:
        click.echo("No results with figures. Wrote nothing.", err=True)
    _say_left_behind(folder, read)
    return 1 if read.refused else 0


def _say_left_behind(folder: Path, read: Publication) -> None:
    for page in pages.left_behind(folder, read.paths):
        message = (
            "perfdb publish wrote this page, but the store no longer has the release; remove it"
        )
        click.echo(f"note: {page}: {message}", err=True)
    for problem in read.refused:
        click.echo(f"error: not published: {problem}", err=True)


def _refuse_secrets(problems: Sequence[Diagnostic]) -> None:
    for problem in problems:
        click.echo(f"error: {problem}", err=True)
    click.echo(
        "Wrote nothing. Remove the secrets from the sources, then ingest them again.", err=True
    )


def _refuse(grave: Sequence[Finding]) -> None:
    for it in report.ordered(grave):
        for line in gates.finding_lines(it):
            click.echo(click.unstyle(line), err=True)
    click.echo(
        f"Wrote nothing: {report.counts(grave)}. Correct them, accept them in {REVIEWED}, or "
        "publish them as footnotes with --fail-on never.",
        err=True,
    )
