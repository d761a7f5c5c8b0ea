"""A tree of runs and a page to ingest, and ways to look at what came of it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import URL, Connection, Select

from perfdb.db.session import reading, writer
from perfdb.ingest import Options, Report
from perfdb.pages import PageContext
from perfdb.record import Outcome
from tests import factories

PAGE = """\
# Performance

## DGX-H100

| Model | #-GPUs | GBS | MBS | Sequence Length | TP | PP | CP | Tokens / sec / GPU |
|---|---|---|---|---|---|---|---|---|
| LLAMA3-8B | 8 | 128 | 1 | 8192 | 1 | 1 | 2 | 12273 |
| LLAMA3-70B | 64 | 128 | 1 | 8192 | 4 | 8 | 1 | 1563 |
"""
NEMO = Options(PageContext(framework="nemo", release="25.04", precision="bf16"))


def write_tree(folder: Path) -> Path:
    """Runs a, b and c, of which c is out of memory, and a page of two rows."""
    factories.write_run(folder / "runs", run_id="a")
    factories.write_run(folder / "runs", run_id="b", case=factories.case(num_gpus=16))
    factories.write_run(
        folder / "runs", run_id="c", step_times=(9.0,), outcome=Outcome.OUT_OF_MEMORY
    )
    page = folder / "published" / "nemo.md"
    page.parent.mkdir()
    page.write_text(PAGE)
    return folder


@contextmanager
def writing(url: URL) -> Iterator[Connection]:
    """One write transaction: committed at the end, or undone whole."""
    engine = writer(url)
    try:
        with engine.begin() as connection:
            yield connection
    finally:
        engine.dispose()


def rows_of(url: URL, question: Select[*tuple[object, ...]]) -> list[tuple[object, ...]]:
    """The answer of a store."""
    with reading(url) as connection:
        return [tuple(row) for row in connection.execute(question)]


def counted(report: Report) -> tuple[int, int, int, int]:
    """How many are new, revised, unchanged and rejected."""
    return report.new, report.revised, report.unchanged, len(report.rejected)
