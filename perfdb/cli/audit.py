"""`perfdb audit`: find numbers that cannot be true, in the store and in documents."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import click

from perfdb import catalog
from perfdb.audit import acknowledged, arithmetic, check, document, read, sarif
from perfdb.audit.acknowledged import Entry
from perfdb.audit.reviewed import accepted
from perfdb.audit.subject import Finding, Subject
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
    subjects, pages = _stored(db, only["release"], needed=not documents)
    texts = given if only["system"] else pages | given
    of_documents = [it for path, text in texts.items() for it in arithmetic.check(path, text)]
    every = acknowledged.explained(document.ordered([*check.audit(subjects), *of_documents]), known)
    found = [it for it in every if only["system"] in (None, it.system) or not it.system]
    _system(only["system"])
    if not any(only.values()):
        _report_unused(found, known, texts)
    for problem in acknowledged.exceeded(every, known):
        click.echo(f"note: {problem}", err=True)
    shown = [it for it in subjects if only["system"] in (None, it.system)]
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
) -> tuple[tuple[Subject, ...], dict[str, str]]:
    """The results to audit, and the text of their pages, by path.

    None where documents are all there is, and no store was named.
    """
    named_one = db or release or os.environ.get("PERFDB_URL")
    if not (needed or named_one or Path(DEFAULT_URL.removeprefix("sqlite:///")).is_file()):
        return (), {}
    with reading_current(store_url(db)) as connection:
        subjects = read.subjects(connection, release_ids(connection, release))
        return subjects, read.pages(connection, subjects)


def _texts(documents: Sequence[Path]) -> dict[str, str]:
    """The text of each document. Raises InputError for those in which nothing can be audited."""
    contents = {str(path): path.read_bytes() for path in documents}
    found = [arithmetic.nothing_in(where, content) for where, content in contents.items()]
    if problems := [problem for problem in found if problem]:
        raise InputError(problems)
    return {where: content.decode(errors="replace") for where, content in contents.items()}


def _report_unused(
    found: Sequence[Finding], known: Sequence[Entry], texts: Mapping[str, str]
) -> None:
    judged = [entry for entry in known if texts or entry.it.rule != arithmetic.NAME]
    for problem in acknowledged.unused(found, judged):
        click.echo(f"note: {problem}", err=True)


def _print_table(found: Sequence[Finding]) -> None:
    columns = ("Severity", "Rule", "Result", "Finding", "Source")
    if found:
        # What is said of many short runs alike stands there once; each line of a page is named.
        same = grouped(found, lambda it: (_words(it), it.source_line and document.place(it)))
        print_table("Findings", columns, map(_row, same.values()))


def _row(same: Sequence[Finding]) -> tuple[str, ...]:
    first, more = document.place(same[0]), len(same) - 1
    return *_words(same[0]), f"{first}\nand {more:,} more" if more else first


def _words(it: Finding) -> tuple[str, ...]:
    severity = "explained" if it.acknowledged else it.severity.value
    return severity, it.rule, document.subject(it), document.sentence(it) + "\n"


def _summary(found: Sequence[Finding], results: int, documents: Sequence[Path]) -> str:
    """How many findings there are: in results, in worked examples of pages, and in documents."""
    given = set(map(str, documents))
    of_texts = [it for it in found if it.rule == arithmetic.NAME]
    of_pages = [it for it in of_texts if it.source not in given]
    parts = []
    if results or not documents:
        of_results = [it for it in found if it.rule != arithmetic.NAME]
        parts.append((of_results, counted(results, "result")))
    if of_pages:
        parts.append((of_pages, "worked examples of pages"))
    if documents:
        of_given = [it for it in of_texts if it.source in given]
        parts.append((of_given, counted(len(documents), "document")))
    said = [f"{document.counts(some) or 'nothing found'} in {what}" for some, what in parts]
    return "; ".join([said[0].capitalize(), *said[1:]])


PRINTERS: Mapping[Style, Callable[[Sequence[Finding]], None]] = {
    "table": _print_table,
    "json": lambda found: print_json(document.objects(found)),
    "markdown": lambda found: click.echo(document.markdown(found)),
    "sarif": lambda found: print_json(sarif.log(found)),
}
"""How each format is written."""
