"""Verifying: a store that ingest made holds together, and whatever is changed in it is found."""

import hashlib
import json
import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import URL

from perfdb import aggregation
from perfdb.db.packing import packed
from perfdb.db.session import store_url
from perfdb.ingest import Options, ingest
from perfdb.queries.scope import Scope
from perfdb.record import Outcome
from perfdb.rundir import RunDir
from perfdb.verify import CHECKS, Verified, verify
from perfdb.verify.figures import Asked
from perfdb.verify.recompute import recompute
from tests import factories, logs
from tests.shell import Shell
from tests.trees import NEMO, write_tree


def checked(url: URL) -> tuple[Verified, ...]:
    """What a verification says, watched by nobody."""
    return verify(url, lambda *_: lambda: None)


def faults(url: URL) -> list[tuple[str, str, str]]:
    """Everything that is wrong: the check, where and what."""
    return [(one.check, it.where, it.message) for one in checked(url) for it in one.faults]


def fill(url: URL, folder: Path) -> None:
    """Two finished runs, one out of memory, a page of two rows, a log and a file that sums up."""
    write_tree(folder)
    summary = logs.write(folder / "summed", logs.SUMMARY, "benchmark.json")
    ingest([folder / "runs", folder / "published"], url, NEMO)
    ingest([logs.write(folder / "logs"), summary], url, logs.GIVEN)


@pytest.fixture(scope="module")
def template(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A filled SQLite store, to be copied and spoilt."""
    path = tmp_path_factory.mktemp("filled") / "store.sqlite"
    path.write_bytes(sqlite_template.read_bytes())
    fill(store_url(str(path)), path.parent)
    return path


@pytest.fixture
def filled(template: Path, tmp_path: Path) -> URL:
    """A filled SQLite store of one's own."""
    path = tmp_path / "store.sqlite"
    path.write_bytes(template.read_bytes())
    return store_url(str(path))


def spoil(url: URL, statement: str, *values: object) -> None:
    """Change a store behind perfdb's back, where no foreign key is watched."""
    with sqlite3.connect(str(url.database)) as connection:
        assert connection.execute(statement, values).rowcount > 0
    connection.close()


def test_a_store_holds_together_whatever_ingest_has_done_to_it(store: URL, tmp_path: Path) -> None:
    """On both databases: filled, then edited, read anew, recomputed; and runs of every outcome."""
    assert [] == faults(store)
    fill(store, tmp_path)

    found = checked(store)

    assert [] == [it for one in found for it in one.faults]
    assert ["schema", *CHECKS] == [one.check for one in found]
    assert [] == [it for one in found for it in one.passed_over]
    counts = {one.check: one.count for one in found}
    assert counts["sources"] > 7
    assert [7, 4, 4, 3] == [counts[name] for name in ("revisions", "figures", "runs", "published")]

    page = tmp_path / "published" / "nemo.md"
    page.write_text(page.read_text().replace("12273", "12300"), encoding="utf-16")
    factories.write_steps(RunDir(tmp_path / "runs" / "a"), factories.steps([20.0] * 10))
    for outcome in (None, *Outcome):
        factories.write_run(tmp_path / "runs", run_id=str(outcome), outcome=outcome)
    assert 2 == ingest([tmp_path / "runs", page], store, NEMO).revised
    recompute(store, Scope(), Asked(aggregation.last_n(4)))
    assert [] == faults(store)


OTHER = b"x" * 71
"""As many bytes as the console log of a run has."""
DAMAGED = {
    "a/console.log": (packed(OTHER), f"SHA-256 {hashlib.sha256(OTHER).hexdigest()}, not "),
    "b/console.log": (packed(b"abc"), "3 bytes, not the 71 that were read"),
    "c/console.log": (b"no zstd", "damaged: zstd decompressor error: Unknown frame descriptor"),
    "a/recipe.yaml": (packed(b"abc" * 99)[:-6], "damaged: the compressed bytes end too"),
    "b/recipe.yaml": (packed(b"abc") + b"d", "damaged: more bytes follow behind the end"),
    "c/recipe.yaml": (packed(b"abc")[:-1] + b"d", "damaged: zstd decompressor error: Restored"),
    "a/run.json": (b"", "the bytes are damaged"),
}


def test_bytes_that_are_damaged_or_others_are_found_and_nothing_else(filled: URL) -> None:
    for name, (content, _) in DAMAGED.items():
        spoil(filled, "UPDATE sources SET content = ? WHERE path LIKE ?", content, f"%/{name}")

    found = {where: (check, message) for check, where, message in faults(filled)}
    assert len(DAMAGED) == len(found)
    for name, (_, message) in DAMAGED.items():
        [(check, said)] = [it for where, it in found.items() if where.endswith(name)]
        assert "sources" == check
        assert message in said


OF = "run_id = (SELECT id FROM runs WHERE run_id = '{}')".format
OF_LOG = "run_id = (SELECT id FROM runs WHERE recipe IS NULL)"
TOKENS = "tokens_per_sec_per_gpu"
CHANGES = [
    (f"UPDATE results SET {TOKENS} = 9999 WHERE {OF('a')}",
     ("figures", "run a", f"{TOKENS} is 9999.0, and 10787.8")),
    (f"UPDATE results SET mfu = 0.4 WHERE {OF('c')}",
     ("runs", "run c", "mfu is 0.4, and None by the bytes")),
    (f"UPDATE steps SET loss = 1.5 WHERE step = 7 AND {OF_LOG}",
     ("runs", "run log-", "step 7: loss is 1.5, and 9.5 by its files")),
    ("UPDATE runs SET outcome = 'failed' WHERE run_id = 'c'",
     ("runs", "run c", "outcome is failed, and out_of_memory by the bytes")),
    (f"UPDATE results SET key = 'k' WHERE {OF('a')}", ("runs", "run a", "key is k, and ")),
    (f"UPDATE results SET {TOKENS} = 12274 WHERE {TOKENS} = 12273",
     ("published", "nemo.md:7", f"{TOKENS} is 12274.0, and 12273.0 by the bytes")),
    ("UPDATE results SET step_time_s = 1.5 WHERE step_time_s = 1.25",
     ("published", "benchmark.json", "step_time_s is 1.5, and 1.25 by the bytes")),
    ("INSERT INTO releases (key, framework) VALUES ('k', 'nemo')",
     ("orphans", "k", "release without a result")),
    ("INSERT INTO systems (name, title, specification) VALUES ('k', 'K', '{}')",
     ("orphans", "k", "system without a case")),
    (f"DELETE FROM results WHERE {OF('b')}", ("orphans", "b", "run without a result")),
    (f"UPDATE steps SET step_time_s = 99 WHERE step = 4 AND {OF_LOG}",
     ("runs", "run log-", "step 4: step_time_s is 99.0, and 2.5 by its files")),
    (f"DELETE FROM steps WHERE step = 1 AND {OF_LOG}",
     ("runs", "run log-", "step 1: is not in the store")),
    (f"UPDATE steps SET step = 99 WHERE step = 2 AND {OF_LOG}",
     ("runs", "run log-", "step 99: is not in its files")),
    (f"UPDATE results SET release_id = 999 WHERE {TOKENS} = 1563",
     ("references", "results.release_id", "1 row refers to releases that are not there")),
    (f"UPDATE results SET revision = 2 WHERE {OF_LOG}",
     ("revisions", "result ", "1 revision is numbered 2 to 2")),
]  # fmt: skip
"""Each is found whatever the others are; the check, the place and the message."""


@pytest.mark.parametrize(
    "changes",
    [CHANGES, [("DELETE FROM releases WHERE version = '25.04'",
                ("references", "", "2 rows refer to releases that are not there"))]],
)  # fmt: skip
def test_every_change_is_found_where_it_is(
    filled: URL, changes: list[tuple[str, tuple[str, str, str]]]
) -> None:
    for statement, _ in changes:
        spoil(filled, statement)

    found = faults(filled)
    for _, (check, place, said) in changes:
        assert any(check == it and place in where and said in text for it, where, text in found)


REVISIONS = {
    "a": ("UPDATE results SET revision = 3 WHERE revision = 2 AND {}",
          "2 revisions are numbered 1 to 3"),
    "b": ("UPDATE results SET superseded_at = created_at WHERE revision = 2 AND {}",
          "revision 2 is in force and has superseded_at"),
    "d": ("UPDATE results SET superseded = NOT superseded, superseded_at = NULL WHERE {}",
          "revision 1 is in force, not 2, the newest"),
    "e": ("UPDATE results SET superseded = 0, superseded_at = NULL WHERE revision = 1 AND {}",
          "2 revisions are in force"),
}  # fmt: skip


def test_revisions_that_cannot_be_are_found(filled: URL, tmp_path: Path) -> None:
    runs = [factories.write_run(tmp_path, run_id=name).path for name in "de"]
    ingest(runs, filled, Options())
    recompute(filled, Scope(), Asked(aggregation.last()))
    for run_id, (statement, _) in REVISIONS.items():
        spoil(filled, statement.format(OF(run_id)))

    found = [said for check, _, said in faults(filled) if check == "revisions"]
    ended = "revision 2 is superseded and has no superseded_at"
    expected = [message for _, message in REVISIONS.values()]
    assert sorted([*expected, ended, "2 of its results are in force"]) == sorted(found)


def test_a_superseded_figure_is_compared_with_the_page_of_its_time(
    filled: URL, template: Path, tmp_path: Path
) -> None:
    page = tmp_path / "nemo.md"
    page.write_text((template.parent / "published" / "nemo.md").read_text())
    ingest([page], filled, NEMO)
    page.write_text(page.read_text().replace("12273", "12300"))
    ingest([page], filled, NEMO)
    assert [] == faults(filled)

    spoil(
        filled, "UPDATE results SET tokens_per_sec_per_gpu = 1 WHERE superseded AND run_id IS NULL"
    )
    assert ["published"] == [check for check, _, _ in faults(filled) if check != "findings"]


def test_what_another_version_read_is_passed_over_and_said(filled: URL) -> None:
    """Its parser read something else out of the same bytes, so that nothing follows from them."""
    spoil(filled, "UPDATE sources SET parser_version = 0 WHERE path LIKE '%nemo.md'")
    spoil(filled, "UPDATE sources SET parser_version = 0 WHERE path LIKE '%/a/run.json'")

    found = checked(filled)
    passed = [it for one in found for it in one.passed_over]
    assert [] == [it for one in found for it in one.faults]
    reason = "read by version 0 of the parser; this is"
    assert [reason, f"2 results: {reason}"] == [it.message.rpartition(" ")[0] for it in passed]


def test_the_command_says_each_fault_at_once(perfdb: Shell, filled: URL) -> None:
    address = ("--db", filled.render_as_string())
    code, out, err = perfdb("verify", *address)
    assert (0, "") == (code, err)
    assert out.endswith("OK\n")

    spoil(filled, "UPDATE runs SET outcome = 'failed' WHERE run_id = 'c'")
    spoil(filled, "UPDATE sources SET size_bytes = 1 WHERE path LIKE '%/a/console.log'")
    code, out, _ = perfdb("verify", *address)
    as_json = perfdb("verify", "--json", *address)

    assert 1 == code
    assert (
        "problem: runs: run c: outcome is failed, and out_of_memory by the bytes\n2 problems\n"
        in out
    )
    assert (1, "") == (as_json.code, as_json.stderr)
    found = json.loads(as_json.stdout)
    message = "outcome is failed, and out_of_memory by the bytes"
    assert {"check": "runs", "where": "run c", "message": message} == found["faults"][1]
    assert (4, []) == (found["checked"]["runs"], found["passed_over"])

    spoil(filled, "UPDATE alembic_version SET version_num = '0000'")
    code, out, err = perfdb("verify", *address)
    assert (2, "") == (code, out)
    assert f"run `perfdb db upgrade --db {filled.render_as_string()}`" in err
