"""A row of a page leads to the newest state of the page that has its line."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import URL

from perfdb import ingest
from perfdb.pages import PageContext
from perfdb.site import read
from perfdb.site.data import Result, SourcePage
from perfdb.site.states import at_newest
from tests.site.samples import published
from tests.site.test_changelog import PAGE, SECOND


def state(letter: str, *lines: str, path: str = "page.md") -> SourcePage:
    """A state with these lines; the later the letter, the later it was read."""
    when = datetime(2026, 3, 4, 5, 6, ord(letter) % 60, tzinfo=UTC)
    return SourcePage(path=path, sha256=letter * 64, text="\n".join(lines), read_at=when)


def row(letter: str, line: int) -> Result:
    return published(source_sha256=letter * 64, source_line=line)


def places(rows: list[Result], *pages: SourcePage) -> list[str]:
    """'b2': line 2 of the state b."""
    return [f"{it.source_sha256[0]}{it.source_line}" for it in at_newest(rows, pages)]


@pytest.mark.parametrize(
    ("rows", "pages", "said"),
    [
        # The second row was corrected and one more line stands above: line 2 is line 3 now.
        (["a2", "b4"], [["T", "x 1", "y 2"], ["new", "T", "x 1", "y 3"]], ["b3", "b4"]),
        # Its words are others now, so that which line says it is not known.
        (["a2"], [["T", "x 1"], ["T", "x  1"]], ["a2"]),
        # The page states its next release in the same words: that row has the line.
        (["a2", "b2"], [["T 25.04", "x 1"], ["T 25.07", "x 1"]], ["a2", "b2"]),
        # And keeps it in a third state, in which only the prose is another.
        (
            ["a2", "b2"],
            [["T 25.04", "x 1"], ["T 25.07", "x 1"], ["", "T 25.07", "x 1"]],
            ["a2", "c3"],
        ),
        # The newest state that has it counts, which need not be the newest.
        (["a2", "a3"], [["T", "x 1", "y 2"], ["T", "", "x 1", "y 2"], ["T", "y 2"]], ["b3", "c2"]),
    ],
)
def test_a_row_is_on_the_newest_state_that_has_its_line(
    rows: list[str], pages: list[list[str]], said: list[str]
) -> None:
    given = [row(it[0], int(it[1:])) for it in rows]
    states = [state(letter, *lines) for letter, lines in zip("abc", pages, strict=False)]
    assert said == places(given, *states)
    assert said == places(given, *reversed(states))


def test_another_page_with_the_same_line_is_no_state_of_it() -> None:
    assert ["a1"] == places([row("a", 1)], state("a", "x"), state("b", "x", path="other.md"))


def test_a_corrected_page_is_led_to_at_its_newest_state_alone(store: URL, tmp_path: Path) -> None:
    """The row that stays is two lines further down; nothing leads to the state before."""
    page = tmp_path / "page.md"
    options = ingest.Options(PageContext(framework="nemo", release="25.04"))
    for text in (PAGE.format(rate="1") + SECOND, "\n\n" + PAGE.format(rate="2") + SECOND):
        page.write_text(text)
        assert () == ingest.ingest([page], store, options).rejected
    contents = read.stored(store)
    newest = max(contents.sources, key=lambda one: str(one.read_at))
    assert [
        ("llama3-70b", newest.sha256, 12),
        ("llama3-8b", newest.sha256, 11),
    ] == [(it.model, it.source_sha256, it.source_line) for it in contents.results]
    assert SECOND == f"{newest.text.splitlines()[11]}\n"
