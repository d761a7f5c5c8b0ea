"""Pages as they were published over the years: no column unknown, no row dropped."""

from pathlib import Path

import pytest

from perfdb.pages import reader
from perfdb.pages.base import PageContext
from tests.seeds import ROOT, pipe_rows
from tests.test_pages_properties import lines_of

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

NO_RESULTS = "dgxc-llama3.1-70b-2024-11.md"

pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason="no pages beside the project")


def rows_of(page: Path) -> list[tuple[int, dict[str, str]]]:
    text = "\n".join(line.rstrip() for line in page.read_text().splitlines())
    return list(pipe_rows(text))


def test_every_page_is_counted() -> None:
    assert {*ROWS, NO_RESULTS} == {page.name for page in CORPUS.glob("*.md")}


def test_a_page_without_batch_sizes_in_cells_is_rejected_with_one_diagnostic_a_table() -> None:
    """NVIDIA's Llama 3.1 recipe of 24.11 has them in titles: `64x H100 GPUs (GBS=128)`."""
    text = (CORPUS / NO_RESULTS).read_text()
    context = PageContext(framework="nemo", release="24.09", system="dgx-h100")
    found = reader.read(NO_RESULTS, text, context)
    assert (0, [3, 10]) == (len(found.results), [problem.line for problem in found.problems])


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
    lines = [one.line for one in found.results]
    lines += [line for problem in found.problems for line in lines_of(problem)]
    assert [line for line, _ in rows_of(page)] == sorted(lines)
    assert all(problem.remedy for problem in found.problems)
