"""The local launcher: on Linux no process of a run outlives it."""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from perfdb.rundir import RunDir
from runner.backends import Command
from runner.launchers import local

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="its processes are in /proc")

RANK = "setsid sh -c 'trap \"\" TERM; while :; do sleep 0.1; done' & echo $! > rank; wait"
"""Stands for torchrun: it starts a rank in a session of its own, which does not take SIGTERM."""


@pytest.fixture
def started(tmp_path: Path) -> Iterator[local.LocalProcess]:
    """A run whose rank is at work."""
    variables = local.variables(Command("no.module", (), 1))
    process = local.launch(("/bin/sh", "-c", RANK), variables, RunDir(tmp_path))
    process = replace(process, stop_after_s=5)
    wait_for(lambda: (tmp_path / "rank").is_file() and rank_in(tmp_path))
    yield process
    with suppress(ProcessLookupError):
        os.killpg(int(rank_in(tmp_path)), signal.SIGKILL)


def wait_for(happened: Callable[[], object]) -> None:
    deadline = time.monotonic() + 20
    while not happened() and time.monotonic() < deadline:
        time.sleep(0.01)


def test_a_launcher_that_is_killed_leaves_no_rank_behind(
    started: local.LocalProcess, tmp_path: Path
) -> None:
    os.kill(started.child.pid, signal.SIGKILL)
    wait_for(lambda: started.child.poll() is not None)
    assert -signal.SIGKILL == started.poll()
    assert is_gone(tmp_path)


def test_several_workers_have_a_thread_each_unless_the_shell_says_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As torchrun does, so that the record has what the workers have."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert "OMP_NUM_THREADS" not in local.variables(Command("no.module", (), 1))
    assert "1" == local.variables(Command("no.module", (), 8))["OMP_NUM_THREADS"]
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    assert "4" == local.variables(Command("no.module", (), 8))["OMP_NUM_THREADS"]


def test_a_rank_that_does_not_take_sigterm_is_killed(
    started: local.LocalProcess, tmp_path: Path
) -> None:
    started.stop()
    assert is_gone(tmp_path)


def is_gone(folder: Path) -> bool:
    """Whether the rank has ended, its parent asked of it or not."""
    try:
        status = Path("/proc", rank_in(folder), "status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True
    return "State:\tZ" in status


def rank_in(folder: Path) -> str:
    """The number of the rank's process."""
    return (folder / "rank").read_text().strip()
