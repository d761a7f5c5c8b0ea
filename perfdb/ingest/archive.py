"""Reads archives as the trees they hold, without ever holding or unpacking one whole.

An archive is gone through twice: once to list it, and once to take out one log or page after
another, and each run directory when its last file has come, to read it and to delete it again.
"""

import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from perfdb.errors import ArchiveError, Diagnostic
from perfdb.ingest.compression import Budget
from perfdb.ingest.find import Source, file, run
from perfdb.ingest.inventory import Inventory, listed, run_of, taken_out
from perfdb.ingest.members import Member, members
from perfdb.ingest.read import Read, Rejected
from perfdb.ingest.relocate import Place

MOST_DEEP: Final = 2
"""An archive may hold archives, but those none."""

Reader = Callable[[Source], Iterable[Read]]
Meeting = Callable[[Path], None]


def reads(
    source: Source, budget: Budget, read: Reader, meet: Meeting, scratch: Path | None = None
) -> Iterator[Read]:
    """All that an archive holds, each source named `ARCHIVE!/PATH`.

    `read` reads a source that was taken out; `meet` is told before of each that will be. What
    cannot be read is refused by its name, and the rest is read all the same. Nothing is written but
    into a temporary folder, below `scratch` if it is given. Raises ArchiveError for an archive that
    holds more than the budget.
    """
    where = str(source.path)
    with tempfile.TemporaryDirectory(prefix="perfdb-", dir=scratch) as name:
        place = Place(Path(name), where)
        found = listed(source.path, place.folder, budget)
        for problem in found.problems(where):
            yield Rejected(problem.where, (problem,))
        for member in found.wanted:
            meet(place.folder / member)
        again = replace(budget, unpacked_bytes=0, num_members=0)
        for one in _Unpacking(found, place.folder, read).reads(source.path, again):
            yield place.read(one)
    if source.named and not found.wanted and not found.refused and not found.broken:
        message = "the archive holds no run directory, page or log"
        yield Rejected(where, (Diagnostic(where, message),))


def too_deep(source: Source) -> Rejected:
    """The refusal of an archive in an archive in an archive."""
    where = str(source.path)
    message = "an archive in an archive in an archive is not read"
    return Rejected(where, (Diagnostic(where, message, remedy="unpack the outer one"),))


class _Unpacking:
    """The second time that an archive is gone through."""

    def __init__(self, found: Inventory, folder: Path, read: Reader) -> None:
        self._found = found
        self._folder = folder
        self._read = read
        self._come: Counter[object] = Counter()

    def reads(self, path: Path, budget: Budget) -> Iterator[Read]:
        """All that is to be read, in the order of the archive."""
        try:
            for member in members(path, budget):
                if member.name in self._found.wanted:
                    yield from self._reads_of(member)
        except ArchiveError:
            return  # where its members end was told when they were listed

    def _reads_of(self, member: Member) -> Iterator[Read]:
        path = self._folder / member.name
        is_kept = path.is_file()
        fault = None if is_kept else taken_out(member, self._folder)
        root = run_of(member.name, self._found.runs)
        if fault:
            yield Rejected(str(path), (Diagnostic(str(path), fault),))
        elif root is None:
            yield from self._read(file(path, named=False))
            if not is_kept:
                path.unlink()
        else:
            self._come[root] += 1
            names = self._found.runs[root]
            if self._come[root] == len(names):
                yield from self._read(run(self._folder / root, named=False))
                for name in names:
                    (self._folder / name).unlink()
