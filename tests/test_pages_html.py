"""HTML where it means no more than Markdown does, and where it hides a value."""

import pytest

from perfdb import pages
from perfdb.pages import PageContext, PageRead
from perfdb.pages.markdown import cell_words, words

SAID = PageContext(framework="acme", system="dgx-h100", precision="bf16")


def markdown(model: str, tokens: str) -> PageRead:
    head = "| Model | GPUs | GBS | Seq Len | <b>Tokens/s/GPU</b> |\n|---|---|---|---|---|\n"
    return pages.read("p.md", f"{head}| {model} | 8 | 128 | 8192 | {tokens} |\n", SAID)


def html(tokens: str) -> PageRead:
    titles = ("Model", "GPUs", "GBS", "Seq Len", "Tokens/s/GPU", "Notes")
    head = "".join(f"<th>{title}</th>" for title in titles)
    cells = "".join(f"<td>{text}</td>" for text in ("Llama3 8B", "8", "128", "8192", tokens))
    notes = "<td>as <table><tr><td>logged</td></tr></table></td>"
    text = f"<html><table><tr>{head}</tr>\n<tr>{cells}{notes}</tr></table></html>"
    return pages.read("p.html", text, SAID)


@pytest.mark.parametrize(
    ("model", "tokens"),
    [
        ("<b>Llama3 8B</b>", "<strong>12,273</strong>"),
        ("<i>Llama3</i> <em>8B</em>", '<span style="color:red">12273</span>'),
        ('<a href="https://x.y/z">Llama3 8B</a>', "<u>12273</u>"),
        ("<CODE>Llama3 8B</CODE>", '<font color="red">**12273**</font>'),
        ('Llama3 8B<span class="sr-only"> (opens a window)</span>', "12273<b></b>"),
        ('<b>Llama3 8B</b><sup><a href="#n">1</a></sup>', "<b>12273</b> <sup>2</sup>"),
    ],
)
def test_html_around_the_text_of_a_markdown_cell_is_markup_like_any(
    model: str, tokens: str
) -> None:
    read = markdown(model, tokens)
    assert () == read.problems
    [one] = read.results
    assert ("llama3-8b", (), 12273.0) == (
        one.case.model, one.case.qualifiers, one.figures.tokens_per_sec_per_gpu,
    )  # fmt: skip
    assert [model, tokens] == [one.raw["Model"], one.raw["Tokens/s/GPU"]]


@pytest.mark.parametrize(
    "tokens", ["<s>400</s>", "<b><del>400</del></b>", '<span class="strike">400</span>']
)
def test_what_is_struck_out_by_html_stays_so(tokens: str) -> None:
    [problem] = markdown("Llama3 8B", tokens).problems
    assert "'~~400~~' is struck out" == problem.message


def test_a_tag_that_html_does_not_have_is_text() -> None:
    """Nobody would know else that something was left open."""
    [problem] = markdown("Llama3 8B", "<TBD>").problems
    assert "'<TBD>' is not a number" == problem.message
    assert "<b>x</b> <y>" == cell_words("<b>x</b> <y>")


def test_a_heading_reads_without_the_html_in_it() -> None:
    assert "DGX-B200 in FP8" == words('<a id="b200"></a>DGX-B200 *in* <small>FP8</small>')


def test_a_row_whose_figure_is_a_table_is_rejected() -> None:
    """A table in a cell that has no field says nothing of the row's figures."""
    [problem] = html("<table><tr><td>12273</td></tr></table>").problems
    assert ("Tokens/s/GPU", "a table stands in the cell") == (problem.field, problem.message)
    [one] = html("12273").results
    assert (12273.0, "as (table)") == (
        one.figures.tokens_per_sec_per_gpu, one.extras["Notes"],
    )  # fmt: skip
