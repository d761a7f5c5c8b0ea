"""Read from the store what the site shows, in one read-only transaction."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeVar

from sqlalchemy import URL, Connection, Select

from perfdb import catalog as catalogue
from perfdb.audit.review import Entry, explained
from perfdb.catalog import names
from perfdb.catalog.names import ModelName
from perfdb.compare.read import known_releases
from perfdb.compare.releases import builds
from perfdb.db.session import reading, require_current, store_url
from perfdb.db.sources import content
from perfdb.groups import grouped
from perfdb.log_text import ESCAPE, decoded
from perfdb.page_text import decoded_page
from perfdb.queries import changes, findings, results, runs
from perfdb.queries.catalog import row_versions
from perfdb.record import Finding, Frozen
from perfdb.site import findings as found
from perfdb.site import pairs, places
from perfdb.site.contents import Contents, Rejection, Revision, State
from perfdb.site.data import (
    MOST_STEPS,
    Audited,
    Result,
    Run,
    RunFile,
    RunPage,
    SourcePage,
    Step,
)
from perfdb.site.printed import text_of
from perfdb.site.rows import findings_said

Kind = TypeVar("Kind", bound=Frozen)
StoredRow = dict[str, object]

MOST_LISTED_BYTES: Final = 1 << 20
"""Of a file that is larger no line is shown: it would have to be unpacked for each build."""


def contents(connection: Connection, known: Sequence[Entry] = ()) -> Contents:
    """Everything but the bytes of run files. The same store always gives the same.

    `known` are the findings that are accepted.
    """
    build = dict[object, int](builds(known_releases(connection)).items())
    known_rows = [
        row | {"build": build.get(row["release_id"], 0)}
        for row in _dicts(connection, results.current())
    ]
    called = _called(known_rows)
    rows = _told(known_rows, called)
    plain = [Result.model_validate(row) for row in rows]
    audited = _audited(connection, plain, known)
    in_force = [_marked(result, audited.get(result.result_id)) for result in plain]
    wrong = [result.result_id for result in in_force if result.has_open_errors]
    return Contents(
        results=tuple(_printed(connection, in_force)),
        in_force=tuple(in_force),
        runs=tuple(_runs(connection, in_force)),
        sources=tuple(_sources(connection)),
        audited=tuple(audited.values()),
        pairs=tuple(pairs.of_results(rows, wrong)),
        revisions=tuple(
            Revision.model_validate(row)
            for row in _told(_dicts(connection, changes.all_revisions()), called)
        ),
        rejections=tuple(
            map(places.of_rejection, _rows(connection, changes.all_rejections(), Rejection))
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


def _called(rows: Iterable[StoredRow]) -> dict[object, str]:
    """Models that the catalogue lacks, by their names, as the first row of a page prints them.

    Without qualifiers, which stand behind the title wherever it is printed.
    """
    unknown = (row for row in rows if row["model"] not in catalogue.models())
    shown = sorted(map(Result.model_validate, unknown), key=lambda one: one.result_id)
    printed = ((one.model, text_of(("model_title",), one) or "") for one in reversed(shown))
    titled = ((name, names.unqualified(text)) for name, text in printed)
    return {name: title for name, title in titled if names.model(title) == ModelName(name)}


def _told(rows: Iterable[StoredRow], called: Mapping[object, str]) -> list[StoredRow]:
    """Rows with these titles of models, where there is one, and with their sources as told."""
    return [
        places.of_row(row) | {"model_title": called.get(row["model"], row["model_title"])}
        for row in rows
    ]


def _audited(
    connection: Connection, plain: Iterable[Result], known: Sequence[Entry]
) -> dict[int, Audited]:
    """Those results that have findings, by their number in the store."""
    given = explained(_rows(connection, findings.current(), Finding), known)
    said = grouped(given, lambda finding: finding.result_id)
    keys = dict(iter(connection.execute(changes.keys())))
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
    counts = {of: counted for of, *counted in connection.execute(changes.printed())}
    for one in in_force:
        if counted := counts.get(one.result_id):
            known = dict(zip(("num_results", "num_finished"), counted, strict=True))
            yield one if counted == [1, 1] else one.model_copy(update=known)


def _runs(connection: Connection, in_force: Iterable[Result]) -> Iterator[RunPage]:
    """Every run with its result, its steps and its files."""
    of_run = {result.run_id: result for result in in_force if result.is_measured}
    files = grouped(_rows(connection, runs.all_run_files(), RunFile), lambda file: file.run_id)
    for run in _rows(connection, runs.all_runs(), Run):
        page = RunPage(
            run=run,
            result=of_run[run.run_id],
            steps=tuple(_rows(connection, runs.steps_of(run.run_id), Step)),
            files=tuple(files.get(run.run_id, ())),
            recipe_text=None,
        )
        recipe, lines = page.recipe_file, _lines(connection, page.measured_file)
        numbers = [step.source_line for step in page.steps[:MOST_STEPS]]
        yield page.model_copy(
            update={
                "recipe_text": _text(content(connection, recipe.sha256)) if recipe else None,
                "lines": {it: _text(lines[it - 1]) for it in numbers if it <= len(lines)},
            }
        )


def _lines(connection: Connection, file: RunFile | None) -> list[bytes]:
    """Those of a file that is small."""
    if file is None or file.size_bytes > MOST_LISTED_BYTES:
        return []
    return content(connection, file.sha256).split(b"\n")


def _text(said: bytes) -> str:
    """What a file or a line of it says, without colours; what is no UTF-8 is shown as such."""
    return decoded(ESCAPE.sub(b"", said))


def _sources(connection: Connection) -> list[SourcePage]:
    """Each state of the pages that results stand for; one for the same bytes."""
    states = {one.sha256: one for one in _rows(connection, changes.published_sources(), State)}
    return [
        SourcePage(
            path=one.path,
            sha256=one.sha256,
            text=_page(content(connection, one.sha256)),
            read_at=one.read_at,
            source_url=one.source_url,
            published_on=one.published_on,
        )
        for one in states.values()
    ]


def _page(said: bytes) -> str:
    """What a page says; a state of it that nobody could read is shown as far as it is UTF-8."""
    try:
        return decoded_page(said)
    except UnicodeDecodeError:
        return said.decode(errors="replace")


def _rows(
    connection: Connection, question: Select[*tuple[object, ...]], kind: type[Kind]
) -> list[Kind]:
    return [kind.model_validate(row) for row in _dicts(connection, question)]


def _dicts(connection: Connection, question: Select[*tuple[object, ...]]) -> Iterator[StoredRow]:
    answer = connection.execute(question)
    names = list(answer.keys())
    return (dict(zip(names, row, strict=True)) for row in answer)
