"""RunDir: the only module that knows the names of the files in a run's directory."""

import fcntl
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import repeat
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, NamedTuple

from pydantic import ValidationError
from pydantic_core import from_json

from perfdb.errors import Diagnostic
from perfdb.jsonfile import first_error, parse_json, read_json, write_atomically
from perfdb.record import MOST
from perfdb.run_record import RunRecord, StepRecord, WorkerConfiguration, WorkerSummary

RECORD: Final = "run.json"
"""The name of the file that makes a folder a run directory."""

STEPS: Final = "steps.jsonl"
"""The name of the file that a run's figures are from."""

WORKER_CONFIG: Final = "worker_config.json"
"""The name of the file that says how the worker was configured."""

_SUMMARY = "worker.json"
_FRAMEWORK_CONFIG, _FRAMEWORK_SUMMARY = "framework_config.yaml", "framework_summary.json"
_RECIPE = "recipe.yaml"
_CONSOLE, _RANKS = "console.log", "ranks"
_FILES_BUT_LOGS = (RECORD, _RECIPE, WORKER_CONFIG, STEPS, _SUMMARY,
                   _FRAMEWORK_CONFIG, _FRAMEWORK_SUMMARY)  # fmt: skip


_DEFAULTS: Final = {name: field.default for name, field in StepRecord.model_fields.items()}
_EXACT: Final[Mapping[str, frozenset[type]]] = {
    **dict.fromkeys(_DEFAULTS, frozenset((float, type(None)))),
    **dict.fromkeys(("tokens", "peak_memory_bytes"), frozenset((int, type(None)))),
    **{"step": frozenset([int]), "step_time_s": frozenset([float]), "skipped": frozenset([bool])},
}
"""The types of the values of a step as the worker writes them; StepRecord takes others, too."""


@dataclass(frozen=True)
class StepsRead:
    """The steps of a steps file by the fields of StepRecord, and what could not be read.

    `lines` has the line of each step, and each of `columns` a value.
    """

    lines: Sequence[int]
    columns: Mapping[str, Sequence[Any]]
    problems: tuple[Diagnostic, ...] = ()

    @classmethod
    def of(
        cls, steps: Iterable[tuple[int, StepRecord]], problems: tuple[Diagnostic, ...] = ()
    ) -> "StepsRead":
        """Steps, each with its line."""
        rows = tuple(steps)
        columns = {name: tuple(getattr(step, name) for _, step in rows) for name in _DEFAULTS}
        return cls(tuple(line for line, _ in rows), columns, problems)

    @property
    def steps(self) -> tuple[tuple[int, StepRecord], ...]:
        """Each step with its line."""
        steps = (
            StepRecord(**dict(zip(_DEFAULTS, row, strict=True))) for row in self.rows(*_DEFAULTS)
        )
        return tuple(zip(self.lines, steps, strict=True))

    def rows(self, *names: str) -> Iterator[tuple[Any, ...]]:
        """A tuple of some fields for each step, which may be `line`; None where it has none."""
        known = {**self.columns, "line": self.lines}
        return zip(*(known.get(name, repeat(None)) for name in names), strict=False)

    def __len__(self) -> int:
        return len(self.lines)


class Worker(NamedTuple):
    """Files of a run's worker other than its steps. None: there is no such file."""

    summary: WorkerSummary | None = None
    configuration: WorkerConfiguration | None = None


@dataclass(frozen=True)
class RunDir:
    """One run's directory. All of it is text; only run.json and worker.json are ever replaced."""

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
        """The configuration that the worker was started with."""
        return self.path / WORKER_CONFIG

    @property
    def framework_config(self) -> Path:
        """The framework's own configuration, where it reads one."""
        return self.path / _FRAMEWORK_CONFIG

    @property
    def framework_summary(self) -> Path:
        """The figures as the framework itself sums them up, where it does."""
        return self.path / _FRAMEWORK_SUMMARY

    @property
    def steps(self) -> Path:
        """One StepRecord a line, written as the steps happen."""
        return self.path / STEPS

    @property
    def summary(self) -> Path:
        """What the worker writes at its end (WorkerSummary); only on success."""
        return self.path / _SUMMARY

    @property
    def console(self) -> Path:
        """What the launched command printed."""
        return self.path / _CONSOLE

    @property
    def lock(self) -> Path:
        """Held by the runner for as long as it works on the run; it has no content."""
        return self.path / "run.lock"

    @property
    def rank_logs(self) -> Path:
        """The launcher's own folder with each rank's output."""
        return self.path / _RANKS

    @property
    def job(self) -> Path:
        """The Slurm job of the run; written before Slurm is asked."""
        return self.path / "slurm.json"

    @property
    def job_script(self) -> Path:
        """The script of the job, and of each of its nodes."""
        return self.path / "job.sh"

    @property
    def job_end(self) -> Path:
        """How the job ended, as its own script says."""
        return self.path / "job_end.json"

    @property
    def job_id(self) -> Path:
        """The number of the job that has this run; its script writes it when it starts."""
        return self.path / "job_id.txt"

    @property
    def job_facts(self) -> Path:
        """What Slurm says of the job to its script, and which image it had."""
        return self.path / "job.txt"

    @property
    def node_facts(self) -> Path:
        """A folder with a file of each node, by its number: what it is, as its programs say."""
        return self.path / "nodes"

    def logs(self) -> list[Path]:
        """The raw logs that exist, console first, then the ranks in order."""
        ranks = sorted(self.rank_logs.rglob("*.log")) if self.rank_logs.is_dir() else []
        return [log for log in [self.console, *ranks] if log.is_file() and log.stat().st_size]

    def files(self) -> Iterator[tuple[str, str, bool]]:
        """Every file to read of the run: its name in this folder, its path, whether it is a log.

        The record comes first. The files need not exist.
        """
        prefix = f"{self.path}/"
        for name in _FILES_BUT_LOGS:
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
        """Replace run.json atomically: a crash leaves the old one or the new one."""
        write_atomically(self.record, record.model_dump_json(indent=1))

    def read_record(self) -> RunRecord:
        """The record in run.json. Raises RunDirError if it is damaged or of another version."""
        return read_json(self.record, RunRecord)

    def read_summary(self) -> WorkerSummary | None:
        """The worker's summary; None if the worker did not finish. Raises RunDirError."""
        return read_json(self.summary, WorkerSummary) if self.summary.is_file() else None

    def read_worker(self) -> Worker:
        """What is known of the worker. Raises RunDirError."""

        def content(name: str) -> bytes:
            path = self.path / name
            return path.read_bytes() if path.is_file() else b""

        return parse_worker(str(self.path), content)

    def read_steps(self) -> tuple[StepRecord, ...]:
        """The steps so far; a line that is still being written, or was cut off, is left out."""
        return tuple(step for _, step in self.parse_steps().steps)

    def parse_steps(self) -> StepsRead:
        """The steps so far, and what could not be read."""
        text = self.steps.read_text(errors="replace") if self.steps.is_file() else ""
        return parse_steps(str(self.steps), text.splitlines())


def parse_worker(where: str, content: Callable[[str], bytes]) -> Worker:
    """What the bytes of a run's files state of its worker; no bytes: there is no such file.

    `where` names the run's directory in problems. Raises RunDirError.
    """
    summary, configuration = content(_SUMMARY), content(WORKER_CONFIG)
    return Worker(
        parse_json(f"{where}/{_SUMMARY}", summary, WorkerSummary) if summary else None,
        parse_json(f"{where}/{WORKER_CONFIG}", configuration, WorkerConfiguration)
        if configuration
        else None,
    )


def find_runs(root: Path) -> list[RunDir]:
    """Every run directory at or below a folder, in path order."""
    return [RunDir(record.parent) for record in sorted(root.rglob(RECORD))]


def parse_steps(where: str, lines: Iterable[str]) -> StepsRead:
    """The steps in the lines of a steps file; `where` names the file in problems."""
    all_lines = list(lines)
    columns = _parse_at_once(all_lines)
    if columns is None:
        return _parse_each(where, all_lines)
    return StepsRead(range(1, len(all_lines) + 1), columns)


def _parse_at_once(lines: Sequence[str]) -> Mapping[str, Sequence[Any]] | None:
    """The columns of lines that have the same fields, of the types that the worker writes.

    None if any line has others or is damaged. All lines are one document, and their fields are
    checked together: each line as a StepRecord takes three times as long.
    """
    if not all(line[:1] == "{" and line[-1:] == "}" for line in lines):
        return None
    try:
        rows: Sequence[dict[str, Any]] = from_json(f"[{','.join(lines)}]")
    except ValueError:
        return None
    # As many as there are lines: each line is one step, for a step has no braces inside.
    if len(rows) != len(lines) or set(map(type, rows)) != {dict}:
        return None
    names = tuple(rows[0])
    if not {"step", "step_time_s"} <= set(names) <= _DEFAULTS.keys():
        return None
    try:
        cells = zip(*map(itemgetter(*names), rows), strict=True)
    except KeyError:
        return None
    columns = dict(zip(names, cells, strict=True))
    for name in _DEFAULTS.keys() - columns.keys():
        columns[name] = (_DEFAULTS[name],) * len(rows)
    is_exact = all(_EXACT[name] >= set(map(type, column)) for name, column in columns.items())
    has_no_more = set(map(len, rows)) == {len(names)}
    counts = is_exact and min(columns["step"]) > 0 and max(columns["step"]) <= MOST
    return columns if counts and has_no_more else None


def _parse_each(where: str, lines: Iterable[str]) -> StepsRead:
    steps: list[tuple[int, StepRecord]] = []
    problems: list[Diagnostic] = []
    for number, line in enumerate(lines, start=1):
        try:
            steps.append((number, StepRecord.model_validate_json(line)))
        except ValidationError as error:
            problems.append(Diagnostic(where, first_error(error), line=number))
    return StepsRead.of(steps, tuple(problems))
