"""Withdraws the results of a page, a file or a run, and keeps the reason; and restores runs."""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

from sqlalchemy import URL, Connection, Engine

from perfdb.db import pages as stored
from perfdb.db import runs
from perfdb.db.rows import SourceFile
from perfdb.db.session import reading_current, retried, storing
from perfdb.db.sources import RUN_LOGGED_AS, Action, LogEntry, log
from perfdb.errors import ArchiveError, Diagnostic, InputError
from perfdb.ingest.find import name_fault, printable
from perfdb.ingest.pipeline import audited
from perfdb.ingest.reads import PAGE, PageRows
from perfdb.ingest.report import Report
from perfdb.ingest.store import put, spellings
from perfdb.ingest.unpack import Budget, chunks
from perfdb.rundir import RECORD

MOST_SUGGESTED: Final = 3
"""Paths that are suggested for a word that names none."""


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
    line = " ".join((reason or "").split())
    if name_fault(line):
        raise InputError(Diagnostic("--reason", "holds a character that cannot be shown"))
    found = _named(words, url)
    if found.run_ids and not line:
        message = "a run is withdrawn for a reason"
        raise InputError(Diagnostic("--reason", message, remedy="say what is wrong with it"))
    report = Report(notes=found.notes)
    pages = [
        PageRows(page.path, source=page, rows=(), emptied=True, reason=line) for page in found.pages
    ]
    with storing(url) as engine:
        for done in put(engine, pages):
            report.add(done)
        act = partial(runs.withdraw, run_ids=found.run_ids, reason=line)
        gone = retried(partial(_logged, engine, act, f"withdrawn: {line}", line))
        report.withdrawn += len(gone)
        return report.finish(audited(engine, gone, report.paths))


def restore(words: Iterable[str], url: URL) -> tuple[str, ...]:
    """Make runs count again that were withdrawn, with the figures that they had; their ids.

    Raises InputError for a word that names no run in the store, and StoreError as `withdraw` does.
    """
    found = _named(words, url)
    if found.pages:
        remedy, kinds = "`perfdb ingest` brings back what it states", {PAGE: "a page"}
        raise InputError(
            Diagnostic(
                page.path,
                f"is {kinds.get(page.parser, 'a file of results')}, not a run",
                remedy=remedy,
            )
            for page in found.pages
        )
    with storing(url) as engine:
        act = partial(runs.restore, run_ids=found.run_ids)
        restored = retried(partial(_logged, engine, act, "restored"))
        audited(engine, restored, ())
        return tuple(sorted(restored))


def _named(words: Iterable[str], url: URL) -> _Named:
    """What the words name. Raises InputError."""
    found, problems = list[_Named](), list[Diagnostic]()
    with reading_current(url) as connection:
        for word in words:
            if fault := name_fault(word) if word else "the name is empty":
                problems.append(Diagnostic(printable(word), fault))
            elif one := _by_name(connection, word) or _by_bytes(connection, word):
                found.append(one)
            else:
                similar = stored.like(connection, word, MOST_SUGGESTED)
                remedy = "name it as the site does, where it shows what it was read from"
                remedy = f"did you mean {' or '.join(similar)}?" if similar else remedy
                message = "nothing in the store has this path, or this id of a run"
                problems.append(Diagnostic(word, message, remedy=remedy))
    if problems:
        raise InputError(problems)
    return _Named(
        tuple(page for one in found for page in one.pages),
        frozenset(run_id for one in found for run_id in one.run_ids),
        tuple(note for one in found for note in one.notes),
    )


def _by_name(connection: Connection, word: str) -> _Named | None:
    paths = spellings(word)
    pages = stored.stating(connection, paths)
    records = (f"{path}/{RECORD}" for path in paths)
    run_ids = frozenset(stored.runs_named(connection, word, [*paths, *records]))
    return _Named(pages, run_ids) if pages or run_ids else None


def _by_bytes(connection: Connection, word: str) -> _Named | None:
    """What the store has of the bytes that are at a path, or of the record of a run directory.

    A page or file of results counts if these bytes are its last state.
    """
    path, digest = Path(word), hashlib.sha256()
    try:
        file = path / RECORD if path.is_dir() else path
        if not file.is_file():
            return None
        for chunk in chunks(file, Budget()):
            digest.update(chunk)
    except (OSError, ArchiveError):
        return None
    sha256 = digest.hexdigest()
    pages = [
        page
        for known in stored.paths_of_bytes(connection, sha256)
        for page in stored.stating(connection, [known])
        if hashlib.sha256(stored.last_state(connection, page) or b"").hexdigest() == sha256
    ]
    run_ids = stored.runs_of_bytes(connection, sha256)
    paths = dict.fromkeys([*(page.path for page in pages), *run_ids.values()])
    notes = tuple(Diagnostic(word, f"has the bytes of {known}, which is meant") for known in paths)
    return _Named(tuple(pages), frozenset(run_ids), notes) if paths else None


def _logged(
    engine: Engine, act: Callable[..., set[str]], what: str, stated_reason: str | None = None
) -> set[str]:
    """Do something to runs, and note it in the log; the ids of those that it changed."""
    when = datetime.now(UTC)
    with engine.begin() as connection:
        run_ids = act(connection, when=when)
        entries = [
            LogEntry(f"{RUN_LOGGED_AS}{run_id}", Action.REVISED, None, what, stated_reason)
            for run_id in sorted(run_ids)
        ]
        log(connection, entries, when)
        return run_ids
