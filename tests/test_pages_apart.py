"""Two values in one cell of a page: never one number of both's digits, never one struck out."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfdb.pages import reader
from perfdb.pages.base import PageContext, PageRead

SAID = PageContext(framework="acme", system="dgx-h100", precision="bf16")
TITLES = ("Model", "#GPUs", "GBS", "Seq Length", "Tokens/s/GPU")
ROW = ("Llama3 70B", "64", "128", "8192")


def markdown(cell: str, model: str = ROW[0]) -> str:
    row = " | ".join((model, *ROW[1:], cell))
    return f"| {' | '.join(TITLES)} |\n{'|---' * 5}|\n| {row} |\n\n[^1]: Twice.\n"


def html(cell: str, model: str = ROW[0], row: str = "<tr>") -> str:
    head = "".join(f"<th>{title}</th>" for title in TITLES)
    body = "".join(f"<td>{text}</td>" for text in (model, *ROW[1:], cell))
    return f"<html><table><tr>{head}</tr>\n{row}{body}</tr></table></html>"


def list_table(cell: str, model: str = ROW[0]) -> str:
    rows = ((*TITLES,), (model, *ROW[1:], cell))
    lines = [f"{'  ' if at else '* '}- {text}" for row in rows for at, text in enumerate(row)]
    indented = "\n".join(f"   {line}" for line in "\n".join(lines).split("\n"))
    return f".. list-table::\n   :header-rows: 1\n\n{indented}\n\n.. |s| replace:: 7\n\n.. [1] x\n"


def grid(cell: str) -> str:
    first, _, second = cell.partition("\n")
    rows = [TITLES, (*ROW, first), ("",) * 4 + (second,)]
    lines = ["|" + "|".join(f" {text:<30} " for text in row) + "|" for row in rows]
    rule = ("+" + "-" * 32) * 5 + "+"
    return "\n".join((rule, lines[0], rule.replace("-", "="), *lines[1:], rule, ""))


def csv_table(cell: str) -> str:
    row = ", ".join((*ROW, f'"{cell}"'))
    row = row.replace("\n", "\n   ")
    return f".. csv-table::\n   :header: {', '.join(TITLES)}\n\n   {row}\n"


def myst_table(cell: str) -> str:
    rst = list_table(cell).partition(":header-rows: 1\n")[2].partition("..")[0]
    return "```{list-table}\n:header-rows: 1\n" + rst.replace("\n   ", "\n") + "```\n"


CELLS = [
    *((markdown, cell) for cell in (
        "{}<br>{}", "{} <br/> {}", "**{}** {}", "**{}**{}", "{} *{}*", "*{}*{}", "`{}` `{}`",
        "`{}<br>{}`", "[{}](a) [{}](b)", "[{}](a){}", "{}[^1] {}", "{}<sup>1</sup>{}", "{}&emsp;{}",
        "{}&nbsp;&nbsp;{}", "{}  {}", "{} ![](x.png) {}", "<del>{}</del> {}", "~~{}~~ {}",
        "{}<sub>{}</sub>", "<span>{}</span> {}", "**{}**<br>**{}**", "{}\u2003{}", "{}\u2028{}",
    )),
    *((html, cell) for cell in (
        "{}<br>{}", "<p>{}</p><p>{}</p>", "<p>{}<p>{}", "<div>{}</div> <div>{}</div>", "{}\n  {}",
        "<ul><li>{}<li>{}</ul>", "<b>{}</b> {}", "<b>{}</b>{}", "{}<i>{}</i>", "{}<sub>{}</sub>",
        "{}<sup>1</sup> {}", "<code>{}</code> <code>{}</code>", "<a href=a>{}</a> <a href=b>{}</a>",
        "<span class=tip>{}<span class=text>{}</span></span>", "{}&emsp;{}", "{}&nbsp; {}",
        "<del>{}</del> {}", "<del>{}</del><ins>{}</ins>", "{}<img alt='' src=x>{}",
        "{} <span hidden>x</span> {}", "<dl><dd>{}</dd><dd>{}</dd></dl>",
    )),
    *((list_table, cell) for cell in (
        "**{}** {}", "{} *{}*", "``{}`` ``{}``", "`{} <a>`_ `{} <b>`_", "{} [1]_ {}",
        "{}\n\n    {}", "{}\n    {}", ":sub:`{}` {}", ":del:`{}` {}", "**{}**\\ {}", "{} |s| {}",
        "**{}\n    {}**",
    )),
    *((grid, cell) for cell in ("{}\n{}", "**{}** {}", "**{}\n{}**", "| {}\n| {}")),
    *((csv_table, cell) for cell in ("{}\n{}", "**{}** {}")),
    *((myst_table, cell) for cell in ("{}\n\n    {}", "**{}** {}", "`{}\n    {}`")),
]  # fmt: skip

numbers = st.one_of(
    st.integers(1, 10**7).map(str),
    st.integers(1000, 10**7).map("{:,}".format),
    st.decimals(1, 10**4, places=1).map(str),
)


def read(text: str) -> PageRead:
    return reader.read("page", text, SAID)


@pytest.mark.parametrize(("write", "cell"), CELLS)
@given(first=numbers, second=numbers)
@settings(deadline=None, max_examples=10)
def test_two_numbers_in_a_cell_are_never_one(write, cell: str, first: str, second: str) -> None:
    """The row is told with its line, its field and both values, whatever stands between them."""
    text = write(cell.format(first, second))
    found = read(text)
    assert () == found.results, text
    (problem,) = found.problems
    assert "Tokens/s/GPU" == problem.field
    line = text.split("\n")[(problem.line or 0) - 1]
    assert ROW[0] in line
    shown = re.sub(r"\s+", " ", problem.message)
    assert "…" in shown or (first in shown and second in shown)


@pytest.mark.parametrize(("write", "cell"), [
    (markdown, "1 234"), (markdown, "1\u00a0234"), (markdown, "1&nbsp;234"),
    (markdown, "**1 234**"), (markdown, "**1,234**<br>"), (markdown, "1,234<sup>1</sup>"),
    (markdown, "<!-- a -->1,234[^1]"), (html, "1 234"), (html, "1&#8239;234"),
    (html, "1&thinsp;234"), (html, "<p><b>1,234</b></p>\n"), (html, "1,234<br>"),
    (html, "<sup>1</sup> 1,234"), (list_table, "``1 234``"),
    (list_table, "1\\,234 [1]_"), (grid, "**1,234**\n"), (csv_table, "1 234"),
])  # fmt: skip
def test_one_run_of_text_may_group_its_digits_with_a_space(write, cell: str) -> None:
    (one,) = read(write(cell)).results
    assert 1234.0 == one.figures.tokens_per_sec_per_gpu


@pytest.mark.parametrize(("write", "cell"), [
    (markdown, "~~{}~~"), (markdown, "~{}~"), (markdown, "<del>{}</del>"), (markdown, "<s>{}</s>"),
    (markdown, "<strike>{}</strike>"), (markdown, "{{strike}}`{}`"),
    (markdown, '<span style="text-decoration: line-through">{}</span>'),
    (html, "<s>{}</s>"), (html, "<del>{}</del>"), (html, "<strike><b>{}</b></strike>"),
    (html, '<span style="color: red; text-decoration:line-through">{}</span>'),
    (html, '<p style="text-decoration-line: line-through">{}</p>'),
    (html, "<span class='strike'>{}</span>"),
    (list_table, ":strike:`{}`"), (list_table, ":del:`{}`"),
])  # fmt: skip
def test_what_is_struck_out_is_rejected_with_its_line_be_it_a_figure_or_a_name(
    write, cell: str
) -> None:
    for field, text in (
        ("Tokens/s/GPU", write(cell.format("1,234"))),
        ("Model", write("1,234", model=cell.format("Llama3 70B"))),
    ):
        found = read(text)
        assert () == found.results
        (problem,) = found.problems
        assert field == problem.field
        assert problem.message.endswith("is struck out")
        assert "64" in "".join(text.split("\n")[(problem.line or 0) - 1 :])


@pytest.mark.parametrize("page", [
    html("1,234", row="<tr style='text-decoration: line-through'>"),
    html("1,234").replace("<table>", "<del><table>").replace("</table>", "</table></del>"),
])  # fmt: skip
def test_a_row_that_is_struck_out_as_a_whole_is_rejected(page: str) -> None:
    found = read(page)
    assert () == found.results
    assert ["'~~Llama3 70B~~' is struck out"] == [one.message for one in found.problems]


def test_a_title_that_is_struck_out_means_nothing() -> None:
    """Its cells are no figures; the column is told, and kept as an extra."""
    text = markdown("1,234 | 500").replace("GPU |", "GPU | ~~TFLOP/s/GPU~~ |", 1)
    found = read(text.replace("|---", "|---|---", 1))
    (one,) = found.results
    assert (1234.0, None) == (
        one.figures.tokens_per_sec_per_gpu,
        one.figures.model_tflops_per_sec_per_gpu,
    )
    assert {"~~TFLOP/s/GPU~~": "500"} == one.extras


def test_words_of_two_lines_are_one_name_and_an_extra_keeps_them() -> None:
    text = markdown("1,234 | a 1<br>2", model="Llama3<br>**70B**")
    found = read(text.replace("GPU |", "GPU | Remark |", 1).replace("|---", "|---|---", 1))
    (one,) = found.results
    assert ("llama3-70b", {"Remark": "a 1 2"}) == (one.case.model, one.extras)
