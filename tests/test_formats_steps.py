"""Steps of logs: read by the thousand as one by one, each kept once, and what is refused."""

import numpy as np
import pytest

from perfdb.formats import FORMATS, ParsedLog, Reading
from perfdb.formats.columns import StepColumn, Steps
from perfdb.formats.megatron_lm import SYNTAX, steps_of
from perfdb.formats.scan import Block
from perfdb.formats.steplines import StepReader

ITERATION = (
    " [2026-01-16 07:32:24] iteration {step:8}/     999 | consumed samples: {samples:12} | "
    "elapsed time per iteration (ms): {ms} | global batch size:  {batch} | lm loss: {loss} | "
    "grad norm: {norm} | number of skipped iterations:   {skipped} | "
    "number of nan iterations:   0 |\n"
)
RATE = "Step Time : {time:.2f}s GPU utilization: {rate:.1f}MODEL_TFLOP/s/GPU\n"
ARGUMENTS = """\
------------------------ arguments ------------------------
  micro_batch_size ................................ {}
  tensor_model_parallel_size ...................... {}
"""


def iteration(step: int, ms: str = "1500.0", loss: str = "8.5E+00", **more: object) -> str:
    fields = {"norm": "2.870", "skipped": 0, "batch": 2048, **more}
    return ITERATION.format(step=step, samples=step * 2048, ms=ms, loss=loss, **fields)


def iterations(first: int, last: int, every: int = 1, **more: object) -> str:
    return "".join(iteration(step, **more) for step in range(first, last + 1, every))


def parsed(text: str, name: str = "megatron_lm") -> ParsedLog:
    [log] = FORMATS[name].parse("a.log", [text.encode()])
    return log


def nemo(steps: range, ranks: int = 1, time: float = 2.5) -> str:
    return "".join(
        f"Training epoch 0, iteration {step - 1}/99 | global_batch_size: 8 | "
        f"global_step: {step - 1} | reduced_train_loss: 2.5 | train_step_timing in s: {time}\n"
        for step in steps
        for _ in range(ranks)
    )


def test_numbers_of_any_form_are_those_that_python_reads() -> None:
    """Many lines of one shape, few of another, and some that are like no other."""
    times = ["1500.0", "15000.5", "9.1", "123456789012345678.0", "1.5e3", "2E+02", "0.1"]
    losses = ["1.344240E+01", "8.5", "-2.5E-03", "7", "1e22", "9.9E+30"]
    lines = [
        iteration(n + 1, times[n % len(times)], losses[n % len(losses)], norm=f"{n}.{n % 7}")
        for n in range(2000)
    ]
    reader = StepReader("a.log", SYNTAX, steps_of)
    reader.add(Block.of("".join(lines).encode(), 1))
    steps = reader.steps()
    assert [float(times[n % len(times)]) / 1000 for n in range(2000)] == steps.step_time_s.tolist()
    assert [float(losses[n % len(losses)]) for n in range(2000)] == steps.column("loss").cells()
    assert [float(f"{n}.{n % 7}") for n in range(2000)] == steps.column("grad_norm").cells()
    assert [*range(1, 2001)] == steps.step.tolist() == steps.line.tolist()


def test_a_step_that_is_wrapped_is_read_where_it_becomes_whole() -> None:
    whole = iteration(1)
    for place in (whole.index("elapsed"), whole.index("lm loss"), whole.index("number of nan")):
        assert parsed(whole).steps == parsed(f"{whole[:place]}\n{whole[place:]}").steps
    cut = f"{whole[: whole.index('lm loss')]}\nrank 3: 5.0 of 7 |\n"
    assert (0, 1) == (len(parsed(cut).steps), len(parsed(cut).problems))


@pytest.mark.parametrize("bad", [1, 15, 30])
def test_a_negative_time_is_one_bad_step_with_a_note(bad: int) -> None:
    """As NeMo 2 printed it once; the run is as long as it would be without."""
    whole = nemo(range(1, 31)).replace("/99", "/29").splitlines(keepends=True)
    whole[bad - 1] = whole[bad - 1].replace("in s: 2.5", "in s: -12.71")
    log = parsed("".join(whole), "nemo2")
    assert [step for step in range(1, 31) if step != bad] == log.steps.step.tolist()
    assert "finished" == log.outcome
    assert [(bad, f"step {bad}: -12.71 seconds is no duration")] == [
        (one.line, one.message) for one in log.problems
    ]


@pytest.mark.parametrize("many", [1, 1000])
def test_a_line_of_blanks_is_no_rest_of_a_number(many: int) -> None:
    """As at the end of a warning of NeMo, whether lines are read one by one or by the thousand."""
    warning = "[NeMo W 2025-01-01 12:00:00 nemo_logging:405] old.py:1: DeprecationWarning\n    \n"
    steps = nemo(range(1, 3)).splitlines(keepends=True)
    later = nemo(range(3, many + 3)).replace("\n", "\n    \n")
    log = parsed(f"{steps[0]}    \n{steps[1]}{warning}{later}", "nemo2")
    assert ([2.5] * (many + 2), ()) == (log.steps.step_time_s.tolist(), log.problems)


def test_of_a_restarted_log_the_last_attempt_is_read_with_a_note() -> None:
    log = parsed(nemo(range(1, 31)) + nemo(range(21, 41), time=3.5), "nemo2")
    assert [*range(21, 41)] == log.steps.step.tolist()
    assert [3.5] * 20 == log.steps.step_time_s.tolist()
    assert "lines 1 to 30 are of an earlier attempt or run" in log.notes[0].message
    assert "skip_warmup(10)" == log.window


@pytest.mark.parametrize(
    ("text", "steps", "layout"),
    [
        # It goes back to a checkpoint, or goes on behind it, as in a chain of jobs.
        (ARGUMENTS.format(2, 1) + iterations(1, 25) + ARGUMENTS.format(1, 2) + iterations(21, 40),
         range(21, 41), (1, 2)),
        (ARGUMENTS.format(2, 1) + iterations(1, 20) + ARGUMENTS.format(1, 2) + iterations(21, 40),
         range(21, 41), (1, 2)),
        # An attempt that made no step, below or above the steps.
        (ARGUMENTS.format(2, 1) + iterations(1, 40) + ARGUMENTS.format(1, 2),
         range(1, 41), (2, 1)),
        (ARGUMENTS.format(2, 1) + ARGUMENTS.format(1, 2) + iterations(1, 40),
         range(1, 41), (1, 2)),
        # The only arguments may be late: they are of another rank than the steps.
        (iterations(1, 5) + ARGUMENTS.format(1, 2) + iterations(6, 40), range(1, 41), None),
        # The first mean of an attempt may be of fewer steps than the others.
        (ARGUMENTS.format(2, 1) + iterations(10, 40, 10) + ARGUMENTS.format(1, 2)
         + iterations(30, 60, 10), range(40, 61, 10), (1, 2)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("between", [0, 200])
def test_the_settings_are_those_of_the_attempt_that_is_read(
    text: str, steps: range, layout: tuple[int, int] | None, between: int
) -> None:
    """However much is printed between two steps."""
    noise = "saving a shard of the checkpoint\n" * between
    log = parsed(text.replace("\n [", f"\n{noise} ["))
    case = log.configuration
    assert [*steps] == log.steps.step.tolist()
    assert layout in (None, (case.micro_batch_size, case.tensor_parallel))


MEMORY = "[Rank 0] (after {} iterations) memory (MB) | max allocated: {} | max reserved: 65000.0\n"


def test_the_memory_is_that_of_the_attempt_that_is_read() -> None:
    first = iterations(1, 1) + MEMORY.format(1, 61440) + iterations(2, 25)
    again = iterations(21, 21) + MEMORY.format(21, 40960) + MEMORY.format(21, 20480)
    text = ARGUMENTS.format(2, 1) + first + MEMORY.format(21, 99999)
    log = parsed(text + ARGUMENTS.format(1, 2) + again + iterations(22, 40))
    assert [40960 << 20] == [one.peak_memory_bytes for one in log.steps if one.peak_memory_bytes]


def test_a_last_attempt_of_one_line_has_no_step_behind_its_warm_up() -> None:
    log = parsed(nemo(range(1, 31)) + nemo(range(29, 30), time=3.5), "nemo2")
    assert ([29], "skip_warmup(29)") == (log.steps.step.tolist(), log.window)


def test_the_lines_of_several_ranks_are_one_attempt() -> None:
    log = parsed(nemo(range(1, 31), ranks=4), "nemo2")
    assert (30, ()) == (len(log.steps), log.notes)
    late = parsed(ARGUMENTS.format(1, 2) + iteration(1) + ARGUMENTS.format(1, 2)
                  + "".join(iterations(n, n) * 2 for n in range(1, 20)))  # fmt: skip
    assert 19 == len(late.steps)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (nemo(range(1, 31)) + nemo(range(1, 21)), "a.log:31: the log begins again with its first"),
        ("".join(nemo(range(1, 31)).splitlines(keepends=True)[::-1]), "a.log:1: its steps go back"),
    ],
)
def test_several_runs_and_the_newest_line_first_are_refused(text: str, message: str) -> None:
    log = parsed(text, "nemo2")
    assert (0, "no_data") == (len(log.steps), log.outcome)
    [problem] = log.problems
    assert str(problem).startswith(message)
    assert problem.remedy


def test_training_jsonl_that_a_second_run_was_appended_to_has_the_second() -> None:
    line = '{{"step": {}, "num_tokens_per_step": 4096, "tps": {}.0, "loss": 2.5}}\n'
    first = "".join(line.format(step, 1024) for step in range(10))
    log = parsed(
        first + "".join(line.format(step, 2048) for step in range(8)), "automodel_training"
    )
    assert [2.0] * 8 == log.steps.step_time_s.tolist()
    assert "lines 1 to 10 are of an earlier attempt or run" in log.notes[0].message


def test_of_a_batch_that_grows_the_steps_of_the_last_size_are_read() -> None:
    log = parsed(iterations(1, 8, batch=32) + iterations(9, 40, batch=64))
    assert (64, [*range(9, 41)]) == (log.configuration.global_batch_size, log.steps.step.tolist())
    changes = "the global batch size changes between 32 and 64: the steps up to 8 are left out"
    assert [changes] == [note.message for note in log.notes]
    # Line 20 may be the mean of steps of both sizes.
    log = parsed(iterations(10, 10, batch=32) + iterations(20, 50, 10, batch=64))
    assert [30, 40, 50] == log.steps.step.tolist()
    none = parsed(iterations(10, 20, 10, batch=32) + iterations(30, 30, batch=64))
    assert (0, 1) == (len(none.steps), len(none.problems))


@pytest.mark.parametrize(("stated", "noted"), [(128, True), (2048, False), (None, False)])
def test_the_batch_of_the_lines_wins_over_the_settings_with_a_note(
    stated: int | None, noted: bool
) -> None:
    start = f"  global_batch_size ............ {stated}\n" if stated else ""
    log = parsed(ARGUMENTS.format(1, 1) + start + iterations(1, 40))
    assert 2048 == log.configuration.global_batch_size
    expected = "its settings say global batch size 128, its step lines 2048: that is taken"
    assert [expected] * noted == [note.message for note in log.notes]


@pytest.mark.parametrize("before", [True, False])
def test_rates_of_rank_zero_belong_to_the_steps_with_their_time(before: bool) -> None:
    """Of a log whose beginning is lost: no other step near a rate has its time."""
    times = [1.5 + 0.25 * step for step in range(30, 60)]
    pairs = [
        (RATE.format(time=time, rate=500 + step), iteration(step, f"{time * 1000:.1f}"))
        for step, time in enumerate(times, 30)
    ]
    log = parsed("".join(a + b if before else b + a for a, b in pairs), "megatron_bridge")
    rates = log.steps.column("model_tflops_per_sec_per_gpu")
    assert [float(500 + step) for step in range(30, 60)] == rates.cells()


def test_rates_that_may_be_of_several_steps_are_left_out_with_a_note() -> None:
    text = "".join(RATE.format(time=1.5, rate=500 + n) + iteration(n) for n in range(30, 60))
    log = parsed(text, "megatron_bridge")
    assert not log.steps.column("model_tflops_per_sec_per_gpu").known.any()
    assert any("may belong to one of several" in note.message for note in log.notes)


def test_columns_of_steps_are_read_by_name_row_and_mask() -> None:
    steps = Steps.of([Reading(5, 1, 2.5, loss=8.5), Reading(7, 2, 3.5), Reading(9, 3, 4.5, 7.5)])
    values, known = steps.column("loss")
    assert ([8.5, 7.5], [1, 0, 1]) == (values[known].tolist(), known.tolist())
    assert [(1, 8.5), (2, None), (3, 7.5)] == list(steps.rows("step", "loss"))
    assert [Reading(7, 2, 3.5)] == list(steps.at(steps.step == 2))
    assert Reading(9, 3, 4.5, 7.5) == steps[-1]
    tokens = StepColumn.full(np.array([8, 8, 8]))
    assert 8 == steps.with_columns(tokens=tokens).column("tokens").last
    assert (0, []) == (len(Steps.of([])), list(Steps.of([]).rows("step")))
