"""Verifying: a store that ingest made holds together, and whatever is changed in it is found."""

import hashlib
import json
import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import URL

from perfdb import aggregation
from perfdb.db.packing import packed
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
    from perfdb.db.session import store_url

    folder = tmp_path_factory.mktemp("filled")
    path = folder / "store.sqlite"
    path.write_bytes(sqlite_template.read_bytes())
    fill(store_url(str(path)), folder)
    return path


@pytest.fixture
def filled(template: Path, tmp_path: Path) -> URL:
    """A filled SQLite store of one's own."""
    from perfdb.db.session import store_url

    path = tmp_path / "store.sqlite"
    path.write_bytes(template.read_bytes())
    return store_url(str(path))


def spoil(url: URL, statement: str, *values: object) -> None:
    """Change a store behind perfdb's back, where no foreign key is watched."""
    with sqlite3.connect(str(url.database)) as connection:
        assert connection.execute(statement, values).rowcount > 0
    connection.close()


def test_a_store_that_ingest_filled_holds_together(store: URL, tmp_path: Path) -> None:
    """Everything in it was looked at, on SQLite and on PostgreSQL, and nothing passed over."""
    fill(store, tmp_path)

    found = checked(store)

    assert [] == faults(store)
    assert ["schema", *CHECKS] == [one.check for one in found]
    assert [] == [it for one in found for it in one.passed_over]
    counts = {one.check: one.count for one in found}
    assert (7, 4, 4, 3) == (
        counts["revisions"], counts["figures"], counts["steps"], counts["published"],
    )  # fmt: skip
    assert counts["sources"] > 7


def test_a_store_with_revisions_of_all_kinds_holds_together(store: URL, tmp_path: Path) -> None:
    """A page that was edited, a run that was read anew, figures that were recomputed."""
    fill(store, tmp_path)
    page = tmp_path / "published" / "nemo.md"
    page.write_text(page.read_text().replace("12273", "12300"))
    run = RunDir(tmp_path / "runs" / "a")
    factories.write_steps(run, factories.steps([20.0] * 10))
    ingest([tmp_path / "runs", page], store, NEMO)
    recompute(store, Scope(), Asked(aggregation.last_n(4)))

    assert [] == faults(store)


def test_an_empty_store_holds_together(sqlite: URL) -> None:
    assert [] == faults(sqlite)


def test_runs_of_every_outcome_hold_together(sqlite: URL, tmp_path: Path) -> None:
    for outcome in (None, *Outcome):
        factories.write_run(tmp_path / "runs", run_id=str(outcome), outcome=outcome)
    ingest([tmp_path / "runs"], sqlite, Options())

    assert [] == faults(sqlite)


def test_bytes_that_are_others_are_found(filled: URL) -> None:
    """As many, so that only the SHA-256 tells."""
    spoil(
        filled,
        "UPDATE sources SET content = ? WHERE path LIKE '%console.log' AND path LIKE '%/a/%'",
        packed(b"x" * len("".join(f"step {n}\n" for n in range(1, 11)))),
    )

    [(check, where, message)] = faults(filled)
    assert ("sources", "console.log") == (check, Path(where).name)
    assert hashlib.sha256(b"x" * 71).hexdigest() in message


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"no zstd", "the bytes are damaged: zstd decompressor error: Unknown frame descriptor"),
        (packed(b"abc" * 99)[:-6], "the bytes are damaged: the compressed bytes end too"),
        (packed(b"abc"), "3 bytes, not the 71 that were read"),
        (packed(b"abc") + b"d", "the bytes are damaged: more bytes follow behind the end"),
        (
            packed(b"abc")[:-1] + b"d",
            "the bytes are damaged: zstd decompressor error: Restored data",
        ),
        (b"", "the bytes are damaged"),
    ],
)
def test_bytes_that_are_damaged_are_found(filled: URL, content: bytes, message: str) -> None:
    where = "path LIKE '%/a/console.log'"
    spoil(filled, f"UPDATE sources SET content = ? WHERE {where}", content)

    [(check, _, said)] = faults(filled)
    assert "sources" == check
    assert message in said


def test_a_figure_that_does_not_follow_from_the_steps_is_found(filled: URL) -> None:
    spoil(
        filled,
        "UPDATE results SET tokens_per_sec_per_gpu = 9999 WHERE run_id = "
        "(SELECT id FROM runs WHERE run_id = 'a')",
    )

    [(check, where, message)] = faults(filled)
    assert ("figures", "run a") == (check, where)
    assert message.startswith("tokens_per_sec_per_gpu is 9999.0, and 10787.8")


def test_a_step_that_is_not_in_the_file_is_found_and_so_is_its_figure(filled: URL) -> None:
    """Step 4 took 12.0 s; with 99 s the mean is another, and the median, which is between."""
    of_a = "(SELECT id FROM runs WHERE run_id = 'a')"
    spoil(filled, f"UPDATE steps SET step_time_s = 99 WHERE step = 4 AND run_id = {of_a}")

    found = faults(filled)
    assert ("steps", "run a", "step 4: step_time_s is 99.0, and 12.0 by its files") in found
    assert {"figures", "steps"} == {check for check, _, _ in found}
    assert any(message.startswith("step_time_mean_s is") for _, _, message in found)


def test_a_step_that_is_gone_is_found(filled: URL) -> None:
    spoil(
        filled,
        "DELETE FROM steps WHERE step = 1 AND run_id = (SELECT id FROM runs WHERE run_id = 'a')",
    )

    told = [one for one in faults(filled) if one[0] != "figures"]  # whose warm-up is another one
    assert [("steps", "run a", "step 1: is not in the store")] == told


def test_a_step_of_a_log_is_held_against_its_line(filled: URL) -> None:
    spoil(
        filled,
        "UPDATE steps SET loss = 1.5 WHERE step = 7 AND run_id = "
        "(SELECT id FROM runs WHERE recipe IS NULL)",
    )

    [(check, _, message)] = faults(filled)
    assert ("steps", "step 7: loss is 1.5, and 9.5 by its files") == (check, message)


def test_an_outcome_that_the_files_do_not_give_is_found(filled: URL) -> None:
    spoil(filled, "UPDATE runs SET outcome = 'failed' WHERE run_id = 'c'")

    assert [("steps", "run c", "ended failed, and out_of_memory by its files")] == faults(filled)


def test_a_result_of_another_case_than_its_files_is_found(filled: URL) -> None:
    spoil(
        filled,
        "UPDATE results SET key = 'k' WHERE run_id = (SELECT id FROM runs WHERE run_id = 'a')",
    )

    said = "its files are of another case or release than its result"
    assert [("steps", "run a", said)] == faults(filled)


def test_a_withheld_result_with_figures_is_found(filled: URL) -> None:
    spoil(
        filled,
        "UPDATE results SET mfu = 0.4 WHERE run_id = (SELECT id FROM runs WHERE run_id = 'c')",
    )

    [(check, where, message)] = faults(filled)
    assert ("figures", "run c") == (check, where)
    assert message == "withheld (the run was out of memory), and yet has mfu"


def test_a_published_figure_that_the_page_does_not_print_is_found(filled: URL) -> None:
    spoil(
        filled,
        "UPDATE results SET tokens_per_sec_per_gpu = 12274 WHERE tokens_per_sec_per_gpu = 12273",
    )

    [(check, where, message)] = faults(filled)
    assert ("published", "nemo.md:7") == (check, Path(where).name)
    assert "tokens_per_sec_per_gpu is 12274.0, and 12273.0 by the bytes" in message


def test_a_figure_of_a_file_that_sums_up_is_held_against_it(filled: URL) -> None:
    """It prints 1.25 s."""
    spoil(filled, "UPDATE results SET step_time_s = 1.5 WHERE step_time_s = 1.25")

    [(check, where, message)] = faults(filled)
    assert ("published", "benchmark.json") == (check, Path(where).name.partition(":")[0])
    assert "step_time_s is 1.5, and 1.25 by the bytes" in message


def test_a_page_in_another_encoding_is_read_as_ingest_reads_it(
    filled: URL, template: Path, tmp_path: Path
) -> None:
    page = tmp_path / "nemo.md"
    text = (template.parent / "published" / "nemo.md").read_text().replace("12273", "12300")
    page.write_text(text, encoding="utf-16")
    assert 1 == ingest([page], filled, NEMO).revised

    assert [] == faults(filled)


def test_a_superseded_figure_is_held_against_the_page_of_its_time(
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

    assert ["published"] == [check for check, _, _ in faults(filled)]


def test_two_results_in_force_are_found(filled: URL) -> None:
    recompute(filled, Scope(), Asked(aggregation.last()))
    spoil(
        filled,
        "UPDATE results SET superseded = 0, superseded_at = NULL WHERE revision = 1 AND run_id = "
        "(SELECT id FROM runs WHERE run_id = 'a')",
    )

    found = faults(filled)
    assert "2 revisions are in force" in [message for _, _, message in found]
    assert ("revisions", "run a", "2 of its results are in force") in found


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE results SET revision = 3 WHERE revision = 2", "2 revisions are numbered 1 to 3"),
        (
            "UPDATE results SET superseded = NOT superseded, superseded_at = NULL",
            "revision 1 is in force, not 2, the newest",
        ),
        (
            "UPDATE results SET superseded_at = created_at WHERE revision = 2",
            "revision 2 is in force and has superseded_at",
        ),
    ],
)
def test_revisions_that_cannot_be_are_found(filled: URL, statement: str, message: str) -> None:
    """Each of the three runs that have figures."""
    recompute(filled, Scope(), Asked(aggregation.last()))
    limit = " WHERE run_id IN (SELECT run_id FROM results WHERE revision = 2)"
    spoil(filled, statement if "WHERE" in statement else statement + limit)

    assert [message] * 3 == [said for check, _, said in faults(filled) if check == "revisions"]


def test_a_reference_to_nothing_is_found(filled: URL) -> None:
    spoil(filled, "DELETE FROM releases WHERE version = '25.04'")

    messages = [(where, message) for check, where, message in faults(filled)]
    assert ("results.release_id", "2 rows refer to releases that are not there") in messages


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("release_id = 999", "1 row refers to releases that are not there"),
        ("revision = 2", "1 revision is numbered 2 to 2"),
    ],
)
def test_of_one_row_the_singular_is_told(filled: URL, change: str, message: str) -> None:
    spoil(filled, f"UPDATE results SET {change} WHERE id = (SELECT min(id) FROM results)")

    assert message in [said for _, _, said in faults(filled)]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("INSERT INTO releases (key, framework) VALUES ('k', 'nemo')", "release without a result"),
        (
            "INSERT INTO systems (name, title, specification) VALUES ('k', 'K', '{}')",
            "system without a case",
        ),
        (
            "DELETE FROM results WHERE run_id = (SELECT id FROM runs WHERE run_id = 'c')",
            "run without a result",
        ),
    ],
)
def test_what_stands_alone_is_found(filled: URL, statement: str, message: str) -> None:
    spoil(filled, statement)

    assert [("orphans", message)] == [(check, said) for check, _, said in faults(filled)]


def test_what_another_version_read_is_passed_over_and_said(filled: URL) -> None:
    """Its parser read something else out of the same bytes, so that nothing follows from them."""
    spoil(filled, "UPDATE sources SET parser_version = 0 WHERE path LIKE '%nemo.md'")

    passed = [it for one in checked(filled) for it in one.passed_over]
    assert [] == faults(filled)
    assert ["2 results: read by version 0 of the parser; this is"] == [
        it.message.rpartition(" ")[0] for it in passed
    ]
    spoil(filled, "DELETE FROM results WHERE source_line = 7 AND origin = 'published'")
    [one] = [it for found in checked(filled) for it in found.passed_over]
    assert one.message.startswith("1 result: read by")


def test_all_faults_are_said_at_once(filled: URL) -> None:
    spoil(filled, "UPDATE results SET mfu = 0.99 WHERE mfu IS NOT NULL AND run_id IS NOT NULL")
    spoil(filled, "UPDATE sources SET size_bytes = 1 WHERE path LIKE '%console.log'")
    spoil(filled, "INSERT INTO releases (key, framework) VALUES ('k', 'nemo')")

    assert {"figures", "sources", "orphans"} == {check for check, _, _ in faults(filled)}


def test_the_command_ends_with_0_where_nothing_is_wrong(perfdb: Shell, filled: URL) -> None:
    code, out, err = perfdb("verify", "--db", filled.render_as_string())

    assert (0, "") == (code, err)
    assert out.endswith("the store holds together\n")


def test_the_command_ends_with_1_and_says_each_fault(perfdb: Shell, filled: URL) -> None:
    spoil(filled, "UPDATE runs SET outcome = 'failed' WHERE run_id = 'c'")

    code, out, _ = perfdb("verify", "--db", filled.render_as_string())
    as_json = perfdb("verify", "--json", "--db", filled.render_as_string())

    assert 1 == code
    assert "fault: steps: run c: ended failed, and out_of_memory by its files\n1 fault\n" in out
    assert (1, "") == (as_json[0], as_json[2])
    said = json.loads(as_json[1])
    assert {
        "check": "steps",
        "where": "run c",
        "message": "ended failed, and out_of_memory by its files",
    } == said["faults"][0]
    assert (4, []) == (said["checked"]["steps"], said["passed_over"])


def test_a_store_of_another_schema_is_refused(perfdb: Shell, filled: URL) -> None:
    spoil(filled, "UPDATE alembic_version SET version_num = '0000'")

    code, out, err = perfdb("verify", "--db", filled.render_as_string())

    assert (2, "") == (code, out)
    assert f"run `perfdb db upgrade --db {filled.render_as_string()}`" in err
