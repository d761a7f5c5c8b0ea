"""Says of what was read out of an archive where it is: `archive.tar.zst!/inner/path`."""

from dataclasses import dataclass, replace
from pathlib import Path

from perfdb.db.rows import SourceFile
from perfdb.errors import Diagnostic
from perfdb.ingest.read import (
    PageRows,
    PassedOver,
    Read,
    Rejected,
    RunRead,
    StillRunning,
    Unattributed,
    Unchanged,
)


@dataclass(frozen=True)
class Place:
    """A folder that holds files of an archive for a while."""

    folder: Path
    archive: str

    def named(self, path: str) -> str:
        """The name of a file in the folder; any other path stays as it is."""
        if path == str(self.folder):
            return self.archive
        inner = path.removeprefix(f"{self.folder}/")
        return path if inner == path else f"{self.archive}!/{inner}"

    def read(self, read: Read) -> Read:
        """What was read, with the names of the archive."""
        match read:
            case RunRead():
                files = {name: self._file(file) for name, file in read.files.by_name.items()}
                return replace(
                    read,
                    path=self.named(read.path),
                    files=replace(read.files, by_name=files),
                    notes=self._problems(read.notes),
                    beside=tuple(map(self.named, read.beside)),
                )
            case PageRows():
                return replace(
                    read,
                    source=self._file(read.source),
                    problems=self._problems(read.problems),
                    notes=self._problems(read.notes),
                    beside=tuple(map(self.named, read.beside)),
                )
            case Unattributed():
                return replace(
                    read,
                    source=self._file(read.source),
                    problem=self._problem(read.problem),
                    notes=self._problems(read.notes),
                )
            case Unchanged() | StillRunning() | PassedOver():
                return replace(read, path=self.named(read.path))
            case Rejected():
                return Rejected(
                    self.named(read.path),
                    self._problems(read.problems),
                    self._problems(read.notes),
                )

    def _file(self, file: SourceFile) -> SourceFile:
        return replace(file, path=self.named(file.path))

    def _problem(self, problem: Diagnostic) -> Diagnostic:
        return replace(problem, where=self.named(problem.where))

    def _problems(self, problems: tuple[Diagnostic, ...]) -> tuple[Diagnostic, ...]:
        return tuple(map(self._problem, problems))
