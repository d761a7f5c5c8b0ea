"""Jobs that the controller has forgotten, on a real Slurm with a real slurmdbd."""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest

from perfdb.record import Outcome
from perfdb.rundir import RunDir
from runner.slurm.client import Slurm
from runner.slurm.jobs import JobIntent, seen
from tests.shell import Done, Shell
from tests.slurm.service import TestCluster, until
from tests.slurm.test_run import SITE, WORKER, Run, intents, killed, program, recipe, tools


@pytest.fixture
def accounted(
    accounting_service: TestCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[TestCluster]:
    """A Slurm with accounting, and a folder with the file of a site; workers wait."""
    monkeypatch.setenv("SLURM_CONF", accounting_service.variables["SLURM_CONF"])
    monkeypatch.setenv("WAIT_FOR", str(tmp_path / "wait"))
    monkeypatch.chdir(tmp_path)
    worker = program(tmp_path / "worker", WORKER)
    Path("perfdb.toml").write_text(SITE.format(worker=worker))
    Path("wait").touch()
    yield accounting_service
    accounting_service.run("scancel", "--quiet", "--user=root")


@pytest.fixture
def submit(perfdb: Shell) -> Run:
    def run(*arguments: str) -> Done:
        return perfdb("run", *arguments, "--launcher", "slurm", obj=tools())

    return run


def forgotten(cluster: TestCluster, run: RunDir, number: int) -> None:
    """Wait until squeue lacks a job, and take away what its script may have left at its end."""
    until(lambda: str(number) not in cluster.run(
        "squeue", "--states=all", "-h", "-o", "%A").split(), seconds=90)  # fmt: skip
    run.job_end.unlink(missing_ok=True)


@pytest.mark.slow
def test_sacct_says_how_a_job_ended_that_squeue_has_forgotten(
    accounted: TestCluster, submit: Run, preloaded: Path
) -> None:
    """Though its number is that of a stranger's job by now, which runs."""
    path = recipe("one")
    killed(preloaded, path)
    [(run, _)] = intents()
    number = int(run.job_id.read_text())
    accounted.run("scancel", str(number))
    until(run.job_end.is_file)
    forgotten(accounted, run, number)
    accounted.stop("slurmctld")
    for file in (accounted.folder / "state").glob("job_state*"):
        file.unlink()  # it counts from the first number again
    accounted.start("slurmctld")
    until(accounted.ready)
    stranger = 0
    while stranger < number:
        stranger = int(accounted.run("sbatch", "--parsable", "--overcommit", "--mem=1",
                                     "--output=/dev/null", "--wrap=sleep 600"))  # fmt: skip
    assert number == stranger
    done = submit(path)
    assert 1 == done.code
    assert "one: interrupted: the job was cancelled" in done.stderr
    accounted.run("scancel", "--user=root")
    Path("wait").unlink()
    assert 0 == submit(path).code
    outcomes = sorted(str(one.read_record().outcome) for one, _ in intents())
    assert [Outcome.FINISHED, Outcome.INTERRUPTED] == outcomes


@pytest.mark.slow
def test_a_node_that_fails_is_named_as_the_reason(
    accounted: TestCluster, submit: Run, preloaded: Path
) -> None:
    """All its processes die at once, so its job leaves no end: only Slurm knows."""
    path = recipe("one", slurm={"nodelist": "n2"})
    killed(preloaded, path)
    [(run, _)] = intents()
    number = int(run.job_id.read_text())
    slurmd = int((accounted.folder / "slurmd-n2.pid").read_text())
    steps = [it for it in processes() if command_of(it).startswith(f"slurmstepd: [{number}.")]
    assert steps
    everything = {slurmd, *steps, *(it for step in steps for it in below(step))}
    for sent in (signal.SIGSTOP, signal.SIGKILL):  # none outlives another long enough to tell of it
        for one in everything:
            with suppress(ProcessLookupError):
                os.kill(one, sent)
    try:
        until(lambda: "NODE_FAIL" in accounted.run("sacct", "-X", "-n", "-P", "-o", "State",
                                                   "-j", str(number)), seconds=120)  # fmt: skip
        forgotten(accounted, run, number)
        done = submit(path)
    finally:
        accounted.start("n2")
        until(accounted.ready, seconds=60)
    assert "one: interrupted: a node of it failed (NODE_FAIL)" in done.stderr


def test_one_question_to_sacct_knows_the_jobs_of_all_names(accounted: TestCluster) -> None:
    """Of a job that was requeued, its last attempt."""
    ends = {"perfdb-a": "true", "perfdb-b": "exit 3", "perfdb-c": "sleep 600"}
    for name, command in ends.items():
        accounted.run("sbatch", "--requeue", "--overcommit", "--mem=1", "--output=/dev/null",
                      f"--job-name={name}", f"--wrap={command}")  # fmt: skip
    running = ("squeue", "-h", "-t", "R", "-n", "perfdb-c", "-o", "%A")
    until(lambda: accounted.run(*running).strip(), seconds=120)
    number = accounted.run(*running).strip()
    accounted.run("scontrol", "requeue", number)
    until(lambda: "PENDING" in accounted.run("squeue", "-h", "-o", "%T"), seconds=120)
    accounted.run("scontrol", "update", f"JobId={number}", "StartTime=now+2")
    until(lambda: accounted.run(*running).strip(), seconds=120)
    accounted.run("scancel", number)
    until(lambda: not accounted.run("squeue", "--states=all", "-h").strip(), seconds=120)
    slurm = Slurm()
    found = slurm.jobs(ends)
    assert found is not None
    states = {name: seen(found, intent_of(name), None) for name in ends}
    assert {"perfdb-a": "COMPLETED", "perfdb-b": "FAILED", "perfdb-c": "CANCELLED"} == {
        name: one and one.state for name, one in states.items()
    }
    assert 2 == slurm.num_calls
    slurm.jobs(ends)
    assert 3 == slurm.num_calls


def intent_of(name: str) -> JobIntent:
    now = datetime.now(UTC)
    return JobIntent(name=name, case_name="-", num_nodes=1, limit_s=60, written_at=now)


def processes() -> list[int]:
    return [int(one.name) for one in Path("/proc").iterdir() if one.name.isdecimal()]


def command_of(process: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{process}/cmdline").read_text(errors="replace")
    return ""


def below(process: int) -> list[int]:
    """All processes that a process has started, and those that these have."""
    try:
        threads = Path(f"/proc/{process}/task").iterdir()
        own = [int(it) for one in threads for it in (one / "children").read_text().split()]
    except OSError:
        return []
    return [*own, *(it for one in own for it in below(one))]
