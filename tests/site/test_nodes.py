"""What the search finds of the HTML that the site makes."""

from perfdb.site.markup import Cell, Head, Table, table
from perfdb.site.nodes import words


def test_names_are_words_and_figures_are_none() -> None:
    """Each name once, however often it stands there; a number with a unit is a name."""
    heads = [Head("Model"), Head("System"), Head("MFU")]
    rows = [[Cell("Llama 3 8B"), Cell("DGX-H100"), Cell("41.2")]] * 2
    assert "Model System MFU Llama 8B DGX H100" == words(
        table(Table("", heads, rows, sortable=False)).text
    )


def test_what_stands_in_tags_is_not_found() -> None:
    assert "seen" == words('<a href="unseen" title="unseen">seen</a><br/>12')


def test_what_html_is_called_besides_is_found_too() -> None:
    assert "LLAMA3 8B Llama" == words("<td>LLAMA3-8B</td>", ["Llama 3 8B"])
