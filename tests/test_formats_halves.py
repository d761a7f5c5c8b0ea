"""A large log of which another process reads the second half says what it says read by one."""

import os
from pathlib import Path
from typing import IO

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import URL, select

from perfdb import formats
from perfdb.db.tables import steps
from perfdb.formats import halves, shelf
from perfdb.formats.halves import OnDisk
from perfdb.formats.scan import Scan
from perfdb.formats.steplines import Found, StepLines
from perfdb.ingest import ingest, logs
from tests.logs import GIVEN, nemo, step_line, write
from tests.trees import rows_of

NOISE = "[NeMo I 2025-08-26 13:43:03 nemo_logging:405] rank 3: bucket 17 of bfloat16\n" * 40
MEGATRON = (
    " [2026-01-16 07:32:24] iteration %d/ 999 | consumed samples: 512 | elapsed time per iteration "
    "(ms): %d.5 | global batch size: 128 | lm loss: %s | number of nan iterations: 0 |\n"
)
ODD = {
    "nemo2": {
        "cut off": "Training epoch 0, iteration 7/\n",
        "folded": step_line(5, 999, 2.75)[:-3] + "\n" + "75\n",
        "coloured": "\x1b[32m" + step_line(6, 999, 2.5).replace("|", "\x1b[0m|\x1b[32m"),
        "no number": step_line(8, 999, 2.25, "nan"),
    },
    "megatron_lm": {
        "cut off": " iteration 7/ 999 | consumed samples: 512 |\n",
        "folded": (MEGATRON % (5, 2750, "9.5")).replace("| elapsed", "\n| elapsed"),
        "coloured": "\x1b[32m" + MEGATRON % (6, 2500, "9.5"),
        "no number": MEGATRON % (8, 2250, "nan"),
    },
}
ENDS = ("", "torch.OutOfMemoryError: CUDA out of memory\n", "`Trainer.fit` stopped: done\n")


@pytest.fixture(autouse=True)
def any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every log is large, and there are processors for it."""
    monkeypatch.setattr(halves, "LARGE_BYTES", 0)
    monkeypatch.setattr(halves, "SEAM_BYTES", 10_000)
    monkeypatch.setattr(shelf, "MOST_IN_MEMORY", 20)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})


def plain_step(name: str, number: int) -> str:
    if name == "nemo2":
        return step_line(number, 999, 2 + number / 1000)
    return MEGATRON % (number + 1, 2000 + number, 9.5 - number / 1000)


def log_of(name: str, parts: list[str], end: str) -> bytes:
    """A step for each part, with what is odd before it."""
    steps = enumerate(parts)
    lines = [NOISE + ODD[name].get(part, "") + plain_step(name, at) for at, part in steps]
    return "".join([*lines, end]).encode()


def on_disk(path: Path) -> OnDisk:
    return OnDisk(iter([path.read_bytes()]), path, path.stat().st_size)


parts = st.lists(st.sampled_from(["", "", *ODD["nemo2"]]), min_size=2, max_size=90)


@pytest.mark.parametrize("name", list(ODD))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(parts=parts, end=st.sampled_from(ENDS))
def test_two_processes_read_what_one_reads(
    tmp_path_factory: pytest.TempPathFactory, name: str, parts: list[str], end: str
) -> None:
    path = tmp_path_factory.mktemp("log") / "train.log"
    path.write_bytes(log_of(name, parts, end))
    found = formats.named(name)
    assert repr(found.parse("log", on_disk(path))) == repr(
        found.parse("log", [path.read_bytes()])
    )  # by repr: a loss that is no number equals none


@pytest.fixture
def taken_over(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many steps another process has found, each time that it was asked."""
    counts: list[int] = []
    go_on = StepLines._go_on_with

    def counting(self: StepLines, found: Found, file: IO[bytes], scan: Scan) -> None:
        counts.append(len(found.steps))
        go_on(self, found, file, scan)

    monkeypatch.setattr(StepLines, "_go_on_with", counting)
    return counts


def test_each_reads_about_half(tmp_path: Path, taken_over: list[int]) -> None:
    path = tmp_path / "train.log"
    path.write_bytes(log_of("nemo2", [""] * 100, ENDS[0]))
    (log,) = formats.named("nemo2").parse("log", on_disk(path))
    assert len(log.readings) == 100
    [steps_of_half] = taken_over
    assert 35 <= steps_of_half <= 50


def test_what_a_process_that_was_killed_has_not_read_is_read_all_the_same(
    tmp_path: Path, taken_over: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = os.getpid()
    apart = StepLines._apart

    def killed(self: StepLines, scan: Scan, file: IO[bytes]) -> Found | None:
        if os.getpid() != asked:
            os._exit(9)
        return apart(self, scan, file)

    monkeypatch.setattr(StepLines, "_apart", killed)
    path = tmp_path / "train.log"
    path.write_bytes(log_of("nemo2", [""] * 100, ENDS[0]))
    (log,) = formats.named("nemo2").parse("log", on_disk(path))
    assert [one.step for one in log.readings] == [*range(1, 101)]
    assert not taken_over


@pytest.mark.parametrize("num_steps", [0, 1, 2])
def test_a_rest_with_hardly_a_step_is_read_with_what_stands_before(
    tmp_path: Path, taken_over: list[int], num_steps: int
) -> None:
    """How a run ended is told by what stands among its last steps."""
    path = tmp_path / "train.log"
    rest = "".join(plain_step("nemo2", 9 + more) for more in range(num_steps))
    path.write_bytes(log_of("nemo2", [""] * 9, "") + (NOISE * 12 + rest + ENDS[1]).encode())
    whole = formats.named("nemo2").parse("log", [path.read_bytes()])
    assert repr(formats.named("nemo2").parse("log", on_disk(path))) == repr(whole)
    assert not taken_over


ERROR = "[rank0]: ValueError: a bad batch\n"


@pytest.mark.parametrize(("between", "outcome"), [("", "incomplete"), (ERROR, "failed")])
def test_errors_of_an_earlier_attempt_and_of_the_last_are_told_apart(
    tmp_path: Path, taken_over: list[int], between: str, outcome: str
) -> None:
    """By the lines that they stand on, of which the other process counts its own."""
    path = tmp_path / "train.log"
    last = plain_step("nemo2", 85) + between + plain_step("nemo2", 86)
    path.write_bytes(log_of("nemo2", [""] * 90, ERROR + NOISE + last))
    (log,) = formats.named("nemo2").parse("log", on_disk(path))
    assert taken_over
    assert (outcome, 86) == (log.outcome, log.restarted_at)


def test_an_attempt_may_begin_in_what_the_other_process_reads(
    tmp_path: Path, taken_over: list[int]
) -> None:
    path, arguments = tmp_path / "train.log", "---- arguments ----\n"
    last = "".join(plain_step("megatron_lm", number) for number in range(90, 120))
    first = arguments.encode() + log_of("megatron_lm", [""] * 90, arguments)
    path.write_bytes(first + last.encode())
    (log,) = formats.named("megatron_lm").parse("log", on_disk(path))
    assert taken_over
    assert (91, "skip_warmup(100)") == (log.restarted_at, log.window)


def test_with_one_processor_one_process_reads(
    tmp_path: Path, taken_over: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    path = tmp_path / "train.log"
    path.write_bytes(log_of("nemo2", [""] * 100, ""))
    (log,) = formats.named("nemo2").parse("log", on_disk(path))
    assert len(log.readings) == 100
    assert not taken_over


def test_a_log_that_grows_while_it_is_read_is_read_as_it_is_kept(
    sqlite: URL, tmp_path: Path, taken_over: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its size was asked before: the other process reads no further."""
    path = write(tmp_path / "a", nemo([2.0] * 400))
    before = path.stat().st_size // 2
    monkeypatch.setattr(logs, "plain_size_bytes", lambda _: before)
    ingest([path], sqlite, GIVEN)
    assert taken_over
    assert len(rows_of(sqlite, select(steps.c.step))) == 400
