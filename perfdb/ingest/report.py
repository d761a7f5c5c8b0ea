"""What became of all that was read: counted while it is stored, so that nothing else is held."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from perfdb.audit import Finding
from perfdb.db.rows import Action, MeasuredRun
from perfdb.errors import Problem
from perfdb.ingest.put import Stored, reason
from perfdb.ingest.read import (
    STILL_RUNNING,
    PageRows,
    PassedOver,
    Rejected,
    RunRead,
    Unattributed,
    Unchanged,
    notes_of,
    path_of,
    results_of,
)
from perfdb.record import Outcome


@dataclass(frozen=True)
class Report:
    """What became of all that was read: how many results, and what was rejected.

    `withdrawn` counts results that an edited page no longer states; `unattributed` says where the
    results are whose release nobody stated, and the logs of which nobody said what they are of:
    `num_unattributed` of them, those of one file together. `findings` are those of every release
    that anything was read of, by an audit of its results in force.
    """

    new: int = 0
    revised: int = 0
    unchanged: int = 0
    withdrawn: int = 0
    rejected: tuple[Problem, ...] = ()
    unattributed: tuple[str, ...] = ()
    num_unattributed: int = 0
    notes: tuple[Problem, ...] = ()
    findings: tuple[Finding, ...] = ()
    without_figures: Mapping[tuple[Action, Outcome], int] = field(default_factory=dict)
    """How many runs of each action and outcome have none."""

    @property
    def failed(self) -> bool:
        """Whether anything was rejected; a run that is still at work is not a failure."""
        return any(problem.message != STILL_RUNNING for problem in self.rejected)


@dataclass(frozen=True)
class _Nameless:
    """A result that lacks a release, or more: where it stands and what is to be said of it."""

    subject: str
    line: int | None


@dataclass
class Tally:
    """Counts what becomes of sources, one after the other."""

    actions: dict[Action, int] = field(default_factory=dict)
    withdrawn: int = 0
    fallen_back: int = 0
    rejected: list[Problem] = field(default_factory=list)
    nameless: dict[tuple[str, str], list[_Nameless]] = field(default_factory=dict)
    notes: list[Problem] = field(default_factory=list)
    run_ids: set[str] = field(default_factory=set)
    paths: set[str] = field(default_factory=set)
    """The runs and the files that results were read of: their releases are to be audited."""
    without_figures: Counter[tuple[Action, Outcome]] = field(default_factory=Counter)
    generated: list[str] = field(default_factory=list)
    """The pages that perfdb has made itself."""

    def count(self, stored: Stored) -> None:
        """Add what became of a source."""
        for action in stored.actions:
            self.actions[action] = self.actions.get(action, 0) + 1
        self.withdrawn += stored.withdrawn
        self.fallen_back += sum(stored.fell_back.values())
        self.rejected += stored.problems
        self.notes += (*notes_of(stored.read), *stored.notes, *_fell_back(stored))
        for why, one in _nameless(stored):
            self.nameless.setdefault((path_of(stored.read), why), []).append(one)
        match stored.read:
            case RunRead() as read:
                self._count_run(read.run, stored.actions)
            case Unchanged() as read:
                self.run_ids.add(read.run_id)
            case PageRows() as read:
                self.paths.add(read.source.path)
            case PassedOver() as read:
                self.generated.append(read.path)
            case Unattributed() | Rejected():
                pass

    def _count_run(self, run: MeasuredRun, actions: Iterable[Action]) -> None:
        self.run_ids.add(run.run.run_id)
        if run.result.withheld is not None:
            self.without_figures.update((action, run.result.outcome) for action in actions)

    def report(self, findings: Sequence[Finding]) -> Report:
        """All that was counted."""
        return Report(
            new=self.actions.get(Action.NEW, 0),
            revised=self.actions.get(Action.REVISED, 0) + self.fallen_back,
            unchanged=self.actions.get(Action.UNCHANGED, 0),
            withdrawn=self.withdrawn,
            rejected=tuple(self.rejected),
            unattributed=tuple(_told(*place, found) for place, found in self.nameless.items()),
            num_unattributed=sum(map(len, self.nameless.values())),
            notes=(*self.notes, *_passed_over(self.generated)),
            findings=tuple(findings),
            without_figures=dict(self.without_figures),
        )


def _passed_over(paths: Sequence[str]) -> Iterator[Problem]:
    if paths:
        what = "1 page" if len(paths) == 1 else f"{len(paths):,} pages"
        message = f"passed over {what} that perfdb has made from a store"
        yield Problem(os.path.commonpath(paths), message, remedy="name a page to read it")


def _fell_back(stored: Stored) -> Iterator[Problem]:
    for other, count in stored.fell_back.items():
        what = "1 result is" if count == 1 else f"{count} results are"
        message = f"{what} no longer stated here; what {other} states holds"
        yield Problem(path_of(stored.read), message)


def _nameless(stored: Stored) -> Iterator[tuple[str, _Nameless]]:
    read = stored.read
    if stored.known:
        return
    if isinstance(read, Unattributed):
        yield reason(read.problem), _Nameless("", read.problem.line)
    for row in results_of(read):
        if row.release.version is None:
            subject = f"{row.case.model} on {row.case.system} "
            yield "names no release; pass --release", _Nameless(subject, row.source_line)


def _told(path: str, why: str, found: Sequence[_Nameless]) -> str:
    """'page.md:7–9: each of 3 results names no release; …', or the one that it is by its case."""
    lines = sorted({one.line for one in found if one.line})
    place = f"{path}:{'–'.join(map(str, dict.fromkeys((lines[0], lines[-1]))))}" if lines else path
    subject = found[0].subject if len(found) == 1 else f"each of {len(found)} results "
    return f"{place}: {subject}{why}"
