"""Shows how runs go: a live display at a terminal, plain lines elsewhere. All of it on stderr."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

from rich import progress
from rich.console import Console
from rich.live import Live
from rich.table import Table

from perfdb import catalog, flops, metrics, units
from perfdb.record import Case
from perfdb.run_record import StepRecord
from perfdb.text import visible
from runner.plan import Planned

PLAIN_EVERY_S = 10
WAITING = "waits for another run on this machine"


@dataclass
class Watcher:
    """Is called with a run's steps as they happen; moves a bar, or prints a line now and then."""

    console: Console
    planned: Planned
    bar: progress.Progress
    task: progress.TaskID
    last_printed: float = field(default_factory=time.monotonic)

    def waiting(self) -> None:
        """The run waits for another run that has its GPUs or cores."""
        self.bar.update(self.task, pace=WAITING)
        self._line(WAITING)

    def steps_done(self, steps: Sequence[StepRecord], planned: int) -> None:
        """The steps so far, and how many there will be; a line every PLAIN_EVERY_S seconds."""
        speed, now = pace(self.planned.point.case, steps), time.monotonic()
        self.bar.update(self.task, total=planned, completed=len(steps), pace=speed)
        if steps and now - self.last_printed >= PLAIN_EVERY_S:
            self.last_printed = now
            self._line(f"step {len(steps)}/{planned}, {speed}")

    def _line(self, text: str) -> None:
        if not self.console.is_terminal:
            self.console.print(f"  {self.planned.point.name}: {text}")


@contextmanager
def watching(console: Console, planned: Planned, title: str) -> Iterator[Watcher]:
    """A watcher for one case, live where the console is a terminal."""
    titled = f"{title} {planned.point.name}"
    if not console.is_terminal:
        console.print(titled)
    columns = (
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TextColumn("{task.fields[pace]}"),
        progress.TimeRemainingColumn(),
    )
    hidden = not console.is_terminal
    with progress.Progress(*columns, console=console, transient=True, disable=hidden) as bar:
        yield Watcher(console, planned, bar, bar.add_task(titled, total=None, pace="starting"))


Show = Callable[[Sequence[Mapping[str, str]], str], None]
"""Shows jobs, each as cells by their titles, and why Slurm does not answer."""


@contextmanager
def showing(console: Console) -> Iterator[Show]:
    """A live table of jobs at a terminal; elsewhere a line where the state of one changes."""
    if not console.is_terminal:
        yield partial(_changes, console, {})
        return
    with Live(console=console, transient=True, auto_refresh=False) as live:

        def table(jobs: Sequence[Mapping[str, str]], problem: str) -> None:
            shown = Table(*(jobs[0] if jobs else ()), box=None, title=visible(problem) or None)
            for job in jobs[: max(1, console.height - 3)]:
                shown.add_row(*map(visible, job.values()))
            live.update(shown, refresh=True)

        yield table


def _changes(
    console: Console, told: dict[str, str], jobs: Sequence[Mapping[str, str]], problem: str
) -> None:
    """A line for each job with a changed state, and one for Slurm itself."""
    states = {f"{job['Case']}, job {job['Job']}": f"{job['State']} {job['Reason']}" for job in jobs}
    if problem or "Slurm" in told:
        states["Slurm"] = f"does not answer: {problem}" if problem else "answers"
    for name, state in states.items():
        if told.get(name) != state:
            told[name] = state
            console.print(visible(f"  {name}: {state.strip()}"), markup=False)


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
