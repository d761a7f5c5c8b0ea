"""A result stands on the newest state of its page that has it, and every output says so."""

import csv
import io
import re
from hashlib import sha256
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from sqlalchemy import URL

from perfdb import export, ingest
from perfdb.audit.check import stored
from perfdb.db.session import reading
from perfdb.export import results
from perfdb.pages.base import PageContext
from perfdb.queries import findings
from perfdb.site import downloads, evidence, publication, read, sources
from perfdb.site.data import SourcePage
from perfdb.site.rows import row_id
from perfdb.verify import verify
from tests.logs import CARD
from tests.site.samples import address

HEAD = """# Throughput

## Pre-training

### System: DGX-H100

| Model | #-GPUs | GBS | Sequence Length | Tokens / sec / GPU |
|---|---|---|---|---|
"""
A = "| LLAMA3-8B | 8 | 128 | 8192 | 12,812 |"
B = "| LLAMA3-8B | 16 | 256 | 8192 | 12,700 |"
C = "| LLAMA3-8B | 32 | 512 | 8192 | 12,600 |"


def put(store: URL, page: Path, *rows: str, above: str = "", release: str = "25.04") -> None:
    """Write a page and read it; the first row stands on line 9, below what stands above."""
    page.write_text(above + HEAD + "".join(f"{row}\n" for row in rows))
    context = PageContext(framework="nemo", release=release)
    assert () == ingest.ingest([page], store, ingest.Options(context)).rejected


def places(store: URL) -> dict[int, tuple[int, int | None]]:
    """Of each result, by its GPUs, which state of the page it stands on, and on which line."""
    contents = read.stored(store)
    order = [one.sha256 for one in sorted(contents.sources, key=lambda one: str(one.read_at))]
    return {
        one.num_gpus: (order.index(one.source_sha256) + 1, one.source_line)
        for one in contents.results
    }


@pytest.mark.parametrize(
    ("after", "said"),
    [
        # A row was deleted: those below it moved up.
        ([A, C], {8: 11, 32: 12}),
        # One was corrected, and another one stands above.
        ([B, A.replace("12,812", "12,900"), C], {16: 11, 8: 12, 32: 13}),
        # Spaces say nothing.
        ([A, B.replace("| 16 |", "|  16 |"), C], {8: 11, 16: 12, 32: 13}),
        # Rows changed places.
        ([C, B, A], {32: 11, 16: 12, 8: 13}),
    ],
)
def test_a_row_stands_where_the_newest_state_has_it(
    store: URL, tmp_path: Path, after: list[str], said: dict[int, int]
) -> None:
    """Two more lines stand above the table than in the state before."""
    put(store, tmp_path / "page.md", A, B, C)
    put(store, tmp_path / "page.md", *after, above="\n\n")
    assert {gpus: (2, line) for gpus, line in said.items()} == places(store)
    assert_sound(store)


def assert_sound(store: URL) -> None:
    """Every figure follows from the bytes that it leads to."""
    assert [] == [it for one in verify(store, lambda *_: lambda: None) for it in one.faults]


def test_a_page_that_returned_to_an_earlier_state_is_led_to_there(
    store: URL, tmp_path: Path
) -> None:
    """The state that was read last is the first one again."""
    page = tmp_path / "page.md"
    put(store, page, A, B)
    put(store, page, B, A)
    put(store, page, A, B)
    assert {8: (2, 9), 16: (2, 10)} == places(store)
    assert_sound(store)


def test_a_page_that_states_its_next_release_leaves_the_last_one_where_it_was(
    store: URL, tmp_path: Path
) -> None:
    """In the same words: they are of the release that the page states now."""
    page = tmp_path / "page.md"
    put(store, page, A)
    put(store, page, A, above="\n", release="25.07")
    contents = read.stored(store)
    lines = {one.release: (one.source_sha256, one.source_line) for one in contents.results}
    old, new = sorted(contents.sources, key=lambda one: str(one.read_at))
    assert {"25.04": (old.sha256, 9), "25.07": (new.sha256, 10)} == lines
    assert_sound(store)


def test_a_state_that_no_figure_leads_to_any_more_says_by_which_it_was_superseded(
    store: URL, tmp_path: Path
) -> None:
    """Links that lead to it hold."""
    page = tmp_path / "page.md"
    put(store, page, A)
    put(store, page, A, above="\n")
    pages = [it.data for it in evidence.KIND.pages(read.stored(store))]
    old, new = sorted(
        (it for it in pages if isinstance(it, SourcePage)), key=lambda it: str(it.read_at)
    )
    assert old.newest is not None
    assert new.newest is None
    assert ((), 1) == (old.results, len(new.results))


def test_the_page_of_a_file_has_its_repeats_that_no_table_prints(
    sqlite: URL, tmp_path: Path
) -> None:
    """Of three results of a case in two files one has the name of the row: that of median time."""
    (tmp_path / "a.yaml").write_text(CARD)
    (tmp_path / "b.yaml").write_text(CARD.rpartition("        - m")[0].replace("5889", "5700"))
    assert 3 == ingest.ingest([tmp_path], sqlite, ingest.Options()).new

    contents = read.stored(sqlite)

    pages = {it.data.path: it for it in evidence.KIND.pages(contents)
             if isinstance(it.data, SourcePage)}  # fmt: skip
    assert all("## What was read" in (it.text or "") for it in pages.values())
    [row] = contents.results
    both, other = (pages[str(tmp_path / name)].data for name in ("a.yaml", "b.yaml"))
    assert isinstance(both, SourcePage)
    assert isinstance(other, SourcePage)
    assert [5.88942, 5.81429, 5.70042] == [it.step_time_s for it in both.results + other.results]
    found = BeautifulSoup(sources.entries(both, address).text, "html.parser").select("article")
    assert ["all-rows", None, row_id(row)] == [it.get("id") for it in found]


def test_a_withdrawn_page_that_came_back_has_no_empty_state(store: URL, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    put(store, page, A)
    ingest.withdraw([str(page)], store, "a draft")
    put(store, page, A, above="\n")
    texts = [one.text for one in read.stored(store).sources]
    assert ["\n" + HEAD, HEAD] == sorted(text.removesuffix(f"{A}\n") for text in texts)


def test_every_output_names_the_same_lines(store: URL, tmp_path: Path) -> None:
    """The export, the file of the site, the page to publish and the audit; a row was deleted."""
    page = tmp_path / "page.md"
    put(store, page, A, B, C)
    put(store, page, A, C)
    with reading(store) as connection:
        exported = results.table(connection)
        audited, _ = stored(connection)
        read_ = publication.read(connection, (), None)
    [text] = publication.texts(read_.pages, "markdown").values()
    shown = downloads.table(read.stored(store).in_force)
    assert [[9, 10]] * 3 == [
        lines(export.FORMATS["csv"].render(exported)),
        lines(export.FORMATS["csv"].render(shown)),
        sorted(one.source_line or 0 for one in audited),
    ]
    assert ["Sources: page.md, lines 9-10"] == re.findall("^Sources.*$", text, re.MULTILINE)


def test_rows_of_two_states_of_a_page_are_told_apart(store: URL, tmp_path: Path) -> None:
    """One that cannot be read any more stays where it was; the digests are those of the pages."""
    page = tmp_path / "page.md"
    put(store, page, A, B)
    old = sha256(page.read_bytes()).hexdigest()[:12]
    page.write_text(f"\n{HEAD}{A}\n{B.replace('12,700', 'twelve')}\n")
    new = sha256(page.read_bytes()).hexdigest()[:12]
    options = ingest.Options(PageContext(framework="nemo", release="25.04"))
    assert [11] == [it.line for it in ingest.ingest([page], store, options).rejected]
    with reading(store) as connection:
        pages = publication.read(connection, (), None).pages
    [text] = publication.texts(pages, "markdown").values()
    said = f"Sources: page.md (SHA-256 {new}), line 10; page.md (SHA-256 {old}), line 10"
    assert said in text


def test_what_the_audit_tells_of_another_page_names_its_line_now(
    store: URL, tmp_path: Path
) -> None:
    """The other page holds the result; this one still says something else, two lines below."""
    put(store, tmp_path / "a.md", A)
    put(store, tmp_path / "b.md", A.replace("12,812", "12,900"))
    put(store, tmp_path / "a.md", A, above="\n\n")
    with reading(store) as connection:
        found = connection.execute(findings.current()).mappings().all()
    [said] = [it["message"] for it in found if it["rule"] == "two_pages"]
    assert "a.md:11" in said


def lines(table: bytes) -> list[int]:
    """The lines that a table in CSV names."""
    rows = csv.DictReader(io.StringIO(table.decode()))
    return sorted(int(row["source_line"]) for row in rows)
