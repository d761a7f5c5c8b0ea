"""A log of several runs, one behind the other: it is of the last alone, and a note says so."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest
from perfdb.windows import Window

from perfdb import aggregation
from perfdb.formats import FORMATS, ParsedLog, several
from tests.logs import step_line, titan

TIME_LIMIT = "slurmstepd: error: *** JOB 42 ON n1 CANCELLED AT 2025-07-01 DUE TO TIME LIMIT ***\n"
MEGATRON = (
    " iteration %8d/      50 | consumed samples: 12 | elapsed time per iteration (ms): %.1f | "
    "global batch size:    64 | lm loss: 1.5 | number of nan iterations:   0 |\n"
)


def nemo2(sequence: int, steps: int, seconds: float) -> str:
    """A run of 50 steps in which so many were done, and what it says of itself first."""
    lines = (step_line(step, 50, seconds) for step in range(steps))
    return f"MegatronStrategy(seq_length={sequence})\n" + "".join(lines)


def megatron_lm(sequence: int, steps: int, seconds: float) -> str:
    """The same of Megatron-LM."""
    lines = (MEGATRON % (step, seconds * 1000) for step in range(1, steps + 1))
    return f"--- arguments ---\n  seq_length ........ {sequence}\n" + "".join(lines)


PROGRAMS: Mapping[str, Callable[[int, int, float], str]] = {
    "nemo2": nemo2, "megatron_lm": megatron_lm, "torchtitan": titan,
}  # fmt: skip


def read(name: str, text: str, chunk: int = 1 << 20, window: Window | None = None) -> ParsedLog:
    content = text.encode()
    chunks = [content[at : at + chunk] for at in range(0, len(content), chunk)]
    member = FORMATS[name]
    [log] = several.of_last(member, "a.log", member.parse("a.log", chunks), lambda: chunks, window)
    return log


def times(log: ParsedLog) -> list[tuple[int, float]]:
    return [(one.step, round(one.step_time_s, 2)) for one in log.readings]


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_last_run_has_its_own_steps_settings_and_end(name: str) -> None:
    """The first has all of its 50 steps, of 16 s; the second is ended in its 30th, of 4 s."""
    first = PROGRAMS[name](4096, 50, 16.0) + "[after training is done] `Training completed`\n"
    log = read(name, first + PROGRAMS[name](8192, 30, 4.0) + TIME_LIMIT)

    assert [(step, 4.0) for step in range(1, 31)] == times(log)
    assert ("timed_out", "skip_warmup(10)", None) == (log.outcome, log.window, log.restarted_at)
    assert 8192 == log.configuration.sequence_length
    until = first.count("\n") - 1
    assert (
        f"a.log: lines 1 to {until} are of an earlier run, or of another rank: they are left out; "
        "give each run a file of its own"
    ) == str(log.notes[0])


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("chunk", [1, 700, 1 << 20])
def test_it_is_read_as_it_is_alone_but_for_its_line_numbers(name: str, chunk: int) -> None:
    before, last = PROGRAMS[name](4096, 50, 16.0) * 2, PROGRAMS[name](8192, 50, 4.0)
    alone, log = read(name, last), read(name, before + last, chunk)

    below = before.count("\n")
    moved = [one._replace(line=one.line + below) for one in alone.readings]
    assert moved == list(log.readings)
    said = replace(log, readings=alone.readings, notes=log.notes[1:])
    assert alone == said


SMALLER = titan(4096, 40, 8.0).replace("with [], []", "with ['dp_shard', 'tp'], [4, 2]")


def behind(step: int, text: str) -> str:
    """What a log of torchtitan says of a run that goes on behind a step."""
    at = text.index("[titan] root")
    return text[:at] + "".join(text[at:].splitlines(keepends=True)[step:])


@pytest.mark.parametrize("last", [25, 20])
@pytest.mark.parametrize("between", [0, 2000])
def test_each_attempt_has_the_times_that_follow_from_its_own_settings(
    last: int, between: int
) -> None:
    """On one GPU, and from step 21 on, eight; whether or not the steps up to 25 were lost."""
    noise = "[titan] root - INFO - saving a shard of the checkpoint\n" * between
    first = titan(8192, last, 16.0)
    log = read("torchtitan", first + noise + behind(20, SMALLER))

    expected = [(step, 16.0 if step <= 20 else 1.0) for step in range(1, 41)]
    assert expected == times(log)
    case = log.configuration
    assert (8, 2, 4096) == (case.num_gpus, case.tensor_parallel, case.sequence_length)
    assert ("skip_warmup(30)", 21, last == 20) == (log.window, log.restarted_at, log.goes_on)
    assert times(read("torchtitan", first)) == expected[:20] + [
        (n, 16.0) for n in range(21, last + 1)
    ]


GPU = "[titan] CUDA capacity: NVIDIA {} with {}GiB memory\n"


@pytest.mark.parametrize(
    ("until", "expected"), [(40, ("dgx-h200", 140, None)), (24, ("dgx-h100", 79, True))]
)
@pytest.mark.parametrize("between", [0, 2000])
def test_each_attempt_has_its_own_gpus_and_profiler(
    until: int, expected: tuple[str, int, bool | None], between: int
) -> None:
    """Of which the second has none; it is judged by the first where the second is too short."""
    first, again = titan(8192, 20, 16.0), behind(20, titan(8192, until, 16.0))
    profiled = GPU.format("H100 80GB HBM3", 79) + "[titan] Profiling active.\n"
    first = first.replace("\n", "\n" + profiled, 1)
    noise = "[titan] root - INFO - saving a shard of the checkpoint\n" * between
    log = read("torchtitan", first + noise + again.replace("\n", "\n" + GPU.format("H200", 140), 1))

    options, memory = log.configuration.options or {}, log.gpu_memory_bytes or 0
    assert expected == (log.configuration.system, memory / 2**30, options.get("enable_profiling"))


@pytest.mark.parametrize(("until", "version"), [(50, "0.4.0"), (34, "0.3.0")])
@pytest.mark.parametrize("between", [0, 2000])
def test_automodel_has_the_version_of_the_attempt_that_is_judged(
    until: int, version: str, between: int
) -> None:
    noise = "saving a shard of the checkpoint ............\n" * between
    said = "\n- nemo_automodel: {} (/opt/a.py)\nstep_scheduler"
    first, again = automodel(8, 16, 1, 30), automodel(8, 16, 31, until)
    text = first.replace("\nstep_scheduler", said.format("0.3.0")) + noise
    log = read("automodel_console", text + again.replace("\nstep_scheduler", said.format("0.4.0")))
    assert version == log.framework_version


def test_an_attempt_that_made_no_step_has_no_say() -> None:
    unstarted = titan(8192, 0, 1.0).replace("with [], []", "with ['dp_shard'], [64]")
    log = read("torchtitan", unstarted + behind(0, SMALLER))
    assert [(step, 1.0) for step in range(1, 41)] == times(log)
    assert (8, 4096) == (log.configuration.num_gpus, log.configuration.sequence_length)


def test_an_attempt_whose_settings_cannot_be_read_has_no_times() -> None:
    """The mesh of the second is cut off; and of the first, where its beginning is lost."""
    cut = behind(20, SMALLER).replace("['dp_shard', 'tp'], [4, 2]", "['dp_sh")
    log = read("torchtitan", titan(8192, 20, 16.0) + cut)
    assert [(step, 16.0) for step in range(1, 21)] == times(log)
    assert "a.log:25: no step time follows from tps" in str(log.problems[-1])

    steps = titan(8192, 20, 16.0)
    log = read("torchtitan", steps[steps.index("[titan] root") :] + behind(20, SMALLER))
    assert [(step, 1.0) for step in range(21, 41)] == times(log)
    assert "a.log:1: no step time follows from tps" in str(log.problems[-1])


def automodel(gpus: int, batch: int, first: int, last: int) -> str:
    """A log of AutoModel's console: steps of so many samples of 4096 tokens, at 65,536 a second."""
    line = "step {} | epoch 0 | loss 2.5 | mem 26.00 GiB | tps 65536.00 | num_label_tokens {}\n"
    return (
        f"Experiment_details:\n- World size: {gpus}\nstep_scheduler:\n"
        f"  global_batch_size: {batch}\n  max_steps: 50\ndataset:\n  seq_len: 4096\n"
    ) + "".join(line.format(step, batch * 4095) for step in range(first - 1, last))


@pytest.mark.parametrize("between", [0, 2000])
@pytest.mark.parametrize("last", [30, 35])
def test_automodel_has_the_gpus_of_the_attempt_that_is_judged(between: int, last: int) -> None:
    noise = "saving a shard of the checkpoint ............\n" * between
    log = read("automodel_console", automodel(8, 16, 1, last) + noise + automodel(16, 16, 31, 50))
    assert [(step, 1.0) for step in range(1, 51)] == times(log)
    assert (16, 31, "skip_warmup(40)") == (
        log.configuration.num_gpus, log.restarted_at, log.window,
    )  # fmt: skip


ITERATIONS = "".join(MEGATRON % (step, 4000) for step in range(1, 51))
OF_GPUS: Mapping[str, Callable[[int], str]] = {
    "megatron_lm": lambda gpus: f"---- arguments ----\n  world_size ... {gpus}\n" + ITERATIONS,
    "megatron_bridge": lambda gpus: f"ConfigContainer:\n  world_size: {gpus}\n" + ITERATIONS,
    "torchtitan": lambda gpus: titan(4096, 50, 4.0).replace("[], []", f"['dp_shard'], [{gpus}]"),
    "automodel_console": lambda gpus: automodel(gpus, 16, 1, 50),
}


@pytest.mark.parametrize("name", OF_GPUS)
@pytest.mark.parametrize(("lost", "last"), [(16, 32), (16, 16), (16, 8)])
def test_an_attempt_of_which_no_step_is_kept_has_no_say(name: str, lost: int, last: int) -> None:
    """Steps 1 to 40 on 8 GPUs, 31 to 45 on others, all printed again, and 31 to 50."""

    def part(gpus: int, first: int, until: int) -> str:
        lines = OF_GPUS[name](gpus).splitlines(keepends=True)
        return "".join([*lines[:-50], *lines[-50:][first - 1 : until]])

    text = part(8, 1, 40) + part(lost, 31, 45) + part(last, 31, 50)
    for window, gpus, steps in (
        (aggregation.between(11, 25), 8, "1 to 30"), (aggregation.last_n(10), last, "31 to 50"),
    ):  # fmt: skip
        log = read(name, text, window=window)
        told = (log.changed_settings or "alone").partition(" alone")[0]
        assert gpus == log.configuration.num_gpus
        assert (f"steps {steps}" if last != 8 else "alone") == told


def test_automodel_with_attempts_of_several_batches_says_which_step_is_uncertain() -> None:
    log = read("automodel_console", automodel(8, 16, 1, 35) + automodel(16, 32, 31, 50))
    assert [] == times(log)
    assert (16, 32) == (log.configuration.num_gpus, log.configuration.global_batch_size)
    assert "step 1 has 65,520 label tokens, its batch up to 131,072" in str(log.problems[-1])


def test_a_job_that_began_again_from_nothing_restarts_in_its_own_run_alone() -> None:
    """Resumed from step 21, then from nothing, and again from step 21."""
    resumed = "".join(MEGATRON % (step, 9000) for step in range(21, 40))
    log = read("megatron_lm", resumed + megatron_lm(4096, 30, 4.0) + resumed)
    assert (21, "skip_warmup(30)", 39) == (log.restarted_at, log.window, len(log.readings))
    assert "lines 1 to 19 " in log.notes[0].message


@pytest.mark.parametrize("ahead", [1, 2, 4])
def test_ranks_that_share_a_log_are_of_one_run(ahead: int) -> None:
    """One is a few lines ahead of the other, who begins when it has printed these."""
    both = [
        step for first in range(1, 50, ahead) for _ in "ab" for step in range(first, first + ahead)
    ]
    log = read("megatron_lm", "".join(MEGATRON % (step, 4000) for step in both))
    assert log.earlier_until is None
    assert not [note for note in log.notes if "earlier" in note.message]


MEMORY = {
    "nemo2": (nemo2, " | train_step", " | peak_memory_usage: %d | train_step"),
    "torchtitan": (titan, "memory:  1.50GiB", "memory:  %d.00GiB"),
}


@pytest.mark.parametrize("name", MEMORY)
@pytest.mark.parametrize("gib", [(105, 99), (99, 105)])
def test_of_ranks_that_share_a_log_the_largest_peak_is_that_of_a_step(
    name: str, gib: tuple[int, int]
) -> None:
    make, old, new = MEMORY[name]
    unit = 2**30 if name == "nemo2" else 1
    ranks = [make(4096, 50, 4.0).replace(old, new % (one * unit)).splitlines() for one in gib]
    text = "".join(f"{line}\n" for lines in zip(*ranks, strict=True) for line in lines)
    log = read(name, text)
    assert {105 * 2**30} == {one.peak_memory_bytes for one in log.readings}
    assert any("with the largest peak memory" in note.message for note in log.notes)


def test_a_restart_has_the_peak_of_its_own_attempt() -> None:
    first, again = (
        titan(4096, 50, 4.0).replace("1.50GiB", f"{one}.00GiB").splitlines(keepends=True)
        for one in (9, 5)
    )
    log = read("torchtitan", "".join([*first, *again[:2], *again[42:]]))
    assert [9] * 40 + [5] * 10 == [(one.peak_memory_bytes or 0) >> 30 for one in log.readings]


def test_a_run_of_few_lines_is_one_too() -> None:
    """Every tenth of 50 steps is printed; the second run is of 40."""
    first = "".join(MEGATRON % (step, 9000) for step in range(10, 60, 10))
    again = "".join(MEGATRON % (step, 4000) for step in range(10, 50, 10))
    assert [(10, 4.0), (20, 4.0), (30, 4.0), (40, 4.0)] == times(read("megatron_lm", first + again))
