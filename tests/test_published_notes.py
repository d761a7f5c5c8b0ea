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
    "automodel.md": ("Mock data", "the same share", "no gradient clipping"),
    "dfm.md": ("through Megatron-Bridge", "FSDP2"),
    "nemo-25.04.md": ("per tensor, with factors taken from the current step", "SQuAD v1.1"),
    "nemotron4.md": ("Synthetic data", "the last of 50 steps", "1,979"),
}
"""The conditions that each page states, by the words that tell them."""


def page_of(store: URL, name: str) -> ReleasePage:
    """The release's page as it is made of one published page."""
    assert () == ingest([PUBLISHED / name], store, Options()).rejected
    with reading(store) as connection:
        [page] = publication.read(connection, (), None).pages
    return page


def notes_below(name: str) -> list[str]:
    """The note below each table of a page."""
    lines = (PUBLISHED / name).read_text().splitlines()
    return [line.removeprefix("Note: ") for line in lines if line.startswith("Note: ")]


@pytest.mark.parametrize("name", SAID)
def test_every_table_has_a_note_and_the_page_s_conditions_are_in_them(name: str) -> None:
    below = notes_below(name)
    lines = (PUBLISHED / name).read_text().splitlines()
    assert sum(line.startswith("| Model |") for line in lines) == len(below)
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
            assert 1 == len(of_page)
            assert 1 == made.count(f"{escape(of_page.pop())}</")


@pytest.mark.parametrize("name", SAID)
def test_a_published_page_has_a_footnote_for_each_note(sqlite: URL, name: str) -> None:
    """Once, whichever tables it is below; each row of them refers to it."""
    page = page_of(sqlite, name)
    lines = plain.page(page, "markdown").splitlines()
    for note in set(notes_below(name)):
        [footnote] = [line for line in lines if line.endswith(f"]: {plain.escaped(note)}")]
        mark = footnote.split(":")[0]
        every = (one for part in page.sections for tab in part.tabs for one in tab.results)
        said = sum(note in one.notes for one in every)
        assert said == sum(mark in line for line in lines if line.startswith("|"))
