"""How a run ended, from its exit code, its steps and the last lines of its logs. Pure."""

import math
import re
import signal
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from perfdb.record import Outcome
from perfdb.run_record import StepRecord
from perfdb.text import OUT_OF_MEMORY

ERROR_LINE = re.compile(r"^(?:\[rank\d+\]: ?)?((?:[A-Za-z_][\w.]*)?(?:Error|Exception)\b.*)")
SLURM_LINE = re.compile(r"^(?:srun|slurmstepd): (?:error: |.*\boption\b).*")
"""What Slurm prints where a step does not start, or ends: of a program's own error it says less."""
KILLED = re.compile(r"failed \(exitcode: -(\d+)\) local_rank: (\d+) \(pid")
"""What torchrun prints of the rank that was the first to fail, if a signal ended it."""


@dataclass(frozen=True)
class Diagnosis:
    """An outcome and, unless it is `finished`, the reason in one line."""

    outcome: Outcome
    error: str | None = None


def diagnose(
    exit_code: int, steps: Sequence[StepRecord], planned: int, log_lines: Iterable[str]
) -> Diagnosis:
    """What a command's end means; `planned` counts warm-up and measured steps."""
    if exit_code:
        return _failed(exit_code, log_lines)
    for step in steps:
        if step.loss is not None and not math.isfinite(step.loss):
            return Diagnosis(Outcome.NAN_LOSS, f"step {step.step}: loss is {step.loss}")
        if step.grad_norm is not None and not math.isfinite(step.grad_norm):
            message = f"step {step.step}: gradient norm is {step.grad_norm}"
            return Diagnosis(Outcome.NAN_GRAD_NORM, message)
    if len(steps) < planned:
        return Diagnosis(Outcome.INCOMPLETE, f"{len(steps)} of {planned} steps were written")
    return Diagnosis(Outcome.FINISHED)


def _failed(exit_code: int, log_lines: Iterable[str]) -> Diagnosis:
    found = ended = by_slurm = None
    for line in log_lines:
        if OUT_OF_MEMORY.search(line):
            return Diagnosis(Outcome.OUT_OF_MEMORY, line.strip())
        match = ERROR_LINE.match(line)
        if match and found is None and "ChildFailedError" not in line:
            found = match[1].strip()
        if by_slurm is None and SLURM_LINE.match(line):
            by_slurm = line.strip()
        if match := KILLED.search(line):
            ended = int(match[1]), match[2]
    # An abort follows a more useful error. Any other signal comes from outside, and the errors in
    # the logs are those of the rank's peers.
    if ended and (found is None or ended[0] != signal.SIGABRT):
        number, rank = ended
        found = f"rank {rank} was killed by signal {number}"
        with suppress(ValueError):  # a number that has no name
            found += f" ({signal.Signals(number).name})"
        found += "; was the host out of memory?" if number == signal.SIGKILL else ""
    found = found or by_slurm or f"the command ended with exit code {exit_code}"
    return Diagnosis(Outcome.FAILED, found)
