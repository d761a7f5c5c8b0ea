"""Read from the store what the site shows, in one read-only transaction."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeVar

from sqlalchemy import URL, Connection, Select

from perfdb.audit import Finding
from perfdb.audit.acknowledged import Entry, explained
from perfdb.db.schema import require_current
from perfdb.db.session import reading, store_url
from perfdb.log_text import ESCAPE, decoded
from perfdb.queries import catalog, findings, results, site
from perfdb.queries.content import content
from perfdb.queries.state import row_versions
from perfdb.site import findings as found
from perfdb.site import pairs, places
from perfdb.site.contents import Contents, Rejection, Revision, State
from perfdb.site.data import (
    MOST_STEPS,
    Audited,
    Result,
    Row,
    Run,
    RunFile,
    RunPage,
    SourcePage,
    Step,
)
from perfdb.site.findings import ERROR
from perfdb.site.rows import findings_said

Kind = TypeVar("Kind", bound=Row)

MOST_LISTED_BYTES: Final = 1 << 20
"""Of a file that is larger no line is shown: it would have to be unpacked for each build."""


def contents(connection: Connection, known: Sequence[Entry] = ()) -> Contents:
    """Everything but the bytes of run files. The same store always gives the same.

    `known` are the findings that are accepted.
    """
    rows = list(_dicts(connection, results.current()))
    plain = [places.of_result(Result.model_validate(row)) for row in rows]
    audited = _audited(connection, plain, known)
    in_force = [_marked(result, audited.get(result.result_id)) for result in plain]
    wrong = [number for number, one in audited.items() if found.kind(one.findings[0]) == ERROR]
    files: dict[str, list[RunFile]] = defaultdict(list)
    for file in _rows(connection, site.all_run_files(), RunFile):
        files[file.run_id].append(file)
    of_run = {result.run_id: result for result in in_force if result.is_measured}
    runs = _rows(connection, catalog.all_runs(), Run)
    return Contents(
        results=tuple(_printed(connection, in_force)),
        in_force=tuple(in_force),
        runs=tuple(_run(connection, run, of_run, files[run.run_id]) for run in runs),
        sources=tuple(_sources(connection)),
        audited=tuple(audited.values()),
        pairs=tuple(pairs.of_results(rows, wrong)),
        revisions=tuple(map(places.of_revision, _rows(connection, site.all_revisions(), Revision))),
        rejections=tuple(
            map(places.of_rejection, _rows(connection, site.all_rejections(), Rejection))
        ),
    )


def stored(url: URL, known: Sequence[Entry] = ()) -> Contents:
    """The contents of a store.

    Raises StoreError where there is no database, or not this version's.
    """
    with reading(url) as connection:
        require_current(connection, url.render_as_string())
        return contents(connection, known)


def state(address: str) -> str:
    """What a store on a server holds, in short: another answer means that it holds something else.

    Raises StoreError where the database is not this version's.
    """
    url = store_url(address)
    with reading(url) as connection:
        require_current(connection, url.render_as_string())
        return repr(connection.execute(row_versions()).all())


def _audited(
    connection: Connection, plain: Iterable[Result], known: Sequence[Entry]
) -> dict[int, Audited]:
    """Those results that have findings, by their number in the store."""
    rows = _dicts(connection, findings.current())
    said: dict[int | None, list[Finding]] = defaultdict(list)
    for finding in explained(map(Finding.model_validate, rows), known):
        said[finding.result_id].append(finding)
    keys = dict(iter(connection.execute(site.keys())))
    return {
        one.result_id: found.audited(one, keys[one.result_id], said[one.result_id])
        for one in plain
        if one.result_id in said
    }


def _marked(result: Result, audited: Audited | None) -> Result:
    """A result with what the audit found."""
    if audited is None:
        return result
    said = findings_said(audited.findings)
    return result.model_copy(update={"flag": found.flag(audited), "findings": said})


def _printed(connection: Connection, in_force: Iterable[Result]) -> Iterator[Result]:
    """Those results that tables print, each with how many it stands for."""
    counts = {of: counted for of, *counted in connection.execute(site.printed())}
    for one in in_force:
        if counted := counts.get(one.result_id):
            known = dict(zip(("num_results", "num_finished"), counted, strict=True))
            yield one if set(counted) == {1} else one.model_copy(update=known)


def _run(
    connection: Connection,
    run: Run,
    of_run: Mapping[str | None, Result],
    files: Iterable[RunFile],
) -> RunPage:
    kept = tuple(files)
    page = RunPage(
        run=run,
        result=of_run[run.run_id],
        steps=tuple(_rows(connection, catalog.steps_of(run.run_id), Step)),
        files=kept,
        recipe_text=None,
    )
    recipe, measured = page.recipe_file, page.measured_file
    small = measured if measured and measured.size_bytes <= MOST_LISTED_BYTES else None
    lines = content(connection, small.sha256).split(b"\n") if small else []
    numbers = [step.source_line for step in page.steps[:MOST_STEPS]]
    return page.model_copy(
        update={
            "recipe_text": _text(content(connection, recipe.sha256)) if recipe else None,
            "lines": {it: _text(lines[it - 1]) for it in numbers if it <= len(lines)},
        }
    )


def _text(said: bytes) -> str:
    """What a file or a line of it says, without colours; what is no UTF-8 is shown as such."""
    return decoded(ESCAPE.sub(b"", said))


def _sources(connection: Connection) -> list[SourcePage]:
    """Each state of the pages that results stand for; one for the same bytes."""
    found = {one.sha256: one for one in _rows(connection, site.published_sources(), State)}
    return [
        SourcePage(
            path=one.path,
            sha256=one.sha256,
            text=content(connection, one.sha256).decode(errors="replace"),
            read_at=one.read_at,
            source_url=one.source_url,
            published_on=one.published_on,
        )
        for one in found.values()
    ]


def _rows(
    connection: Connection, question: Select[*tuple[object, ...]], kind: type[Kind]
) -> list[Kind]:
    return [kind.model_validate(row) for row in _dicts(connection, question)]


def _dicts(
    connection: Connection, question: Select[*tuple[object, ...]]
) -> Iterator[dict[str, object]]:
    answer = connection.execute(question)
    names = list(answer.keys())
    return (dict(zip(names, row, strict=True)) for row in answer)
