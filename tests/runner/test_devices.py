"""The GPUs and cores of a run, which no other run of the machine's has at the same time."""

import os
import threading
from pathlib import Path

import pytest

from perfdb import hardware
from perfdb.errors import InputError
from perfdb.run_record import StepRecord
from perfdb.rundir import find_runs
from runner import devices
from runner.run import execute
from tests.runner import test_session

CPU = hardware.without_gpu("no GPU")
UUIDS = [f"GPU-{number}a5e1b2c" for number in range(8)]
H100 = hardware.from_nvidia_smi(
    "".join(f"NVIDIA H100 80GB HBM3, 580.65.06, 81559, {uuid}\n" for uuid in UUIDS)
)


@pytest.mark.parametrize(
    ("visible", "num_gpus", "expected"),
    [
        (None, 8, UUIDS),
        (None, 2, UUIDS[:2]),
        ("4,5, 6", 2, UUIDS[4:6]),
        ("GPU-7,GPU-2a5e1b2c", 2, [UUIDS[7], UUIDS[2]]),
        ("MIG-1", 1, ["MIG-1"]),
    ],
)
def test_the_gpus_of_a_run_are_the_first_that_are_visible(
    visible: str | None, num_gpus: int, expected: list[str]
) -> None:
    variables = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    assert expected == devices.of_run(num_gpus, H100, variables)


def test_a_run_without_gpus_has_all_the_cores() -> None:
    assert len(os.sched_getaffinity(0)) == len(devices.of_run(1, CPU, {}))


def wait_in_vain() -> None:
    raise AssertionError("waits")


def test_runs_with_other_gpus_do_not_wait_for_one_another() -> None:
    with devices.held(UUIDS[:4], wait_in_vain), devices.held(UUIDS[4:], wait_in_vain):
        pass


class Waiting(threading.Event):
    """A watcher that is set when its run waits."""

    waiting = threading.Event.set

    def steps_done(self, steps: tuple[StepRecord, ...], planned: int) -> None:
        """Nothing more to tell."""


def test_a_run_waits_for_another_that_has_one_of_its_cores_and_says_so(tmp_path: Path) -> None:
    """Whatever folder the other one goes to. Before it has them, it begins nothing."""
    [planned], target, waits = (test_session.planned(), test_session.target(tmp_path), Waiting())
    ours = threading.Thread(target=execute, args=(planned, target, waits))
    with devices.held(devices.of_run(1, CPU, {})[-1:], wait_in_vain):
        ours.start()
        assert waits.wait(20)
        assert [] == find_runs(tmp_path)
    ours.join(20)
    assert 1 == len(find_runs(tmp_path))


def test_where_no_lock_can_be_made_it_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "file"))
    expected = "no lock of this machine's devices can be made: Not a directory; name a folder"
    with pytest.raises(InputError, match=expected), devices.held(["core-0"], wait_in_vain):
        pass
