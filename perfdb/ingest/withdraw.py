"""Withdraws the results of a page, a file or a run, and keeps the reason; and restores runs."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

from sqlalchemy import URL, Connection, Engine

from perfdb.db import ingest_log, runs
from perfdb.db import pages as stored
from perfdb.db.ingest_log import RUN_LOGGED_AS, Action, LogEntry
from perfdb.db.rows import SourceFile
from perfdb.db.session import reading_current, retried, storing
from perfdb.errors import ArchiveError, Diagnostic, InputError
from perfdb.ingest.base import PAGE, PageRows
from perfdb.ingest.compression import Budget, chunks
from perfdb.ingest.find import name_fault, printable
from perfdb.ingest.findings import audited
from perfdb.ingest.report import Report, Tally
from perfdb.ingest.store import put, spellings
from perfdb.rundir import RECORD

MOST_SUGGESTED: Final = 3
"""Paths that are suggested where a word names none."""


@dataclass(frozen=True)
class _Named:
    """What words of the user name in the store: pages, files of results, and runs by their ids."""

    pages: tuple[SourceFile, ...]
    run_ids: frozenset[str]
    notes: tuple[Diagnostic, ...] = ()


def withdraw(words: Iterable[str], url: URL, reason: str | None = None) -> Report:
    """Withdraw every current result of pages, files of results and runs, there or gone.

    A page or a file of results is named by its path, a run by its id, its directory or its log; one
    that was moved by where it is now, if the store has its very bytes. A page or file may be read
    again at any time; a run stays withdrawn, whatever is read of it, until it is restored, and is
    withdrawn for a reason.

    Raises InputError for a word that names nothing in the store, and StoreError for a store that
    cannot be written or is of another version.
    """
    checked = _reason(reason)
    found = _named(words, url)
    if found.run_ids and not checked:
        message = "a run is withdrawn for a reason"
        raise InputError(Diagnostic("--reason", message, remedy="say what is wrong with it"))
    tally = Tally(notes=[*found.notes])
    pages = [PageRows(page, (), emptied=True, reason=checked) for page in found.pages]
    with storing(url) as engine:
        for done in put(engine, pages):
            tally.count(done)
        act = partial(runs.withdraw, run_ids=found.run_ids, reason=checked)
        gone = retried(partial(_logged, engine, act, f"withdrawn: {checked}", checked))
        return tally.report(audited(engine, gone, tally.paths), withdrawn_runs=len(gone))


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
        restored = retried(partial(_logged, engine, act, "restored"))
        audited(engine, restored, ())
        return tuple(sorted(restored))


def _reason(reason: str | None) -> str:
    """Why, on one line. Raises InputError for what no page can show."""
    line = " ".join((reason or "").split())
    if name_fault(line):
        raise InputError(Diagnostic("--reason", "holds a character that cannot be shown"))
    return line


def _named(words: Iterable[str], url: URL) -> _Named:
    """What the words name. Raises InputError."""
    found, problems = list[_Named](), list[Diagnostic]()
    with reading_current(url) as connection:
        for word in words:
            if fault := name_fault(word) if word else "the name is empty":
                problems.append(Diagnostic(printable(word), fault))
            elif one := _of_word(connection, word) or _of_its_bytes(connection, word):
                found.append(one)
            else:
                message = "nothing in the store has this path, or this id of a run"
                problems.append(Diagnostic(word, message, remedy=_remedy(connection, word)))
    if problems:
        raise InputError(problems)
    return _Named(
        tuple(page for one in found for page in one.pages),
        frozenset(run_id for one in found for run_id in one.run_ids),
        tuple(note for one in found for note in one.notes),
    )


def _of_word(connection: Connection, word: str) -> _Named | None:
    paths = spellings(word)
    pages = stored.stating(connection, paths)
    records = (f"{path}/{RECORD}" for path in paths)
    run_ids = frozenset(stored.runs_named(connection, word, [*paths, *records]))
    return _Named(pages, run_ids) if pages or run_ids else None


def _of_its_bytes(connection: Connection, word: str) -> _Named | None:
    """What the store has of the bytes that are at a path, wherever they were read."""
    sha256 = _sha256(Path(word))
    if sha256 is None:
        return None
    pages = tuple(_pages_of_bytes(connection, sha256))
    run_ids = stored.runs_of_bytes(connection, sha256)
    paths = dict.fromkeys([*(page.path for page in pages), *run_ids.values()])
    notes = tuple(Diagnostic(word, f"has the bytes of {path}, which is meant") for path in paths)
    return _Named(pages, frozenset(run_ids), notes) if paths else None


def _pages_of_bytes(connection: Connection, sha256: str) -> Iterator[SourceFile]:
    """The pages and files of results that are these bytes, and not those that once were."""
    for path in stored.paths_of_bytes(connection, sha256):
        for page in stored.stating(connection, [path]):
            last = stored.last_state(connection, page)
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
    if similar := stored.like(connection, word, MOST_SUGGESTED):
        return f"did you mean {' or '.join(similar)}?"
    return "name it as the site does, where it shows what it was read from"


def _kind(page: SourceFile) -> str:
    return "a page" if page.parser == PAGE else "a file of results"


def _logged(
    engine: Engine, act: Callable[..., set[str]], what: str, stated_reason: str | None = None
) -> set[str]:
    """Do something to runs, and note it in the log; the ids of those that it changed."""
    when = datetime.now(UTC)
    with engine.begin() as connection:
        run_ids = act(connection, when=when)
        paths = [f"{RUN_LOGGED_AS}{run_id}" for run_id in sorted(run_ids)]
        entries: Sequence[LogEntry] = [
            LogEntry(path, Action.REVISED, reason=what, stated_reason=stated_reason)
            for path in paths
        ]
        ingest_log.add(connection, entries, when)
        return run_ids
