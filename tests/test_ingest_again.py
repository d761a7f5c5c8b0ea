"""What is read again by another version of a parser, over another window, or after a kill."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from sqlalchemy import URL, func, select, update

from perfdb.aggregation import last_n
from perfdb.db.tables import results, run_files, runs, sources
from perfdb.ingest import LogOptions, Options, ingest, pipeline, preview
from perfdb.ingest.reads import LOG_PARSER_VERSION, RUN_PARSER_VERSION
from perfdb.verify.recompute import Asked, Scope, recompute
from tests import factories
from tests.logs import GIVEN, write
from tests.trees import NEMO, PAGE, counted, rows_of, writing

LAST_THREE = Options(logs=LogOptions(window="last_n(3)"))
"""12.0, 12.3 and 12.0 s of `factories.TEN_STEPS`."""

IN_FORCE = (
    select(results.c.revision, sources.c.parser_version)
    .join(sources, results.c.source_id == sources.c.id)
    .where(~results.c.superseded)
    .order_by(results.c.id)
)


def age(url: URL) -> None:
    """Make the store that of an older version, whose parsers have lower numbers."""
    with writing(url) as connection:
        connection.execute(update(sources).values(parser_version=0))
        connection.execute(update(runs).values(stamp=None))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A run directory and a page of two rows."""
    factories.write_run(tmp_path / "tree" / "runs")
    (tmp_path / "tree" / "page.md").write_text(PAGE)
    return tmp_path / "tree"


def test_a_newer_parser_does_not_undo_what_was_recomputed(sqlite: URL, tree: Path) -> None:
    """Its window was asked for; the run is read anew all the same."""
    ingest([tree / "runs"], sqlite, Options())
    recompute(sqlite, Scope(), Asked(last_n(3)))
    age(sqlite)

    assert (0, 0, 1, 0) == counted(ingest([tree / "runs"], sqlite, Options()))

    assert [(2, RUN_PARSER_VERSION)] == rows_of(sqlite, IN_FORCE)
    assert [("last_n(3)",)] == rows_of(
        sqlite, select(results.c.window).where(~results.c.superseded)
    )


@pytest.mark.parametrize("options", [GIVEN, Options()])
def test_a_log_is_read_anew_by_a_newer_parser(
    sqlite: URL, tmp_path: Path, options: Options
) -> None:
    """With the options that it was read with; without them it stays as it is."""
    path = write(tmp_path / "a")
    ingest([path], sqlite, GIVEN)
    age(sqlite)

    report = ingest([path], sqlite, options)

    assert (0, 0, 1, 0) == counted(report)
    version = LOG_PARSER_VERSION if options is GIVEN else 0
    assert [(1, version)] == rows_of(sqlite, IN_FORCE)


def test_a_window_is_for_run_directories_too(sqlite: URL, tree: Path) -> None:
    """The median of 12.0, 12.3 and 12.0 s; what is said stays until something else is said."""
    ingest([tree / "runs"], sqlite, Options())
    question = select(results.c.window, results.c.num_steps, results.c.step_time_s).where(
        ~results.c.superseded
    )

    assert (0, 1, 0, 0) == counted(ingest([tree / "runs"], sqlite, LAST_THREE))
    assert [("last_n(3)", 3, 12.0)] == rows_of(sqlite, question)

    for options in (LAST_THREE, Options()):
        assert (0, 0, 1, 0) == counted(ingest([tree / "runs"], sqlite, options))
    assert [("last_n(3)", 3, 12.0)] == rows_of(sqlite, question)

    back = Options(logs=LogOptions(window="skip_warmup(2)"))
    assert (0, 1, 0, 0) == counted(ingest([tree / "runs"], sqlite, back))
    assert [("skip_warmup(2)", 8, 12.15)] == rows_of(sqlite, question)


LOST = "what is changed here is lost."
MADE = """\
<table class="perf"><tr><th>Model</th><th>#-GPUs</th><th>Tokens / sec / GPU</th></tr>
<tr><td>x</td><td>x</td><td>x</td></tr></table>"""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("publish.md", f"---\n# Made by `perfdb publish`; {LOST}\n---\n\n{PAGE}"),
        ("site.md", f"---\n# Made by perfdb.site from the store; {LOST}\n---\n\n{PAGE}"),
        ("site.html", f"<!DOCTYPE html>\n<html><body><h1>DGX-H100</h1>{MADE}</body></html>"),
    ],
)
def test_a_page_that_perfdb_made_is_read_only_where_it_is_named(
    sqlite: URL, tmp_path: Path, name: str, text: str
) -> None:
    """What it says came from a store; the note counts such pages."""
    folder = tmp_path / "docs"
    folder.mkdir()
    for copy in ("a-", "b-"):
        (folder / f"{copy}{name}").write_text(text)

    report = ingest([folder], sqlite, NEMO)

    assert ((0, 0, 0, 0), 0) == (counted(report), len(report.nameless))
    [note] = report.notes
    assert (str(folder), True) == (note.where, note.message.startswith("passed over 2 pages"))
    _, named = preview([folder / f"a-{name}"], sqlite, NEMO)
    assert 2 == len(named) or name.endswith(".html")


@pytest.mark.timeout(30)
def test_what_is_no_file_in_a_run_directory_is_never_waited_for(
    sqlite: URL, tmp_path: Path
) -> None:
    """A pipe in the place of its console, and a folder in that of its recipe."""
    run = factories.write_run(tmp_path)
    run.console.unlink()
    os.mkfifo(run.console)
    run.recipe.unlink()
    run.recipe.mkdir()

    assert (1, 0, 0, 0) == counted(ingest([tmp_path], sqlite, Options()))
    assert [(4,)] == rows_of(sqlite, select(func.count()).select_from(run_files))


def test_a_source_that_links_lead_to_is_read_once(sqlite: URL, tree: Path) -> None:
    """A link to a page, to a folder and to nothing; links to folders below are not followed."""
    (tree / "again.md").symlink_to(tree / "page.md")
    (tree / "nothing.md").symlink_to(tree / "none.md")
    (tree / "below").symlink_to(tree / "runs")
    linked = tree.with_name("linked")
    linked.symlink_to(tree)

    assert (3, 0, 0, 0) == counted(ingest([tree, linked, linked / "page.md"], sqlite, NEMO))


HOLD = """
import sys, time
from perfdb.ingest.pipeline import scratch
with scratch() as folder:
    print(folder, flush=True)
    time.sleep(60)
"""


def test_what_a_killed_ingest_left_behind_is_removed_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder of one that is still at work stays, as does one that was made just now."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    given = {**os.environ, "TMPDIR": str(tmp_path)}
    other = subprocess.Popen([sys.executable, "-c", HOLD], env=given, stdout=subprocess.PIPE)
    assert other.stdout
    held = Path(other.stdout.readline().decode().strip())
    fresh, old = (tmp_path / f"{pipeline.PREFIX}{name}" for name in ("fresh", "old"))
    for folder in (fresh, old):
        folder.mkdir()
    long_ago = time.time() - 2 * pipeline.SETTLED_S
    os.utime(old, (long_ago, long_ago))
    (tmp_path / "perfdb-of-somebody").mkdir()
    try:
        pipeline.sweep(tmp_path)
        assert (True, True, False) == (held.exists(), fresh.exists(), old.exists())
    finally:
        other.kill()
        other.wait()
        other.stdout.close()

    with pipeline.scratch() as mine:
        assert (False, True) == (held.exists(), mine.exists())
    assert {"perfdb-of-somebody", fresh.name} == {path.name for path in tmp_path.iterdir()}
