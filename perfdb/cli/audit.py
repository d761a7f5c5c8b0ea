"""`perfdb audit`: find numbers that cannot be true, in the store and in documents."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click

from perfdb import catalog
from perfdb.audit import check, report, review
from perfdb.audit import documents as worked_examples
from perfdb.cli import gates, options, tables
from perfdb.compare.releases import release_ids
from perfdb.db.session import DEFAULT_URL, reading_current, store_url
from perfdb.errors import InputError
from perfdb.groups import grouped
from perfdb.record import Finding, Result
from perfdb.units import counted

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(
    epilog=options.examples(
        "perfdb audit --release 'nemo 25.04'",
        "perfdb audit page.md --fail-on error",
        "perfdb audit --format sarif",
    )
)
@click.argument("documents", nargs=-1, metavar="[DOCUMENT]...", type=FILE)
@options.db_option
@options.only_options("release", "system")
@gates.severity_option(options.NEVER, "Exit with 1 if a finding is this severe or worse.")
@options.format_option(["text", "json", "markdown", "sarif"], "The output format.")
@options.json_format_option
@click.option("--each", is_flag=True, help="List every finding of the rules that match many rows.")
@gates.acknowledged_option
def audit(
    documents: Sequence[Path],
    gate: str,
    style: str,
    reviewed: Path | None,
    each: bool,
    **words: str | None,
) -> int:
    """Find numbers that contradict each other beyond rounding.

    The audit checks the current results in the store. In pages and in each DOCUMENT, it also checks
    worked examples, such as '4096 * 256 / 2.693 = 389371'. The same goes for tables of
    configurations without figures. Accepted findings are marked as explained, and --fail-on
    ignores them. A DOCUMENT with nothing to audit is an error (exit code 2).
    """
    release, system = words["release"], words["system"]
    known, named = review.accepted(reviewed), _texts(documents)
    results, found, pages = _stored(words["db"], release, needed=not documents)
    texts = named if system else pages | named
    of_documents = [it for path, text in texts.items() for it in worked_examples.check(path, text)]
    configured = [row for rows in _configurations(texts).values() for row in rows]
    of_documents += check.configurations(configured)
    ordered = report.ordered([*found, *of_documents])
    every = review.explained(ordered, known)
    findings = [it for it in every if system in (None, it.system) or not it.system]
    if system is not None:
        catalog.system(system)  # raises CatalogError where there is none
    problems = review.exceeded(every, known)
    if not (release or system):
        entries = [entry for entry in known if texts or entry.it.rule != worked_examples.NAME]
        problems = (*review.unused(findings, entries), *problems)
    for problem in problems:
        click.echo(f"note: {problem}", err=True)
    _print(findings, style, each=each)
    if style in ("text", "markdown"):
        count = sum(system in (None, it.system) for it in results)
        summary = _summary(findings, count, len(configured), documents)
        click.echo(f"{summary}.", err=style == "markdown")
    return 1 if gates.findings_at_gate(findings, gate) else 0


def _stored(
    db: str | None, release: str | None, *, needed: bool
) -> tuple[Sequence[Result], Sequence[Finding], dict[str, str]]:
    """The results to audit, what is found in them, and the text of their pages, by path.

    Nothing where documents are all there is, and no store was named.
    """
    named = db or release or os.environ.get("PERFDB_URL")
    if not (needed or named or Path(DEFAULT_URL.removeprefix("sqlite:///")).is_file()):
        return (), (), {}
    with reading_current(store_url(db)) as connection:
        results, elsewhere = check.stored(connection, release_ids(connection, release))
        across = check.across_releases(connection, {it.result_id for it in results})
        found = (*check.audit(results, elsewhere), *across)
        return results, found, check.pages(connection, results)


def _texts(documents: Sequence[Path]) -> dict[str, str]:
    """The text of each document. Raises InputError for those in which nothing can be audited."""
    texts = {str(path): path.read_bytes().decode(errors="replace") for path in documents}
    rows = _configurations(texts)
    lacking = [worked_examples.nothing_in(it, text) for it, text in texts.items() if not rows[it]]
    if problems := [problem for problem in lacking if problem]:
        raise InputError(problems)
    return texts


def _configurations(texts: Mapping[str, str]) -> dict[str, tuple[Result, ...]]:
    """The rows of each document, by its path, that state how GPUs are used and no figure."""
    from perfdb.pages import reader  # 0.4 s that --help does not need

    return {where: reader.configurations(where, text) for where, text in texts.items()}


def _print(findings: Sequence[Finding], style: str, *, each: bool) -> None:
    if style == "json":
        options.print_json(report.objects(findings))
    elif style == "markdown":
        click.echo(report.markdown(findings))
    elif style == "sarif":
        options.print_json(report.sarif(findings, check.meanings()))
    else:
        for line in _lines(findings, each=each):
            tables.echo(line)


def _lines(findings: Sequence[Finding], *, each: bool) -> Iterator[str]:
    """What many runs have in common is printed once; each line of a page has its own."""

    def words(it: Finding) -> tuple[str, ...]:
        return it.kind, it.rule, report.subject(it), it.message, it.suggestion or ""

    single, by_rule = (findings, {}) if each else report.summarized(findings)
    same = grouped(single, lambda it: (words(it), it.source_line and report.place(it)))
    for group in same.values():
        yield from gates.finding_lines(group[0], len(group) - 1)
    for rule, some in by_rule.items():
        meaning = f"{counted(len(some), 'result')} against this rule: {check.RULES[rule].meaning}"
        one = some[0].model_copy(update={"message": meaning, "model": None, "suggestion": None})
        yield from gates.finding_lines(one, len(some) - 1)
        yield f"  list each: {tables.styled('perfdb audit --each', bold=True)}"


def _summary(
    findings: Sequence[Finding], results: int, configurations: int, documents: Sequence[Path]
) -> str:
    """How many findings there are in results, rows without figures, pages and documents."""
    paths = set(map(str, documents))
    of_texts = [it for it in findings if it.rule == worked_examples.NAME]
    of_rows = [it for it in findings if it.rule != worked_examples.NAME]
    of_results = [it for it in of_rows if it.result_id]
    of_configurations = [it for it in of_rows if not it.result_id]
    of_pages = [it for it in of_texts if it.source not in paths]
    parts = [(of_results, counted(results, "result"))] if results or not documents else []
    if configurations:
        parts.append((of_configurations, counted(configurations, "configuration")))
    parts += [(of_pages, "worked examples of pages")] if of_pages else []
    if documents:
        of_named = [it for it in of_texts if it.source in paths]
        parts.append((of_named, counted(len(documents), "document")))
    texts = [f"{report.counts(some) or 'nothing found'} in {what}" for some, what in parts]
    return "; ".join([texts[0].capitalize(), *texts[1:]])
