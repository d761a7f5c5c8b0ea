"""Tables that fit: on a terminal, on a pipe, and with --wide."""

from collections.abc import Sequence

import click
import pytest
from click.testing import CliRunner
from hypothesis import example, given, settings
from hypothesis import strategies as st

from perfdb.cli import tables

LONG = "Llama 3 8B · Pre-training · FP8 · 8 × DGX-GB200 · sequence 8,192 · GBS 128"
COLUMNS = ("Case", "A", "B", "Verdict")
ROWS = (
    (f"{LONG}\nMBS 2, TP 1\n{'a footnote of the page ' * 4}", "33,099", "32,071", "slower"),
    (LONG, "30,911", None, "same"),
)


def printed(
    rows: Sequence[Sequence[object]],
    columns: Sequence[str] = COLUMNS,
    *words: str,
    terminal: int = 0,
    spare: Sequence[str] = (),
) -> str:
    """What a command with --wide prints: to a terminal of so many columns, or to a pipe."""

    @click.command()
    @tables.wide_option
    def command() -> None:
        tables.print_table("Title", columns, rows, spare)

    env = {"FORCE_COLOR": "1", "COLUMNS": str(terminal), "TERM": "xterm"} if terminal else {}
    clean = {"NO_COLOR": None, "FORCE_COLOR": None, **env}
    return CliRunner().invoke(command, list(words), env=clean).output


def test_a_pipe_gets_lines_without_color_and_no_text_is_cut() -> None:
    lines = printed(ROWS).splitlines()
    assert "\x1b" not in printed(ROWS)
    assert "…" not in printed(ROWS)
    assert max(map(len, lines)) <= tables.PIPE_COLUMNS


def test_a_narrow_terminal_has_the_name_of_a_row_above_its_cells() -> None:
    lines = click.unstyle(printed(ROWS, terminal=80)).splitlines()
    assert [
        "Title", "", "Case", "       A       B  Verdict", "─────────────────────────",
        LONG, "  33,099  32,071  slower", lines[7],
        LONG, "  30,911       –  same", "", "not shown: some text; --wide shows all",
    ] == lines  # fmt: skip
    assert lines[7].startswith("    MBS 2, TP 1 · a footnote of the page a footnote")
    assert lines[7].endswith("…")
    assert max(map(len, lines)) <= 80


def test_wide_shows_every_column_and_all_text_in_a_line_each() -> None:
    rows = [("llama3-8b", 32, "x" * 60), ("gpt-tiny", 4, "y" * 60)]
    columns = ("Model", "Layers", "Source")
    narrow = printed(rows, columns, terminal=60, spare=("Source",))
    assert (False, True) == ("xxx" in narrow, "not shown: Source; --wide shows all" in narrow)
    wide = click.unstyle(printed(rows, columns, "--wide", terminal=60, spare=("Source",)))
    assert f"llama3-8b      32  {'x' * 60}" in wide.splitlines()


def test_verdicts_have_colors_unless_no_color_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b[31mslower\x1b[0m" in printed(ROWS, terminal=80)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    assert "\x1b[31merror\x1b[0m" == tables.colored("error")
    monkeypatch.setenv("NO_COLOR", "1")
    assert "error" == tables.colored("error")


CELLS = st.text(st.sampled_from("ab1 -\n→⚑–·⌚語é\u0301:"), max_size=30)


@settings(max_examples=40)
@example([("111⌚⌚⌚⌚", "11111⌚⌚⌚⌚", "1111111111111")], 40)
@given(st.lists(st.tuples(CELLS, CELLS, CELLS), max_size=4), st.integers(40, 90))
def test_no_line_is_wider_than_the_terminal(rows: list[tuple[str, ...]], width: int) -> None:
    from rich.cells import cell_len

    lines = click.unstyle(printed(rows, ("Case", "B/A", "Note"), terminal=width)).splitlines()
    assert max(map(cell_len, lines)) <= width
