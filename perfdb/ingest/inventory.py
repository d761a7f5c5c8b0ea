"""Lists what an archive holds before any of it is read: what to read, and what is refused, and why.

The small files that may say what the logs beside them are of are taken out on the way.
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final

from perfdb.errors import ArchiveError, Diagnostic
from perfdb.groups import grouped
from perfdb.ingest import companions, names
from perfdb.ingest.compression import Budget
from perfdb.ingest.find import is_looked_at
from perfdb.ingest.members import SPECIAL, Member, members
from perfdb.rundir import RECORD
from perfdb.units import counted

MOST_LISTED: Final = 20
"""Members that are refused one by one."""


@dataclass
class Inventory:
    """The members of an archive: those to read, those that are refused with the reason, and runs.

    `runs` has the members of each run directory by its path. `broken` says why the list ends before
    the archive does.
    """

    wanted: set[str] = field(default_factory=set)
    refused: dict[str, str] = field(default_factory=dict)
    runs: Mapping[PurePosixPath, Sequence[str]] = field(default_factory=dict)
    broken: Diagnostic | None = None

    def problems(self, archive: str) -> Iterator[Diagnostic]:
        """What is refused, each named after the member, and what is wrong with the archive."""
        for name, reason in list(self.refused.items())[:MOST_LISTED]:
            yield Diagnostic(f"{archive}!/{names.shown(name)}", reason)
        if (rest := len(self.refused) - MOST_LISTED) > 0:
            are = "is" if rest == 1 else "are"
            yield Diagnostic(archive, f"{counted(rest, 'more member')} {are} refused")
        if self.broken:
            yield self.broken


def listed(path: Path, folder: Path, budget: Budget) -> Inventory:
    """The inventory of an archive, with the companions of logs written below a folder.

    Raises ArchiveError for an archive that holds more than the budget.
    """
    found, last = Inventory(), ""
    try:
        for member in members(path, budget):
            last = member.name
            _meet(found, member, folder)
    except ArchiveError as error:
        if budget.is_spent:
            raise
        found.broken = error.problems[0]
    found.wanted -= found.refused.keys()
    paths = map(PurePosixPath, (*found.wanted, *found.refused))
    roots = {path.parent for path in paths if path.name == RECORD}
    by_run = grouped(found.wanted, lambda name: run_of(name, roots))
    found.runs = {root: names for root, names in by_run.items() if root}
    for root in {run_of(name, roots) for name in found.refused}:
        _refuse(found, root, "a file of the run is refused")
    if found.broken:
        _refuse(found, run_of(last, roots), "the archive ends in this run")
    return found


def run_of(name: str, roots: Container[PurePosixPath]) -> PurePosixPath | None:
    """The innermost run directory that a member lies in."""
    return next((folder for folder in PurePosixPath(name).parents if folder in roots), None)


def taken_out(member: Member, folder: Path) -> str | None:
    """Write a member below a folder; the answer says why that cannot be done."""
    path = folder / member.name
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            for chunk in member.content():
                file.write(chunk)
        return None
    except ArchiveError as error:
        path.unlink(missing_ok=True)
        return error.problems[0].message
    except OSError as error:
        return f"cannot be taken out: {error.strerror}"


def is_companion(name: str) -> bool:
    """Whether a member may say what the logs beside it are of: it is kept until the end."""
    return PurePosixPath(name).suffix.lower() in companions.SUFFIXES


def _meet(found: Inventory, member: Member, folder: Path) -> None:
    name, fault = member.name, names.member_fault(member.name)
    looked_at = is_looked_at(PurePosixPath(name))
    if fault or (member.fault and (looked_at or member.fault == SPECIAL)):
        found.refused[name] = fault or member.fault or ""
    elif looked_at and name in found.wanted:
        found.refused[name] = "twice in the archive; nobody says which is right"
    elif looked_at:
        found.wanted.add(name)
        small = member.size_bytes <= companions.MOST_BYTES
        if is_companion(name) and small and (fault := taken_out(member, folder)):
            found.refused[name] = fault


def _refuse(found: Inventory, root: PurePosixPath | None, reason: str) -> None:
    """Refuse a run directory whole: what is left of it is not what ran."""
    if root and root in found.runs:
        found.wanted.difference_update(found.runs[root])
        found.runs = {one: names for one, names in found.runs.items() if one != root}
        found.refused[str(root)] = reason
