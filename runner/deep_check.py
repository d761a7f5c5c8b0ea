"""Checks cases without GPUs: builds the model of each pipeline stage, and adds up a GPU's memory.

One process, runner.megatron.fake_world, builds the models of all cases.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, astuple, dataclass, fields, replace
from os import environ
from typing import Any

from rich.console import Console

from perfdb import catalog, flops, units
from perfdb.errors import Diagnostic, InputError, RunError
from perfdb.flops.lora import parameters
from perfdb.recipe import RunSpec
from perfdb.recipe.model import OPTIONS
from perfdb.record import Case
from runner.backends import megatron_core
from runner.launchers.base import imports
from runner.megatron.config import parse_config
from runner.memory import Memory, Stage, fullest

FRAMEWORKS = ("megatron-core", "nemo", "dfm")
"""Those that train with Megatron-Core."""


@dataclass(frozen=True)
class DeepCheck:
    """Whether a case builds and fits; `ok` is None where this cannot be found out.

    `balance` is the parameters of the largest pipeline stage over the mean.
    """

    name: str
    ok: bool | None
    reason: str | None = None
    parameters: int | None = None
    parameters_per_rank: tuple[int, ...] = ()
    """Of each pipeline stage, as `layers_per_rank`."""
    layers_per_rank: tuple[int, ...] = ()
    balance: float | None = None
    memory_bytes: Memory | None = None
    """Of a GPU of the fullest stage."""
    gpu_memory_bytes: int | None = None
    fits: bool | None = None

    def as_json(self) -> dict[str, object]:
        """All fields, and the total of the memory."""
        return asdict(self) | {"total_memory_bytes": self.memory_bytes and self.memory_bytes.total}

    def cells(self) -> tuple[object, ...]:
        """What a table prints, by `COLUMNS`."""
        parts = astuple(self.memory_bytes) if self.memory_bytes else (None,) * 4
        total = self.memory_bytes and self.memory_bytes.total
        return (
            self.name,
            {True: "ok", False: "NO", None: None}[self.ok],
            max(self.parameters_per_rank, default=None),
            units.number(self.balance, 2),
            *map(units.gib, (*parts, total, self.gpu_memory_bytes)),
            self.reason,
        )


Build = Callable[[Mapping[str, object]], dict[str, Any]]
"""Has a layout built; returns the stages, or the error."""

COLUMNS = (
    "Case", "Verdict", "Parameters per rank", "Balance",
    *(part.name.title() for part in fields(Memory)), "Total", "GPU memory", "Reason",
)  # fmt: skip


def check(points: Sequence[RunSpec]) -> list[DeepCheck]:
    """Check every case, and name each on stderr. Raises InputError without Megatron-Core."""
    if megatron_core.version() is None:
        message, remedy = "megatron-core is not installed", "pip install 'perfdb[mcore]'"
        raise InputError(Diagnostic("deep check", message, remedy=remedy))
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    found = []
    with _builder() as build:
        for number, point in enumerate(points, start=1):
            console.print(f"[{number}/{len(points)}] {point.name}", markup=False)
            reason = _not_covered(point.case)
            found.append(DeepCheck(point.name, None, reason) if reason else _checked(point, build))
    return found


def _not_covered(case: Case) -> str | None:
    family = catalog.model(case.model).family
    if case.framework not in FRAMEWORKS:
        return f"{case.framework} does not train with Megatron-Core, which the check builds"
    if family not in megatron_core.FAMILIES:
        families = " and ".join(megatron_core.FAMILIES)
        return f"the check builds {families} models, and {case.model} is {family}"
    return None


def _checked(point: RunSpec, build: Build) -> DeepCheck:
    case = point.case
    settings = megatron_core.settings(point)
    settings["precision"] = "fp32" if case.precision == "fp32" else "bf16"
    built = build({"config": settings, "world_size": case.num_gpus})
    if error := built.get("error"):
        return DeepCheck(point.name, False, f"Megatron-Core does not build it: {error}")
    stages, config = [Stage(**stage) for stage in built["stages"]], parse_config(settings)
    sizes = tuple(stage.parameters for stage in stages)
    found = DeepCheck(
        name=point.name,
        ok=True,
        parameters=built["parameters"],
        parameters_per_rank=sizes,
        layers_per_rank=tuple(stage.num_layers for stage in stages),
        balance=max(sizes) * len(sizes) / sum(sizes),
        memory_bytes=fullest(case, config, stages),
        gpu_memory_bytes=gpu_memory_bytes(case.system),
    )
    if (expected := _matrices(case)) != built["matrices"]:
        counted = f"{built['matrices']:,} parameters in matrices, not {expected or 0:,}"
        reason = f"the model built has {counted} as by the catalogue's shape of {case.model}"
        return replace(found, ok=False, reason=reason)
    recomputing = replace(config, options=replace(config.options, recompute="full"))
    return _fitted(found, case, fullest(case, recomputing, stages).total)


def _fitted(found: DeepCheck, case: Case, least: int) -> DeepCheck:
    """The verdict on memory, which is `least` bytes where all activations are recomputed."""
    need, limit = found.memory_bytes, found.gpu_memory_bytes
    if need is None or limit is None:
        return replace(found, reason=f"the memory of {case.system} is not in the catalogue")
    if need.total <= limit:
        return replace(found, fits=True)
    reason = (
        f"needs {units.gib(need.total)}, or {units.gib(least)} with all activations recomputed; "
        f"a GPU has {units.gib(limit)}"
    )
    # Where a framework's recipes do not say what is recomputed, it may be less than the sum.
    is_certain = least > limit or "recompute" in OPTIONS[case.framework]
    verdict = False if is_certain else None
    return replace(found, ok=verdict, fits=verdict, reason=reason)


def _matrices(case: Case) -> int | None:
    """The parameters in matrices by the catalogue's shape, as FLOPs are counted from it."""
    model = catalog.model(case.model)
    cost = flops.FORMULAS[model.family].cost(model, case.sequence_length, flops.DEFAULT)
    return parameters(cost) if cost else None


def gpu_memory_bytes(system: str) -> int | None:
    """As nvidia-smi reports it or, where nobody has read that, as specified."""
    known = catalog.system(system)
    if known.gpu_memory_mib:
        return known.gpu_memory_mib * 2**20
    return round(known.memory_gb * 1e9) if known.memory_gb else None


@contextmanager
def _builder() -> Iterator[Build]:
    """A function that has one process build layouts, each a line of it. It raises RunError."""
    command = (sys.executable, "-m", "runner.megatron.fake_world")
    with (
        tempfile.TemporaryFile("w+", errors="replace") as messages,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=messages, text=True,
            env={**environ, **imports()},
        ) as process,
    ):  # fmt: skip

        def build(layout: Mapping[str, object]) -> dict[str, Any]:
            assert process.stdin
            assert process.stdout
            with suppress(BrokenPipeError):
                process.stdin.write(json.dumps(layout) + "\n")
                process.stdin.flush()
            if answer := process.stdout.readline():
                built: dict[str, Any] = json.loads(answer)
                return built
            messages.seek(0)
            raise RunError(f"the model builder ended: {messages.read()[-2000:].strip()}")

        yield build
