"""`perfdb report`: what a release changed, as a release manager sends it round."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click
from sqlalchemy import Connection

from perfdb.audit import check, review
from perfdb.audit.review import Entry
from perfdb.cli import gates, options
from perfdb.cli.output import write_bytes
from perfdb.compare import Choice, Comparison, release_notes, release_report, releases
from perfdb.compare.release_report import Link, ReleaseReport
from perfdb.db.session import reading_current, store_url
from perfdb.errors import Diagnostic, InputError
from perfdb.queries import results as queries
from perfdb.record import Finding

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(
    epilog=options.examples(
        "perfdb report 25.07 25.09 --output report.md",
        "perfdb report 'nemo 25.07' 'nemo 25.09' --system dgx-h100",
    )
)
@click.argument("a")
@click.argument("b")
@options.db_option
@options.format_option(("markdown", "json"), "The output format.")
@options.json_format_option
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="The output file. [default: stdout]",
)
@click.option(
    "--notes",
    "notes_path",
    type=FILE,
    metavar="FILE",
    help="Markdown notes to merge into the report. "
    f"[default: {release_notes.FOLDER}/FRAMEWORK/VERSION.md of B, if it exists]",
)
@click.option("--site-url", metavar="URL", help="The address of the site, for links to results.")
@options.metric_option("compare")
@options.only_options("framework", "system", "model", several=True)
@gates.judging_options
def report(reviewed: Path | None, *, a: str, b: str, **asked: Any) -> None:
    """Write a report of what release B changed since release A.

    Name A and B as for `perfdb compare`. The report has the rows of each verdict and the geometric
    mean of their changes. The means also appear per system and precision. The report lists the ten
    largest changes each way with known issues, new and missing rows, and audit findings. It also
    says what has no verdict, and why.

    Notes are Markdown. The text before the first heading opens the report. The text below a
    heading such as `## Slower` goes to that section. A `###` heading that begins with the key of a
    row adds to that row. A note that matches nothing is an error.
    """
    link = _links(asked["site_url"])
    with reading_current(store_url(asked["db"])) as connection:
        made = list(_reports(connection, (a, b), review.accepted(reviewed), asked))
    if asked["style"] == "json":
        documents = [release_report.document(one, link) for one in made]
        text = json.dumps({"reports": documents}, indent=2, default=str) + "\n"
    else:
        text = "\n".join(release_report.markdown(one, link) for one in made)
    write_bytes(text.encode(), asked["output"])


def _reports(
    connection: Connection, named: tuple[str, str], known: Sequence[Entry], asked: dict[str, Any]
) -> Iterator[ReleaseReport]:
    """The report of each framework that has both releases. Raises InputError."""
    pairs = gates.named_pairs(connection, *named, asked["framework"])
    if asked["notes_path"] and len(pairs) > 1:
        raise click.UsageError("--notes is on one framework: name it with --framework")
    wrong = frozenset() if asked["judge_all"] else releases.open_errors(connection, known)
    for a, b, found in gates.compared(connection, pairs, asked, wrong, err=True):
        own = release_notes.path_of(release_notes.FOLDER, b.framework, b.version)
        path = asked["notes_path"] or (own if own.is_file() else None)
        file = release_notes.of_file(path) if path else None
        merged = release_report.noted(file, found)
        yield ReleaseReport(a.name, b.name, found, _findings(connection, b, known, found), merged)


def _findings(
    connection: Connection, choice: Choice, known: Sequence[Entry], found: Comparison
) -> tuple[Finding, ...]:
    """What an audit finds in the results of B that are compared."""
    sides = (*(it.b for it in found.matched), *found.only_b)
    shown = {result.result_id for side in sides for result in side.results}
    rows = connection.execute(queries.findings_of_releases(choice.release_ids)).mappings()
    every = [*map(Finding.model_validate, rows), *check.across_releases(connection, shown)]
    return tuple(it for it in review.explained(every, known) if it.result_id in shown)


def _links(site: str | None) -> Link:
    """The address of a result's row at the site of an address; no addresses without one."""
    if site is None:
        return release_report.no_link
    try:
        from perfdb.site import addresses
    except ImportError as error:
        remedy = "install perfdb[site]"
        raise InputError(Diagnostic("--site-url", f"needs {error.name}", remedy=remedy)) from error
    return lambda result: addresses.of_site(site, addresses.table_row(result))
