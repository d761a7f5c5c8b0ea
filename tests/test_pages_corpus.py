"""Pages as they were published over the years: no column unknown, no row dropped."""

from pathlib import Path

import pytest

from perfdb.pages import reader
from perfdb.pages.base import PageContext
from tests.seeds import ROOT, pipe_rows

CORPUS = ROOT.parent / "shared" / "corpus" / "pages"
SAID = {
    "automodel": PageContext(framework="automodel", system="dgx-h100", precision="bf16"),
    "dfm": PageContext(framework="dfm"),
    "nemo": PageContext(framework="nemo", system="dgx-h100", precision="fp8"),
}
"""What the pages themselves do not say in all their states."""

ROWS = {
    "automodel-2025-10-06.md": 6,
    "automodel-2025-12-16.md": 12,
    "automodel-2026-04-17.md": 15,
    "dfm-2025-11-20.md": 3,
    "dfm-2026-03-13.md": 6,
    "nemo-2024-09.md": 18,
}
"""Counted by hand."""

pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason="no pages beside the project")


def rows_of(page: Path) -> list[tuple[int, dict[str, str]]]:
    text = "\n".join(line.rstrip() for line in page.read_text().splitlines())
    return list(pipe_rows(text))


def test_every_page_is_counted() -> None:
    assert set(ROWS) == {page.name for page in CORPUS.glob("*.md")}


@pytest.mark.parametrize("name", ROWS)
def test_every_row_of_a_page_is_read_and_every_column_known(name: str) -> None:
    """Line for line; each cell is kept under its title, and there is nothing to report."""
    page = CORPUS / name
    found = reader.read(name, page.read_text(), SAID[name.split("-", maxsplit=1)[0]])
    assert ((), ()) == (found.problems, found.notes)
    wanted = rows_of(page)
    assert ROWS[name] == len(wanted)
    assert [line for line, _ in wanted] == [one.line for one in found.results]
    assert [list(cells.values()) for _, cells in wanted] == [
        list(one.raw.values()) for one in found.results
    ]


@pytest.mark.parametrize("name", ROWS)
def test_without_a_word_from_outside_a_row_is_read_or_refused_with_its_line(name: str) -> None:
    page = CORPUS / name
    found = reader.read(name, page.read_text(), PageContext())
    lines = [*(one.line for one in found.results), *(one.line for one in found.problems)]
    assert [line for line, _ in rows_of(page)] == sorted(line or 0 for line in lines)
    assert all(problem.remedy for problem in found.problems)
