"""A step line that was broken is read whole, or told of: it never loses a number in silence."""

from collections.abc import Callable, Iterator, Sequence

import pytest

from perfdb.formats import FORMATS, ParsedLog, Reading, recognised, scan

MEGATRON = (
    " [2026-01-16 07:32:24] iteration %8d/       3 | consumed samples: %12d | elapsed time per "
    "iteration (ms): %.1f | throughput per GPU (TFLOP/s/GPU): 490.2 | learning rate: 4.13E-07 | "
    "global batch size:   128 | lm loss: %.6E | mtp_1 loss: 7.5E+00 | loss scale: 1.0 | "
    "grad norm: %.3f | number of skipped iterations:   0 | number of nan iterations:   0 |"
)
NEMO = (
    "Training epoch 0, iteration %d/2 | lr: 4.491e-06 | global_batch_size: 256 | global_step: %d | "
    "peak_memory_usage: 72972500992 | memory_allocated: 34466545664 | reduced_train_loss: %.4g | "
    "train_step_timing in s: %.4g | TFLOPS_per_GPU: 600.1 | consumed_samples: %d"
)
LINES = {
    "megatron_lm": [MEGATRON % (n, n * 128, 1016.9 + n, 12.5 + n, 1.25 + n) for n in (1, 2, 3)],
    "nemo2": [NEMO % (n, n, 11.03 + n, 10.25 + n, 256 * n) for n in range(3)],
}
NAN = {
    "megatron_lm": ("lm loss: 1.450000E+01 | ", ""),
    "nemo2": ("reduced_train_loss: 12.03", "reduced_train_loss: nan"),
}
Broken = Callable[[str, int], str]
"""A line that is broken at a place."""


def folded(line: str, width: int) -> str:
    return "\n".join(line[at : at + width] for at in range(0, len(line), width))


def broken_once(line: str, place: int) -> str:
    return f"{line[:place]}\n{line[place:]}"


def parsed(name: str, lines: Sequence[str]) -> ParsedLog:
    (log,) = FORMATS[name].parse("a.log", ["\n".join(lines).encode() + b"\n"])
    return log


def unplaced(log: ParsedLog) -> dict[int, Reading]:
    return {reading.step: reading._replace(line=0) for reading in log.readings}


def told_or_same(name: str, lines: Sequence[str], broken: Sequence[str]) -> bool:
    """Whether all steps of broken lines were read; those that were not must have been told of."""
    expected, log = unplaced(parsed(name, lines)), parsed(name, broken)
    found = unplaced(log)
    assert found.items() <= expected.items()
    assert log.outcome == "no_data" or len(found) + len(log.problems) == len(expected)
    assert all(problem.line for problem in log.problems)
    return len(found) == len(expected)


@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize("how", [folded, broken_once])
@pytest.mark.parametrize("prefix", ["", "7: ", "[default7]:", "ain_fp8_mx/0 "])
def test_a_line_broken_anywhere_is_read_whole_or_told_of(
    name: str, how: Broken, prefix: str
) -> None:
    lines = [prefix + line for line in LINES[name]]
    marker = {"megatron_lm": "consumed samples:", "nemo2": "Training epoch "}[name]
    start = lines[0].index(marker)
    for place in range(20 + len(prefix) % 3, len(lines[0]), 3):
        read = told_or_same(name, lines, [how(line, place) for line in lines])
        # Nothing of a step is found where its marker is broken.
        is_marked = not start < place < start + len(marker)
        assert read or not is_marked or place < start, place


@pytest.mark.parametrize("name", LINES)
def test_each_line_may_have_the_prefix_of_its_rank(name: str) -> None:
    lines = [f"[default7]:{line}" for line in LINES[name]]
    for width in range(90, 300, 7):
        parts = [folded(line, width).split("\n") for line in LINES[name]]
        broken = [f"[default7]:{part}" for line in parts for part in line]
        assert told_or_same(name, lines, broken), width


@pytest.mark.parametrize("name", LINES)
def test_a_break_may_take_the_place_of_a_space(name: str) -> None:
    first = LINES[name][0]
    for place in (at for at, letter in enumerate(first) if letter == " " and at > 30):
        broken = [f"{line[:place]}\n{line[place + 1 :]}" for line in LINES[name]]
        if len({line[place] for line in LINES[name]}) == 1:
            told_or_same(name, LINES[name], broken)


@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize(("old", "new"), [(" | ", " |\n"), (" | ", "\n| "), (" | ", "\n | ")])
def test_a_line_broken_at_each_bar_is_read_whole_and_recognised(
    name: str, old: str, new: str
) -> None:
    broken = [line.replace(old, new) for line in LINES[name]]
    assert told_or_same(name, LINES[name], broken)
    if new.startswith(" |"):
        assert FORMATS[name] is recognised("\n".join(broken).encode(), "a.log")


@pytest.mark.parametrize("name", LINES)
def test_no_break_hides_a_loss_that_is_no_number(name: str) -> None:
    lines = [line.replace(*NAN[name]) for line in LINES[name]]
    assert "nan_loss" == parsed(name, lines).outcome
    for width in range(85, len(lines[0]), 2):
        log = parsed(name, [folded(line, width) for line in lines])
        assert log.outcome in ("nan_loss", "no_data") or log.problems, width


NOISE = ["[rank3]: bucket 7", "INFO:root: saving", "0 | 128 | 5", "| a | b |", "Rank 3: done"]
"""What no key or number could go on with."""


def interrupted(noise: str) -> Iterator[tuple[int, Sequence[str]]]:
    for place in range(90, len(LINES["megatron_lm"][0]), 3):
        lines = [f"{line[:place]}\n{noise}\n{line[place:]}" for line in LINES["megatron_lm"]]
        yield place, lines


@pytest.mark.parametrize("noise", NOISE)
def test_what_another_rank_prints_inside_a_broken_line_gives_no_wrong_number(noise: str) -> None:
    expected = unplaced(parsed("megatron_lm", LINES["megatron_lm"]))
    for place, lines in interrupted(noise):
        log = parsed("megatron_lm", lines)
        assert unplaced(log).items() <= expected.items(), place
        assert len(log.readings) + len(log.problems) >= len(expected), place


def test_a_nemo_line_is_whole_without_its_last_field_if_the_next_line_goes_on_with_nothing() -> (
    None
):
    lines = [line.partition(" | TFLOPS")[0] for line in LINES["nemo2"]]
    for noise in ("[NeMo I 07:32:24] rank 3: x", "----------", "12: Epoch 0", "2026-01-16 x", ""):
        log = parsed("nemo2", [f"{line}\n{noise}" for line in lines])
        assert unplaced(parsed("nemo2", lines)) == unplaced(log)


def test_a_number_by_itself_behind_a_time_leaves_the_step_out() -> None:
    """It may be the end of the time, or printed by anything else."""
    lines = [line.partition(" | TFLOPS")[0] for line in LINES["nemo2"]]
    log = parsed("nemo2", [lines[0], "8", *lines[1:]])
    assert [2, 3] == [reading.step for reading in log.readings]
    assert ["a.log:1: a step without 'train_step_timing in s'; is the line cut off?"] == list(
        map(str, log.problems)
    )


@pytest.mark.parametrize("prefix", ["", "[default0]:", "0: "])
def test_a_line_that_looks_like_whole_ones_may_go_on(prefix: str) -> None:
    start = prefix + "Training epoch 0, iteration %d/9 | train_step_timing in s: %d"
    whole = [start % (n, n + 1) for n in range(5)]
    for rest in ("0.25 | loss: 1.5", prefix + "0.25 | loss: 1.5"):
        log = parsed("nemo2", [*whole, start % (5, 1), rest])
        assert [1, 2, 3, 4, 5, 10.25] == [reading.step_time_s for reading in log.readings]


@pytest.mark.parametrize("name", LINES)
def test_a_step_has_the_number_of_the_line_that_it_begins_on(name: str) -> None:
    broken = [line.replace(" | ", " |\n") for line in LINES[name]]
    num_lines = LINES[name][0].count(" | ") + 1
    log = parsed(name, broken)
    assert [1, 1 + num_lines, 1 + 2 * num_lines] == [reading.line for reading in log.readings]


def test_a_step_that_begins_on_the_last_lines_of_a_block_is_read() -> None:
    step = (LINES["megatron_lm"][2].replace(" | ", " |\n") + "\n").encode()
    for padding in range(0, 160, 6):
        noise = b"y" * (scan.BLOCK_BYTES - padding - 1) + b"\n"
        (log,) = FORMATS["megatron_lm"].parse("a.log", [noise + step + b"z\n" * 40])
        assert [(2, 3, 1.0199)] == [reading[:3] for reading in log.readings], padding
