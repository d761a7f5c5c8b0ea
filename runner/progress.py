"""Show how runs go: a live display at a terminal, plain lines elsewhere. All of it on stderr."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)

from perfdb import catalog, flops, metrics, units
from perfdb.record import Case
from perfdb.run_record import StepRecord
from runner.plan import Planned

PLAIN_EVERY_S = 10
WAITING = "waits for another run on this machine"


@dataclass
class PlainWatcher:
    """Prints a line every few seconds."""

    console: Console
    planned: Planned
    last_printed: float = field(default_factory=time.monotonic)

    def waiting(self) -> None:
        """Print it."""
        self.console.print(f"  {self.planned.point.name}: {WAITING}")

    def steps_done(self, steps: Sequence[StepRecord], planned: int) -> None:
        """Print how far the run is, at most once every PLAIN_EVERY_S seconds."""
        now = time.monotonic()
        if steps and now - self.last_printed >= PLAIN_EVERY_S:
            self.last_printed = now
            line = f"  {self.planned.point.name}: step {len(steps)}/{planned}"
            self.console.print(f"{line}, {pace(self.planned.point.case, steps)}")


@dataclass
class LiveWatcher:
    """Draws a progress bar."""

    progress: Progress
    task: TaskID
    case: Case

    def waiting(self) -> None:
        """Show it where the pace will be."""
        self.progress.update(self.task, pace=WAITING)

    def steps_done(self, steps: Sequence[StepRecord], planned: int) -> None:
        """Move the bar."""
        self.progress.update(
            self.task, total=planned, completed=len(steps), pace=pace(self.case, steps)
        )


@contextmanager
def watching(
    console: Console, planned: Planned, title: str
) -> Iterator[PlainWatcher | LiveWatcher]:
    """A watcher for one case, live where the console is a terminal."""
    if not console.is_terminal:
        console.print(f"{title} {planned.point.name}")
        yield PlainWatcher(console, planned)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[pace]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(f"{title} {planned.point.name}", total=None, pace="starting")
        yield LiveWatcher(progress, task, planned.point.case)


def pace(case: Case, steps: Sequence[StepRecord]) -> str:
    """The last step's time and, where the model's FLOPs are known, its TFLOP/s per GPU."""
    if not steps:
        return "starting"
    seconds = steps[-1].step_time_s
    step_time = f"{units.significant(seconds, 3)} s/step"
    model = catalog.model(case.model)
    per_token = flops.flops_per_token(model, case.sequence_length, task=case.task)
    if per_token is None or not seconds:
        return step_time
    rate = metrics.tokens_per_sec_per_gpu(
        case.global_batch_size, case.sequence_length, seconds, case.num_gpus
    )
    achieved = metrics.model_tflops_per_sec_per_gpu(rate, per_token)
    return f"{step_time}, {units.significant(achieved, 3)} TFLOP/s/GPU"
