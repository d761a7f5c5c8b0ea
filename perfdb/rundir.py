"""RunDir: the only one who knows the names of the files in a run's directory."""

import fcntl
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from perfdb.errors import Problem, RunDirError
from perfdb.record import RunRecord, StepRecord, WorkerSummary

Value = TypeVar("Value", bound=BaseModel)

RECORD: Final = "run.json"
"""The name of the file that makes a folder a run directory."""

STEPS: Final = "steps.jsonl"
"""The name of the file that a run's figures are from."""

_SUMMARY = "worker.json"
_RECIPE, _WORKER_CONFIG = "recipe.yaml", "worker_config.json"
_CONSOLE, _RANKS = "console.log", "ranks"
_STEPS_OF_FILE = TypeAdapter(tuple[StepRecord, ...])
_SAYING = (RECORD, _RECIPE, _WORKER_CONFIG, STEPS, _SUMMARY)


@dataclass(frozen=True)
class StepsRead:
    """The whole lines of a steps file, each with its line number, and what could not be read."""

    steps: tuple[tuple[int, StepRecord], ...]
    problems: tuple[Problem, ...]


@dataclass(frozen=True)
class RunDir:
    """One run's directory. All of it is text; nothing in it is ever rewritten but run.json."""

    path: Path

    @property
    def record(self) -> Path:
        """What the run is and how it ended (RunRecord); it makes a folder a run directory."""
        return self.path / RECORD

    @property
    def recipe(self) -> Path:
        """The recipe file, byte for byte."""
        return self.path / _RECIPE

    @property
    def worker_config(self) -> Path:
        """What the worker was told to do."""
        return self.path / _WORKER_CONFIG

    @property
    def steps(self) -> Path:
        """One StepRecord a line, written as the steps happen."""
        return self.path / STEPS

    @property
    def summary(self) -> Path:
        """What the worker says of itself at its end (WorkerSummary); only on success."""
        return self.path / _SUMMARY

    @property
    def console(self) -> Path:
        """What the launched command printed."""
        return self.path / _CONSOLE

    @property
    def lock(self) -> Path:
        """Held by the runner for as long as it works on the run; says nothing itself."""
        return self.path / "run.lock"

    @property
    def rank_logs(self) -> Path:
        """The launcher's own folder with each rank's output."""
        return self.path / _RANKS

    def logs(self) -> list[Path]:
        """The raw logs that exist, console first, then the ranks in order."""
        ranks = sorted(self.rank_logs.rglob("*.log")) if self.rank_logs.is_dir() else []
        return [log for log in [self.console, *ranks] if log.is_file() and log.stat().st_size]

    def files(self) -> Iterator[tuple[str, str, bool]]:
        """Every file that may say something of the run: its name in here, its path, if it is a log.

        The record comes first. Whether there is such a file, opening it will tell.
        """
        prefix = f"{self.path}/"
        for name in _SAYING:
            yield name, prefix + name, False
        yield _CONSOLE, prefix + _CONSOLE, True
        try:
            os.scandir(prefix + _RANKS).close()  # Path.is_dir takes far longer, and few have it
        except (FileNotFoundError, NotADirectoryError):
            return
        for log in sorted(self.rank_logs.rglob("*.log")):
            yield str(log.relative_to(self.path)), str(log), True

    def is_run(self) -> bool:
        """Whether this folder is a run directory."""
        return self.record.is_file()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the run's lock. The system lets go of it when the process dies, however it does."""
        with self.lock.open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def in_progress(self) -> bool:
        """Whether a living runner is at work on this run."""
        if not self.lock.is_file():
            return False
        with self.lock.open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    def write_record(self, record: RunRecord) -> None:
        """Replace run.json at once: a crash leaves the old one or the new one."""
        write_atomically(self.record, record.model_dump_json(indent=1))

    def read_record(self) -> RunRecord:
        """Raises RunDirError where run.json is damaged or of another version."""
        return read_json(self.record, RunRecord)

    def read_summary(self) -> WorkerSummary | None:
        """None where the worker did not come to its end."""
        return read_json(self.summary, WorkerSummary) if self.summary.is_file() else None

    def read_steps(self) -> tuple[StepRecord, ...]:
        """The steps so far; a line that is still being written, or was cut off, is left out."""
        if not self.steps.is_file():
            return ()
        read = parse_steps(str(self.steps), self.steps.read_text().splitlines())
        return tuple(step for _, step in read.steps)


def find_runs(root: Path) -> list[RunDir]:
    """Every run directory at or below a folder, in path order."""
    return [RunDir(record.parent) for record in sorted(root.rglob(RECORD))]


def parse_steps(where: str, lines: Iterable[str]) -> StepsRead:
    """The steps a steps file holds."""
    given = list(lines)
    whole = _parse_at_once(given)
    # As many as there are lines: each line is one step, for a step has no braces inside.
    if len(whole) == len(given):
        return StepsRead(tuple(enumerate(whole, start=1)), ())
    return _parse_each(where, given)


def _parse_at_once(lines: Sequence[str]) -> tuple[StepRecord, ...]:
    """All lines as one document, which is faster than line by line; nothing if one is damaged."""
    if not all(line[:1] == "{" and line[-1:] == "}" for line in lines):
        return ()
    try:
        return _STEPS_OF_FILE.validate_json(f"[{','.join(lines)}]")
    except ValidationError:
        return ()


def _parse_each(where: str, lines: Iterable[str]) -> StepsRead:
    steps: list[tuple[int, StepRecord]] = []
    problems: list[Problem] = []
    for number, line in enumerate(lines, start=1):
        try:
            steps.append((number, StepRecord.model_validate_json(line)))
        except ValidationError as error:
            problems.append(Problem(where, first_error(error), line=number))
    return StepsRead(tuple(steps), tuple(problems))


def read_json(path: Path, kind: type[Value]) -> Value:
    """A JSON file as a checked value. Raises RunDirError."""
    try:
        return parse_json(str(path), path.read_bytes(), kind)
    except OSError as error:
        raise RunDirError(Problem(str(path), error.strerror or str(error))) from error


def parse_json(where: str, content: bytes, kind: type[Value]) -> Value:
    """A JSON document as a checked value. Raises RunDirError."""
    try:
        return kind.model_validate_json(content)
    except ValidationError as error:
        message = first_error(error)
        line = re.search(r"at line (\d+)", message)
        remedy = "was it written by another version?"
        raise RunDirError(
            Problem(where, message, line=int(line[1]) if line else None, remedy=remedy)
        ) from error


def first_error(error: ValidationError) -> str:
    """The first thing pydantic found, as 'field: what'."""
    first = error.errors()[0]
    field = ".".join(map(str, first["loc"]))
    return f"{field}: {first['msg']}" if field else first["msg"]


def write_atomically(path: Path, content: str) -> None:
    """Write to a neighbour and rename, so that no reader ever sees half a file."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(content)
    with temporary.open() as file:
        os.fsync(file.fileno())
    temporary.replace(path)
