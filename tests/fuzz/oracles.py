"""What holds of everything that was read, whatever the bytes: checks that raise AssertionError."""

import math
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TypeAlias

from perfdb.db.rows import MeasuredRun, ResultRow, StepRow, step_rows
from perfdb.formats import ParsedLog, Reading
from perfdb.formats.scan import LOOKAHEAD
from perfdb.record import Figures, PartialCase, PublishedResult
from perfdb.text import plain

_NUMBER = re.compile(r"(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
MOST_NUMBERS = 60
POSITIVE = (
    "step_time_s", "step_time_mean_s", "step_time_p10_s", "step_time_p90_s", "step_time_last_s",
    "num_steps", "tokens_per_sec_per_gpu", "model_tflops_per_sec_per_gpu", "tokens_per_sec", "mfu",
    "peak_tflops",
)  # fmt: skip


def is_known(value: float | None) -> bool:
    """Whether a number that is there is finite and above zero."""
    return value is None or (math.isfinite(value) and value > 0)


def check_log(log: ParsedLog, content: bytes, printed: Collection[str]) -> None:
    """Steps in order, numbers that are possible, and lines that hold what is said to be there.

    `printed`: which of `step` and `step_time_s` stand on a step's line, so that they can be found.
    """
    lines = plain(content).split(b"\n")
    assert all(a.step < b.step for a, b in pairwise(log.steps))
    for reading in log.steps:
        check_reading(reading)
        assert reading.line <= len(lines)
        check_place(reading, lines, printed)
    check_figures(log.emitted)
    PartialCase.model_validate(log.configuration.model_dump(exclude_unset=True))
    for problem in (*log.problems, *log.notes):
        # YAML has other ends of lines too.
        assert problem.line is None or 1 <= problem.line <= len(content.splitlines()) + len(lines)
        assert problem.message


def check_reading(reading: Reading) -> None:
    """What a step says is possible."""
    assert reading.line >= 1
    assert reading.step >= 1
    for value in (reading.step_time_s, reading.peak_memory_bytes, reading.tokens):
        assert is_known(value), reading


def check_place(reading: Reading, lines: Sequence[bytes], printed: Collection[str]) -> None:
    """The line of a step, with those that it may go on on, holds its number and its time."""
    behind = b"\n".join(lines[reading.line : reading.line + 30])[:LOOKAHEAD]
    text = b"\n".join((lines[reading.line - 1], behind))
    said = _numbers(text)
    if len(said) > MOST_NUMBERS:
        return
    said += _numbers(text.replace(b"\n", b""))  # one that a line break stands in
    if "step" in printed:
        assert any(one - reading.step in (0, -1) for one in said), (reading, text[:300])
    if "step_time_s" in printed:
        assert any(map(reading.step_time_s.__eq__, _times(said))), (reading, text[:300])


def _numbers(text: bytes) -> list[float]:
    return [float(one) for one in _NUMBER.findall(text.decode(errors="replace"))]


def _times(said: Sequence[float]) -> Iterator[float]:
    """What a time may be, by the numbers printed: seconds, milliseconds, tokens by their rate."""
    yield from said
    yield from (one / 1000 for one in said)
    yield from (one * 0.001 for one in said)
    yield from (a / b for a in said for b in said if b)


def check_figures(figures: Figures) -> None:
    """Each is above zero, or not known."""
    for name, value in figures:
        assert is_known(value), (name, value)


Timed: TypeAlias = tuple[int, float, tuple[object, ...]]


def kept_steps(logs: Iterable[ParsedLog]) -> dict[tuple[int, int], Timed]:
    """The line of each step, its time, and of what that is; by the log and its number in it."""
    found: dict[tuple[int, int], Timed] = {}
    for number, log in enumerate(logs):
        timed_by = tuple(getattr(log.configuration, name, None) for name in log.timed_by)
        for one in log.steps:
            found[number, one.step] = one.line, one.step_time_s, timed_by
    return found


def check_cut(before: Sequence[ParsedLog], whole: Sequence[ParsedLog]) -> None:
    """The steps of a beginning are those of the whole file, but for those printed again later.

    Where a run begins later, or its batch size changes, it has none of the steps before. Of some
    files no step is certain where one is not. What a time follows from may be stated again later.
    """
    kept = kept_steps(whole)
    if not kept:
        return
    first = min(line for line, *_ in kept.values())
    first_step = min(step for _, step in kept)
    for key, (line, time, timed_by) in kept_steps(before).items():
        if line < first or key[1] < first_step:
            continue
        assert key in kept, (key, line, time)
        line_now, time_now, timed_by_now = kept[key]
        assert line_now >= line, (key, line, line_now)
        if (line_now, timed_by_now) == (line, timed_by):
            assert time_now == time, (key, line)


def check_published(result: PublishedResult, num_lines: int) -> None:
    """A row of a page: figures that are printed in it, on a line of the page."""
    assert 1 <= result.line <= num_lines
    digits = [re.sub(r"\D", "", cell) for cell in result.raw.values()]
    for name, value in result.figures:
        if value is not None:
            assert math.isfinite(value), (name, value)
            assert value >= 0, (name, value)
            shown = re.sub(r"\D|e.*", "", f"{value:.12g}").strip("0")
            assert any(shown in one for one in digits), (name, value, result.raw)


def check_row(row: ResultRow) -> None:
    """A result that is to be stored."""
    published = row.origin.value == "published"
    for name in POSITIVE:
        value = getattr(row, name)
        assert is_known(value) or (published and value == 0), (name, value)
    spread = row.step_time_stdev_s
    assert spread is None or (math.isfinite(spread) and spread >= 0)
    assert all(map(is_known, row.emitted.values())), row.emitted


def check_step(row: StepRow) -> None:
    """A step that is to be stored."""
    assert 0 < row.step_time_s < math.inf
    assert is_known(row.step_time_min_s), row
    assert all(value is None or math.isfinite(value) for value in (row.loss, row.grad_norm)), row
    assert all(value is None or value >= 0 for value in (row.tokens, row.peak_memory_bytes)), row
    assert is_known(row.tokens_per_sec_per_gpu)
    assert is_known(row.model_tflops_per_sec_per_gpu)


def check_run(run: MeasuredRun) -> None:
    """A run that is to be stored."""
    check_row(run.result)
    steps = list(step_rows(run.steps))
    assert all(a.step < b.step for a, b in pairwise(steps))
    for step in steps:
        check_step(step)
    assert 0 <= run.run.warmup_steps
    assert 0 <= run.run.measured_steps
