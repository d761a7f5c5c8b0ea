"""The steps of a run: those that a program prints are written as a worker writes its own."""

from dataclasses import dataclass

from perfdb.formats import FORMATS
from perfdb.jsonfile import write_atomically
from perfdb.run_record import StepRecord
from perfdb.rundir import RunDir

SIZES = (
    "num_gpus", "sequence_length", "global_batch_size", "micro_batch_size", "tensor_parallel",
    "pipeline_parallel", "context_parallel", "expert_parallel",
)  # fmt: skip
"""What the program may print of its case, against which the recipe is checked."""


@dataclass
class StepSource:
    """Where a run's steps are: in its logs, by the name of their format, or in its steps file."""

    run: RunDir
    log_format: str | None
    _size_bytes: int = 0
    _steps: tuple[StepRecord, ...] = ()

    def read(self) -> tuple[StepRecord, ...]:
        """The steps so far. What the logs have of them is written, with the stated sizes."""
        if self.log_format is None:
            return self.run.read_steps()
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
