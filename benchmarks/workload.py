"""The results that are timed: 250 cases in 40 releases, each case run once or several times."""

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice, product
from pathlib import Path

from perfdb import catalog, flops
from perfdb.record import Case, Outcome, Release
from perfdb.run_record import Environment, RecipeRef, RunRecord, StepRecord, WorkerSummary
from perfdb.rundir import RunDir

SYSTEMS = ("dgx-h100", "dgx-b200", "dgx-b300", "dgx-gb200", "dgx-gb300")
MODELS = ("llama3-8b", "llama3-70b", "llama3.1-405b", "mixtral-8x7b", "deepseek-v3-671b")
PRECISIONS = ("bf16", "fp8_cs")
NUM_GPUS = (8, 64, 256, 512, 1024)
NUM_CASES = len(SYSTEMS) * len(MODELS) * len(PRECISIONS) * len(NUM_GPUS)
RELEASES = 40
WARMUP_STEPS = 0
"""Every step is measured, for over fewer than 50 the audit finds fault with each result."""
STARTED = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
USUAL_MFU = 0.4
RUN_TO_RUN, STEP_TO_STEP = 0.004, 0.003
"""Relative standard deviations of the step time."""


@dataclass(frozen=True)
class Result:
    """One run: what it is of, and the seconds that each of its steps took."""

    number: int
    case: Case
    release: Release
    step_times_s: tuple[float, ...]


def results(count: int, num_steps: int) -> Iterator[Result]:
    """So many results, release by release, of one seed; from 10,001 on each case has several."""
    chance = random.Random(7)
    cases = [
        case(system, model, precision, num_gpus)
        for system, num_gpus, precision, model in product(SYSTEMS, NUM_GPUS, PRECISIONS, MODELS)
    ]
    usual_s = [usual_step_time_s(case) for case in cases]
    releases = (
        Release(framework="megatron-core", version=f"0.{minor}.0") for minor in range(RELEASES)
    )
    repeats = range(_repeats(count))
    whole = product(releases, repeats, tuple(zip(cases, usual_s, strict=True)))
    for number, (release, _, (of, seconds)) in enumerate(islice(whole, count)):
        level = seconds * chance.gauss(1, RUN_TO_RUN)
        times = tuple(level * chance.gauss(1, STEP_TO_STEP) for _ in range(num_steps))
        yield Result(number, of, release, times)


def _repeats(count: int) -> int:
    """How many runs each case has in a release."""
    return -(-count // (RELEASES * NUM_CASES))


def last_releases(count: int) -> tuple[str, str]:
    """The versions of the last two releases of so many results."""
    last = (count - 1) // (NUM_CASES * _repeats(count))
    return f"0.{last - 1}.0", f"0.{last}.0"


def case(system: str, model: str, precision: str, num_gpus: int) -> Case:
    """A case of the workload."""
    return Case(
        framework="megatron-core",
        model=model,
        system=system,
        num_gpus=num_gpus,
        precision=precision,
        sequence_length=4096,
        global_batch_size=num_gpus * 8,
        micro_batch_size=1,
        gradient_accumulation=8,
        data_parallel=num_gpus,
        tensor_parallel=1,
        pipeline_parallel=1,
        context_parallel=1,
    )


def usual_step_time_s(case: Case) -> float:
    """How long a step of a case takes at the usual MFU."""
    peak = catalog.peak(case.system, case.precision)
    model = catalog.models()[case.model]
    per_token = flops.flops_per_token(model, case.sequence_length, task=case.task)
    if peak is None or per_token is None:
        raise LookupError(f"the catalogue does not cover {case}")
    work = per_token * case.sequence_length * case.global_batch_size
    return work / (USUAL_MFU * peak.tflops * 1e12 * case.num_gpus)


def write_runs(folder: Path, some: Iterable[Result]) -> None:
    """Each result as the runner leaves it: six files in a run directory of its own."""
    for result in some:
        run = RunDir(folder / f"run-{result.number:05}")
        run.path.mkdir(parents=True)
        run.record.write_text(_record(result).model_dump_json(indent=1))
        run.recipe.write_text(f"name: {result.case.model}\nmodel: {result.case.model}\n")
        run.worker_config.write_text(result.case.model_dump_json(indent=1))
        steps = [step.model_dump_json() for step in _steps(result)]
        run.steps.write_text("\n".join(steps) + "\n")
        lines = (f"step {n} {seconds:.3f} s" for n, seconds in enumerate(result.step_times_s, 1))
        run.console.write_text("\n".join(lines) + "\n")
        run.summary.write_text(_summary(result).model_dump_json())


def _record(result: Result) -> RunRecord:
    return RunRecord(
        run_id=f"run-{result.number:05}",
        case=result.case,
        release=result.release,
        recipe=RecipeRef(name=result.case.model, path="recipes/x.yaml", sha256="0" * 64),
        environment=Environment(
            hostname="node-1",
            os="Linux 6.1",
            python="3.12.3",
            packages={"torch": "2.9.0", "megatron-core": "0.16.0", "transformer-engine": "2.9"},
            variables={"NCCL_DEBUG": "WARN", "CUDA_DEVICE_MAX_CONNECTIONS": "1"},
        ),
        command=("torchrun", "train.py"),
        warmup_steps=WARMUP_STEPS,
        measured_steps=len(result.step_times_s) - WARMUP_STEPS,
        seed=1234,
        runner_pid=2**22 + 1,
        perfdb_version="0.1.0",
        started_at=STARTED + timedelta(minutes=result.number),
        ended_at=STARTED + timedelta(minutes=result.number + 5),
        outcome=Outcome.FINISHED,
        exit_code=0,
    )


def _steps(result: Result) -> Iterator[StepRecord]:
    tokens = result.case.global_batch_size * result.case.sequence_length
    for step, seconds in enumerate(result.step_times_s, start=1):
        yield StepRecord(
            step=step,
            step_time_s=seconds,
            step_time_min_s=seconds * 0.99,
            loss=11 - step / 10,
            grad_norm=1.5 + step / 7,
            tokens=tokens,
            peak_memory_bytes=60 * 2**30,
        )


def _summary(result: Result) -> WorkerSummary:
    return WorkerSummary(
        schema_version=1,
        world_size=result.case.num_gpus,
        data_parallel=result.case.num_gpus,
        num_parameters=8_030_261_248,
        backend="nccl",
        device=f"NVIDIA {catalog.system(result.case.system).gpu}",
        cpu_shim=False,
        memory_kind="cuda_allocated",
        peak_memory_bytes=(60 * 2**30,) * 8,
        versions={"torch": "2.9.0"},
    )
