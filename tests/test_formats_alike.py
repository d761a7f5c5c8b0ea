"""Lines read thousands at once give what each gives by itself, whatever they look like."""

import math
import random
import re
from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from perfdb.formats import lines as of_lines
from perfdb.formats import nemo2
from perfdb.formats.base import Reading
from perfdb.formats.block import Block
from perfdb.formats.iterations import SYNTAX
from perfdb.formats.lines import KeptLines, Lines, Read, read
from perfdb.formats.piped import Syntax
from perfdb.formats.readings import Column, Columns, Readings
from perfdb.formats.shapes import Shape, shape_of
from perfdb.log_text import plain

thorough = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
NUMBERS = st.one_of(
    st.floats().map(repr),
    st.floats(1e-3, 1e5).map("{:.4f}".format),
    st.floats(1e-30, 1e30).map("{:.6E}".format),
    st.integers(0, 10**17).map(str),
    st.from_regex(r"[-+]?\d{1,16}\.?\d{0,6}([eE][-+]?\d{1,5})?", fullmatch=True).filter(
        str.isascii
    ),
    st.sampled_from(
        ["nan", "inf", "-inf", "0.0", "-0.0", "1.5/2.5", "", "12.", ".5", "1e400", "x"]
    ),
)
SEPARATORS = st.sampled_from([" | ", "|", " |  ", " |\t", " |\n", " | \r", "  |\n[rank3]: ", " "])
ENDS = st.sampled_from(
    ["\n", " |\n", " |", "", "\r\n", " | \n", "\r", " |\nlm loss: 7.5 |\n", "é|\n"]
)
BETWEEN = st.sampled_from(
    [
        "",
        "",
        "[NeMo I 2025-08-26 13:43:03] rank 3: x\n",
        " grad norm: 0.5 | \n",
        " " * 60 + "lm loss: 1 |\n",
    ]
)
NEMO = nemo2._SYNTAX


def step(syntax: Syntax) -> st.SearchStrategy[str]:
    """A step line, mostly whole, of a syntax's fields in any order."""
    start = (
        " iteration %8d/      99 | consumed samples:  12 | "
        if syntax is SYNTAX
        else "Training epoch 0, iteration %d/99 | lr: 1e-06 | "
    )
    keys = st.permutations([*syntax.fields, "lr", "loss scale"]).flatmap(
        lambda order: st.integers(3, len(order)).map(lambda n: order[:n])
    )
    cells = keys.flatmap(
        lambda some: st.tuples(*(NUMBERS.map(f"{key}: {{}}".format) for key in some))
    )
    parts = st.tuples(st.integers(0, 99), cells, SEPARATORS, ENDS, BETWEEN)
    return parts.map(lambda p: start % p[0] + p[2].join(p[1]) + p[3] + p[4])


def log(syntax: Syntax) -> st.SearchStrategy[bytes]:
    """Steps, of which many differ from another in their digits alone."""

    def vary(line: str, digits: Sequence[int]) -> str:
        seeds = iter(digits)
        return re.sub(r"(?<=\d)\d(?=[\d.])", lambda _: str(next(seeds, 0)), line)

    varied = st.tuples(step(syntax), st.lists(st.lists(st.integers(0, 9), max_size=60), max_size=6))
    lines = varied.map(lambda p: "".join([p[0], *(vary(p[0], digits) for digits in p[1])]))
    return st.lists(lines, max_size=5).map(lambda some: "".join(some).encode())


def said(found: Read) -> object:
    """What was read, with NaN as a word and numbers to the last bit."""
    columns: Columns = found.columns
    cells = {name: list(map(repr, columns.of(name).cells())) for name in columns.names}
    return columns.lines.tolist(), cells, list(found.missing)


def read_each(lines: Lines, syntax: Syntax) -> Read:
    """What each line gives by itself, where no shape is known and none is learned."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(of_lines, "MOST_LEARNED", 0)
        return read(lines, syntax, [])


@pytest.mark.parametrize("syntax", [SYNTAX, NEMO], ids=["megatron", "nemo"])
@thorough
@given(data=st.data())
def test_lines_read_at_once_give_what_each_gives_by_itself(
    syntax: Syntax, data: st.DataObject
) -> None:
    shapes: list[Shape] = []
    for text in data.draw(st.lists(log(syntax), min_size=1, max_size=3)):
        lines = Lines.of(Block.of(plain(text), 7), syntax.marker)
        assert said(read_each(lines, syntax)) == said(read(lines, syntax, shapes))


@pytest.mark.parametrize("syntax", [SYNTAX, NEMO], ids=["megatron", "nemo"])
def test_no_key_that_matters_holds_a_digit(syntax: Syntax) -> None:
    assert not re.search(r"\d", "".join((*syntax.fields, syntax.marker.decode())))


@thorough
@given(number=NUMBERS, digits=st.lists(st.integers(0, 9), min_size=40, max_size=40))
def test_a_number_is_the_float_that_python_reads(number: str, digits: list[int]) -> None:
    try:
        float(number)
    except ValueError:
        return
    seeds = iter(digits)
    other = re.sub(r"\d", lambda _: str(next(seeds)), number)
    rows = [f"loss: {text} |\n".encode() for text in (number, other)]
    shape = shape_of(rows[0], 0, {"loss": (6, 6 + len(number))})
    lines = np.frombuffer(b"".join(rows), np.uint8).reshape(2, -1)
    assert shape.matches(lines).all()
    expected = [repr(float(number)), repr(float(other))]
    assert expected == list(map(repr, shape.read(lines)["loss"].tolist()))


def test_thousands_of_numbers_of_each_form_are_the_floats_that_python_reads() -> None:
    draw = random.Random(1)
    forms = [
        "#.####",
        "-##.##",
        "#.######E-##",
        "#.#e+##",
        "0.################",
        "#" * 15,
        "#" * 17,
    ]
    for form in [*forms, "##.#############", "##.##############", "-#.#E-###", ".##", "##."]:
        texts = [re.sub("#", lambda _: str(draw.randrange(10)), form) for _ in range(2500)]
        rows = "".join(f"loss: {text} |\n" for text in texts).encode()
        lines = np.frombuffer(rows, np.uint8).reshape(2500, -1)
        shape = shape_of(lines[0].tobytes(), 0, {"loss": (6, 6 + len(form))})
        assert shape.matches(lines).all()
        expected = [repr(float(text)) for text in texts]
        assert expected == list(map(repr, shape.read(lines)["loss"].tolist()))


def test_a_step_that_goes_on_behind_its_line_is_told_from_those_that_do_not() -> None:
    draw = random.Random(2)
    line = (
        " iteration %8d/    9999 | consumed samples: 12 | "
        "elapsed time per iteration (ms): %d.5 |%s\n"
    )
    behind = [
        "grad norm: 0.5 |\n", "[rank3]: lm loss: 2.5 |\n", "x" * 40 + "lm loss: 3.5\n",
        "x" * 41 + "lm loss: 3.5\n", "x" * 40 + " " * 90 + "lm loss: 4.5 |\n", "é lm loss: 5.5\n",
        "[NeMo I 07:32:24] rank 3: bucket\n", "a | lm loss: 1.5 |\n", "size: 5\n", "\n", "",
    ]  # fmt: skip
    steps = [line % (0, 1, "") + behind[0]] + [
        line % (n, n % 9, draw.choice(["", " ", " number of nan iterations:   0 |"]))
        + draw.choice(behind)
        for n in range(3000)
    ]
    lines = Lines.of(Block.of("".join(steps).encode(), 1), SYNTAX.marker)
    shapes: list[Shape] = []
    each = said(read_each(lines, SYNTAX))
    assert each == said(read(lines, SYNTAX, shapes))
    assert shapes
    assert each == said(read(lines, SYNTAX, shapes)), "with the shapes that it has learned"


STEP = (
    b" iteration 1/9 | consumed samples: 12 | elapsed time per iteration (ms): 1.5 | "
    b"number of nan iterations:   0 |\n"
)


def test_a_line_that_holds_more_than_its_shape_is_read_by_itself() -> None:
    glued = b" iteration 2/9 | lm loss: 7.5 |" + STEP
    lines = Lines.of(Block.of(STEP * 2 + glued + STEP, 1), SYNTAX.marker)
    found = read(lines, SYNTAX, [])
    assert [1, 2, 3, 4] == found.columns.lines.tolist()
    assert [(3, ["elapsed time per iteration (ms)"])] == list(found.missing)


def test_a_number_that_a_block_ends_in_is_not_whole_though_others_are_kept_behind_it() -> None:
    texts = (STEP * 2, STEP.partition(b" | number")[0], STEP)
    blocks = (Block.of(text, line) for text, line in zip(texts, (1, 3, 4), strict=True))
    kept = KeptLines()
    for block in blocks:
        kept.add(Lines.of(block, SYNTAX.marker))
    found = read(kept.taken(), SYNTAX, [])
    assert [1, 2, 4] == found.columns.lines.tolist()
    assert [(3, ["elapsed time per iteration (ms)"])] == list(found.missing)


@pytest.mark.parametrize("indent", [0, 200, 250, 700])
@pytest.mark.parametrize(
    "behind", [b"", b" lm loss: 2.5 |\n", b"x" * 2100 + b"\n lm loss: 2.5 |\n"]
)
def test_steps_far_apart_are_kept_with_all_that_they_may_go_on_on(
    indent: int, behind: bytes
) -> None:
    noise = b"[NeMo I] bucket 7 has 19 elements\n" * 120
    bare = STEP.partition(b"number")[0] + b"\n"
    text = b"".join(noise + b" " * indent + line + behind for line in (STEP, bare) * 3) + noise
    lines = Lines.of(Block.of(text, 1), SYNTAX.marker)
    assert (indent < 250) == (lines.windows() is not None)
    kept = KeptLines()
    kept.add(lines)
    assert said(read_each(lines, SYNTAX)) == said(read(kept.taken(), SYNTAX, []))
    kept.add(lines)
    kept.add(Lines.of(Block.of(STEP, 900), SYNTAX.marker))
    kept.add(lines)
    found = read(lines, SYNTAX, []).columns.lines.tolist()
    assert [*found, 900, *found] == read(kept.taken(), SYNTAX, []).columns.lines.tolist()


def test_behind_its_last_field_a_step_does_not_go_on() -> None:
    start = b" iteration 1/1 | consumed samples: 12 | elapsed time per iteration (ms): 1.5 |"
    behind = b"grad norm: 0.5 | number of nan iterations:   0 |\n"
    for last, norm in ((b"\n", [0.5]), (b" number of nan iterations:   0 |\n", [None])):
        lines = Lines.of(Block.of(start + last + behind, 1), SYNTAX.marker)
        assert norm == read(lines, SYNTAX, []).columns.of("grad norm").cells()


def test_a_line_that_differs_in_another_byte_has_another_shape() -> None:
    line = b"loss: 1.5 | x\n"
    shape = shape_of(line, 0, {"loss": (6, 9)})
    others = [
        line[:place] + bytes([byte]) + line[place + 1 :]
        for place in range(14)
        for byte in range(256)
    ]
    lines = np.frombuffer(b"".join(others), np.uint8).reshape(len(others), -1)
    alike = [re.sub(rb"\d", b"0", one) == b"loss: 0.0 | x\n" for one in others]
    assert alike == shape.matches(lines).tolist()


@thorough
@given(parts=st.lists(st.sampled_from(["Ta ra", "Ta", " ra", "\n", "x" * 40]), max_size=40))
def test_the_lines_that_hold_a_marker_are_those_that_a_plain_search_finds(parts: list[str]) -> None:
    content = "".join(parts).encode()
    block = Block.of(content, 7)
    places, numbers = block.lines_with(b"Ta ra")
    starts = np.cumsum([0, *map(len, content.splitlines(keepends=True))]).tolist()
    expected = [
        (starts[n] + one.find(b"Ta ra"), 7 + n)
        for n, one in enumerate(content.splitlines())
        if b"Ta ra" in one
    ]
    assert expected == list(zip(places.tolist(), numbers.tolist(), strict=True))
    assert content.count(b"\n") == block.num_newlines


def test_a_log_of_few_steps_and_one_of_many_give_the_same_lines() -> None:
    noise = b"Tr " * 30 + b"\n"
    content = b"".join(noise * (n % 5) + b"Training epoch %d\n" % n for n in range(900))
    expected = [n for n, one in enumerate(content.splitlines(), 1) if one.startswith(b"Training")]
    _, many = Block.of(content, 1).lines_with(b"Training epoch ")
    _, few = Block.of(content[: content.find(b"epoch 150")], 1).lines_with(b"Training epoch ")
    assert (expected, expected[:150]) == (many.tolist(), few.tolist())


READING = st.builds(
    Reading,
    line=st.integers(1, 10**9),
    step=st.integers(-5, 2**63 - 1),
    step_time_s=st.floats(allow_nan=False),
    loss=st.none() | st.floats(allow_nan=False),
    grad_norm=st.none(),
    tokens=st.none() | st.integers(1, 9),
    model_tflops_per_sec_per_gpu=st.none(),
    tokens_per_sec_per_gpu=st.none() | st.just(0.5),
    mfu=st.none(),
    peak_memory_bytes=st.none() | st.integers(0, 2**63 - 1),
    skipped=st.booleans(),
)


@pytest.mark.parametrize(
    ("cells", "num_bytes"),
    [([2.5] * 9, 8), ([None] * 9, 8), ([0.0, -0.0], 16), ([1.0, None], 16), ([], 0)],
)
def test_a_column_of_one_value_is_kept_once_and_has_all_its_cells(
    cells: list[float | None], num_bytes: int
) -> None:
    column = Column.of(cells).slim()
    assert repr(cells) == repr(column.cells())
    base = column.values if column.values.base is None else column.values.base
    assert num_bytes == base.nbytes


def test_a_block_within_a_text_has_its_own_lines_alone() -> None:
    text = b"Ta ra\nx\nTa ra Ta ra\n\nTa ra\nTa ra\n"
    block = Block(text, 7, 6, 27)
    places, numbers = block.lines_with(b"Ta ra")
    assert ([8, 21], [8, 10]) == (places.tolist(), numbers.tolist())
    assert 4 == block.num_newlines == Block(text, 7, 6, 27).num_newlines


@thorough
@given(readings=st.lists(READING, max_size=9), start=st.integers(-9, 9), end=st.integers(-9, 9))
def test_readings_in_columns_are_those_they_were_made_of(
    readings: list[Reading], start: int, end: int
) -> None:
    columns = Readings.of(readings)
    assert readings == list(columns) == [columns[place] for place in range(len(readings))]
    assert readings[start:end] == list(columns[start:end])
    assert repr(tuple(readings)) == repr(columns)
    assert readings * 2 == list(Readings.joined([columns, columns]))
    with pytest.raises(IndexError):
        columns[len(readings)]


def test_a_step_printed_again_unchanged_repeats_nothing_though_its_loss_is_no_number() -> None:
    line = (
        b"Training epoch 0, iteration 0/0 | reduced_train_loss: nan | train_step_timing in s: 1.5\n"
    )
    (log,) = nemo2.parse("a.log", [line * 2])
    assert () == log.notes
    assert math.isnan(log.readings[0].loss or 0)


@example(["\n", "step", "\n", "y\n" * 9000, "step", "\n"])
@given(st.lists(st.sampled_from(["step", "\n", "x" * 3000, "y\n" * 3000, "é\n", "steps step\n"])))
def test_lines_with_a_marker_are_numbered_however_far_apart_they_are(parts: list[str]) -> None:
    """Where steps are few the ends of lines are counted in another way."""
    text = "".join(parts).encode()
    lines = text.split(b"\n")
    starts = accumulate((len(line) + 1 for line in lines), initial=0)
    wanted = [
        (start + line.index(b"step"), number)
        for number, (start, line) in enumerate(zip(starts, lines, strict=False), 7)
        if b"step" in line
    ]
    block = Block.of(text, 7)
    assert wanted == list(zip(*map(np.ndarray.tolist, block.lines_with(b"step")), strict=True))
    assert block.num_newlines == text.count(b"\n")
