"""Tables on a pipe, against those of rich."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich import box
from rich.console import Console
from rich.table import Column, Table

from perfdb.cli import options

CELLS = st.text(st.sampled_from("ab1 \n→⚑–·⌚語é\u0301:"), max_size=12)


def of_rich(title: str, columns: list[str], rows: list[list[str]], most: int) -> str:
    """What rich prints to a file of so many columns."""
    console = Console(file=io.StringIO(), width=most, markup=False, highlight=False)
    console.print(title, style="italic")
    table = Table(*(Column(name, overflow="fold") for name in columns), box=box.SIMPLE_HEAD)
    for row in rows:
        table.add_row(*row)
    console.print(table)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@given(st.lists(st.tuples(CELLS, CELLS, CELLS), max_size=4), st.integers(20, 60))
def test_a_table_on_a_pipe_is_as_rich_prints_it(rows: list[tuple[str, ...]], most: int) -> None:
    given_rows = [list(row) for row in rows]
    columns = ["Case", "B/A", "B is"]
    plain = options.plain_table("A → B", columns, given_rows, most)
    if plain is not None:
        assert of_rich("A → B", columns, given_rows, most) == f"{plain}\n"


@pytest.mark.parametrize(
    ("cell", "most", "is_plain"),
    [("x" * 30, 60, True), ("x" * 30, 30, False), (":smile:", 60, False), ("a\tb", 60, False)],
)
def test_what_rich_breaks_or_reads_more_into_is_left_to_it(
    cell: str, most: int, is_plain: bool
) -> None:
    assert is_plain is (options.plain_table("title", ["Case"], [[cell]], most) is not None)
