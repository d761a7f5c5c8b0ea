"""A tree of runs and a page to ingest, and ways to look at what came of it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import URL, Connection, Select

from perfdb.db.rows import ResultRow
from perfdb.db.session import reading, writer
from perfdb.errors import Diagnostic
from perfdb.ingest import Options, Report, find
from perfdb.ingest.logs import read_source
from perfdb.ingest.options import checked
from perfdb.ingest.pipeline import scratch
from perfdb.ingest.reads import Read
from perfdb.ingest.runs import RunFound, parse_run
from perfdb.messages import note_text
from perfdb.pages.base import PageContext
from perfdb.record import Note, Outcome
from perfdb.verify import Fault, verify
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


def rows_in_words(url: URL, question: Select[*tuple[object, ...]]) -> list[tuple[object, ...]]:
    """The answer of a store, notes in words."""
    return [tuple(map(_plain, row)) for row in rows_of(url, question)]


def _plain(cell: object) -> object:
    """A cell of a row, notes in words."""
    if isinstance(cell, tuple) and all(isinstance(one, Note) for one in cell):
        return [note_text(one) for one in cell]
    return note_text(cell) if isinstance(cell, Note) else cell


def read_at(path: Path, options: Options) -> tuple[list[ResultRow], list[Diagnostic]]:
    """The results that a path holds, and what of it is rejected; there is no store."""
    with scratch() as folder:
        options_read = checked(options, folder)
        found = [one for source in find([path]) for one in read_source(source, options_read)]
        reads: list[Read] = [parse_run(it) if isinstance(it, RunFound) else it for it in found]
    rows = [row for read in reads for row in read.results]
    return rows, [problem for read in reads for problem in read.problems]


def counted(report: Report) -> tuple[int, int, int, int]:
    """How many are new, revised, unchanged and rejected."""
    return report.new, report.revised, report.unchanged, len(report.rejected)


def faults(url: URL) -> list[Fault]:
    """All that `perfdb verify` finds wrong with a store."""
    return [it for one in verify(url, lambda *_: lambda: None) for it in one.faults]
