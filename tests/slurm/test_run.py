"""`perfdb run --launcher slurm` on a real Slurm; a script stands for torchrun and its workers."""

import json
import os
import pty
import random
import re
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import pytest

from perfdb.record import Outcome
from perfdb.rundir import RunDir, find_runs
from runner import session
from runner.slurm.jobs import JobIntent
from tests.runner.quick_launcher import BACKENDS
from tests.runner.test_session import CPU
from tests.shell import Done, Shell
from tests.slurm.service import TestCluster, until

ROOT = Path(__file__).parents[2]
SINGLE = ROOT / "recipes" / "smoke" / "single.yaml"
SITE = """\
[slurm]
system = "cpu"
gpus_per_node = 1
exclusive = false
time_limit = "5"
poll_s = 0.5
python = "{worker}"
sbatch_args = ["--overcommit"]
setup = ["export SETUP_WAS_RUN=1"]
environment = {{NCCL_DEBUG = "WARN"}}
"""
WORKER = """\
#!/bin/bash
# What torchrun would start: all steps at once, by the first node.
echo "node $SLURM_NODEID of $SLURM_NNODES, $NCCL_DEBUG, $SETUP_WAS_RUN, token ${HF_TOKEN:-none}"
while [ $# -gt 1 ]; do [ "$1" = --steps ] && steps=$2; shift; done
[ "$SLURM_NODEID" = 0 ] || exit 0
until [ ! -e "$WAIT_FOR" ]; do sleep 0.1; done
for number in $(seq 25); do echo "{\\"step\\": $number, \\"step_time_s\\": 0.1}"; done >>"$steps"
"""
SECRET = "hf_plantedplantedplanted"
"""A token, by its name and by its form."""

Run = Callable[..., Done]


@pytest.fixture
def site(slurm: TestCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with the file of a site; workers wait as long as the file `wait` is in it."""
    worker = program(tmp_path / "worker", WORKER)
    (tmp_path / "perfdb.toml").write_text(SITE.format(worker=worker))
    monkeypatch.setenv("WAIT_FOR", str(tmp_path / "wait"))
    monkeypatch.setenv("HF_TOKEN", SECRET)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    slurm.run("scancel", "--quiet", "--user=root")


@pytest.fixture
def submit(perfdb: Shell, site: Path) -> Run:
    """`perfdb run --launcher slurm` of recipes, with Megatron-Core as if it were installed."""

    def run(*arguments: str) -> Done:
        return perfdb("run", *arguments, "--launcher", "slurm", obj=tools())

    return run


def program(path: Path, text: str) -> Path:
    """A script that can be started."""
    path.write_text(text)
    path.chmod(0o755)
    return path


def tools() -> session.Tools:
    """Those of a login node without GPUs, with Megatron-Core as if it were installed."""
    return session.Tools(CPU, BACKENDS)


def recipe(name: str, **changed: object) -> str:
    """The path of a recipe that is as the smallest, but for some fields."""
    fields = {"name": name, **changed}
    text = SINGLE.read_text()
    for field, value in fields.items():
        text, found = re.subn(rf"(?m)^{field}: .*$", f"{field}: {json.dumps(value)}", text)
        text += "" if found else f"{field}: {json.dumps(value)}\n"
    Path(f"{name}.yaml").write_text(text)
    return f"{name}.yaml"


CHILD = (
    "from perfdb.cli import main; from runner import session; from perfdb import hardware;"
    "from tests.runner.quick_launcher import BACKENDS; import os; print(os.getpid(), flush=True);"
    "main(session.Tools(hardware.without_gpu('-'), BACKENDS))"
)
"""`perfdb` in a process of its own."""


def killed(preloaded: Path, *arguments: str, after_s: float | None = None) -> None:
    """A `perfdb run` in a process of its own, killed after some seconds, or as soon as it works."""
    with subprocess.Popen(
        [preloaded / "python", "-c", CHILD, "run", *arguments, "--launcher", "slurm"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    ) as child:  # fmt: skip
        assert child.stdout
        number = int(child.stdout.readline())
        try:
            if after_s is None:
                until(lambda: list(Path("runs").glob("*/ranks/console-0.log")), seconds=90)
            else:
                time.sleep(after_s)
        finally:
            with suppress(ProcessLookupError):  # it may have ended before a random moment
                os.kill(number, signal.SIGKILL)


class Terminal:
    """`perfdb run` at a terminal of its own, and what that has shown so far."""

    def __init__(self, *arguments: str) -> None:
        command = [sys.executable, "-c", CHILD, "run", *arguments, "--launcher", "slurm"]
        wide = {"COLUMNS": "160", "LINES": "40", "TERM": "xterm", "PYTHONPATH": str(ROOT)}
        self.screen = ""
        self.number, self.file = pty.fork()
        if not self.number:
            os.execve(command[0], command, {**os.environ, **wide})

    def shows(self, words: str) -> bool:
        """Whether the words have been shown; reads what there is."""
        while select.select([self.file], [], [], 0)[0]:
            try:
                self.screen += os.read(self.file, 1 << 16).decode(errors="replace")
            except OSError:  # the other end is closed
                break
        self.screen = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", self.screen)  # colors and the cursor
        return words in self.screen

    def types(self, keys: str) -> None:
        """Press keys."""
        os.write(self.file, keys.encode())

    def ended(self) -> int:
        """Its exit code."""
        until(lambda: self.shows("interrupted"), seconds=60)
        _, status = os.waitpid(self.number, 0)
        os.close(self.file)
        return os.waitstatus_to_exitcode(status)


def intents() -> list[tuple[RunDir, JobIntent]]:
    found = [run for run in find_runs(Path("runs")) if run.job.is_file()]
    return [(run, JobIntent.model_validate_json(run.job.read_text())) for run in found]


def test_a_case_runs_on_two_nodes_and_no_secret_is_kept(submit: Run) -> None:
    """The variable reaches the worker, which prints it; nobody finds it afterwards."""
    path = recipe("two-nodes", num_gpus=2)
    done = submit(path)
    assert 0 == done.code, done.stderr
    [(run, intent)] = intents()
    record = run.read_record()
    assert (Outcome.FINISHED, 2) == (record.outcome, intent.num_nodes)
    consoles = sorted(log.read_text() for log in run.rank_logs.glob("console-*.log"))
    assert [f"node {node} of 2, WARN, 1, token ***\n" for node in (0, 1)] == consoles
    assert "n[1-2]" == json.loads(run.job_end.read_text())["nodes"]
    assert record.environment.memory_bytes
    [nodes] = record.environment.nodes  # two names of one machine
    assert (2, (socket.gethostname(),) * 2) == (nodes.num_nodes, nodes.hostnames)
    assert {"SLURM_CLUSTER_NAME": "perfdb", "SLURM_JOB_NODELIST": "n[1-2]"}.items() <= dict(
        record.environment.variables
    ).items()
    assert {"NCCL_DEBUG": "WARN", "OMP_NUM_THREADS": "1"}.items() <= dict(
        record.environment.variables
    ).items()
    kept = [file for file in Path("runs").rglob("*") if file.is_file()]
    assert not [file for file in kept if SECRET in file.read_text(errors="replace")]
    assert SECRET not in done.stdout + done.stderr
    assert "1 finished before" in submit(path).stdout


def test_a_dry_run_prints_the_script_and_asks_nobody(
    submit: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With every setting that there is, and with a container's options on srun, not on sbatch."""
    monkeypatch.setenv("SLURM_CONF", "/nowhere")
    site = {"account": "perf", "qos": "high", "requeue": True, "srun_args": ["--mpi=none"],
            "container_mounts": ["/data:/data"], "gpus_per_numa_node": 4}  # fmt: skip
    path = recipe("all", container="nvcr.io/nvidia/nemo:25.04", slurm=site)
    done = submit(path, "--dry-run", "--slurm", "reservation=mine", "--slurm",
                  "pass_environment=HF_TOKEN")  # fmt: skip
    assert 0 == done.code, done.stderr
    script = done.stdout
    for line in ("#SBATCH --account=perf", "#SBATCH --qos=high", "#SBATCH --reservation=mine",
                 "#SBATCH --requeue", "#SBATCH --export=PATH,HOME,USER,HF_TOKEN",
                 "  '--container-image=nvcr.io#nvidia/nemo:25.04' \\"):  # fmt: skip
        assert line in script.splitlines()
    assert "--container-mounts=/data:/data," in script
    assert "--container" not in script[: script.index("srun --nodes")]
    assert SECRET not in script
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)
    assert not Path("runs").exists()


def test_what_slurm_refuses_has_failed_and_the_rest_goes_on(submit: Run) -> None:
    bad = recipe("bad", slurm={"partition": "nowhere"})
    done = submit(bad, recipe("good", seed=7))
    assert 1 == done.code
    assert "bad: failed: sbatch refuses it: sbatch: error: Batch job submission" in done.stderr
    outcomes = {run.read_record().recipe.name: run.read_record().outcome for run, _ in intents()}
    assert {"bad": Outcome.FAILED, "good": Outcome.FINISHED} == outcomes


@pytest.mark.slow
def test_whenever_the_submitter_is_killed_each_case_is_run_once(
    submit: Run, preloaded: Path
) -> None:
    path = recipe("sweep", matrix={"seed": [1, 2, 3, 4]})
    for after_s in (random.uniform(0.1, 1.5) for _ in range(3)):
        killed(preloaded, path, after_s=after_s)
    done = submit(path)
    assert 0 == done.code, done.stderr
    seeds = [run.read_record().seed for run, _ in intents()]
    assert [1, 2, 3, 4] == sorted(seeds)
    assert {Outcome.FINISHED} == {run.read_record().outcome for run, _ in intents()}
    steps = [len(run.read_steps()) for run, _ in intents()]
    assert [25] * 4 == steps


@pytest.mark.parametrize("lost", ["before sbatch", "after sbatch", "after the job"])
def test_a_job_whose_number_was_not_written_is_found_by_its_name(
    submit: Run, slurm: TestCluster, lost: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runner.slurm.follow.SUBMITTED_AFTER_S", 1)
    path = recipe("one")
    assert 0 == submit(path).code
    [(run, intent)] = intents()
    record = run.read_record().model_copy(update={"outcome": None, "ended_at": None})
    run.write_record(record)
    run.job.write_text(intent.model_copy(update={"job_id": None}).model_dump_json())
    if lost == "before sbatch":
        for file in (run.job_id, run.job_end, run.steps):
            file.unlink()
        again = intent.model_copy(update={"job_id": None, "name": f"{intent.name}x"})
        run.job.write_text(again.model_dump_json())
        script = run.job_script.read_text()
        run.job_script.write_text(script.replace(intent.name, again.name))
    if lost == "after the job":
        run.job_id.unlink()
    assert 0 == submit(path).code
    [(run, after)] = intents()
    assert Outcome.FINISHED is run.read_record().outcome
    assert 25 == len(run.read_steps())
    named = slurm.run("squeue", "--states=all", "-h", "-o", "%j").split()
    assert 1 == named.count(after.name)


def test_two_jobs_of_one_run_do_its_work_once(submit: Run, slurm: TestCluster) -> None:
    """As where the answer of sbatch was lost."""
    assert 0 == submit(recipe("one")).code
    [(run, _)] = intents()
    slurm.run("sbatch", "--wait", str(run.job_script))
    assert 25 == len(run.read_steps())
    assert "does nothing: job" in run.console.read_text()


@pytest.mark.slow
def test_jobs_logs_and_cancel(submit: Run, perfdb: Shell, site: Path, preloaded: Path) -> None:
    (site / "wait").touch()
    path = recipe("one")
    killed(preloaded, path)
    [(run, _)] = intents()
    [job] = json.loads(perfdb("jobs", "--json").stdout)["jobs"]
    assert ("one", "running", 0) == (job["case"], job["state"], job["num_steps"])
    until(lambda: "token ***" in perfdb("logs", "one").stdout)
    assert 2 == perfdb("cancel", "tow").code
    assert f"job {job['job_id']} cancelled" in perfdb("cancel", "--all").stdout
    until(run.job_end.is_file)
    (site / "wait").unlink()
    done = submit(path)
    assert (1, True) == (done.code, "interrupted: the job was cancelled" in done.stderr)
    assert "0 jobs" in perfdb("jobs").stdout
    assert 0 == submit(path).code


@pytest.mark.slow
def test_a_requeued_job_is_a_new_attempt_and_the_first_is_a_run_of_its_own(
    submit: Run, slurm: TestCluster, site: Path, preloaded: Path
) -> None:
    (site / "wait").touch()
    path = recipe("again", slurm={"requeue": True})
    killed(preloaded, path)
    [(run, _)] = intents()
    run.steps.write_text('{"step": 1, "step_time_s": 9.0}\n')
    number = run.job_id.read_text().strip()
    slurm.run("scontrol", "requeue", number)
    until(lambda: "PENDING" in slurm.run("squeue", "-h", "-o", "%T"))
    # Not in the second of the requeue: the node would refuse it ("Job credential revoked").
    slurm.run("scontrol", "update", f"JobId={number}", "StartTime=now+2")
    (site / "wait").unlink()
    done = submit(path)
    assert 0 == done.code, done.stderr
    outcomes = {one.path.name: one.read_record().outcome for one in find_runs(Path("runs"))}
    first = f"{run.path.name}-attempt-1"
    assert {run.path.name: Outcome.FINISHED, first: Outcome.INTERRUPTED} == outcomes
    assert (25, 1) == tuple(len(RunDir(Path("runs", name)).read_steps()) for name in outcomes)


@pytest.mark.slow
def test_a_controller_that_is_down_loses_nothing(
    submit: Run, slurm: TestCluster, site: Path, preloaded: Path
) -> None:
    (site / "wait").touch()
    path = recipe("one")
    killed(preloaded, path)
    slurm.stop("slurmctld")
    (site / "wait").unlink()
    back = subprocess.Popen(["sh", "-c", "sleep 3; exec slurmctld"], env=slurm.variables)
    try:
        done = submit(path)
    finally:
        back.wait()
        until(slurm.ready, seconds=150)
    assert 0 == done.code, done.stderr
    assert 1 == len(intents())


def test_without_slurm_it_says_where_to_run_it(
    submit: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = recipe("one")
    with monkeypatch.context() as bare:
        bare.setenv("PATH", "/nowhere")
        done = submit(path)
    assert (2, True) == (done.code, "--launcher: no sbatch here; run it on a login" in done.stderr)


@pytest.mark.slow
@pytest.mark.parametrize("answer", ["y", "n"])
def test_ctrl_c_at_a_terminal_asks_whether_the_jobs_are_cancelled(
    slurm: TestCluster, site: Path, answer: str
) -> None:
    (site / "wait").touch()
    terminal = Terminal(recipe("one"))
    until(lambda: terminal.shows("running"), seconds=90)
    assert re.search(r"Case +Job +State +Reason +Nodes +Elapsed", terminal.screen)
    terminal.types("\x03")
    until(lambda: terminal.shows("1 jobs are left. Cancel them?"), seconds=30)
    terminal.types(f"{answer}\n")
    assert 130 == terminal.ended(), terminal.screen
    [(run, intent)] = intents()
    record = run.read_record()
    if answer == "y":
        assert (Outcome.INTERRUPTED, "cancelled by the user") == (record.outcome, record.error)
        states = ("squeue", "--states=all", "-h", "-o", "%T", f"--jobs={intent.job_id}")
        until(lambda: "CANCELLED" in slurm.run(*states))
        return
    assert record.outcome is None
    assert "1 jobs go on: the same command follows them again" in terminal.screen
    (site / "wait").unlink()
    until(run.job_end.is_file)
    assert 0 == json.loads(run.job_end.read_text())["exit_code"]


def test_without_a_terminal_a_line_says_where_the_state_of_a_job_changes(submit: Run) -> None:
    done = submit(recipe("one"))
    [(_, intent)] = intents()
    assert f"  one, job {intent.job_id}: " in done.stderr
    assert "Elapsed" not in done.stderr
    assert "[1/1] one: 0.1000 s/step, 20 steps" in done.stderr


def test_a_job_waits_until_another_has_ended_however_it_ends(
    submit: Run, slurm: TestCluster
) -> None:
    command = ("sbatch", "--parsable", "--output=/dev/null", "--wrap=sleep 2; exit 1")
    number = slurm.run(*command).strip()
    assert 0 == submit(recipe("one"), "--after", number).code
    [(run, intent)] = intents()
    assert (int(number),) == intent.after
    began = json.loads(run.job_end.read_text())["started_at_s"]
    times = slurm.run("scontrol", "show", "job", number)
    assert "JobState=FAILED" in times
    ended = re.search(r"EndTime=(\S+)", times)
    assert ended
    assert datetime.fromisoformat(ended[1]).timestamp() <= began
