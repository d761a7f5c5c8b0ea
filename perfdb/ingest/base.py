"""What was read of a source: a run, the rows of a page, or why there is nothing to store."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from perfdb.db.rows import MeasuredRun, ResultRow, RunFiles, SourceFile
from perfdb.errors import Diagnostic
from perfdb.record import Original

PAGE: Final = "page"
"""The name of the parser of pages, whatever their markup."""


@dataclass(frozen=True)
class RunRead:
    """A run, ready to be stored.

    `explicit` is false for a log without options: those of an earlier ingest of the same bytes
    then stay. `window` is the one that its figures were asked over, by its name.
    """

    path: str
    run: MeasuredRun
    files: RunFiles
    notes: tuple[Diagnostic, ...] = ()
    explicit: bool = True
    window: str | None = None
    companions: tuple[str, ...] = ()
    """The files next to a log that state what it is of."""

    @property
    def run_id(self) -> str:
        """The id of the run."""
        return self.run.run.run_id

    @property
    def is_log(self) -> bool:
        """Whether it was read from a log; else from a run directory."""
        return self.run.run.recipe is None


@dataclass(frozen=True)
class Unchanged:
    """A run directory that is in the store already, read from these very bytes."""

    path: str
    run_id: str
    withdrawn: str | None
    """Why it was withdrawn, if it was."""


@dataclass(frozen=True)
class PageRows:
    """A page's rows, ready to be stored, those that are not, and what was not understood.

    `whole` is false where the file has more results than are known to be of a case; `explicit` as
    of a run; `emptied` is true of a page that the user named and that has no result, so that all
    that was read from it is withdrawn, for this `reason`.
    """

    source: SourceFile
    rows: tuple[ResultRow, ...]
    problems: tuple[Diagnostic, ...] = ()
    notes: tuple[Diagnostic, ...] = ()
    whole: bool = True
    explicit: bool = True
    emptied: bool = False
    reason: str = ""
    original: Original = field(default_factory=Original)
    companions: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """Where the page is."""
        return self.source.path


@dataclass(frozen=True)
class Rejected:
    """A source of which nothing is stored, and why.

    `notes`: why the tables of a file in a folder are not read, though they look like figures.
    """

    path: str
    problems: tuple[Diagnostic, ...]
    notes: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True)
class Skipped:
    """What is not read: a run that is `running`, a page that perfdb has `made` itself, a log by its
    name that no format knows (`unknown`), or a link to a folder (`linked`).
    """

    path: str
    reason: Literal["running", "made", "unknown", "linked"]


@dataclass(frozen=True)
class Unattributed:
    """A result of a log that lacks a part of its case; the bytes are kept until it is known.

    `run_id` is that of its run; None: it is the line of a file that sums up. `missing` names the
    fields that somebody has to state.
    """

    source: SourceFile
    problem: Diagnostic
    run_id: str | None
    explicit: bool
    missing: tuple[str, ...] = ()
    notes: tuple[Diagnostic, ...] = ()

    @property
    def path(self) -> str:
        """Where the log is."""
        return self.source.path


Read = RunRead | Unchanged | PageRows | Skipped | Unattributed | Rejected


def rejected(path: str, message: str, remedy: str | None = None) -> Rejected:
    """A source of which nothing is stored, for one reason."""
    return Rejected(path, (Diagnostic(path, message, remedy=remedy),))


def results_of(read: Read) -> Sequence[ResultRow]:
    """The results of a source."""
    if isinstance(read, RunRead):
        return (read.run.result,)
    return read.rows if isinstance(read, PageRows) else ()


def problems_of(read: Read) -> Sequence[Diagnostic]:
    """What of a source is rejected."""
    return read.problems if isinstance(read, PageRows | Rejected) else ()


def notes_of(read: Read) -> Sequence[Diagnostic]:
    """What of a source is kept but not understood."""
    return () if isinstance(read, Unchanged | Skipped) else read.notes
