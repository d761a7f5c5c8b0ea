"""What became of all that was read: counted while it is stored, so that nothing else is held."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from perfdb.db.ingest_log import Action
from perfdb.db.rows import MeasuredRun
from perfdb.errors import Diagnostic
from perfdb.groups import grouped
from perfdb.ingest.put import Stored
from perfdb.ingest.read import (
    PageRows,
    PassedOver,
    Read,
    Rejected,
    RunRead,
    StillRunning,
    Unattributed,
    Unchanged,
    notes_of,
    results_of,
)
from perfdb.ingest.twice import Twin
from perfdb.record import Finding, Outcome

MOST_NAMED = 5
"""Files that are named, of those passed over and of those that tell of the same run as others."""


@dataclass(frozen=True)
class Nameless:
    """A result whose release nobody states, or of which more is missing, and where it stands."""

    path: str
    line: int | None
    subject: str
    reason: str
    missing: tuple[str, ...]


@dataclass(frozen=True)
class Completed:
    """A log, and the files beside it that say what it is of."""

    path: str
    by: tuple[str, ...]


@dataclass(frozen=True)
class Duplicate:
    """A log that tells of the run that another one has told of."""

    path: str
    same_as: str


@dataclass(frozen=True)
class Report:
    """What became of all that was read: how many results, and what was rejected.

    `withdrawn` counts results that an edited page no longer states; `nameless` holds those whose
    release nobody stated, and those of logs of which nobody said what they are of. `findings` are
    those of every release that anything was read of, by an audit of its results in force.
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
    """The files met in folders that are logs by their names, and that no format knows.

    And the pages whose tables look like figures, and are not read; and links to other folders.
    """
    duplicates: tuple[Duplicate, ...] = ()
    completed: tuple[Completed, ...] = ()

    @property
    def unattributed(self) -> tuple[str, ...]:
        """Where the nameless results are, those of one file together."""
        return tuple(_together(self.nameless))

    @property
    def num_unattributed(self) -> int:
        """How many results lack a release, or more."""
        return len(self.nameless)

    @property
    def failed(self) -> bool:
        """Whether anything was rejected."""
        return bool(self.rejected)


@dataclass
class Tally:
    """Counts what becomes of sources, one after the other.

    `not_taken`: the options given that apply to pages and logs, and not to run directories.
    """

    not_taken: tuple[str, ...] = ()
    actions: Counter[Action] = field(default_factory=Counter)
    withdrawn: int = 0
    fallen_back: int = 0
    rejected: list[Diagnostic] = field(default_factory=list)
    still_running: list[str] = field(default_factory=list)
    run_dirs: list[str] = field(default_factory=list)
    nameless: list[Nameless] = field(default_factory=list)
    notes: list[Diagnostic] = field(default_factory=list)
    run_ids: set[str] = field(default_factory=set)
    paths: set[str] = field(default_factory=set)
    """The runs and the files that results were read of: their releases are to be audited."""
    without_figures: Counter[tuple[Action, Outcome]] = field(default_factory=Counter)
    generated: list[str] = field(default_factory=list)
    """The pages that perfdb has made itself."""
    unknown: list[str] = field(default_factory=list)
    linked: list[str] = field(default_factory=list)
    """The links to folders that are searched nowhere."""
    not_read: list[str] = field(default_factory=list)
    """The pages of tables that look like figures and are not read; notes say why."""
    read: set[str] = field(default_factory=set)
    """The keys of published results, and the ids of runs, that were read."""
    twins: list[Twin] = field(default_factory=list)
    """Of the logs that tell of runs which other logs have told of."""
    completed: list[Completed] = field(default_factory=list)

    def count(self, stored: Stored) -> None:
        """Add what became of a source."""
        self.actions.update(stored.actions)
        self.withdrawn += stored.withdrawn
        self.fallen_back += sum(stored.fell_back.values())
        self.twins += [stored.twin] if stored.twin else []
        self.completed += _completed(stored.read)
        self.rejected += stored.problems
        self.notes += (*notes_of(stored.read), *stored.notes, *_fell_back(stored))
        self.nameless += _nameless(stored)
        match stored.read:
            case RunRead() as read:
                self.run_dirs += [read.path] if read.run.run.recipe is not None else []
                self._count_run(read.run, stored.actions)
            case Unchanged() as read:
                self.run_dirs.append(read.path)
                self.run_ids.add(read.run_id)
                self.read.add(read.run_id)
            case StillRunning() as read:
                self.still_running.append(read.path)
            case PageRows() as read:
                self.paths.add(read.source.path)
                self.read.update(row.key for row in read.rows)
            case PassedOver() as read:
                self._passed_over[read.why].append(read.path)
            case Unattributed() as read:
                self.read.update(filter(None, [read.run_id]))
            case Rejected() as read:
                self.not_read += [read.path] if read.notes else []

    @property
    def _passed_over(self) -> Mapping[str, list[str]]:
        return {"made": self.generated, "unknown": self.unknown, "linked": self.linked}

    def _count_run(self, run: MeasuredRun, actions: Iterable[Action]) -> None:
        self.run_ids.add(run.run.run_id)
        self.read.add(run.run.run_id)
        if run.result.withheld is not None:
            self.without_figures.update((action, run.result.outcome) for action in actions)

    def report(self, findings: Sequence[Finding]) -> Report:
        """All that was counted."""
        return Report(
            new=self.actions[Action.NEW],
            revised=self.actions[Action.REVISED] + self.fallen_back,
            unchanged=self.actions[Action.UNCHANGED],
            withdrawn=self.withdrawn,
            rejected=tuple(self.rejected),
            still_running=tuple(self.still_running),
            nameless=tuple(self.nameless),
            notes=(
                *_beside(self.completed),
                *self.notes,
                *_not_taken(self.not_taken, self.run_dirs),
                *_of_twins(self.twins),
                *_passed_over(self.generated),
                *_unknown(self.unknown),
                *_linked(self.linked),
            ),
            findings=tuple(findings),
            without_figures=dict(self.without_figures),
            unknown=(*self.unknown, *self.not_read, *self.linked),
            duplicates=tuple(Duplicate(one.note.where, one.path) for one in self.twins),
            completed=tuple(self.completed),
        )


def _not_taken(options: Sequence[str], run_dirs: Sequence[str]) -> Iterator[Diagnostic]:
    """A note that these options do not apply to the run directories that were read."""
    if options and run_dirs:
        many = f"{len(run_dirs):,} run directories, which say"
        runs = many if len(run_dirs) > 1 else "a run directory, which says"
        yield Diagnostic(
            _around(run_dirs), f"{', '.join(options)}: not taken for {runs} what was run"
        )


def _of_twins(twins: Sequence[Twin]) -> Iterator[Diagnostic]:
    if len(twins) <= MOST_NAMED:
        yield from (one.note for one in twins)
        return
    message = f"{len(twins):,} logs tell of the same runs as other logs"
    yield Diagnostic(
        _around([one.note.where for one in twins]), message, remedy="--json names each"
    )


def _completed(read: Read) -> list[Completed]:
    by = read.beside if isinstance(read, RunRead | PageRows) else ()
    return [Completed(read.path, by)] if by else []


def _beside(completed: Sequence[Completed]) -> Iterator[Diagnostic]:
    """One note on the files that were read with logs; a single one is named."""
    if len(completed) > 1:
        message = f"{len(completed):,} logs completed by files beside them"
        yield Diagnostic(
            _around([one.path for one in completed]), message, remedy="--json names each"
        )
    else:
        said = ((path, Path(one.path).name) for one in completed for path in one.by)
        yield from (Diagnostic(path, f"says what {name} was") for path, name in said)


def _passed_over(paths: Sequence[str]) -> Iterator[Diagnostic]:
    if paths:
        what = "1 page" if len(paths) == 1 else f"{len(paths):,} pages"
        message = f"passed over {what} that perfdb has made from a store"
        yield Diagnostic(_around(paths), message, remedy="name a page to read it")


def _unknown(paths: Sequence[str]) -> Iterator[Diagnostic]:
    if paths:
        what = "a log" if len(paths) == 1 else f"{len(paths):,} logs"
        message = f"passed over {what} in which no format finds a result: {_named(paths)}"
        yield Diagnostic(_around(paths), message, remedy="--json names each")


def _linked(paths: Sequence[str]) -> Iterator[Diagnostic]:
    if paths:
        what = "a link to a folder" if len(paths) == 1 else f"{len(paths):,} links to folders"
        message = f"passed over {what}: {_named(paths)}"
        yield Diagnostic(_around(paths), message, remedy="name the folder to read what it holds")


def _named(paths: Sequence[str]) -> str:
    return ", ".join(paths[:MOST_NAMED]) + (", …" if len(paths) > MOST_NAMED else "")


def _around(paths: Sequence[str]) -> str:
    """The folder or the archive that files are in, or the one that there is."""
    is_mixed = len({Path(path).is_absolute() for path in paths}) > 1
    common = os.path.commonpath(map(os.path.abspath, paths) if is_mixed else paths)
    return common.removesuffix("!") or "."


def _fell_back(stored: Stored) -> Iterator[Diagnostic]:
    for other, count in stored.fell_back.items():
        what = "1 result is" if count == 1 else f"{count} results are"
        yield Diagnostic(
            stored.read.path, f"{what} no longer stated here; what {other} states holds"
        )


def _nameless(stored: Stored) -> Iterator[Nameless]:
    read, path = stored.read, stored.read.path
    if stored.known:
        return
    if isinstance(read, Unattributed):
        yield Nameless(path, read.problem.line, "", read.problem.reason, read.missing)
    of_directory = isinstance(read, RunRead) and read.run.run.recipe is not None
    remedy = "fill in release.version in its run.json" if of_directory else "pass --release"
    for row in results_of(read):
        if row.release.version is None:
            subject, why = f"{row.case.model} on {row.case.system} ", f"names no release; {remedy}"
            yield Nameless(path, row.source_line, subject, why, ("release",))


def _together(nameless: Iterable[Nameless]) -> Iterator[str]:
    """Those of one file that lack the same in one line."""
    for (path, why), found in grouped(nameless, lambda one: (one.path, one.reason)).items():
        yield _told(path, why, found)


def _told(path: str, why: str, found: Sequence[Nameless]) -> str:
    """'page.md:7–9: each of 3 results names no release; …', or the one that it is by its case."""
    lines = sorted({one.line for one in found if one.line})
    place = f"{path}:{'–'.join(map(str, dict.fromkeys((lines[0], lines[-1]))))}" if lines else path
    subject = found[0].subject if len(found) == 1 else f"each of {len(found)} results "
    return f"{place}: {subject}{why}"
