"""Takes out of every table what a page or a file stated, or a run measured, and says why."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from sqlalchemy import URL, Connection, Engine

from perfdb.db import ingest_log, runs
from perfdb.db import pages as stored_pages
from perfdb.db.ingest_log import RUN_LOGGED_AS, Action, LogEntry
from perfdb.db.rows import SourceFile
from perfdb.db.session import reading_current, retried, storing
from perfdb.errors import ArchiveError, Diagnostic, InputError
from perfdb.ingest import names
from perfdb.ingest.audited import audited
from perfdb.ingest.compression import Budget, chunks
from perfdb.ingest.fallback import spellings
from perfdb.ingest.put import put
from perfdb.ingest.read import PAGE, PageRows
from perfdb.ingest.report import Report, Tally
from perfdb.rundir import RECORD

MOST_ALIKE = 3
"""Paths that are told of where a word names none."""


@dataclass(frozen=True)
class _Named:
    """What words of the user name in the store: pages, files of results, and runs by their ids."""

    pages: tuple[SourceFile, ...]
    run_ids: frozenset[str]
    notes: tuple[Diagnostic, ...] = ()


def withdraw(words: Iterable[str], url: URL, reason: str | None = None) -> Report:
    """Withdraw every result in force of pages, files of results and runs, there or gone.

    A page or a file of results is named by its path, a run by its id, its directory or its log; one
    that was moved by where it is now, if the store has its very bytes. A result that another page
    states falls back to it. A page or file may be read again at any time; a run stays withdrawn,
    whatever is read of it, until it is restored, and is withdrawn for a reason.

    Raises InputError for a word that names nothing in the store, and StoreError for a store that
    cannot be written or is of another version.
    """
    said = _reason(reason)
    found = _named(words, url)
    if found.run_ids and not said:
        message = "a run is withdrawn for a reason"
        raise InputError(Diagnostic("--reason", message, remedy="say what is wrong with it"))
    tally = Tally(notes=[*found.notes])
    with storing(url) as engine:
        for stored in put(
            engine, [PageRows(page, (), (), (), emptied=True, why=said) for page in found.pages]
        ):
            tally.count(stored)
        act = partial(runs.withdraw, run_ids=found.run_ids, reason=said)
        gone = retried(partial(_logged, engine, act, f"withdrawn: {said}"))
        tally.withdrawn += len(gone)
        return tally.report(audited(engine, gone, tally.paths))


def restore(words: Iterable[str], url: URL) -> tuple[str, ...]:
    """Make runs count again that were withdrawn, with the figures that they had; their ids.

    Raises InputError for a word that names no run in the store, and StoreError as `withdraw` does.
    """
    found = _named(words, url)
    if found.pages:
        remedy = "`perfdb ingest` brings back what it states"
        raise InputError(
            Diagnostic(page.path, f"is {_kind(page)}, not a run", remedy=remedy)
            for page in found.pages
        )
    with storing(url) as engine:
        act = partial(runs.restore, run_ids=found.run_ids)
        back = retried(partial(_logged, engine, act, "restored"))
        audited(engine, back, ())
        return tuple(sorted(back))


def _reason(given: str | None) -> str:
    """Why, on one line. Raises InputError for what no page can show."""
    said = " ".join((given or "").split())
    if names.fault(said):
        raise InputError(Diagnostic("--reason", "holds a character that cannot be shown"))
    return said


def _named(words: Iterable[str], url: URL) -> _Named:
    found, problems = list[_Named](), list[Diagnostic]()
    with reading_current(url) as connection:
        for word in words:
            if fault := names.fault(word) if word else "the name is empty":
                problems.append(Diagnostic(names.shown(word), fault))
            elif one := _of_word(connection, word) or _of_its_bytes(connection, word):
                found.append(one)
            else:
                message = "nothing in the store has this path, or this id of a run"
                problems.append(Diagnostic(word, message, remedy=_remedy(connection, word)))
    if problems:
        raise InputError(problems)
    return _together(found)


def _together(found: Sequence[_Named]) -> _Named:
    return _Named(
        tuple(page for one in found for page in one.pages),
        frozenset(run_id for one in found for run_id in one.run_ids),
        tuple(note for one in found for note in one.notes),
    )


def _of_word(connection: Connection, word: str) -> _Named | None:
    pages = stored_pages.stating(connection, spellings(word))
    run_ids = frozenset(_runs_at(connection, word))
    return _Named(pages, run_ids) if pages or run_ids else None


def _of_its_bytes(connection: Connection, word: str) -> _Named | None:
    """What the store has of the bytes that lie at a path, wherever they were read."""
    sha256 = _sha256(Path(word))
    if sha256 is None:
        return None
    pages = tuple(_pages_of_bytes(connection, sha256))
    run_ids = stored_pages.runs_of_bytes(connection, sha256)
    paths = dict.fromkeys([*(page.path for page in pages), *run_ids.values()])
    notes = tuple(Diagnostic(word, f"has the bytes of {path}, which is meant") for path in paths)
    return _Named(pages, frozenset(run_ids), notes) if paths else None


def _pages_of_bytes(connection: Connection, sha256: str) -> Iterator[SourceFile]:
    """The pages and files of results that are these bytes, and not those that once were."""
    for path in stored_pages.paths_of_bytes(connection, sha256):
        for page in stored_pages.stating(connection, [path]):
            last = stored_pages.last_state(connection, page)
            if last is not None and hashlib.sha256(last).hexdigest() == sha256:
                yield page


def _sha256(path: Path) -> str | None:
    """The SHA-256 of a file, or of a run directory's record; None where there is none to read."""
    digest = hashlib.sha256()
    try:
        file = path / RECORD if path.is_dir() else path
        if not file.is_file():
            return None
        for chunk in chunks(file, Budget()):
            digest.update(chunk)
    except (OSError, ArchiveError):
        return None
    return digest.hexdigest()


def _remedy(connection: Connection, word: str) -> str:
    if alike := stored_pages.like(connection, word, MOST_ALIKE):
        return f"did you mean {' or '.join(alike)}?"
    return "name it as the site does, where it says what it was read from"


def _kind(page: SourceFile) -> str:
    return "a page" if page.parser == PAGE else "a file of results"


def _runs_at(connection: Connection, word: str) -> Sequence[str]:
    folders = spellings(word)
    return stored_pages.runs_named(
        connection, word, [*folders, *(f"{it}/{RECORD}" for it in folders)]
    )


def _logged(engine: Engine, act: Callable[..., set[str]], what: str) -> set[str]:
    """Do something to runs, and note it in the log; the ids of those that it changed."""
    when = datetime.now(UTC)
    with engine.begin() as connection:
        run_ids = act(connection, when=when)
        paths = [f"{RUN_LOGGED_AS}{it}" for it in sorted(run_ids)]
        ingest_log.add(
            connection, [LogEntry(it, Action.REVISED, reason=what) for it in paths], when
        )
        return run_ids
