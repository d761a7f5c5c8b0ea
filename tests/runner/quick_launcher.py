"""A place to run that needs no training framework: a run has all its steps at once, and ends."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass

from perfdb.run_record import StepRecord
from perfdb.rundir import RunDir
from runner.backends import Command, megatron_core


def nothing(_run: RunDir) -> None:
    """What happens while most runs are at work."""


@dataclass(frozen=True)
class QuickProcess:
    """A run that is at its end as soon as it is asked; `meanwhile` happens before."""

    run: RunDir
    meanwhile: Callable[[RunDir], None]

    def poll(self) -> int:
        """Its exit code."""
        self.meanwhile(self.run)
        return 0

    def stop(self) -> None:
        """It has ended."""


@dataclass(frozen=True)
class QuickLauncher:
    """Writes the steps that the worker was asked for."""

    meanwhile: Callable[[RunDir], None] = nothing
    NAME: str = "quick"

    def argv(self, command: Command, run: RunDir) -> tuple[str, ...]:
        """A command that nobody runs."""
        return ("quick", command.module, str(run.path))

    def variables(self, command: Command) -> dict[str, str]:
        """What this process has, and what the command wants."""
        return {**os.environ, **command.variables}

    def start(self, command: Command, run: RunDir) -> QuickProcess:
        """All the steps, of which each takes a tenth of a second."""
        asked = json.loads(run.worker_config.read_text())
        total = asked["warmup_steps"] + asked["measured_steps"]
        steps = [StepRecord(step=number, step_time_s=0.1) for number in range(1, total + 1)]
        run.steps.write_text("".join(f"{step.model_dump_json()}\n" for step in steps))
        return QuickProcess(run, self.meanwhile)


class QuickBackend:
    """Megatron-Core as if it were installed."""

    NAME = megatron_core.NAME
    unsupported = staticmethod(megatron_core.unsupported)
    files = staticmethod(megatron_core.files)
    command = staticmethod(megatron_core.command)

    def version(self) -> str:
        """A version that the worker of `factories.summary` has, too."""
        return "0.16.1"


BACKENDS = {megatron_core.NAME: QuickBackend()}
