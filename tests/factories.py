"""Makes what tests need: cases, releases, runs on disk, published rows, stores that hold them."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from math import prod
from pathlib import Path

from sqlalchemy import URL

from perfdb.record import (
    Case,
    Figures,
    Finding,
    Note,
    NoteCode,
    Outcome,
    PublishedResult,
    Release,
    Severity,
)
from perfdb.run_record import Environment, RecipeRef, RunRecord, StepRecord, WorkerSummary
from perfdb.rundir import RunDir

STARTED = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
EVIL = "<script>alert(1)</script> *m* `c` {{ x }} {term}`y` | & \"q\" 'p'"
"""A name full of markup."""
NO_SUCH_PROCESS = 2**22 + 1
"""Above the most that Linux numbers a process with."""


def case(**changed: object) -> Case:
    """Llama 3 8B in BF16 on one DGX-H100, with what is given changed; DP and GA fit the rest."""
    fields: dict[str, object] = {
        "framework": "megatron-core", "model": "llama3-8b", "system": "dgx-h100", "num_gpus": 8,
        "precision": "bf16", "sequence_length": 8192, "global_batch_size": 128,
        "micro_batch_size": 1, "tensor_parallel": 1, "pipeline_parallel": 1, "context_parallel": 2,
    }  # fmt: skip
    made = Case.model_validate(fields | changed)
    follows = {"data_parallel": _copies(made), "gradient_accumulation": _batches(made)}
    return made.model_copy(update={name: follows[name] for name in follows.keys() - changed.keys()})


def _copies(case: Case) -> int | None:
    """How many copies of the model the GPUs hold; None where some would be left over."""
    splits = case.tensor_parallel, case.pipeline_parallel, case.context_parallel
    copies, left = divmod(case.num_gpus, prod(size or 1 for size in splits))
    return None if left else copies


def _batches(case: Case) -> int | None:
    """How many micro batches each copy takes in a step; None where that is no whole number."""
    copies, batch = _copies(case), case.micro_batch_size or case.local_batch_size
    if copies is None or batch is None or case.global_batch_size % (copies * batch):
        return None
    return case.global_batch_size // (copies * batch)


def release(version: str | None = "0.16.0", **changed: object) -> Release:
    """A Megatron-Core release, with what is given changed."""
    return Release.model_validate({"framework": "megatron-core", "version": version} | changed)


def environment(**changed: object) -> Environment:
    """A machine that is not this one."""
    fields: dict[str, object] = {"hostname": "node-1", "os": "Linux 6.1", "python": "3.11.7"}
    return Environment.model_validate(fields | changed)


def record(**changed: object) -> RunRecord:
    """A run of two warm-up steps and eight measured ones that finished."""
    fields: dict[str, object] = {
        "run_id": "llama3-8b_bf16_8gpu-1", "case": case(), "release": release(),
        "recipe": RecipeRef(name="llama3-8b", path="recipes/llama3-8b.yaml", sha256="0" * 64),
        "environment": environment(), "command": ("torchrun", "train.py"), "warmup_steps": 2,
        "measured_steps": 8, "seed": 1234, "runner_pid": NO_SUCH_PROCESS, "perfdb_version": "0.1.0",
        "started_at": STARTED, "ended_at": STARTED + timedelta(minutes=5),
        "outcome": Outcome.FINISHED, "exit_code": 0,
    }  # fmt: skip
    return RunRecord.model_validate(fields | changed)


TEN_STEPS = (27.0, 15.0, 12.3, 12.0, 12.6, 12.0, 12.9, 12.0, 12.3, 12.0)
"""Seconds; over the last eight the median is 12.15."""


def steps(step_times: Sequence[float] = TEN_STEPS, **changed: object) -> list[StepRecord]:
    """Steps from 1 of so many seconds each, with what is given changed in all of them."""
    return [
        StepRecord.model_validate(
            {
                "step": number,
                "step_time_s": seconds,
                "step_time_min_s": seconds * 0.99,
                "loss": 11.0 - number / 10,
                "grad_norm": 1.5,
                "tokens": 128 * 8192,
                "peak_memory_bytes": 60 * 2**30,
            }
            | changed
        )
        for number, seconds in enumerate(step_times, start=1)
    ]


def write_run(
    folder: Path,
    *,
    case: Case | None = None,
    release: Release | None = None,
    step_times: Sequence[float] = TEN_STEPS,
    **changed: object,
) -> RunDir:
    """A run directory `folder/RUN_ID`; `changed` are fields of its record.

    The run plans two warm-up steps and measures the rest, and its id is the folder's own unless
    told otherwise: RunRecord's `run_id`, `outcome`, `warmup_steps`, `measured_steps`, …
    """
    fields = {"measured_steps": max(1, len(step_times) - 2)} | changed
    given = {"case": case, "release": release}
    made = record(**{name: value for name, value in given.items() if value}, **fields)
    run = RunDir(folder / made.run_id)
    run.path.mkdir(parents=True)
    run.write_record(made)
    run.recipe.write_text(f"name: {made.recipe.name}\n")
    run.worker_config.write_text("{}\n")
    run.console.write_text("".join(f"step {n}\n" for n, _ in enumerate(step_times, start=1)))
    write_steps(run, steps(step_times, tokens=tokens_of(made.case)))
    if made.outcome is Outcome.FINISHED:
        run.summary.write_text(summary(made.case.num_gpus, made.case.system).model_dump_json())
    return run


def tokens_of(case: Case) -> int:
    """How many tokens a step of a case is of."""
    return case.global_batch_size * case.sequence_length


def write_steps(run: RunDir, written: Iterable[StepRecord]) -> None:
    """Replace a run's steps."""
    run.steps.write_text("".join(step.model_dump_json() + "\n" for step in written))


def summary(world_size: int = 8, system: str = "dgx-h100") -> WorkerSummary:
    """What a worker says of itself at its end, on a system."""
    on_cpu = system == "cpu"
    gpu = system.removeprefix("dgx-").upper()
    return WorkerSummary(
        schema_version=1,
        world_size=world_size,
        data_parallel=world_size,
        num_parameters=8_030_261_248,
        backend="gloo" if on_cpu else "nccl",
        device="cpu" if on_cpu else f"NVIDIA {gpu}",
        cpu_shim=on_cpu,
        memory_kind="process_rss" if on_cpu else "cuda_allocated",
        peak_memory_bytes=(60 * 2**30,) * world_size,
        versions={"torch": "2.9.0", "nccl": None},
    )


def published(line: int = 7, **changed: object) -> PublishedResult:
    """A row of a published page: NeMo 25.04, Llama 3 8B; case=, release=, figures= to differ."""
    fields: dict[str, object] = {
        "case": case(framework="nemo"),
        "release": release("25.04", framework="nemo", container="nvcr.io/nvidia/nemo:25.04"),
        "figures": Figures(tokens_per_sec_per_gpu=12_273, model_tflops_per_sec_per_gpu=711),
        "line": line,
        "raw": {"Model": "LLAMA3-8B", "Tokens / sec / GPU": "12,273"},
    }
    if notes := changed.get("notes"):
        assert isinstance(notes, tuple)
        changed["notes"] = tuple(
            Note.of(NoteCode.FOOTNOTE, text=one) if isinstance(one, str) else one for one in notes
        )
    known = fields | changed
    raw = known["raw"]
    assert isinstance(raw, dict)
    titles = {"Model": "model", "Tokens / sec / GPU": "tokens_per_sec_per_gpu"}
    printed = {titles[title]: text for title, text in raw.items() if title in titles}
    return PublishedResult.model_validate({"printed": printed} | known)


def finding(severity: Severity = Severity.ERROR, **changed: object) -> Finding:
    """What an audit reports: a row's GBS and MBS are swapped; with these fields changed."""
    fields: dict[str, object] = {
        "rule": "micro_batch", "severity": severity,
        "fields": ("global_batch_size", "micro_batch_size"), "expected": "GBS 64, MBS 1",
        "found": "GBS 1, MBS 64", "message": "a global batch of 1 cannot hold micro-batches of 64",
        "suggestion": "swap them: GBS 64, MBS 1", "model": "llama3-70b", "system": "dgx-h100",
        "release": "25.04", "source": "data/published/nemo.md", "source_line": 74,
        "framework": "nemo",
    }  # fmt: skip
    return Finding.model_validate(fields | changed)


def stored(
    url: URL, *things: RunDir | PublishedResult, page: str = "data/published/page.md"
) -> None:
    """Put runs, and published rows as if read off one page, into a store, making it if need be."""
    from perfdb import ingest
    from perfdb.db import migrate, results
    from perfdb.db.rows import SourceFile
    from perfdb.db.session import is_missing, writer
    from perfdb.ingest.reads import PAGE_PARSER_VERSION
    from perfdb.measure import of_page as published_row

    if is_missing(url):
        migrate.upgrade(url)
    runs = [thing.path for thing in things if isinstance(thing, RunDir)]
    if runs:
        report = ingest.ingest(runs, url, ingest.Options())
        assert report.rejected == ()
    rows = [published_row(thing) for thing in things if isinstance(thing, PublishedResult)]
    if rows:
        content = "\n".join(row.content_hash for row in rows).encode()
        source = SourceFile(
            path=page, content=content, parser="page", parser_version=PAGE_PARSER_VERSION
        )
        engine = writer(url)
        with engine.begin() as connection:
            results.put_page(connection, source, rows, STARTED)
        engine.dispose()
