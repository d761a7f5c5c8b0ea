"""Tables on stdout that fit a terminal; --wide has the rest.

Where stdout is no terminal they are as wide as `PIPE_COLUMNS`, and no text is cut.
"""

import os
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Final, TypeVar

import click

from perfdb.text import visible
from perfdb.units import text

PIPE_COLUMNS: Final = 120
"""The width of a table where stdout is no terminal; scripts use --json."""

MOST_LINES: Final = 2
"""Lines of a cell in a terminal, unless --wide asks for all of it."""

LEAST: Final = 12
"""Columns of text that a cell keeps, however narrow the terminal is."""

SLACK: Final = 8
"""So many columns too many are no reason for another layout: names are broken at hyphens."""

LONGEST: Final = 44
"""A word that is longer, such as a path, may be broken."""

_WIDE: Final = "perfdb.wide"
_HIDDEN: Final = "perfdb.hidden"
_NARROW: Final = re.compile(r"[ -~\xa0-\xac\xae-\xff–−→…─-◼]*").fullmatch
"""Of one column each: what the tables of perfdb have besides names."""
_GAP: Final = "  "
_INDENT: Final = "  "

_COLORS: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("error", "failed", "rejected", "slower", "higher", "WRONG", "withdrawn"), "red"
    ),
    **dict.fromkeys(("can't tell", "not judged", "revised", "warning", "skipped"), "yellow"),
    **dict.fromkeys(("faster", "finished", "lower", "new", "recovered"), "green"),
    "info": "blue",
}
"""The color of a line of a cell that is one of these words: verdicts, severities and outcomes."""

Command = TypeVar("Command", bound=Callable[..., object])


def _keep(context: click.Context, _option: object, value: bool) -> None:
    context.meta[_WIDE] = value


wide_option = click.option(
    "--wide", is_flag=True, expose_value=False, callback=_keep,
    help="Show every column and all text, however wide the table gets.",
)  # fmt: skip
"""--wide, which `print_table` finds in the context."""


def is_terminal() -> bool:
    """Whether stdout is a terminal, or is to be treated as one."""
    return sys.stdout.isatty() or bool(os.environ.get("FORCE_COLOR"))


def styled(words: str, **style: object) -> str:
    """Words for stdout in a color or weight, where it is a terminal that has them."""
    return words if not words or _is_plain() else click.style(words, **style)  # type: ignore[arg-type]  # click's own


def _is_plain() -> bool:
    """Whether stdout has no colors."""
    no_colors = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return bool(no_colors) or not is_terminal()


def colored(word: str) -> str:
    """A verdict, severity or outcome in its color."""
    color = _COLORS.get(word.strip())
    return styled(word, fg=color) if color else word


def echo(line: str) -> None:
    """Print a line of `styled` words on stdout."""
    click.echo(line, color=True)


def print_table(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    spare: Sequence[str] = (),
) -> None:
    """Print a table that fits; unknown is –.

    Where it does not fit it lacks columns of `spare`, the first first. Then columns are broken
    between words, or the first one becomes a line above each row.
    """
    context = click.get_current_context(silent=True)
    wide = context.meta.get(_WIDE) if context else None
    known = [[visible(cell if type(cell) is str and cell else text(cell)) for cell in row]
             for row in rows]  # fmt: skip
    table = _Table(list(columns), known, is_cut=wide is False and is_terminal())
    most = shutil.get_terminal_size().columns if is_terminal() else PIPE_COLUMNS
    hidden = [] if wide else table.drop(spare, most)
    lines = table.lines(table.across if wide else most)
    echo("\n".join([*(styled(line, bold=True) for line in visible(title).split("\n")), ""]))
    echo("\n".join([*lines, ""]))
    if context and wide is False:
        _name_hidden(context, [*hidden, *(["some text"] if table.lacks_text else [])])


def _name_hidden(context: click.Context, what: Sequence[str]) -> None:
    """Say once, at the end of the command, what --wide would show."""
    known: dict[str, None] = context.meta.setdefault(_HIDDEN, {})
    if what and not known:
        context.call_on_close(
            lambda: click.echo(f"not shown: {', '.join(known)}; --wide shows all", err=True)
        )
    known.update(dict.fromkeys(what))


@dataclass
class _Table:
    """Columns and rows of text; a cell may have several lines."""

    columns: list[str]
    rows: list[list[str]]
    is_cut: bool
    """Whether a cell has `MOST_LINES` at most."""
    lacks_text: bool = False

    def _spans(self, parts: Callable[[str], list[str]]) -> list[int]:
        """How wide the widest of some parts of each column's cells is."""
        cells = zip(self.columns, *self.rows, strict=True)
        lines = (list(chain.from_iterable(map(parts, set(some)))) for some in cells)
        return [max(map(len if _NARROW("".join(some)) else _width, some), default=0)
                for some in lines]  # fmt: skip

    @property
    def across(self) -> int:
        """How wide the table is where no line is broken."""
        return _across(self._spans(str.splitlines))

    def drop(self, spare: Sequence[str], most: int) -> list[str]:
        """Leave out columns that are spare, as few as possible; their names."""
        dropped: list[str] = []
        for name in spare:
            if self.across <= most:
                break
            at = self.columns.index(name)
            for row in (self.columns, *self.rows):
                del row[at]
            dropped.append(name)
        return dropped

    def lines(self, most: int) -> list[str]:
        """Its lines, none wider than `most` where that is possible."""
        first, *others = least = [min(it, LONGEST) for it in self._spans(str.split)]
        widths = self._spans(str.splitlines)
        is_prose = widths[0] > max(first, most // 3) or _across(least) > most + SLACK
        is_above = is_prose and _across(widths) > most and _across([0, *others]) <= most
        heads = [row[0].splitlines() for row in self.rows] if is_above else []
        if heads:
            name, self.columns[0], widths[0], least[0] = self.columns[0], "", 0, 0
            self.rows = [["", *row[1:]] for row in self.rows]
        head, blocks = self._drawn(_narrowed(widths, least, most))
        if heads:
            head.insert(0, styled(name, bold=True))
            blocks = [[*self._above(lines, most), *block, *self._below(lines, most)]
                      for lines, block in zip(heads, blocks, strict=True)]  # fmt: skip
        air = [""] if max(map(len, blocks), default=0) > MOST_LINES + bool(heads) else []
        return [*head, *(it for block in blocks for it in [*block, *air])]

    def _above(self, lines: Sequence[str], most: int) -> list[str]:
        """The name of a row, above its cells."""
        return [styled(it, bold=True) for it in self._broken(lines[0], most)]

    def _below(self, lines: Sequence[str], most: int) -> list[str]:
        """What there is to know of a row besides, below its cells."""
        indent = 2 * _INDENT
        said = [" · ".join(lines[1:])] if self.is_cut and lines[1:] else lines[1:]
        parts = [it for one in said for it in self._broken(one, most - len(indent), 1)]
        return [styled(f"{indent}{it}", dim=True) for it in parts]

    def _broken(self, cell: str, width: int, most_lines: int = MOST_LINES) -> list[str]:
        """A text in lines of a width; a text that is cut ends in …."""
        if "\n" not in cell and _fits(cell, width):
            return [cell]
        lines = [part for line in cell.split("\n") for part in _wrapped(line, width)]
        if not self.is_cut or len(lines) <= max(most_lines, cell.count("\n") + 1):
            return lines
        self.lacks_text = True
        last = _chopped(lines[most_lines - 1], max(1, width - 1))[0]
        return [*lines[: most_lines - 1], f"{last}…"]

    def _drawn(self, widths: Sequence[int]) -> tuple[list[str], list[list[str]]]:
        """The lines of the header and of each row. Numbers, but no names, are flush right."""

        def words(cell: str, width: int, style: Callable[[str], str], place: str) -> list[str]:
            found = []
            for part in self._broken(cell, max(1, width)):
                air, shown = " " * (width - _width(part)), style(part)
                found.append(air + shown if place == "right" else shown + air)
            return found

        def lines(row: Sequence[Sequence[str]]) -> list[str]:
            if max(map(len, row)) == 1:
                return [_GAP.join([it for (it,) in row]).rstrip()]
            blanks = [[" " * width] * max(map(len, row)) for width in widths]
            filled = ([*it, *blank[len(it) :]] for it, blank in zip(row, blanks, strict=True))
            return [_GAP.join(some).rstrip() for some in zip(*filled, strict=True)]

        head: list[list[str]] = []
        columns: list[list[list[str]]] = []
        color = str if _is_plain() else colored
        for width, name, *cells in zip(widths, self.columns, *self.rows, strict=True):
            known = dict.fromkeys(cells)  # many are equal, and each is drawn once
            place = "right" if columns and all(map(_is_number, known)) else "left"
            head.append(words(name, width, partial(styled, bold=True), place))
            drawn = {it: words(it, width, color, place) for it in known}
            columns.append([drawn[it] for it in cells])
        return [*lines(head), "─" * _across(widths)], list(map(lines, zip(*columns, strict=True)))


def _across(widths: Sequence[int]) -> int:
    return sum(widths) + len(_GAP) * (len(widths) - 1)


def _narrowed(widths: Sequence[int], least: Sequence[int], most: int) -> list[int]:
    """Widths that fit if the least ones do, each time the one that has the most to spare less."""
    found = list(widths)
    while _across(found) > most:
        spare = [width - few for width, few in zip(found, least, strict=True)]
        if max(spare) <= 0:  # words are broken
            spare = [width if width > LEAST else 0 for width in found]
        if max(spare) <= 0:
            break
        found[spare.index(max(spare))] -= 1
    return found


def _is_number(cell: str) -> bool:
    """Whether a cell is a number, with separators, a unit or a sign, or is unknown."""
    return not cell.strip("0123456789.,+-–% ")


def _fits(line: str, width: int) -> bool:
    """Whether a line stays as it is at a width."""
    is_short = len(line) <= width and _width(line) <= width
    return is_short and line == line.strip() and "\t" not in line


def _wrapped(line: str, width: int) -> list[str]:
    """A line in parts that are no wider than this, between words where that is possible."""
    if _fits(line, width):
        return [line]  # as textwrap has it, in a tenth of the time
    words = textwrap.wrap(line, width, break_on_hyphens=True) or [""]
    return [part for some in words for part in _chopped(some, width)]


def _chopped(line: str, width: int) -> list[str]:
    """A line in parts that are no wider than this: some characters take two places."""
    if _width(line) <= width:
        return [line]
    from rich.cells import chop_cells

    return chop_cells(line, width)


def _width(line: str) -> int:
    """The columns of a terminal that a line takes."""
    if line.isascii() or _NARROW(line):
        return len(line)
    from rich.cells import cell_len

    return cell_len(line)
