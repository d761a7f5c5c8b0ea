"""Everything perfdb raises on purpose, and the exit code each one means.

PerfdbError                 1  something failed that the user can understand
├── InputError              2  the input is wrong; holds every problem found, not the first
│   ├── RecipeError            a recipe file
│   ├── CatalogError           a system or model file, or a name that is in neither
│   ├── ConfigError            perfdb.toml
│   ├── RunDirError            a run directory
│   └── ArchiveError           a compressed file or an archive
├── StoreError              2  the database is missing, older or newer than this version
│   └── DamagedBytesError      the bytes of a file that it keeps
└── RunError                1  a run could not be started, or not be ended
    └── LeftAtWorkError        processes of it are still at work

Anything else that reaches the door (perfdb.cli.main) is a defect of ours: exit code 3.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Final


@dataclass(frozen=True)
class Diagnostic:
    """One thing wrong with an input: where it is, what is wrong, and what to do."""

    where: str
    """The file, or the command line option."""
    message: str
    field: str | None = None
    line: int | None = None
    remedy: str | None = None

    def __str__(self) -> str:
        place = f"{self.where}:{self.line}" if self.line else self.where
        return f"{place}: {self.reason}"

    @property
    def reason(self) -> str:
        """What is wrong and what to do, without the place."""
        field = f"{self.field}: " if self.field else ""
        remedy = f"; {self.remedy}" if self.remedy else ""
        return f"{field}{self.message}{remedy}"

    def of(self, field: str) -> "Diagnostic":
        """The same problem, named after a field that the file does not hold itself."""
        named = self.field and field in self.field.split(".")
        return self if named else replace(self, field=field)


class PerfdbError(Exception):
    """Something failed that the user can understand."""

    exit_code = 1


class InputError(PerfdbError):
    """The input is wrong."""

    exit_code = 2

    def __init__(self, problems: Diagnostic | Iterable[Diagnostic]) -> None:
        self.problems: Sequence[Diagnostic] = (
            (problems,) if isinstance(problems, Diagnostic) else tuple(problems)
        )
        super().__init__("\n".join(map(str, self.problems)))


class RecipeError(InputError):
    """A recipe file is wrong."""


class CatalogError(InputError):
    """A catalogue file is wrong, or a name is not in the catalogue."""


class ConfigError(InputError):
    """perfdb.toml is wrong, or the file that PERFDB_CONFIG names is missing."""


class RunDirError(InputError):
    """A run directory is damaged or of another version."""


class ArchiveError(InputError):
    """A compressed file or an archive is damaged, or holds more than may be read."""


class StoreError(PerfdbError):
    """The database is missing, or its schema is not this version's."""

    exit_code = 2


class DamagedBytesError(StoreError):
    """The bytes of a file are not as they were stored."""


class RunError(PerfdbError):
    """A run could not be started, or not be ended."""


class LeftAtWorkError(RunError):
    """Processes of a run do not end: what is run next to them would be slowed down."""


def suggestion(word: str, known: Iterable[str]) -> str:
    """'did you mean X?' where a known word is close, else the list of the known words."""
    choices = sorted(known)
    close = closest(word, choices)
    return f"did you mean {close}?" if close else f"known: {', '.join(choices)}"


NEAREST: Final = 5
"""How many of many names are offered for one that is not known."""


def nearest(word: str, known: Iterable[str]) -> str:
    """'did you mean A, B or C?': the names nearest to one that is not known, the nearest first.

    Where none is close they are listed: all of a few, `NEAREST` of many.
    """
    choices = sorted(known)
    if close := get_close_matches(word, choices, n=NEAREST, cutoff=0.6):
        *some, last = close
        return f"did you mean {' or '.join(filter(None, (', '.join(some), last)))}?"
    near = get_close_matches(word, choices, n=NEAREST, cutoff=0.0)
    few = len(choices) <= NEAREST
    return f"known: {', '.join(choices)}" if few else f"nearest: {', '.join(near)}"


def closest(word: str, known: Iterable[str]) -> str | None:
    """The known word that a misspelt one is for; None where none is close."""
    return next(iter(get_close_matches(word, sorted(known), n=1, cutoff=0.6)), None)
