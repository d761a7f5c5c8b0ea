"""What was read from a source: a run, the rows of a page, or why there is nothing to store."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from perfdb.db.rows import MeasuredRun, ResultRow, RunFiles, SourceFile
from perfdb.errors import Diagnostic
from perfdb.record import Original

PAGE: Final = "page"
"""The name of the parser of pages, whatever their markup."""

RUN_DIRECTORY: Final = "run directory"
"""The name of the parser of run directories."""

PAGE_PARSER_VERSION: Final = 16
LOG_PARSER_VERSION: Final = 15
RUN_PARSER_VERSION: Final = 3
"""Stored with each file; raised when perfdb reads something else from the same bytes."""


@dataclass(frozen=True)
class Read:
    """A source, by the path that it is stored under, what of it is rejected, and notes on it."""

    path: str
    problems: tuple[Diagnostic, ...] = ()
    notes: tuple[Diagnostic, ...] = ()

    @property
    def results(self) -> Sequence[ResultRow]:
        """The results to store."""
        return ()


@dataclass(frozen=True, kw_only=True)
class RunRead(Read):
    """A run to store.

    `explicit` is false for a log without options: those of an earlier ingest of the same bytes
    then stay. `window` is the name of the window that was asked for. `companions` are the paths of
    the files next to a log that state what it is of.
    """

    run: MeasuredRun
    files: RunFiles
    explicit: bool = True
    window: str | None = None
    companions: tuple[str, ...] = ()

    @property
    def results(self) -> Sequence[ResultRow]:
        """The result of the run."""
        return (self.run.result,)

    @property
    def run_id(self) -> str:
        """The id of the run."""
        return self.run.run.run_id

    @property
    def is_log(self) -> bool:
        """Whether it was read from a log; else from a run directory."""
        return self.run.run.recipe is None


@dataclass(frozen=True, kw_only=True)
class Unchanged(Read):
    """A run directory that the store has from these bytes; `withdrawn` is why, if it is."""

    run_id: str
    withdrawn: str | None


@dataclass(frozen=True, kw_only=True)
class PageRows(Read):
    """The rows of a page or of a file of results.

    `whole` is false where the file has more results than are attributed to a case. `as_before` has
    the keys of rows that no option concerns: an earlier reading of the same bytes, maybe with
    options, stays. `emptied`: the user named a page without results, so that all that was read from
    it is withdrawn, for this `reason`. `beside`: the files next to it that state what it is of.
    """

    source: SourceFile
    rows: tuple[ResultRow, ...]
    whole: bool = True
    as_before: frozenset[str] = frozenset()
    emptied: bool = False
    reason: str = ""
    original: Original = field(default_factory=Original)
    companions: tuple[str, ...] = ()
    beside: tuple[SourceFile, ...] = ()

    @property
    def results(self) -> Sequence[ResultRow]:
        """The results of the page."""
        return self.rows


@dataclass(frozen=True)
class Rejected(Read):
    """A source of which nothing is stored, and why.

    Its notes are why tables of a file in a folder are not read, though they look like figures.
    """


@dataclass(frozen=True, kw_only=True)
class Skipped(Read):
    """What is not read: a run that is still `running`, a page that perfdb `made` itself, a log by
    its name that no format recognizes (`unknown`), or a link to a folder (`linked`).
    """

    reason: Literal["running", "made", "unknown", "linked"]


@dataclass(frozen=True, kw_only=True)
class Unattributed(Read):
    """A result of a log that lacks a part of its case; its bytes are kept until it is known.

    `run_id` is None for a line of a file that sums up. `missing` names the fields that the user
    has to state.
    """

    source: SourceFile
    problem: Diagnostic
    run_id: str | None
    explicit: bool
    missing: tuple[str, ...] = ()


def rejected(path: str, message: str, remedy: str | None = None) -> Rejected:
    """A source that is rejected for one reason."""
    return Rejected(path, (Diagnostic(path, message, remedy=remedy),))
