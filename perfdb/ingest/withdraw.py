"""Takes out of every table what a page stated, or what a run measured, and says why."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from sqlalchemy import URL, Connection, Engine

from perfdb.db import store, withdrawal
from perfdb.db.migrate import require_current
from perfdb.db.rows import Action, LogEntry, SourceFile
from perfdb.db.session import reading, retried, storing
from perfdb.errors import InputError, Problem
from perfdb.ingest import names
from perfdb.ingest.audited import audited
from perfdb.ingest.fallback import known_path, spellings
from perfdb.ingest.put import put
from perfdb.ingest.read import PAGE, PAGE_PARSER_VERSION, PageRows
from perfdb.ingest.report import Report, Tally
from perfdb.rundir import RECORD


@dataclass(frozen=True)
class _Named:
    """What words of the user name in the store: pages, and runs by their ids."""

    pages: tuple[SourceFile, ...]
    run_ids: frozenset[str]


def withdraw(words: Iterable[str], url: URL, reason: str | None = None) -> Report:
    """Withdraw every result in force of pages and of runs, be their files there or gone.

    A page is named by its path, a run by its id, its directory or its log. A result that another
    page states falls back to it. A page may be read again at any time; a run stays withdrawn,
    whatever is read of it, until it is restored, and is withdrawn for a reason.

    Raises InputError for a word that names nothing in the store, and StoreError for a store that
    cannot be written or is of another version.
    """
    said = _reason(reason)
    found = _named(words, url)
    if found.run_ids and not said:
        message = "a run is withdrawn for a reason"
        raise InputError(Problem("--reason", message, remedy="say what is wrong with it"))
    tally = Tally()
    with storing(url) as engine:
        for stored in put(engine, [_emptied(page, said) for page in found.pages]):
            tally.count(stored)
        act = partial(withdrawal.withdraw_runs, run_ids=found.run_ids, reason=said)
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
            [Problem(page.path, "is a page, not a run", remedy=remedy) for page in found.pages]
        )
    with storing(url) as engine:
        act = partial(withdrawal.restore_runs, run_ids=found.run_ids)
        back = retried(partial(_logged, engine, act, "restored"))
        audited(engine, back, ())
        return tuple(sorted(back))


def _reason(given: str | None) -> str:
    """Why, on one line. Raises InputError for what no page can show."""
    said = " ".join((given or "").split())
    if names.fault(said):
        raise InputError(Problem("--reason", "holds a character that cannot be shown"))
    return said


def _named(words: Iterable[str], url: URL) -> _Named:
    pages, run_ids, problems = [], set[str](), []
    with reading(url) as connection:
        require_current(connection, url.render_as_string())
        for word in words:
            page = SourceFile(word, b"", PAGE, PAGE_PARSER_VERSION)
            if fault := names.fault(word):
                problems.append(Problem(names.shown(word), fault))
            elif known_path(connection, page) is not None:
                pages.append(page)
            elif found := _runs_at(connection, word):
                run_ids.update(found)
            else:
                message = "nothing in the store has this path, or this id of a run"
                remedy = "name it as the site does, where it says what it was read from"
                problems.append(Problem(word, message, remedy=remedy))
    if problems:
        raise InputError(problems)
    return _Named(tuple(pages), frozenset(run_ids))


def _runs_at(connection: Connection, word: str) -> Sequence[str]:
    folders = spellings(word)
    return withdrawal.runs_named(
        connection, word, [*folders, *(f"{it}/{RECORD}" for it in folders)]
    )


def _emptied(page: SourceFile, why: str) -> PageRows:
    return PageRows(page, (), (), (), emptied=True, why=why)


def _logged(engine: Engine, act: Callable[..., set[str]], what: str) -> set[str]:
    """Do something to runs, and note it in the log; the ids of those that it changed."""
    when = datetime.now(UTC)
    with engine.begin() as connection:
        run_ids = act(connection, when=when)
        entries = [LogEntry(f"run {it}", Action.REVISED, reason=what) for it in sorted(run_ids)]
        store.log(connection, entries, when)
        return run_ids
