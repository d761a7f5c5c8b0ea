"""The steps of a program that prints them, written as a worker of ours writes its own."""

from collections.abc import Callable
from dataclasses import dataclass

from perfdb.formats import FORMATS
from perfdb.jsonfile import write_atomically
from perfdb.run_record import StepRecord
from perfdb.rundir import RunDir
from runner.backends import Command

SIZES = (
    "num_gpus", "sequence_length", "global_batch_size", "micro_batch_size", "tensor_parallel",
    "pipeline_parallel", "context_parallel", "expert_parallel",
)  # fmt: skip
"""What the program may print of its case, against which the recipe is checked."""


def steps_reader(run: RunDir, command: Command) -> Callable[[], tuple[StepRecord, ...]]:
    """What returns the steps so far of a run that was started with a command."""
    if command.log_format is None:
        return run.read_steps
    return PrintedSteps(run, command.log_format).read


@dataclass
class PrintedSteps:
    """The steps in the logs of a run, by the name of their format."""

    run: RunDir
    log_format: str
    _size_bytes: int = 0
    _steps: tuple[StepRecord, ...] = ()

    def read(self) -> tuple[StepRecord, ...]:
        """The steps so far. Where there are more than before, writes them and the sizes told."""
        logs = self.run.logs()
        size_bytes = sum(log.stat().st_size for log in logs)
        if size_bytes != self._size_bytes:
            self._size_bytes = size_bytes
            content = (part for log in logs for part in (log.read_bytes(), b"\n"))
            [log] = FORMATS[self.log_format].parse(str(self.run.path), content)
            fields = set(StepRecord.model_fields)
            self._steps = tuple(
                StepRecord(**{k: v for k, v in one._asdict().items() if k in fields})
                for one in log.steps
            )
            lines = (f"{step.model_dump_json()}\n" for step in self._steps)
            write_atomically(self.run.steps, "".join(lines))
            told = log.configuration.model_dump_json(include=set(SIZES), exclude_none=True)
            write_atomically(self.run.worker_config, told)
        return self._steps
