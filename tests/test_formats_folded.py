"""A log that is folded at a width, with other output between the parts, gives no wrong number."""

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perfdb.formats import FORMATS, ParsedLog, Reading, megatron_lm

PREFIXES = ("", "0: ", "[default7]:", "i.finetune/0 ")
NOISE = (
    "[rank3]: bucket 7", "INFO:root: saving", "0 | 128 | 5", "| a | b |", "Rank 3: done", "----",
    "", "another rank's line, " * 9, "{'loss': 12.5}", "2025-08-26 13:43:03,123 - INFO - x",
    "7", "0.5",
)  # fmt: skip
NUMBERS = st.floats(1, 99).map("{:.4g}".format)
NEMO = {
    "lr": st.just("4.491e-06"),
    "global_batch_size": st.just("256"),
    "global_step": st.just("{step}"),
    "peak_memory_usage": st.just("72972500992"),
    "memory_allocated": st.just("34466545664"),
    "reduced_train_loss": NUMBERS,
    "train_step_timing in s": NUMBERS,
    "consumed_samples": st.integers(0, 10**6).map(str),
    "TFLOPS_per_GPU": NUMBERS,
}
"""Keys in NeMo's order."""
NEEDED = ("global_step", "train_step_timing in s")


@dataclass(frozen=True)
class Folded:
    """A log of steps, and the same log folded, with other output between."""

    clean: Sequence[str]
    lines: Sequence[str]


def folded(line: str, width: int) -> list[str]:
    return [line[at : at + width] for at in range(0, len(line), width)]


@st.composite
def logs(draw: st.DrawFn) -> Folded:
    keys = [key for key in NEMO if key in NEEDED or draw(st.booleans())]
    steps = range(draw(st.integers(2, 6)))
    clean = [
        f"Training epoch 0, iteration {step}/9 | "
        + " | ".join(f"{key}: {draw(NEMO[key]).format(step=step)}" for key in keys)
        for step in steps
    ]
    width, prefix = draw(st.integers(20, 250)), draw(st.sampled_from(PREFIXES))
    is_counted = draw(st.booleans())
    others = st.lists(st.sampled_from(NOISE), max_size=draw(st.integers(0, 4)))
    lines: list[str] = []
    for line in clean:
        parts = folded(prefix + line, width) if is_counted else folded(line, width)
        for part in parts:
            lines += [part if is_counted else prefix + part, *draw(others)]
    return Folded(clean, lines)


def parsed(lines: Sequence[str], name: str = "nemo2") -> ParsedLog:
    (log,) = FORMATS[name].parse("a.log", ["\n".join(lines).encode() + b"\n"])
    return log


def said(reading: Reading) -> dict[str, object]:
    """What a reading states, but for its line."""
    cells = reading._asdict().items()
    return {name: value for name, value in cells if value is not None and name != "line"}


def times(log: ParsedLog) -> dict[int, float]:
    return {reading.step: reading.step_time_s for reading in log.readings}


def told(log: ParsedLog) -> list[int | None]:
    return [problem.line for problem in log.problems]


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(log=logs())
def test_each_step_of_a_folded_log_is_read_right_or_told_of(log: Folded) -> None:
    expected = {reading.step: said(reading) for reading in parsed(log.clean).readings}
    found = parsed(log.lines)
    for reading in found.readings:
        assert said(reading).items() <= expected[reading.step].items()
    marked = sum("Training epoch " in line for line in log.lines)
    assert len(found.readings) + len(found.problems) >= marked
    assert all(told(found))


STEP = "Training epoch 0, iteration %d/99 | global_step: %d | train_step_timing in s: %s"
OTHER = "[rank3]: bucket 7"


def test_a_time_that_a_fold_breaks_is_not_read_short() -> None:
    """`12.3`, what another rank prints, and `4 | …`: it was 12.34."""
    steps = [STEP % (n, n, "12.34") + " | consumed_samples: 512" for n in (10, 11, 12)]
    width = len(STEP % (10, 10, "12.3"))
    parts = [(line[:width], OTHER, line[width:]) for line in steps]
    log = parsed([part for step in parts for part in step])
    assert ({}, [1, 4, 7]) == (times(log), told(log))


@pytest.mark.parametrize("are_folded", [True, False])
def test_a_rest_far_behind_its_step_may_be_told_by_other_lines(
    are_folded: bool,
) -> None:
    steps = [STEP % (n, n, "12.34") + " | consumed_samples: 512" for n in (10, 11, 12)]
    width = len(STEP % (10, 10, "12.3"))
    head = folded("x" * 4 * width, width) if are_folded else ["x" * 4 * width]
    parts = [part for line in steps for part in (line[:width], *[OTHER] * 200, line[width:])]
    assert () == parsed([*head, *(part for line in steps for part in folded(line, width))]).notes
    notes = [note.message for note in parsed([*head, *parts]).notes]
    message = f"lines are folded at {width} columns: the last number of steps may be cut short"
    assert [message] * are_folded == notes


def test_one_rest_tells_of_all_steps_of_the_same_width() -> None:
    """The rest of the second is lost."""
    lines = [STEP % (10, 10, "12.3"), OTHER, "4 | consumed_samples: 512"]
    lines += [STEP % (11, 11, "12.3"), OTHER, STEP % (12, 12, "9.5") + " | consumed_samples: 5"]
    log = parsed(lines)
    assert ({13: 9.5}, [1, 4]) == (times(log), told(log))


def test_a_step_that_the_next_one_follows_is_whole() -> None:
    lines = [STEP % (n, n, "12.3") for n in (10, 11, 12)]
    log = parsed([*lines, STEP % (13, 13, "12.3"), OTHER, "4 | consumed_samples: 512"])
    assert ({11: 12.3, 12: 12.3, 13: 12.3}, [4]) == (times(log), told(log))


@pytest.mark.parametrize("other", [OTHER, "| a | b |", "4 | 5 | 6"])
def test_steps_of_one_length_that_end_in_their_time_are_read_where_nothing_is_folded(
    other: str,
) -> None:
    lines = [line for n in range(10, 99) for line in (STEP % (n, n, "12.34"), OTHER, other)]
    log = parsed(lines)
    assert (89, (), ()) == (len(log.readings), log.problems, log.notes)


def test_a_number_by_itself_leaves_out_only_the_widest_step_before_it() -> None:
    lines = [STEP % (10, 10, "12.34"), OTHER, "5", STEP % (11, 11, "12.3"), OTHER, "5"]
    log = parsed([*lines, STEP % (12, 12, "12.34"), OTHER])
    assert ({12: 12.3, 13: 12.34}, [1]) == (times(log), told(log))


@pytest.mark.parametrize(
    "cut", [" | TFLO", " |", " | consumed_samples: 51", " | consumed_samples: "]
)
def test_a_field_that_a_fold_takes_from_a_step_is_told_of(cut: str) -> None:
    line = STEP % (10, 10, "12.34")
    line += (" | consumed_samples: 512" if "consumed" in cut else "") + " | TFLOPS_per_GPU: 600"
    width = line.index(cut, 60) + len(cut)
    log = parsed([line[:width], OTHER, line[width:]])
    (reading,), (note,) = log.readings, log.notes
    assert (12.34, None) == (reading.step_time_s, reading.model_tflops_per_sec_per_gpu)
    assert "a.log:1: 1 step line may go on on others" in str(note)


def test_thousands_of_folded_steps_are_read_as_one_is() -> None:
    """So many are read at once."""
    whole = [STEP % (n % 90 + 10, n, "12.3") for n in range(1000, 3000)]
    cut = [line for n in range(3000, 3500) for line in (STEP % (10, n, "12.3"), OTHER)]
    assert 2500 == len(parsed([*whole, *cut]).readings)
    log = parsed([*whole, *cut, STEP % (10, 3500, "12.3"), OTHER, "4 | lr: 0.1"])
    assert (2000, 20 + 1) == (len(log.readings), len(log.problems))
    assert "481 more step lines that cannot be read" in str(log.problems[-1])


MEGATRON = (
    " iteration %8d/      30 | consumed samples: 128 | elapsed time per iteration (ms): %.1f | "
    "throughput per GPU (TFLOP/s/GPU): 490.2 | global batch size:   128 | lm loss: 1.2345E+00 | "
    "number of nan iterations:   0 |"
)
BAR = (
    "Epoch 0: :  10%%|xx| %d/50 [31:51<00:00, reduced_train_loss=6.130, global_step=4.000, "
    "train_step_timing in s=%.2f, tokens_per_sec_per_gpu=1234.5]"
)
TITAN = (
    "[titan] - root - INFO - step: %2d  loss:  8.25  grad_norm:  1.25  memory: 40.50GiB(42.58%%)  "
    "tps: %s  tflops: 415.31  mfu: 41.25%%"
)
TITAN_HEAD = (
    "[titan] - root - INFO - Building 2-D device mesh with ['dp_shard', 'tp'], [8, 2]",
    "[titan] - root - INFO - Training starts at step 1, with local batch size 2, global batch size "
    "16, sequence length 8192, total steps 20 (warmup 2)",
)
OTHERS = {
    "megatron_lm": ((), [MEGATRON % (n, 1016.9 + n) for n in (1, 2, 3)]),
    "nemo1": ((), [BAR % (n, 12.25 + n) for n in (1, 2, 3)]),
    "torchtitan": (TITAN_HEAD, [TITAN % (n, f"1{n},123") for n in (1, 2, 3)]),
}


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("other", ["", OTHER, "7", "0 | 128 | 5"])
def test_no_other_format_reads_a_folded_number_short(name: str, other: str) -> None:
    head, steps = OTHERS[name]
    expected = {one.step: said(one) for one in parsed([*head, *steps], name).readings}
    for width in range(20, 250):
        lines = [text for step in steps for part in folded(step, width) for text in (part, other)]
        for reading in parsed([*head, *lines], name).readings:
            assert said(reading).items() <= expected[reading.step].items(), width


@pytest.mark.parametrize("name", OTHERS)
def test_a_log_that_ends_within_a_line_gives_no_number_short(name: str) -> None:
    """As of a folded log that is copied while it is written: what follows is not there yet."""
    head, (first, *_) = OTHERS[name]
    (whole,) = parsed([*head, first], name).readings
    for width in range(20, len(first)):
        for reading in parsed([*head, first[:width]], name).readings:
            assert said(reading).items() <= said(whole).items(), width


MEMORY = {
    61_440.25 * 2**20: "[Rank 0] (after 1 iterations) memory (MB) | allocated: 34000.5 | "
    "max allocated: 61440.25 | reserved: 65000.0 | max reserved: 65000.0\n",
    74.41e9: "[Rank 0] (after 1 iterations) memory (GB) | mem-allocated-gigabytes: 51.072 | "
    "mem-reserved-gigabytes: 216.89 | mem-max-allocated-gigabytes: 74.41 | "
    "mem-max-active-gigabytes: 75.46 | mem-alloc-retires: 0\n",
}


@pytest.mark.parametrize(("peak_bytes", "line"), MEMORY.items())
@pytest.mark.parametrize("end", ["\n", "\n0: "])
def test_peak_memory_is_that_of_the_whole_line_however_it_is_folded(
    peak_bytes: float, line: str, end: str
) -> None:
    """It is not known where something else stands within its number or its name."""
    step = (
        " iteration 1/2 | consumed samples: 8 | elapsed time per iteration (ms): 1500.0 | "
        "lm loss: 2.5 | number of nan iterations: 0 |\n"
    )
    found = set[int | None]()
    for width in range(45, len(line), 2):
        parts = (line[start : start + width].rstrip() for start in range(0, len(line), width))
        [log] = megatron_lm.parse("a.log", [f"{end.join(parts)}\n{step}".encode()])
        found.add(log.readings[0].peak_memory_bytes)
    assert found == {round(peak_bytes), *([None] if end != "\n" else [])}
