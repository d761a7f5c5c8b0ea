"""`perfdb withdraw RUN`: a bad run no longer counts, says why, and does not come back by itself."""

from pathlib import Path

import pytest
from sqlalchemy import URL, select

from perfdb.aggregation import last_n
from perfdb.db.session import reading
from perfdb.db.tables import ingest_log, results, runs
from perfdb.ingest import Options, ingest
from perfdb.queries import results as questions
from perfdb.queries import runs as runs_queries
from perfdb.queries.scope import Scope
from perfdb.site.pages.revisions import newest_first
from perfdb.site.read import read as contents
from perfdb.verify import verify
from perfdb.verify.figures import Asked
from perfdb.verify.recompute import recompute
from tests import factories, logs
from tests.shell import Shell
from tests.snapshots import snapshot
from tests.trees import counted, rows_of, writing

WHY = "the fans of node-1 had failed"
IN_FORCE = select(runs.c.run_id).join(results, results.c.run_id == runs.c.id)
IN_FORCE = IN_FORCE.where(~results.c.superseded).order_by(runs.c.run_id)


@pytest.fixture
def store(sqlite: URL) -> URL:
    """A store that is a file."""
    return sqlite


@pytest.fixture(autouse=True)
def folder(store: URL, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A working directory with two runs of one case, of 12.15 and of 13.15 s, and their store."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PERFDB_URL", store.render_as_string(hide_password=False))
    slower = tuple(seconds + 1 for seconds in factories.TEN_STEPS)
    factories.write_run(Path("runs"), run_id="good")
    factories.write_run(Path("runs"), run_id="bad", step_times=slower)
    ingest([Path("runs")], store, Options())


def check_sound(store: URL) -> None:
    found = verify(store, lambda *_: lambda: None)
    assert [] == [it for one in found for it in (*one.faults, *one.passed_over)]


@pytest.mark.parametrize("named", ["bad", "runs/bad", "./runs/bad/", "runs/bad/run.json"])
def test_a_run_is_withdrawn_by_its_id_or_its_directory(
    store: URL, perfdb: Shell, named: str
) -> None:
    """It is in no table, list or comparison; its row, its steps and the reason are kept."""
    code, said, _ = perfdb("withdraw", named, "--reason", f" {WHY}\n")

    assert (0, "1 withdrawn\n") == (code, said)
    assert [("good",)] == rows_of(store, IN_FORCE)
    assert [("bad", WHY), ("good", None)] == rows_of(
        store, select(runs.c.run_id, runs.c.withdrawn).order_by(runs.c.run_id)
    )
    logged = rows_of(store, select(ingest_log.c.path, ingest_log.c.action, ingest_log.c.reason))
    assert ("run bad", "revised", f"withdrawn: {WHY}") == logged[-1]
    with reading(store) as connection:
        [row] = connection.execute(questions.representative()).mappings()
        assert ("good", 1) == (row["run_id"], row["num_results"])
        assert ["good"] == [it.run_id for it in connection.execute(runs_queries.all_runs())]
        assert 10 == len(connection.execute(runs_queries.steps_of("bad")).all())
    check_sound(store)
    before = snapshot(store)
    assert (0, "0 withdrawn\n") == perfdb("withdraw", named, "--reason", "again")[:2]
    assert before == snapshot(store)


def test_each_withdrawal_of_a_run_keeps_its_own_reason(store: URL, perfdb: Shell) -> None:
    """Also where the figures are made anew in between, which is no withdrawal."""
    for why, window in (("too hot", "last_n(3)"), ("12 withdrawn: too slow", "skip_warmup(2)")):
        perfdb("withdraw", "bad", "--reason", why)
        perfdb("withdraw", "--undo", "bad")
        perfdb("recompute", "--window", window)
    perfdb("withdraw", "bad", "--reason", "last")

    with reading(store) as connection:
        [found] = contents(connection, (), {}).changelog
    added, *others = reversed(newest_first(found.events))
    assert ("added", 2) == (added.act, added.count)
    of_bad = [it for it in others if it.result and it.result.run_id == "bad"]
    assert [
        ("withdrawn", "too hot"), ("restored", None), ("corrected", None),
        ("withdrawn", "12 withdrawn: too slow"), ("restored", None), ("corrected", None),
        ("withdrawn", "last"),
    ] == [(it.act, it.reason) for it in of_bad]  # fmt: skip


@pytest.mark.parametrize("options", [[], ["--window", "last_n(3)"]])
def test_reading_it_again_does_not_bring_it_back(
    store: URL, perfdb: Shell, options: list[str]
) -> None:
    """Neither as it was, nor over another window, nor with another console log; a note says so."""
    perfdb("withdraw", "bad", "--reason", WHY)
    for _ in ("as it was", "changed"):
        code, said, beside = perfdb("ingest", "runs/bad", *options)
        assert (0, "0 new, 0 revised, 1 unchanged, 0 rejected\n") == (code, said)
        assert f"runs/bad: stays withdrawn: {WHY}; `perfdb withdraw --undo`" in beside
        Path("runs/bad/console.log").write_text("more\n")
    recompute(store, Scope(), Asked(last_n(3)))
    assert [("good",)] == rows_of(store, IN_FORCE)
    check_sound(store)


def test_undone_it_counts_again_as_it_did(store: URL, perfdb: Shell) -> None:
    """With the figures that it had last, and with what its files say by now once they are read."""
    recompute(store, Scope(), Asked(last_n(3)))
    before = select(results.c.step_time_s, results.c.window).where(~results.c.superseded)
    figures = rows_of(store, before.order_by(results.c.step_time_s))
    perfdb("withdraw", "bad", "--reason", WHY)
    withdrawn_at = select(results.c.superseded_at).where(results.c.revision == 2)
    [moment] = set(rows_of(store, withdrawn_at)) - {(None,)}

    assert (0, "1 restored\n") == perfdb("withdraw", "--undo", "bad")[:2]

    assert [("bad",), ("good",)] == rows_of(store, IN_FORCE)
    assert figures == rows_of(store, before.order_by(results.c.step_time_s))
    assert moment in rows_of(store, withdrawn_at)
    assert (0, "0 restored\n") == perfdb("withdraw", "--undo", "bad")[:2]
    check_sound(store)
    Path("runs/bad/console.log").write_text("more\n")
    assert (0, 1, 1, 0) == counted(ingest([Path("runs")], store, Options()))


def test_a_run_of_a_log_is_withdrawn_by_the_path_of_the_log(store: URL, perfdb: Shell) -> None:
    """It stays so, whether anything is said of the log or nothing."""
    logs.write(Path())
    options = ["--release", "2.0", *(word for said in logs.SET for word in ("--set", said))]
    assert 0 == perfdb("ingest", "train.log", *options).code
    assert 3 == len(rows_of(store, IN_FORCE))

    assert "1 withdrawn\n" == perfdb("withdraw", "train.log", "--reason", WHY).stdout

    for words in (options, []):
        assert "0 new, 0 revised, 1 unchanged, 0 rejected\n" == (
            perfdb("ingest", "train.log", *words).stdout
        )
    assert 2 == len(rows_of(store, IN_FORCE))


def test_what_cannot_be_done_is_told_and_nothing_is_withdrawn(store: URL, perfdb: Shell) -> None:
    factories.stored(store, factories.published(), page="a.md")
    for arguments, told in (
        (["bad"], "--reason: a run is withdrawn for a reason; say what is wrong with it"),
        (["bad", "--reason", " "], "--reason: a run is withdrawn for a reason"),
        (["bad", "--reason", "\x07"], "--reason: holds a character that cannot be shown"),
        (["bad", "worse", "--reason", WHY], "worse: nothing in the store has this path"),
        (["bad", "\udcff", "--reason", WHY], "\\udcff: the name is not UTF-8"),
        (["x" * 300, "--reason", WHY], "xxx: nothing in the store has this path"),
        (["", "--reason", WHY], "what follows withdraw is empty: is a variable not set?"),
        (["--undo", "worse"], "worse: nothing in the store has this path"),
        (["--undo", "a.md"], "a.md: is a page, not a run; `perfdb ingest` brings"),
    ):
        code, said, beside = perfdb("withdraw", *arguments)
        assert (2, "", True) == (code, said, told in beside), arguments
    assert 2 == len(rows_of(store, IN_FORCE))


def test_verify_finds_a_run_that_counts_though_it_is_withdrawn_or_does_not_though_it_is_not(
    store: URL,
) -> None:
    for spoilt, told in {
        "UPDATE runs SET withdrawn = 'x' WHERE run_id = 'bad'":
            "1 of its results is in force, and it is withdrawn",
        "UPDATE runs SET withdrawn = NULL": None,
        "UPDATE results SET superseded = true": "0 of its results are in force",
    }.items():  # fmt: skip
        with writing(store) as connection:
            connection.exec_driver_sql(spoilt)
        faults = [it for one in verify(store, lambda *_: lambda: None) for it in one.faults]
        of_bad = [it.message for it in faults if it.where == "run bad"]
        assert any(told in it for it in of_bad) if told else not of_bad, faults
