"""What a run was asked to do, on what, with which software, and how it went; where two differ."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final, Protocol

from sqlalchemy import Connection

from perfdb import metrics, units
from perfdb.db import sources
from perfdb.errors import Diagnostic, InputError
from perfdb.fields import CONFIGURATION, WORKLOAD
from perfdb.jsonfile import parse_json
from perfdb.queries import results, runs
from perfdb.recipe import RunSpec
from perfdb.record import Case, Result
from perfdb.run_record import RunRecord, StepRecord
from perfdb.rundir import RECORD, RunDir

Facts = Mapping[str, object]
Differences = Mapping[str, Mapping[str, tuple[object, object]]]
"""By group, the fields in which two runs differ, with both values. None: not known."""

VERSIONS: Final = (
    "release", "container_digest", "perfdb_version", "python", "driver", "cuda", "nccl",
    "git_commit", "git_dirty", "container",
)  # fmt: skip
"""The fields that say which software a run had, besides its packages."""
_STEP_FIELDS: Final = ("step", "step_time_s", "loss", "skipped")


class TimedStep(Protocol):
    """What is needed of a step, whoever read it."""

    @property
    def step(self) -> int: ...
    @property
    def step_time_s(self) -> float: ...
    @property
    def loss(self) -> float | None: ...
    @property
    def skipped(self) -> bool: ...


@dataclass(frozen=True)
class RunFacts:
    """What is known of a run, by the names of fields; what is not known is not there.

    `steps` has `num_steps`, `step_time_s` (the median after warm-up) and `last_loss`.
    """

    configuration: Facts
    environment: Facts
    versions: Facts
    steps: Facts


def of_directory(run: RunDir) -> RunFacts:
    """The facts of a run directory. Raises RunDirError and OSError."""
    return of_record(run.read_record(), run.read_steps())


def of_stored(connection: Connection, run_id: str) -> RunFacts:
    """The facts of a run in the store. Raises InputError where it has none of this id."""
    row = connection.execute(runs.of_id(run_id)).mappings().first()
    if row is None:
        remedy = "name a run directory, or a run id as `perfdb export results` has them"
        raise InputError(Diagnostic("run", f"no run {run_id!r} in the store", remedy=remedy))
    steps = [
        StepRecord.model_validate({name: step[name] for name in _STEP_FIELDS})
        for step in connection.execute(runs.steps_of(run_id)).mappings()
    ]
    if record := record_of(connection, run_id, files_of(connection, run_id)):
        return of_record(record, steps)
    result = results.read(connection, results.of_run(run_id))[0]
    return of_log(result, row["environment"], row["warmup_steps"], steps)


def files_of(connection: Connection, run_id: str) -> dict[str, str]:
    """The SHA-256 of the files of a run in the store, by name."""
    return {row.name: row.sha256 for row in connection.execute(runs.files_of(run_id))}


def record_of(connection: Connection, run_id: str, files: Mapping[str, str]) -> RunRecord | None:
    """The run.json of a run in the store, by its files; None for a log. Raises RunDirError."""
    if RECORD not in files:
        return None
    content = sources.content(connection, files[RECORD])
    return parse_json(f"{run_id}/{RECORD}", content, RunRecord)


def of_log(
    result: Result, environment: Facts, warmup_steps: int, steps: Sequence[TimedStep]
) -> RunFacts:
    """The facts of a run that has no record, by its result."""
    software = {"release": result.release, **environment}
    return _facts(configuration(result), software, warmup_steps, steps)


def of_record(record: RunRecord, steps: Sequence[TimedStep]) -> RunFacts:
    """The facts of a run by its record and its steps."""
    environment = record.environment.model_dump(exclude={"packages", "variables", "nodes"})
    environment |= {f"packages.{name}": it for name, it in record.environment.packages.items()}
    environment |= {f"variables.{name}": it for name, it in record.environment.variables.items()}
    environment["release"] = record.release.version
    environment["container_digest"] = digest(record)
    environment["perfdb_version"] = record.perfdb_version
    return _facts(_asked(record), environment, record.warmup_steps, steps)


def digest(record: RunRecord) -> str | None:
    """What distinguishes the image of a run from others."""
    return record.release.container_digest or record.environment.container_digest


def of_spec(spec: RunSpec, result: Result) -> RunFacts:
    """What is known of a published result that a recipe's case runs: its image, not its title."""
    software = {"release": result.release, "container": spec.container or result.container}
    return _facts(_asked(spec), software, spec.warmup_steps, ())


def _asked(of: RunRecord | RunSpec) -> dict[str, object]:
    steps = {name: getattr(of, name) for name in ("warmup_steps", "measured_steps", "seed")}
    return configuration(of.case) | steps


def configuration(of: Case | Result) -> dict[str, object]:
    """The known fields of a case, its options one by one."""
    known = {name: getattr(of, name) for name in (*WORKLOAD, *CONFIGURATION)}
    options = known.pop("options")
    known |= {f"options.{name}": value for name, value in options.items()}
    joined = {name: ", ".join(it) for name, it in known.items() if isinstance(it, tuple)}
    return _known(known | joined)


def _known(facts: Facts) -> dict[str, object]:
    return {name: value for name, value in facts.items() if value not in (None, "")}


def _facts(asked: Facts, had: Facts, warmup_steps: int, steps: Sequence[TimedStep]) -> RunFacts:
    is_version = {name: name in VERSIONS or name.startswith("packages.") for name in had}
    start = metrics.first_counted_step([step.step for step in steps], warmup_steps)
    times = [step.step_time_s for step in steps if step.step >= start and not step.skipped]
    went = {
        "num_steps": len(steps) or None,
        "step_time_s": median(times) if times else None,
        "last_loss": steps[-1].loss if steps else None,
    }
    return RunFacts(
        configuration=asked,
        environment=_known({name: it for name, it in had.items() if not is_version[name]}),
        versions=_known({name: it for name, it in had.items() if is_version[name]}),
        steps=_known(went),
    )


def differences(a: RunFacts, b: RunFacts) -> Differences:
    """Where two runs differ; a group in which they do not is not there."""
    found = {}
    for group, of_a in vars(a).items():
        of_b = vars(b)[group]
        both = {name: (of_a.get(name), of_b.get(name)) for name in {**of_a, **of_b}}
        if apart := {name: it for name, it in both.items() if it[0] != it[1]}:
            found[group] = apart
    return found


def rows(apart: Differences) -> Iterator[tuple[str, str, str]]:
    """What a table prints of differences: the field with its group, and both values."""
    for group, fields in apart.items():
        for name, (a, b) in fields.items():
            yield f"{group}: {name}", _text(a), _text(b)


def _text(value: object) -> str:
    if isinstance(value, float):
        return units.significant(value, 5)
    return units.text(json.dumps(value) if isinstance(value, bool) else value)
