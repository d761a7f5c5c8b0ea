"""`perfdb audit`: find numbers that cannot be true, in the store and in documents."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import click

from perfdb import catalog
from perfdb.audit import check, report, review
from perfdb.audit import documents as worked_examples
from perfdb.audit.check import RULES, Elsewhere
from perfdb.audit.review import Entry, accepted
from perfdb.cli.gate import NEVER
from perfdb.cli.options import (
    db_option,
    json_format_option,
    only_options,
    print_json,
    print_table,
)
from perfdb.cli.reviewed import acknowledged_option, closing, severity_option
from perfdb.compare.read import release_ids
from perfdb.db.session import DEFAULT_URL, reading_current, store_url
from perfdb.errors import InputError
from perfdb.groups import grouped
from perfdb.record import Finding, Result
from perfdb.units import counted

Style = Literal["table", "json", "markdown", "sarif"]
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.argument("documents", nargs=-1, metavar="[DOCUMENT]...", type=FILE)
@db_option
@only_options("release", "system")
@severity_option(NEVER, "Exit with 1 where a finding is as grave as this, or graver.")
@click.option(
    "--format",
    "style",
    type=click.Choice(["table", "json", "markdown", "sarif"]),
    default="table",
    show_default=True,
    help="How to print them.",
)
@json_format_option
@acknowledged_option
def audit(
    documents: Sequence[Path],
    db: str | None,
    gate: str,
    style: Style,
    reviewed: Path | None,
    **only: str | None,
) -> int:
    """Look for numbers that contradict one another, within the rounding of what was printed.

    Audits the current results of the store, and the worked examples of their pages and of each
    DOCUMENT, such as '4096 * 256 / 2.693 = 389371'. Without --fail-on it exits with 0 whatever it
    finds, and with 2 where a document holds nothing to audit. Findings that the reviewed file
    accepts are shown as explained and close no gate.
    """
    known = accepted(reviewed)
    given = _texts(documents)
    (results, elsewhere), pages = _stored(db, only["release"], needed=not documents)
    texts = given if only["system"] else pages | given
    of_documents = [it for path, text in texts.items() for it in worked_examples.check(path, text)]
    every = review.explained(
        report.ordered([*check.audit(results, elsewhere), *of_documents]), known
    )
    found = [it for it in every if only["system"] in (None, it.system) or not it.system]
    _system(only["system"])
    if not any(only.values()):
        _report_unused(found, known, texts)
    for problem in review.exceeded(every, known):
        click.echo(f"note: {problem}", err=True)
    shown = [it for it in results if only["system"] in (None, it.system)]
    PRINTERS[style](found)
    if style in ("table", "markdown"):
        click.echo(f"{_summary(found, len(shown), documents)}.", err=style == "markdown")
    return 1 if closing(found, gate) else 0


def _system(name: str | None) -> None:
    """Raises CatalogError where a system that is asked for does not exist."""
    if name is not None:
        catalog.system(name)


def _stored(
    db: str | None, release: str | None, *, needed: bool
) -> tuple[tuple[Sequence[Result], Elsewhere], dict[str, str]]:
    """The results to audit, and the text of their pages, by path.

    None where documents are all there is, and no store was named.
    """
    named_one = db or release or os.environ.get("PERFDB_URL")
    if not (needed or named_one or Path(DEFAULT_URL.removeprefix("sqlite:///")).is_file()):
        return ((), {}), {}
    with reading_current(store_url(db)) as connection:
        stored = check.stored(connection, release_ids(connection, release))
        return stored, check.pages(connection, stored[0])


def _texts(documents: Sequence[Path]) -> dict[str, str]:
    """The text of each document. Raises InputError for those in which nothing can be audited."""
    contents = {str(path): path.read_bytes() for path in documents}
    found = [worked_examples.nothing_in(where, content) for where, content in contents.items()]
    if problems := [problem for problem in found if problem]:
        raise InputError(problems)
    return {where: content.decode(errors="replace") for where, content in contents.items()}


def _report_unused(
    found: Sequence[Finding], known: Sequence[Entry], texts: Mapping[str, str]
) -> None:
    judged = [entry for entry in known if texts or entry.it.rule != worked_examples.NAME]
    for problem in review.unused(found, judged):
        click.echo(f"note: {problem}", err=True)


def _print_table(found: Sequence[Finding]) -> None:
    columns = ("Severity", "Rule", "Result", "Finding", "Source")
    if found:
        # What is said of many short runs alike stands there once; each line of a page is named.
        same = grouped(found, lambda it: (_words(it), it.source_line and report.place(it)))
        print_table("Findings", columns, map(_row, same.values()))


def _row(same: Sequence[Finding]) -> tuple[str, ...]:
    first, more = report.place(same[0]), len(same) - 1
    return *_words(same[0]), f"{first}\nand {more:,} more" if more else first


def _words(it: Finding) -> tuple[str, ...]:
    severity = "explained" if it.acknowledged else it.severity.value
    return severity, it.rule, report.subject(it), report.sentence(it) + "\n"


def _summary(found: Sequence[Finding], results: int, documents: Sequence[Path]) -> str:
    """How many findings there are: in results, in worked examples of pages, and in documents."""
    given = set(map(str, documents))
    of_texts = [it for it in found if it.rule == worked_examples.NAME]
    of_pages = [it for it in of_texts if it.source not in given]
    parts = []
    if results or not documents:
        of_results = [it for it in found if it.rule != worked_examples.NAME]
        parts.append((of_results, counted(results, "result")))
    if of_pages:
        parts.append((of_pages, "worked examples of pages"))
    if documents:
        of_given = [it for it in of_texts if it.source in given]
        parts.append((of_given, counted(len(documents), "document")))
    said = [f"{report.counts(some) or 'nothing found'} in {what}" for some, what in parts]
    return "; ".join([said[0].capitalize(), *said[1:]])


def _meanings() -> dict[str, str]:
    """What each rule means, by its name."""
    meanings = {name: rule.meaning for name, rule in RULES.items()}
    return meanings | {worked_examples.NAME: worked_examples.MEANING}


PRINTERS: Mapping[Style, Callable[[Sequence[Finding]], None]] = {
    "table": _print_table,
    "json": lambda found: print_json(report.objects(found)),
    "markdown": lambda found: click.echo(report.markdown(found)),
    "sarif": lambda found: print_json(report.sarif(found, _meanings())),
}
"""How each format is written."""
