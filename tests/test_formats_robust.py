"""No log format is thrown by damage: cuts, flipped bits, junk, other ranks, chunks of any size."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perfdb.formats import FORMATS, ParsedLog, Reading, scan
from perfdb.formats.base import Content
from perfdb.formats.scan import LOOKAHEAD, Scan

DATA = Path(__file__).parent / "data" / "formats"
LOGS = sorted(
    path
    for path in DATA.glob("*/*/*")
    if path.suffixes[1:] not in ([".yml"], [".txt"]) and path.parent.name in ("good", "bad")
)
LINE_LOGS = [path for path in LOGS if path.suffix in (".log", ".jsonl")]
STEP_LOGS = [
    path
    for path in LINE_LOGS
    # A step that is wrapped over several lines ends where another rank prints between them, and of
    # a log that goes on with another attempt only that one is read.
    if path.parent.name == "good"
    and path.name not in ("wrapped_lines.log", "goes_on_with_fewer_gpus.log")
]
thorough = settings(max_examples=10, suppress_health_check=[HealthCheck.too_slow])


def of(name: str, paths: Sequence[Path]) -> st.SearchStrategy[Path]:
    """The files of a format."""
    return st.sampled_from([path for path in paths if path.parents[1].name == name])


def formats(paths: Sequence[Path]) -> list[str]:
    """Those that have such files."""
    return sorted({path.parents[1].name for path in paths})


def parse(path: Path, content: Content) -> tuple[ParsedLog, ...]:
    return FORMATS[path.parents[1].name].parse(path.name, content)


def only(logs: Sequence[ParsedLog]) -> ParsedLog:
    (log,) = logs
    return log


def steps_before(log: ParsedLog, line: int) -> list[Reading]:
    return [reading for reading in log.steps if reading.line < line]


def name_of(path: Path) -> str:
    return "/".join(path.parts[-3:])


@pytest.mark.parametrize("path", STEP_LOGS, ids=name_of)
def test_a_cut_changes_no_step_that_stands_on_a_line_before_it(path: Path) -> None:
    content = path.read_bytes()
    lines = content.splitlines(keepends=True)
    for number in range(1, len(lines) + 1):
        start = sum(map(len, lines[: number - 1]))
        line = content.count(b"\n", 0, start) + 1
        uncut = only(parse(path, [content[:start]]))
        for cut in (
            start + 1,
            start + len(lines[number - 1]) // 2,
            start + len(lines[number - 1]) - 1,
        ):
            log = only(parse(path, [content[:cut]]))
            kept = {r.step: _timed(r) for r in steps_before(uncut, line)}
            again = {r.step for r in log.steps if r.line >= line}
            expected = {step: time for step, time in kept.items() if step not in again}
            found = {r.step: _timed(r) for r in steps_before(log, line)}
            assert expected == found


def _timed(reading: Reading) -> tuple[int, float]:
    return reading.line, reading.step_time_s


@pytest.mark.parametrize("name", formats(LOGS))
def test_it_does_not_matter_how_a_file_is_cut_into_chunks(name: str) -> None:
    for number, path in enumerate(path for path in LOGS if path.parents[1].name == name):
        content = path.read_bytes()
        whole = repr(parse(path, [content]))
        for size in (1 + number, 61, 400):
            chunks = [content[start : start + size] for start in range(0, len(content), size)]
            assert whole == repr(parse(path, chunks)), (path, size)


@pytest.mark.parametrize("name", formats(STEP_LOGS))
@thorough
@given(data=st.data())
def test_another_rank_that_prints_between_the_lines_changes_no_step(
    name: str, data: st.DataObject
) -> None:
    path = data.draw(of(name, STEP_LOGS))
    lines = path.read_bytes().splitlines(keepends=True)
    chatter = [
        b"[default5]:NCCL INFO ring 0\n",
        b"\xff\xfe\x1b[1m7: | loss | 1.5 |\x1b[0m\n",
        b"\n",
    ]
    mixed = [
        part
        for line in lines
        for part in (*data.draw(st.lists(st.sampled_from(chatter), max_size=2)), line)
    ]
    expected = [_unplaced(reading) for reading in only(parse(path, [b"".join(lines)])).steps]
    assert expected == [
        _unplaced(reading) for reading in only(parse(path, [b"".join(mixed)])).steps
    ]


def _unplaced(reading: Reading) -> Reading:
    return reading._replace(line=0)


@pytest.mark.parametrize(
    "path", [path for path in STEP_LOGS if "megatron_bridge" not in path.parts], ids=name_of
)
def test_a_rank_that_prints_the_same_lines_changes_no_step(path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    twice = b"".join(line for line in lines for _ in range(2))
    expected = [_unplaced(reading) for reading in only(parse(path, [b"".join(lines)])).steps]
    assert expected == [_unplaced(reading) for reading in only(parse(path, [twice])).steps]


def numbered_log(num_steps: int, noise: bytes) -> bytes:
    step = (
        b"Training epoch 0, iteration %d/%d | lr: 1e-06 | global_batch_size: 8 | global_step: %d | "
        b"reduced_train_loss: 2.5 | train_step_timing in s: %d.25 | consumed_samples: 8\n"
    )
    return b"".join(noise + step % (n, num_steps - 1, n, n % 7 + 1) for n in range(num_steps))


def test_a_log_of_many_blocks_gives_each_step_its_own_line_and_time() -> None:
    content = numbered_log(3000, b"x" * 1500 + b"\n")
    log = only(FORMATS["nemo2"].parse("big.log", [content]))
    expected = [(2 * n + 2, n + 1, n % 7 + 1.25) for n in range(3000)]
    assert expected == [(r.line, r.step, r.step_time_s) for r in log.steps]


def test_a_step_wrapped_over_the_end_of_a_block_is_read() -> None:
    wrapped = (
        b" iteration        2/       2 | consumed samples:          256 |\n"
        b"elapsed time per iteration (ms): 1500.0 | lm loss: 1.5E+00 |\n"
        b"number of nan iterations:   0 |\n"
    )
    for padding in range(0, 160, 31):
        content = b"y" * (scan.BLOCK_BYTES - padding - 1) + b"\n" + wrapped + b"z\n" * 40
        log = only(FORMATS["megatron_lm"].parse("big.log", [content]))
        assert [(2, 1.5, 1.5)] == [(r.step, r.step_time_s, r.loss) for r in log.steps]


@settings(max_examples=30, suppress_health_check=list(HealthCheck))
@given(
    lines=st.lists(st.tuples(st.integers(0, 900), st.booleans()), min_size=40, max_size=200),
    chunk=st.sampled_from([1 << 14, 5000, 1 << 20]),
)
def test_blocks_are_all_of_a_log_in_order_and_part_no_step(
    lines: list[tuple[int, bool]], chunk: int
) -> None:
    content = b"".join(b"x" * size + b"Ta ra" * step + b"\n" for size, step in lines)
    chunks = [content[at : at + chunk] for at in range(0, len(content), chunk)]
    log = Scan(chunks, b"Ta ra", block_bytes=1 << 14)
    start = 0
    for block in log._blocks():
        text = block.text[block.start : block.end]
        end = start + len(text)
        assert content[start:end] == text
        assert content.count(b"\n", 0, start) + 1 == block.line
        assert content[start - 1 : start] in (b"", b"\n")
        last = content.rfind(b"Ta ra", start, end)
        following = content[end : content.find(b"\n", end)]
        assert last < 0 or last + LOOKAHEAD <= end or end == len(content) or b"Ta" in following
        start = end
    assert start == len(content)


def test_a_setting_is_never_read_in_part() -> None:
    step = b"Training epoch 0, iteration 0/0 | train_step_timing in s: 1.5\n"
    for size in range(20):
        noise = b"x\n" * ((scan.FIRST_STEPS_BYTES - len(step)) // 2 - 10) + b"y" * size
        log = only(FORMATS["nemo2"].parse("a.log", [step + noise + b" seq_length=8192\n" * 9]))
        assert log.configuration.sequence_length in (None, 8192)


@pytest.mark.parametrize("extra", [0, 10, 3000, 1 << 19])
def test_the_last_words_of_a_log_are_read_wherever_its_last_block_begins(extra: int) -> None:
    error = b"torch.OutOfMemoryError: CUDA out of memory\n" + b"Traceback\n" * 300
    start = b"Training epoch 0, iteration 0/9 | train_step_timing in s: 1.5\n"
    noise = b"x" * 99 + b"\n"
    size = (6 << 20) + extra - len(start) - len(error)
    content = start + noise * (size // 100) + b"y" * (size % 100) + b"\n" + error
    log = only(FORMATS["nemo2"].parse("a.log", [content]))
    assert "out_of_memory" == log.outcome


def test_thousands_of_unreadable_steps_are_told_in_few_words() -> None:
    content = b"Training epoch 0, iteration 1/9 | global_step: 1 |\n" * 5000
    log = only(FORMATS["nemo2"].parse("broken.log", [content]))
    assert 21 == len(log.problems)
    assert "broken.log: at least 980 more step lines that cannot be read" == str(log.problems[-1])
