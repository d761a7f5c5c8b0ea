"""Two pages that print the same result: what the store knows of both, and what the audit says."""

from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import URL

from perfdb.audit.check import audit, stored
from perfdb.db.session import reading
from perfdb.ingest import Options, ingest, withdraw
from perfdb.queries import results as questions
from perfdb.record import Finding
from tests.conftest import ON_SQLITE

PAGE = """---
perfdb: {{framework: nemo, release: "25.04"}}
---
# Throughput
{}
## Pre-training

### System: DGX-H100, Precision: FP8

| Model | #-GPUs | GBS | Sequence Length | Tokens / sec / GPU |
|---|---|---|---|---|
| LLAMA3-8B | 8 | 128 | 8192 | {} |
| LLAMA3-70B | 64 | 128 | 8192 | 1,621 |
"""

Write = Callable[[str, str], None]


@pytest.fixture
def write(store: URL, tmp_path: Path) -> Write:
    """Writes a page with a rate of 8B, and ingests it."""

    def written(name: str, rate: str, above: str = "") -> None:
        page = tmp_path / name
        page.write_text(PAGE.format(above, rate))
        assert () == ingest([page], store, Options()).rejected

    return written


def found(store: URL) -> list[Finding]:
    with reading(store) as connection:
        return [it for it in audit(*stored(connection)) if it.rule == "two_pages"]


def rates(store: URL) -> list[str]:
    """What other pages print of it."""
    return [(it.expected or "").split()[1] for it in found(store)]


def test_each_page_is_named_with_its_line_whichever_is_read_again(
    store: URL, write: Write, tmp_path: Path
) -> None:
    """13,812 ÷ 12,812 is 8 % more; the row that both print alike is no finding."""
    write("first.md", "12,812")
    write("second.md", "13,812")
    before = (one,) = found(store)
    assert ("error", "llama3-8b", f"{tmp_path}/second.md", 12) == (
        one.severity.value, one.model, one.source, one.source_line,
    )  # fmt: skip
    assert (f"tokens/s/GPU 12,812 ({tmp_path}/first.md:12)", "tokens/s/GPU 13,812") == (
        one.expected, one.found,
    )  # fmt: skip
    write("first.md", "12,812")
    assert list(before) == found(store)
    write("third.md", "14,812")
    assert ["12,812", "13,812"] == rates(store)


@ON_SQLITE
def test_mending_either_page_ends_it(store: URL, write: Write) -> None:
    for name, rate in (("first.md", "13,812"), ("second.md", "12,812")):
        write("first.md", "12,812")
        write("second.md", "13,812")
        assert 1 == len(found(store))
        write(name, rate)
        assert [] == found(store)
        write("second.md", rate)
        assert [] == found(store)


@ON_SQLITE
def test_pages_that_print_one_number_or_one_alone_do_not_disagree(
    store: URL, write: Write, tmp_path: Path
) -> None:
    """12,812 and 12812.3 are one number, rounded; a page that was edited disagrees with none."""
    write("first.md", "11,812")
    write("first.md", "12,812")
    write("second.md", "12812.3")
    assert [] == found(store)
    drop_row(tmp_path, "second.md")
    drop_row(tmp_path, "first.md")
    assert 2 == ingest([tmp_path / "first.md", tmp_path / "second.md"], store, Options()).withdrawn
    write("third.md", "13,812")
    assert [] == found(store)


def drop_row(tmp_path: Path, name: str) -> None:
    """Take 8B off a page."""
    page = tmp_path / name
    kept = [line for line in page.read_text().splitlines() if "LLAMA3-8B" not in line]
    page.write_text("\n".join(kept))


def kept_findings(store: URL) -> list[str]:
    """The rules of the findings that the store has, as the last ingest left them."""
    with reading(store) as connection:
        return [it["rule"] for it in connection.execute(questions.current_findings()).mappings()]


@pytest.mark.parametrize(
    ("store", "how"),
    [("sqlite", "drops the row"), ("postgres", "is withdrawn")],
    indirect=["store"],
)
def test_a_page_that_was_overruled_and_no_longer_prints_it_disagrees_no_more(
    store: URL, write: Write, tmp_path: Path, how: str
) -> None:
    """Nothing in force changes; the finding is gone from the store, and comes with the row."""
    write("first.md", "12,000")
    write("first.md", "12,812")
    write("second.md", "13,812")
    assert "two_pages" in kept_findings(store)
    if how == "drops the row":
        drop_row(tmp_path, "first.md")
        ingest([tmp_path / "first.md"], store, Options())
    else:
        withdraw([str(tmp_path / "first.md")], store)

    assert [] == found(store)
    assert "two_pages" not in kept_findings(store)
    write("first.md", "12,812")
    assert ["tokens/s/GPU 12,812"] == [it.found for it in found(store)]


@ON_SQLITE
def test_a_page_that_goes_on_to_the_next_release_says_what_it_said_of_the_last(
    store: URL, write: Write, tmp_path: Path
) -> None:
    """Pages show one release after another: what they showed before is not taken back."""
    write("first.md", "12,812")
    write("second.md", "13,812")
    page = tmp_path / "first.md"
    page.write_text(page.read_text().replace("25.04", "25.07"))
    ingest([page], store, Options())
    assert 1 == len(found(store))
