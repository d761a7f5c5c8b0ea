"""What became of all that was read: counted while it is stored, so that nothing else is held."""

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from perfdb.db.ingest_log import Action
from perfdb.errors import Diagnostic
from perfdb.groups import grouped
from perfdb.ingest.base import (
    PageRows,
    Rejected,
    RunRead,
    Skipped,
    Unattributed,
    Unchanged,
    notes_of,
    results_of,
)
from perfdb.ingest.store import Stored
from perfdb.record import Finding, Outcome
from perfdb.units import counted

MOST_NAMED = 5
"""Files that are named, of those skipped and of duplicates."""


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


@dataclass(frozen=True)
class Report:
    """What became of all that was read: how many results, and what was rejected.

    `withdrawn` counts results that an edited page no longer states; `nameless` holds those without
    a release, and those of logs that lack a part of their case. `findings` are those of every
    release that anything was read of, by an audit of its current results.
    """

    new: int = 0
    revised: int = 0
    unchanged: int = 0
    withdrawn: int = 0
    rejected: tuple[Diagnostic, ...] = ()
    still_running: tuple[str, ...] = ()
    """The run directories that are left alone, because their runners are at work."""
    nameless: tuple[Nameless, ...] = ()
    notes: tuple[Diagnostic, ...] = ()
    findings: tuple[Finding, ...] = ()
    without_figures: Mapping[tuple[Action, Outcome], int] = field(default_factory=dict)
    """How many runs of each action and outcome have none."""
    unknown: tuple[str, ...] = ()
    """The files in folders that are logs by their names and that no format knows.

    And the pages whose tables look like figures, and are not read; and links to other folders.
    """
    duplicates: tuple[Duplicate, ...] = ()
    completed: tuple[Completed, ...] = ()

    @property
    def unattributed(self) -> tuple[str, ...]:
        """Where the nameless results are: those of one file that lack the same in one line."""
        groups = grouped(self.nameless, lambda one: (one.path, one.reason))
        return tuple(_place(path, reason, found) for (path, reason), found in groups.items())

    @property
    def failed(self) -> bool:
        """Whether anything was rejected."""
        return bool(self.rejected)


@dataclass
class Tally:
    """Counts what becomes of sources, one after the other.

    `unused_options`: the options that apply to pages and logs, and not to run directories.
    """

    unused_options: tuple[str, ...] = ()
    notes: list[Diagnostic] = field(default_factory=list)
    run_ids: set[str] = field(default_factory=set)
    paths: set[str] = field(default_factory=set)
    """The runs and the files that results were read of: their releases are to be audited."""
    read: set[str] = field(default_factory=set)
    """The keys of published results, and the ids of runs, that were read."""
    _actions: Counter[Action] = field(default_factory=Counter)
    _withdrawn: int = 0
    _rejected: list[Diagnostic] = field(default_factory=list)
    _run_dirs: list[str] = field(default_factory=list)
    _nameless: list[Nameless] = field(default_factory=list)
    _without_figures: Counter[tuple[Action, Outcome]] = field(default_factory=Counter)
    _skipped: dict[str, list[str]] = field(default_factory=dict)
    _duplicates: list[Duplicate] = field(default_factory=list)
    _completed: list[Completed] = field(default_factory=list)

    def count(self, stored: Stored) -> None:
        """Add what became of a source."""
        read = stored.read
        self._actions.update(stored.actions)
        self._withdrawn += stored.withdrawn
        self._rejected += stored.problems
        self._nameless += _nameless(stored)
        if stored.same_as:
            self._duplicates.append(Duplicate(read.path, stored.same_as))
        else:
            self.notes += (*notes_of(read), *stored.notes)
        if isinstance(read, RunRead | PageRows) and read.companions:
            self._completed.append(Completed(read.path, read.companions))
        if isinstance(read, RunRead | Unchanged):
            self._count_run(read, stored.actions)
        elif isinstance(read, PageRows):
            self.paths.add(read.path)
            self.read.update(row.key for row in read.rows)
        elif isinstance(read, Unattributed):
            self.read.update(filter(None, [read.run_id]))
        elif isinstance(read, Skipped) or (isinstance(read, Rejected) and read.notes):
            reason = read.reason if isinstance(read, Skipped) else "not read"
            self._skipped.setdefault(reason, []).append(read.path)

    def report(self, findings: Sequence[Finding], *, withdrawn_runs: int = 0) -> Report:
        """All that was counted."""
        return Report(
            new=self._actions[Action.NEW],
            revised=self._actions[Action.REVISED],
            unchanged=self._actions[Action.UNCHANGED],
            withdrawn=self._withdrawn + withdrawn_runs,
            rejected=tuple(self._rejected),
            still_running=tuple(self._skipped.get("running", ())),
            nameless=tuple(self._nameless),
            notes=tuple(self._all_notes()),
            findings=tuple(findings),
            without_figures=dict(self._without_figures),
            unknown=tuple(
                path
                for reason in ("unknown", "not read", "linked")
                for path in self._skipped.get(reason, ())
            ),
            duplicates=tuple(self._duplicates),
            completed=tuple(self._completed),
        )

    def _count_run(self, read: RunRead | Unchanged, actions: Sequence[Action]) -> None:
        self.run_ids.add(read.run_id)
        self.read.add(read.run_id)
        if isinstance(read, Unchanged) or not read.is_log:
            self._run_dirs.append(read.path)
        if isinstance(read, RunRead) and read.run.result.withheld is not None:
            outcome = read.run.result.outcome
            self._without_figures.update((action, outcome) for action in actions)

    def _all_notes(self) -> Iterator[Diagnostic]:
        yield from _of_completed(self._completed)
        yield from self.notes
        if self.unused_options and self._run_dirs:
            many = f"{len(self._run_dirs):,} run directories, which say"
            runs = many if len(self._run_dirs) > 1 else "a run directory, which says"
            message = f"{', '.join(self.unused_options)}: not taken for {runs} what was run"
            yield Diagnostic(_around(self._run_dirs), message)
        yield from _of_duplicates(self._duplicates)
        for reason, note in _SKIPPED.items():
            if paths := self._skipped.get(reason):
                yield note(paths)


def _of_completed(completed: Sequence[Completed]) -> Iterator[Diagnostic]:
    """One note on the files that were read with logs; a single one is named."""
    if len(completed) > 1:
        message = f"{len(completed):,} logs completed by files beside them"
        around = _around([one.path for one in completed])
        yield Diagnostic(around, message, remedy="--json names each")
        return
    for one in completed:
        for path in one.by:
            yield Diagnostic(path, f"says what {Path(one.path).name} was")


def _of_duplicates(found: Sequence[Duplicate]) -> Iterator[Diagnostic]:
    if len(found) > MOST_NAMED:
        message = f"{len(found):,} logs are those of run directories, and stored once"
        around = _around([one.path for one in found])
        yield Diagnostic(around, message, remedy="--json names each")
        return
    for one in found:
        yield Diagnostic(one.path, f"the same log as {one.same_as}: it is stored once")


def _of_made(paths: Sequence[str]) -> Diagnostic:
    message = f"passed over {counted(len(paths), 'page')} that perfdb has made from a store"
    return Diagnostic(_around(paths), message, remedy="name a page to read it")


def _of_unknown(paths: Sequence[str]) -> Diagnostic:
    what = "a log" if len(paths) == 1 else f"{len(paths):,} logs"
    message = f"passed over {what} in which no format finds a result: {_named(paths)}"
    return Diagnostic(_around(paths), message, remedy="--json names each")


def _of_linked(paths: Sequence[str]) -> Diagnostic:
    what = "a link to a folder" if len(paths) == 1 else f"{len(paths):,} links to folders"
    message = f"passed over {what}: {_named(paths)}"
    return Diagnostic(_around(paths), message, remedy="name the folder to read what it holds")


_SKIPPED: Mapping[str, Callable[[Sequence[str]], Diagnostic]] = {
    "made": _of_made,
    "unknown": _of_unknown,
    "linked": _of_linked,
}


def _named(paths: Sequence[str]) -> str:
    return ", ".join(paths[:MOST_NAMED]) + (", …" if len(paths) > MOST_NAMED else "")


def _around(paths: Sequence[str]) -> str:
    """The folder or the archive that files are in, or the one that there is."""
    is_mixed = len({Path(path).is_absolute() for path in paths}) > 1
    common = os.path.commonpath(map(os.path.abspath, paths) if is_mixed else paths)
    return common.removesuffix("!") or "."


def _nameless(stored: Stored) -> Iterator[Nameless]:
    read, path = stored.read, stored.read.path
    if stored.known:
        return
    if isinstance(read, Unattributed):
        yield Nameless(path, read.problem.line, "", read.problem.reason, read.missing)
    of_directory = isinstance(read, RunRead) and not read.is_log
    remedy = "fill in release.version in its run.json" if of_directory else "pass --release"
    for row in results_of(read):
        if row.release.version is None:
            subject, why = f"{row.case.model} on {row.case.system} ", f"names no release; {remedy}"
            yield Nameless(path, row.source_line, subject, why, ("release",))


def _place(path: str, reason: str, found: Sequence[Nameless]) -> str:
    """'page.md:7–9: each of 3 results names no release; …', or the one that it is by its case."""
    lines = sorted({one.line for one in found if one.line})
    place = f"{path}:{'–'.join(map(str, dict.fromkeys((lines[0], lines[-1]))))}" if lines else path
    subject = found[0].subject if len(found) == 1 else f"each of {len(found)} results "
    return f"{place}: {subject}{reason}"
