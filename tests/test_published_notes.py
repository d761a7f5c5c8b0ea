"""The conditions under the tables of data/published reach every page that prints their figures."""

from html import escape
from pathlib import Path

import pytest
from sqlalchemy import URL

from perfdb.db.session import reading
from perfdb.ingest import Options, ingest
from perfdb.site import markup, plain, publication, tables
from perfdb.site.data import ReleasePage

PUBLISHED = Path(__file__).parents[1] / "data" / "published"
SAID = {
    "automodel.md": (
        "Mock data",
        "the same share",
        "no gradient clipping",
        "examples/llm_benchmark",
    ),
    "dfm.md": ("through Megatron-Bridge", "FSDP2", "examples/megatron/recipes/wan/conf"),
    "nemo-25.04.md": ("per tensor, with factors taken from the current step", "SQuAD v1.1"),
    "nemotron4.md": ("Synthetic data", "the last of 50 steps", "1,979"),
}
"""The conditions that each page states, by the words that tell them."""
PER_TABLE = {"automodel.md": 2, "dfm.md": 2, "nemo-25.04.md": 1, "nemotron4.md": 1}
"""How many notes each table has: of its conditions, and of configuration files that are named."""


def page_of(store: URL, name: str) -> ReleasePage:
    """The release's page as it is made of one published page."""
    assert () == ingest([PUBLISHED / name], store, Options()).rejected
    with reading(store) as connection:
        [page] = publication.read(connection, (), None).pages
    return page


def notes_below(name: str) -> list[str]:
    """The notes below the tables of a page."""
    lines = (PUBLISHED / name).read_text().splitlines()
    return [line.removeprefix("Note: ") for line in lines if line.startswith("Note: ")]


@pytest.mark.parametrize("name", SAID)
def test_every_table_has_its_notes_and_the_page_s_conditions_are_in_them(name: str) -> None:
    below = notes_below(name)
    lines = (PUBLISHED / name).read_text().splitlines()
    heads = sum(line.startswith("| Model |") for line in lines)
    assert heads * PER_TABLE[name] == len(below)
    assert all(any(words in note for note in below) for words in SAID[name])


@pytest.mark.parametrize("name", SAID)
def test_the_site_prints_a_note_once_below_each_table(sqlite: URL, name: str) -> None:
    """And in none of its rows."""
    for section in page_of(sqlite, name).sections:
        for tab in section.tabs:
            profile = tables.of_results(tab.results)
            made = markup.table(tables.results_table(tab.title, tab.results, profile, str)).text
            of_page = {note for result in tab.results for note in result.notes} & set(
                notes_below(name)
            )
            assert PER_TABLE[name] == len(of_page)
            assert {1} == {made.count(f"{escape(note)}</") for note in of_page}


@pytest.mark.parametrize("name", SAID)
def test_a_published_page_has_a_note_below_each_table_of_which_it_is(
    sqlite: URL, name: str
) -> None:
    """Where a table has one row, as DFM's may, it is a footnote that the row refers to."""
    page = page_of(sqlite, name)
    lines = plain.page(page, "markdown").splitlines()
    tabs = [tab.results for part in page.sections for tab in part.tabs]
    for note in set(notes_below(name)):
        having = [rows for rows in tabs if any(note in one.notes for one in rows)]
        of_all = [rows for rows in having if len(rows) > 1]
        assert all(note in one.notes for rows in of_all for one in rows)
        assert len(of_all) == lines.count(f"Note: {plain.escaped(note)}")
        footnotes = [line for line in lines if line.endswith(f"]: {plain.escaped(note)}")]
        marks = [one.split(":")[0] for one in footnotes]
        marked = [line for line in lines if line.startswith("|") and any(m in line for m in marks)]
        assert len(having) - len(of_all) == len(marked)
        assert bool(marked) is bool(footnotes)
