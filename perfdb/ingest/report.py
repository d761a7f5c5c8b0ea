"""What became of all that was read: counted while it is stored, so that nothing else is held."""

import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Final

from sqlalchemy import ColumnElement, Connection, Engine

from perfdb.db import keys
from perfdb.db.sources import Action
from perfdb.db.tables import results, runs
from perfdb.errors import Diagnostic
from perfdb.groups import grouped
from perfdb.ingest.reads import PageRows, Rejected, RunRead, Skipped, Unattributed, Unchanged
from perfdb.ingest.store import Stored
from perfdb.queries import results as questions
from perfdb.record import Finding, Outcome, Result

MOST_NAMED: Final = 5
"""Files that are named, of those skipped and of duplicates."""


_NUMBER: Final = re.compile(r"\b[0-9a-f]{40}\b|\d[\d.,]*")
"""A number, or the hash of a commit."""


@dataclass(frozen=True)
class Nameless:
    """A result whose release is unknown, or of which more is missing, and where it is."""

    path: str
    line: int | None
    subject: str
    reason: str
    missing: tuple[str, ...]


@dataclass(frozen=True)
class Completed:
    """A log, and the files next to it that state what it is of."""

    path: str
    by: tuple[str, ...]


@dataclass(frozen=True)
class Duplicate:
    """A log with the bytes of another one, which is stored."""

    path: str
    same_as: str


@dataclass
class Report:
    """What became of all that was read: how many results, and what was rejected.

    `withdrawn` counts results that an edited page no longer states; `nameless` holds those without
    a release, and those of logs that lack a part of their case. `findings` are those of every
    release that anything was read of. `unused_options` apply to pages and logs, and not to run
    directories.
    """

    unused_options: tuple[str, ...] = ()
    actions: Counter[Action] = field(default_factory=Counter)
    withdrawn: int = 0
    rejected: tuple[Diagnostic, ...] = ()
    nameless: tuple[Nameless, ...] = ()
    notes: tuple[Diagnostic, ...] = ()
    findings: tuple[Finding, ...] = ()
    without_figures: Counter[tuple[Action, Outcome]] = field(default_factory=Counter)
    """How many runs of each action and outcome have no figures."""
    duplicates: tuple[Duplicate, ...] = ()
    completed: tuple[Completed, ...] = ()
    run_dirs: list[str] = field(default_factory=list)
    skipped: dict[str, list[str]] = field(default_factory=dict)
    """The paths that were not read, by the reason."""
    run_ids: set[str] = field(default_factory=set)
    paths: set[str] = field(default_factory=set)
    """The runs and the files that results were read of: their releases are to be audited."""
    read: set[str] = field(default_factory=set)
    """The keys of published results, and the ids of runs, that were read."""

    def add(self, stored: Stored) -> None:
        """Count what became of a source."""
        read = stored.read
        self.actions.update(stored.actions)
        self.withdrawn += stored.withdrawn
        self.rejected += stored.problems
        self.nameless += tuple(_nameless(stored))
        if stored.same_as:
            self.duplicates += (Duplicate(read.path, stored.same_as),)
        else:
            self.notes += (*read.notes, *stored.notes)
        if isinstance(read, RunRead | PageRows) and read.companions:
            self.completed += (Completed(read.path, read.companions),)
        match read:
            case RunRead() | Unchanged():
                self._add_run(read, stored.actions)
            case PageRows():
                self.paths.add(read.path)
                self.read.update(row.key for row in read.rows)
            case Unattributed():
                self.read.update(filter(None, [read.run_id]))
            case Skipped(reason=reason):
                self.skipped.setdefault(reason, []).append(read.path)
            case Rejected(notes=notes) if notes:
                self.skipped.setdefault("not read", []).append(read.path)

    def _add_run(self, read: RunRead | Unchanged, actions: Sequence[Action]) -> None:
        self.run_ids.add(read.run_id)
        self.read.add(read.run_id)
        if isinstance(read, Unchanged) or not read.is_log:
            self.run_dirs.append(read.path)
        if isinstance(read, RunRead) and read.run.result.withheld is not None:
            outcome = read.run.result.outcome
            self.without_figures.update((action, outcome) for action in actions)

    def finish(self, findings: Iterable[Finding]) -> "Report":
        """The same, with the findings of an audit and the notes that sum up."""
        self.findings = tuple(findings)
        self.notes = _by_cause(self._summed_up())
        self.rejected = _by_cause(self.rejected)
        return self

    @property
    def new(self) -> int:
        """How many results are new."""
        return self.actions[Action.NEW]

    @property
    def revised(self) -> int:
        """How many results have a new revision."""
        return self.actions[Action.REVISED]

    @property
    def unchanged(self) -> int:
        """How many results stay as they were."""
        return self.actions[Action.UNCHANGED]

    @property
    def failed(self) -> bool:
        """Whether anything was rejected."""
        return bool(self.rejected)

    @property
    def still_running(self) -> tuple[str, ...]:
        """The run directories that are left alone, because their runners are at work."""
        return tuple(self.skipped.get("running", ()))

    @property
    def unknown(self) -> tuple[str, ...]:
        """Files in folders that are logs by their names and that no format recognizes, pages whose
        tables look like figures and are not read, and links to other folders.
        """
        reasons = ("unknown", "not read", "linked")
        return tuple(path for reason in reasons for path in self.skipped.get(reason, ()))

    @property
    def unattributed(self) -> tuple[Diagnostic, ...]:
        """Where the nameless results are: those of one file that lack the same in one line."""
        groups = grouped(self.nameless, lambda one: (one.path, one.reason))
        return tuple(_of_nameless(path, found) for (path, _), found in groups.items())

    def _summed_up(self) -> Iterator[Diagnostic]:
        """All notes; those on many files are one."""
        if len(self.completed) > 1:
            yield _of_many([one.path for one in self.completed], "completed by files beside them")
        elif self.completed:
            name = Path(self.completed[0].path).name
            yield from (Diagnostic(it, f"says what {name} was") for it in self.completed[0].by)
        yield from self.notes
        if self.unused_options and self.run_dirs:
            many = f"{len(self.run_dirs):,} run directories, which say"
            dirs = many if len(self.run_dirs) > 1 else "a run directory, which says"
            message = f"{', '.join(self.unused_options)}: not taken for {dirs} what was run"
            yield Diagnostic(_around(self.run_dirs), message)
        if len(self.duplicates) > MOST_NAMED:
            message = "are those of run directories, and stored once"
            yield _of_many([one.path for one in self.duplicates], message)
        else:
            for it in self.duplicates:
                yield Diagnostic(it.path, f"the same log as {it.same_as}: it is stored once")
        yield from (_of_skipped(it, self.skipped[it]) for it in _SKIPPED if it in self.skipped)


_SKIPPED: Final = {
    "made": ("1 page", "pages", " that perfdb has made from a store", "name a page to read it"),
    "unknown": (
        "a log", "logs", " in which no format finds a result: {}", "--json names each",
    ),
    "linked": (
        "a link to a folder", "links to folders", ": {}", "name the folder to read what it holds",
    ),
}  # fmt: skip
"""How a note calls one and many files that are skipped for a reason, why, and what to do."""


def _by_cause(found: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Those of one file that differ in numbers and items alone as one, with how many more."""

    def cause(one: Diagnostic) -> tuple[str | None, ...]:
        words = (one.message, one.remedy or "")
        field_name = (one.field or "").rpartition(".")[2]
        return (one.where, field_name, *(_NUMBER.sub("#", text) for text in words))

    return tuple(
        replace(some[0], message=f"{some[0].message} (and {len(some) - 1:,} more like it)")
        if len(some) > 1
        else some[0]
        for some in grouped(found, cause).values()
    )


def _of_skipped(reason: str, paths: Sequence[str]) -> Diagnostic:
    one_file, many_files, why, remedy = _SKIPPED[reason]
    what = one_file if len(paths) == 1 else f"{len(paths):,} {many_files}"
    names = ", ".join(paths[:MOST_NAMED]) + (", …" if paths[MOST_NAMED:] else "")
    return Diagnostic(_around(paths), f"passed over {what}{why.format(names)}", remedy=remedy)


def _of_many(paths: Sequence[str], what: str) -> Diagnostic:
    return Diagnostic(_around(paths), f"{len(paths):,} logs {what}", remedy="--json names each")


def _around(paths: Sequence[str]) -> str:
    """The folder or the archive that files are in, or the one that there is."""
    is_mixed = len({Path(path).is_absolute() for path in paths}) > 1
    common = os.path.commonpath(map(os.path.abspath, paths) if is_mixed else paths)
    return common.removesuffix("!") or "."


def _nameless(stored: Stored) -> Iterator[Nameless]:
    read, path = stored.read, stored.read.path
    if stored.known or (isinstance(read, RunRead) and stored.problems):
        return
    if isinstance(read, Unattributed):
        yield Nameless(path, read.problem.line, "", read.problem.reason, read.missing)
    of_directory = isinstance(read, RunRead) and not read.is_log
    remedy = "fill in release.version in its run.json" if of_directory else "pass --release"
    for row in read.results:
        if row.release.version is None:
            subject, why = f"{row.case.model} on {row.case.system} ", f"names no release; {remedy}"
            yield Nameless(path, row.source_line, subject, why, ("release",))


def _of_nameless(path: str, found: Sequence[Nameless]) -> Diagnostic:
    """'page.md:7–9: each of 3 results names no release; …', or the one that it is by its case."""
    lines = sorted({one.line for one in found if one.line})
    place = f"{path}:{'–'.join(map(str, dict.fromkeys((lines[0], lines[-1]))))}" if lines else path
    subject = found[0].subject if len(found) == 1 else f"each of {len(found)} results "
    return Diagnostic(place, f"{subject}{found[0].reason}")


class Status(StrEnum):
    """What becomes of a result."""

    NEW = "new"
    REVISED = "revised"
    UNCHANGED = "unchanged"
    WITHDRAWN = "withdrawn"


@dataclass(frozen=True)
class Change:
    """A result as it is afterwards, or was before it was withdrawn.

    `before` is what a revised one was; None: it had been withdrawn.
    """

    status: Status
    result: Result
    before: Result | None = None

    @property
    def is_written(self) -> bool:
        """Whether it is a revision that was not there before."""
        return self.status in (Status.NEW, Status.REVISED)


@dataclass(frozen=True)
class _Row:
    """A result with its key and the number of its revision."""

    result: Result
    key: str
    revision: int


def current(engine: Engine) -> frozenset[int]:
    """The ids of all current results."""
    with engine.connect() as connection:
        return frozenset(connection.scalars(questions.current_keys()))


def changes(engine: Engine, before: frozenset[int], read: Collection[str]) -> tuple[Change, ...]:
    """What has become of the results that were current, and of those that were read.

    `read` holds the keys of results and the ids of runs. A revision has the run of the result
    before it, which may turn out to be of another case, or else the key.
    """
    after = current(engine)
    with engine.connect() as connection:
        gone, added = (
            {
                row.result.run_id or row.key: row
                for some in keys.chunks(ids)
                for row in _rows(connection, results.c.id.in_(some))
            }
            for ids in (before - after, after - before)
        )
        kept = [
            row.result
            for some in keys.chunks(read)
            for column in (results.c.key, runs.c.run_id)
            for row in _rows(connection, keys.among(connection, column, some))
            if row.result.result_id in before & after
        ]
    found = [Change(Status.UNCHANGED, result) for result in kept]
    found += (Change(Status.WITHDRAWN, gone[it].result) for it in gone.keys() - added.keys())
    for identity, row in added.items():
        old = gone.get(identity)
        is_new = old is None and row.revision == 1
        status = Status.NEW if is_new else Status.REVISED
        found.append(Change(status, row.result, old.result if old else None))
    return tuple(
        sorted(
            found,
            key=lambda it: (it.result.source, it.result.source_line or 0, it.result.result_id),
        )
    )


def _rows(connection: Connection, which: ColumnElement[bool]) -> Iterator[_Row]:
    statement = questions.listed(which)
    numbers = {row.result_id: (row.key, row.revision) for row in connection.execute(statement)}
    for result in questions.read(connection, statement):
        yield _Row(result, *numbers[result.result_id])
