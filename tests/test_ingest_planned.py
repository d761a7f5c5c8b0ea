"""A dry run says what an ingest would do to the store that is there, and does nothing to it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from sqlalchemy import URL, update

from perfdb.db.tables import releases, results
from perfdb.ingest import Change, LogOptions, Options, ingest, preview
from perfdb.rundir import RunDir
from tests import factories, logs
from tests.snapshots import snapshot
from tests.trees import NEMO, PAGE, counted, write_tree, writing

ROW = "| LLAMA3-8B | 8 | 128 | 1 | 8192 | 1 | 1 | 2 | 12273 |\n"
ANOTHER = "| LLAMA3-8B | 16 | 128 | 1 | 8192 | 1 | 1 | 2 | 12000 |\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Runs a, b and c, of which c is out of memory, and a page of two rows."""
    return write_tree(tmp_path / "tree")


def page_of(tree: Path) -> Path:
    return tree / "published" / "nemo.md"


def edited(tree: Path, before: str, after: str) -> None:
    text = page_of(tree).read_text()
    assert before in text
    page_of(tree).write_text(text.replace(before, after))


def told(changes: tuple[Change, ...]) -> list[tuple[str, str, int, float | None, float | None]]:
    """Status, model, GPUs and tokens/s/GPU before and after; of what changes."""
    return [
        (
            one.status.value,
            one.result.model,
            one.result.num_gpus,
            one.before and one.before.tokens_per_sec_per_gpu,
            one.result.tokens_per_sec_per_gpu,
        )
        for one in changes
        if one.status != "unchanged"
    ]


def finished(tree: Path) -> None:
    """Run c, done again in the same directory: ten steps of 5 s."""
    run = RunDir(tree / "runs" / "c")
    run.write_record(factories.record(run_id="c"))
    factories.write_steps(run, factories.steps((5.0,) * 10))


@dataclass(frozen=True)
class Edit:
    """What is done to a tree after it was ingested, and what is to be said of it."""

    done: Callable[[Path], object]
    counts: tuple[int, int, int, int]
    withdrawn: int
    changes: list[tuple[str, str, int, float | None, float | None]]


EDITS = {
    "nothing": Edit(lambda tree: None, (0, 0, 5, 0), 0, []),
    "another figure": Edit(
        lambda tree: edited(tree, "12273", "12300"),
        (0, 1, 4, 0),
        0,
        [("revised", "llama3-8b", 8, 12273.0, 12300.0)],
    ),
    "another case": Edit(
        lambda tree: edited(tree, ROW, ANOTHER),
        (1, 0, 4, 0),
        1,
        [("withdrawn", "llama3-8b", 8, None, 12273.0), ("new", "llama3-8b", 16, None, 12000.0)],
    ),
    "a typo": Edit(lambda tree: edited(tree, "12273", "12Z73"), (0, 0, 4, 1), 0, []),
    "another run": Edit(
        # 128 sequences of 8192 tokens in 12.15 s, the median step, on 8 GPUs.
        lambda tree: factories.write_run(tree / "runs", run_id="d"),
        (1, 0, 5, 0),
        0,
        [("new", "llama3-8b", 8, None, pytest.approx(128 * 8192 / 12.15 / 8))],
    ),
    "a run at its end": Edit(
        finished, (0, 1, 4, 0), 0, [("revised", "llama3-8b", 8, None, 128 * 8192 / 5.0 / 8)]
    ),
    "a page that states it too": Edit(
        lambda tree: (page_of(tree).with_name("other.md")).write_text(
            PAGE.replace("12273", "12273.5")
        ),
        (0, 1, 6, 0),
        0,
        [("revised", "llama3-8b", 8, 12273.0, 12273.5)],
    ),
}


@pytest.mark.parametrize(
    ("store", "name"),
    [*(("sqlite", name) for name in EDITS), ("postgres", "a page that states it too")],
    indirect=["store"],
)
def test_a_dry_run_says_what_the_ingest_then_does(store: URL, tree: Path, name: str) -> None:
    """The same report with the same findings; and until then the store is as it was."""
    edit = EDITS[name]
    ingest([tree], store, NEMO)
    edit.done(tree)
    before = snapshot(store)

    said, changes = preview([tree], store, NEMO)

    assert before == snapshot(store)
    assert (edit.counts, edit.withdrawn) == (counted(said), said.withdrawn)
    assert edit.changes == told(changes)
    done = ingest([tree], store, NEMO)
    assert replace(said, findings=()) == replace(done, findings=())
    assert said.findings
    assert [it.model_dump() for it in said.findings] == [it.model_dump() for it in done.findings]


def test_a_run_that_is_to_count_for_another_case_is_one_revision(
    sqlite: URL, tmp_path: Path
) -> None:
    """The same bytes are the same run: what it was of before is not told as withdrawn besides."""
    path = logs.write(tmp_path / "a")
    ingest([path], sqlite, logs.GIVEN)
    words = tuple(one for one in logs.SET if not one.startswith("num_gpus"))

    said, [change] = preview(
        [path], sqlite, replace(logs.GIVEN, logs=LogOptions((*words, "num_gpus=16")))
    )
    bare, [same] = preview([path], sqlite, Options())

    assert ((0, 1, 0, 0), (0, 0, 1, 0)) == (counted(said), counted(bare))
    assert change.before is not None
    assert ("revised", 8, 16) == (change.status, change.before.num_gpus, change.result.num_gpus)
    assert ("unchanged", 8) == (same.status, same.result.num_gpus)


def test_the_bytes_of_a_store_are_as_they_were(sqlite: URL, tree: Path) -> None:
    """Of its file; and a store is not made where there is none."""
    ingest([tree], sqlite, NEMO)
    edited(tree, "12273", "12300")
    path = Path(str(sqlite.database))
    before = path.read_bytes()

    preview([tree], sqlite, NEMO)
    assert before == path.read_bytes()

    path.unlink()
    assert (5, 0, 0, 0) == counted(preview([tree], sqlite, NEMO)[0])
    assert not path.exists()


def test_a_dry_run_waits_for_nobody(store: URL, tree: Path) -> None:
    """While another process has written and not committed: what was stored before counts."""
    ingest([tree], store, NEMO)
    with writing(store) as connection:
        connection.execute(update(releases).values(container="x", audited_version=None))
        connection.execute(update(results).values(tokens_per_sec_per_gpu=1.0))

        said, _ = preview([tree], store, NEMO)

    assert (0, 0, 5, 0) == counted(said)
