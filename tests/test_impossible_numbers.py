"""What no run can have done is refused, with its place."""

from collections.abc import Callable
from pathlib import Path

import pytest

from perfdb.formats import FORMATS
from perfdb.ingest.find import Source
from perfdb.ingest.reads import Rejected
from perfdb.ingest.runs import RunFound, find_run, parse_run
from perfdb.rundir import RunDir
from tests import factories


def in_record(old: str, new: str) -> Callable[[RunDir], None]:
    return lambda run: run.record.write_text(run.record.read_text().replace(old, new)) and None


def in_steps(**changed: object) -> Callable[[RunDir], None]:
    def change(run: RunDir) -> None:
        good, bad = factories.steps(), factories.steps(**changed)
        factories.write_steps(run, [*good[:3], bad[3], *good[4:]])

    return change


REFUSED = {
    "step_time_s: 1e+308 seconds is no duration of a step": in_steps(step_time_s=1e308),
    "step_time_s: 1e-300 seconds is no duration of a step": in_steps(step_time_s=1e-300),
    "step_time_min_s: -1 seconds is no duration of a step": in_steps(step_time_min_s=-1.0),
    "step_time_min_s: nan seconds is no duration of a step": in_steps(step_time_min_s="NaN"),
    "tokens: -5 is less than nothing": in_steps(tokens=-5),
    "peak_memory_bytes: -1 is less than nothing": in_steps(peak_memory_bytes=-1),
    "case.num_gpus: Input should be less than or equal to": in_record(
        '"num_gpus": 8', f'"num_gpus": {"9" * 400}'
    ),
    "warmup_steps: Input should be greater than or equal to 0": in_record(
        '"warmup_steps": 2', '"warmup_steps": -1'
    ),
}


@pytest.mark.parametrize("message", REFUSED)
def test_a_run_directory_of_impossible_numbers_is_refused(tmp_path: Path, message: str) -> None:
    """With the file and the field; of a step, with its line."""
    run = factories.write_run(tmp_path)
    REFUSED[message](run)
    found = find_run(Source(run.path, "run", named=True))
    assert isinstance(found, RunFound)
    read = parse_run(found)
    assert isinstance(read, Rejected)
    [problem] = read.problems
    assert message in str(problem)
    assert problem.where in (str(run.record), str(run.steps))
    if problem.where == str(run.steps):
        assert 4 == problem.line


def titan(mesh: str) -> bytes:
    return (
        f"[titan] Building 1-D device mesh with ['dp_shard'], [{mesh}]\n"
        "[titan] Training starts at step 1, with local batch size 2, global batch size 16, "
        "sequence length 8192, total steps 1 (warmup 2)\n"
        "[titan] step:  1  loss: 12.0  memory: 40.50GiB(42.58%)  tps: 4,096  mfu: 1.00%\n"
    ).encode()


@pytest.mark.parametrize("digits", [400, 5000])
def test_a_mesh_of_impossible_size_gives_no_step_time(digits: int) -> None:
    """16 × 8192 tokens ÷ (4096 tokens/s/GPU × 8 GPUs) are 4 s; of 10⁴⁰⁰ GPUs nothing follows."""
    [good] = FORMATS["torchtitan"].parse("a.log", [titan("8")])
    assert [4.0] == [reading.step_time_s for reading in good.steps]
    [bad] = FORMATS["torchtitan"].parse("a.log", [titan("9" * digits)])
    assert (None, True) == (bad.configuration.num_gpus, bad.is_untimed)


def test_memory_that_rounds_to_no_byte_is_not_known() -> None:
    """Never zero for unknown."""
    line = b'{"step": 0, "loss": 2.5, "mem": %s, "tps": 10.0, "num_tokens_per_step": 20000}\n'
    parse = FORMATS["automodel_training"].parse
    found = [parse("a.jsonl", [line % mem])[0].steps[0] for mem in (b"1.0", b"1e-320")]
    assert [2**30, None] == [reading.peak_memory_bytes for reading in found]
