"""Recomputing: figures follow from the stored steps, and change only where they say something else.

Golden figures are worked by hand from `factories.TEN_STEPS`: 128 × 8,192 tokens a step on 8 GPUs.
"""

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import URL, select

from perfdb import aggregation, flops, measure, selection
from perfdb.audit.check import audit, stored
from perfdb.db.session import reading
from perfdb.db.tables import findings, ingest_log, releases, results
from perfdb.formats import Reading
from perfdb.formats.columns import Steps
from perfdb.ingest import Options, ingest
from perfdb.queries.scope import Scope
from perfdb.record import Note, NoteCode, Origin, Outcome
from perfdb.rundir import RunDir, StepsRead, Worker
from perfdb.verify import figures
from perfdb.verify.figures import Asked, StoredRun
from perfdb.verify.recompute import preview, recompute
from tests import factories, logs
from tests.conftest import ON_SQLITE
from tests.shell import Shell
from tests.snapshots import snapshot
from tests.trees import rows_of, writing

ALL = Scope()
LAST_THREE = Asked(aggregation.last_n(3))
"""12.0, 12.3 and 12.0 s: the median is 12 s."""

RUN_ID = "llama3-8b_bf16_8gpu-1"
TOKENS_AT_12_S = 128 * 8192 / 12 / 8


def in_force(url: URL) -> Mapping[str, object]:
    """The one result in force."""
    with reading(url) as connection:
        question = select(results).where(~results.c.superseded)
        return dict(connection.execute(question).mappings().one())


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run directory of two warm-up steps and eight measured ones."""
    return factories.write_run(tmp_path / "runs").path


@pytest.fixture
def filled(store: URL, run: Path) -> URL:
    """A store that holds that run."""
    assert 1 == ingest([run], store, Options()).new
    return store


def test_another_window_is_a_new_revision_with_the_figures_of_its_steps(
    filled: URL, run: Path
) -> None:
    """The median of 12.0, 12.3 and 12.0 s, and what follows from it; the old revision is kept.

    A preview shows the same and stores nothing; the second time nothing changes; reading the same
    run directory again does not undo it, and reading other bytes is one more revision.
    """
    before = snapshot(filled)
    seen = preview(filled, ALL, LAST_THREE)
    assert before == snapshot(filled)

    report = recompute(filled, ALL, LAST_THREE)

    assert (1, seen) == (report.examined, report)
    question = select(results).order_by(results.c.revision)
    with reading(filled) as connection:
        old, new = connection.execute(question).mappings().all()
    assert ("last_n(3)", 3, 12.0, 12.0) == (
        new["window"], new["num_steps"], new["step_time_s"], new["step_time_last_s"],
    )  # fmt: skip
    assert TOKENS_AT_12_S == pytest.approx(new["tokens_per_sec_per_gpu"])
    assert (old["key"], 1, 2) == (new["key"], old["revision"], new["revision"])
    assert (True, False) == (old["superseded"], new["superseded"])
    assert (old["superseded_at"], None) == (new["created_at"], new["superseded_at"])
    assert old["content_hash"] != new["content_hash"]
    assert ("skip_warmup(2)", 12.15) == (old["window"], pytest.approx(old["step_time_s"]))
    same = ("case_id", "release_id", "run_id", "source_id", "origin", "raw", "extras", "notes")
    assert [old[name] for name in same] == [new[name] for name in same]
    logged = select(ingest_log.c.path, ingest_log.c.action, ingest_log.c.reason)
    entry = ("perfdb recompute", "revised", "1 revised, window last_n(3)")
    assert entry == rows_of(filled, logged.order_by(ingest_log.c.id))[-1]

    after = snapshot(filled)
    assert [1, 1] == [recompute(filled, ALL, asked).unchanged for asked in (LAST_THREE, Asked())]
    assert 1 == ingest([run], filled, Options()).unchanged
    assert after == snapshot(filled)

    factories.write_steps(RunDir(run), factories.steps([20.0] * 10))
    assert 1 == ingest([run], filled, Options()).revised
    found = in_force(filled)
    assert (3, "skip_warmup(2)", 20.0) == (
        found["revision"], found["window"], found["step_time_s"],
    )  # fmt: skip


@ON_SQLITE
def test_a_log_read_again_with_the_same_words_does_not_undo_it(store: URL, tmp_path: Path) -> None:
    log = logs.write(tmp_path / "logs")
    ingest([log], store, logs.GIVEN)
    recompute(store, ALL, Asked(aggregation.last_n(1)))
    before = snapshot(store)

    with_words, without = ingest([log], store, logs.GIVEN), ingest([log], store, Options())

    assert (1, 1) == (with_words.unchanged, without.unchanged)
    assert before == snapshot(store)
    assert 2.2 == in_force(store)["step_time_s"]


@ON_SQLITE
def test_a_figure_of_another_formula_is_made_anew_if_it_differs(filled: URL) -> None:
    """As if six operations had been counted where now seven are: tokens/s stay."""
    before = in_force(filled)
    change(filled, formula_version=2)
    assert () == recompute(filled, ALL, Asked()).changed
    assert (1, 2) == (in_force(filled)["revision"], in_force(filled)["formula_version"])
    change(filled, model_tflops_per_sec_per_gpu=1.5, mfu=0.25)

    [changed] = recompute(filled, ALL, Asked()).changed

    assert {"model_tflops_per_sec_per_gpu", "mfu"} == set(changed.changes)
    found = in_force(filled)
    for name in ("model_tflops_per_sec_per_gpu", "mfu", "formula_version"):
        assert before[name] == found[name]


@ON_SQLITE
def test_another_peak_makes_another_mfu_and_renews_the_findings(filled: URL) -> None:
    """As if the catalog had had a hundred times the peak when the figures were made."""
    before = in_force(filled)
    assert isinstance(before["mfu"], float)
    change(filled, mfu=before["mfu"] / 100, peak_tflops=98_900.0)

    recompute(filled, ALL, Asked())

    assert before["mfu"] == pytest.approx(in_force(filled)["mfu"])
    with reading(filled) as connection:
        anew = audit(*stored(connection))
        kept = connection.execute(select(findings.c.result_id, findings.c.rule)).all()
    assert sorted((it.result_id, it.rule) for it in anew) == sorted(map(tuple, kept))


def change(url: URL, **columns: object) -> None:
    """Change columns of all results, as another version would have stored them."""
    with writing(url) as connection:
        connection.execute(results.update().values(columns))


@ON_SQLITE
def test_another_convention_counts_other_flops(store: URL, tmp_path: Path) -> None:
    """Attention in full in place of half: Llama 3 8B at 8,192 counts 54.3 and not 51.1 GFLOP.

    By hand: 6 × 32 layers × 4,096 × 8,192 × 2 of attention in full; half of it less is causal.
    """
    factories.stored(store, factories.write_run(tmp_path / "runs"))
    before = in_force(store)

    recompute(store, ALL, Asked(convention=flops.CONVENTIONS["full"]))

    found = in_force(store)
    assert ("causal", "full") == (before["flops_convention"], found["flops_convention"])
    tokens = found["tokens_per_sec_per_gpu"]
    more = [found["model_tflops_per_sec_per_gpu"], before["model_tflops_per_sec_per_gpu"]]
    assert isinstance(tokens, float)
    assert isinstance(more[0], float)
    assert isinstance(more[1], float)
    attention_in_full = 6 * 32 * 4096 * 8192 * 2
    assert attention_in_full / 2 * tokens / 1e12 == pytest.approx(more[0] - more[1])
    assert more[0] / 989 == pytest.approx(found["mfu"], rel=1e-3)
    assert () == recompute(store, ALL, Asked()).changed


@ON_SQLITE
def test_published_figures_are_never_changed(store: URL, tmp_path: Path) -> None:
    """Whatever is asked for, and however the formulas are."""
    factories.stored(store, factories.write_run(tmp_path), factories.published())
    question = select(results).where(results.c.origin == Origin.PUBLISHED.value)
    before = rows_of(store, question)

    report = recompute(store, ALL, Asked(aggregation.last(), flops.CONVENTIONS["full"]))

    assert 1 == report.examined
    assert before == rows_of(store, question)


def test_two_at_once_make_one_revision(filled: URL) -> None:
    with ThreadPoolExecutor(4) as pool:
        done = [pool.submit(recompute, filled, ALL, LAST_THREE) for _ in range(4)]
    assert 1 == sum(len(one.result().changed) for one in done)
    assert [(1, True), (2, False)] == rows_of(
        filled, select(results.c.revision, results.c.superseded).order_by(results.c.revision)
    )


def test_a_run_without_all_its_steps_or_a_good_end_stays_without_figures(
    sqlite: URL, tmp_path: Path
) -> None:
    ends = (Outcome.OUT_OF_MEMORY, Outcome.FAILED, Outcome.TIMED_OUT, Outcome.INTERRUPTED)
    for outcome in ends:
        factories.write_run(tmp_path, run_id=outcome.value, outcome=outcome)
    factories.write_run(tmp_path, run_id="short", measured_steps=20)
    ingest([tmp_path], sqlite, Options())

    report = recompute(sqlite, ALL, LAST_THREE)

    assert (5, ()) == (report.examined, report.changed)
    assert {(None,)} == set(rows_of(sqlite, select(results.c.step_time_s)))


@ON_SQLITE
def test_a_window_without_steps_leaves_a_run_as_it_was_and_names_it(
    filled: URL, tmp_path: Path
) -> None:
    """Its figures and its outcome stay; those of a longer run of another system are made anew."""
    longer = factories.case(system="dgx-b200")
    times = [*factories.TEN_STEPS, *[13.0] * 190]
    made = factories.write_run(tmp_path, run_id="longer", case=longer, step_times=times)
    ingest([made.path], filled, Options())
    short = select(results).where(results.c.run_id == 1)
    before = rows_of(filled, short)
    for window, why in (
        (aggregation.between(100, 200), "no step in window(100,200)"),
        (aggregation.skip_warmup(10), "no step in skip_warmup(10)"),
        (aggregation.last_n(11), "only 10 of 11 steps; last_n(11) would include the warm-up"),
    ):
        seen, report = (act(filled, ALL, Asked(window)) for act in (preview, recompute))
        assert [(RUN_ID, why)] == [(it.stored.run_id, it.reason) for it in report.left]
        assert seen == report
        assert (2, ["longer"], 0) == (
            report.examined, [it.stored.run_id for it in report.changed], report.unchanged,
        )  # fmt: skip
        assert before == rows_of(filled, short)
    assert () == recompute(filled, ALL, Asked()).changed


def test_a_log_too_short_for_its_window_gets_figures_over_a_shorter_one(
    sqlite: URL, tmp_path: Path
) -> None:
    """Four steps of 4, 2, 2 and 2 s, where NeMo's window leaves out the first ten."""
    log = logs.write(tmp_path / "logs", logs.nemo([4.0, 2.0, 2.0, 2.0]))
    ingest([log], sqlite, logs.GIVEN)
    assert "incomplete" == in_force(sqlite)["outcome"]

    recompute(sqlite, ALL, Asked(aggregation.skip_warmup(1)))

    found = in_force(sqlite)
    assert ("finished", None, 2.0, 3) == (
        found["outcome"], found["withheld"], found["step_time_s"], found["num_steps"],
    )  # fmt: skip


def test_only_what_is_asked_for_is_recomputed(store: URL, tmp_path: Path) -> None:
    """A system and a model by any of its names, or a release."""
    blackwell, newer = factories.case(system="dgx-b200"), factories.release("0.17.0")
    factories.write_run(tmp_path, run_id="a")
    factories.write_run(tmp_path, run_id="b", case=blackwell)
    factories.write_run(tmp_path, run_id="c", release=newer)
    ingest([tmp_path], store, Options())
    question = select(releases.c.id).where(releases.c.version == "0.17.0")
    [(wanted,)] = rows_of(store, question)
    assert isinstance(wanted, int)

    for scope, name in (
        (Scope(system="dgx-b200", model="Llama 3 8B"), "b"),
        (Scope(release_ids=(wanted,)), "c"),
    ):
        report = recompute(store, scope, LAST_THREE)
        assert (1, [name]) == (report.examined, [it.stored.run_id for it in report.changed])


def test_flops_of_another_shape_of_the_model_are_unknown(sqlite: URL, tmp_path: Path) -> None:
    """The step times hold, and the note names both shapes."""
    run = factories.write_run(tmp_path)
    run.worker_config.write_text('{"model": {"num_layers": 64, "head_dim": 128}}')
    report = ingest([tmp_path], sqlite, Options())
    said = (
        "the model's shape differs from the catalog: num_layers 64, not 32; "
        "TFLOP/s and MFU are unknown"
    )
    assert [(str(run.path), said)] == [(note.where, note.reason) for note in report.notes]
    names = ("tokens_per_sec_per_gpu", "model_tflops_per_sec_per_gpu", "mfu", "notes")
    question = select(*(results.c[name] for name in names)).where(~results.c.superseded)
    [(_, *rest)] = rows_of(sqlite, question)
    shape = Note(NoteCode.MODEL_SHAPE, {"differences": "num_layers 64, not 32"})
    assert [None, None, (shape,)] == rest
    for asked in (Asked(), Asked(convention=flops.CONVENTIONS["full"])):
        assert 1 == recompute(sqlite, ALL, asked).unchanged


def _stored(times: list[float], window: aggregation.Window) -> tuple[StoredRun, list[Reading]]:
    """A run as ingest reads it, and its steps."""
    steps = factories.steps(times)
    record = factories.record(warmup_steps=0, measured_steps=len(times))
    read = StepsRead.of(enumerate(steps, 1))
    measured = measure.of_run(record, read, Worker(), "c")
    picked = selection.pick_steps(measure.timed_steps(read), window)
    result = measure.with_figures(measured.result, picked, window)
    stored = StoredRun(result, 1, 1, "r", 1, Outcome.FINISHED, of_log=False)
    peak = steps[0].peak_memory_bytes
    return stored, [
        Reading(n, n, seconds, peak_memory_bytes=peak) for n, seconds in enumerate(times, 1)
    ]


@given(
    st.lists(st.floats(1e-3, 1e5), min_size=3, max_size=40),
    st.sampled_from([aggregation.last(), aggregation.last_n(3), aggregation.skip_warmup(0)]),
)
def test_figures_made_again_are_the_figures_that_ingest_made(
    times: list[float], window: aggregation.Window
) -> None:
    stored, steps = _stored(times, window)

    assert {} == figures.differences(
        stored.result, figures.recomputed(stored, Steps.of(steps), Asked())
    )


@given(st.floats(1e-6, 1e9), st.floats(1e-9, 10))
def test_figures_that_differ_by_more_than_dust_differ(figure: float, change: float) -> None:
    stored, _ = _stored([1.0], aggregation.last())
    one = replace(stored.result, step_time_s=figure)
    other = replace(stored.result, step_time_s=figure * (1 + change))
    dust = replace(stored.result, step_time_s=figure * (1 + 1e-15))
    spread = replace(one, step_time_stdev_s=0.0), replace(one, step_time_stdev_s=figure * 1e-16)

    assert {"step_time_s"} == set(figures.differences(one, other))
    assert {} == figures.differences(one, dust)
    assert {} == figures.differences(*spread)


def test_a_window_without_figures_does_not_forget_the_convention() -> None:
    """What an earlier version stored of one: over steps that there are it counts as before."""
    stored, steps = _stored([1.0] * 4, aggregation.last())
    given = Steps.of(steps)
    full = Asked(aggregation.last_n(500), flops.CONVENTIONS["full"])

    empty = figures.recomputed(stored, given, full)
    again = replace(stored, result=empty)

    assert ("incomplete", "full", None) == (empty.outcome, empty.flops_convention, empty.mfu)
    assert {} == figures.differences(empty, figures.recomputed(again, given, Asked()))
    found = figures.recomputed(again, given, Asked(aggregation.last()))
    assert ("finished", "full") == (found.outcome, found.flops_convention)


def test_skipped_steps_do_not_count_and_the_note_is_that_of_the_window() -> None:
    """As of a log at ingest: no figures where most are skipped, no note where none is."""
    stored, steps = _stored([1.0, 1.0, 2.0, 2.0], aggregation.last())
    given = Steps.of([one._replace(skipped=one.step < 3) for one in steps])

    most, half, rest = (
        figures.recomputed(stored, given, Asked(window))
        for window in (
            aggregation.between(1, 3),
            aggregation.skip_warmup(0),
            aggregation.skip_warmup(2),
        )
    )
    again = figures.recomputed(replace(stored, result=half), given, Asked())

    assert most.withheld is not None
    assert ((2, 3), None) == (_skipped(most.withheld), most.step_time_s)
    [note] = half.notes
    assert ((2, 4), 2.0, 2) == (_skipped(note), half.step_time_s, half.num_steps)
    assert ((), 2.0) == (rest.notes, rest.step_time_s)
    assert half == again


def _skipped(note: Note) -> tuple[object, object]:
    assert NoteCode.SKIPPED_STEPS is note.code
    return note.params["num_steps"], note.params["of"]


def test_what_the_program_printed_is_taken_over_the_same_window() -> None:
    """The median of 100, 300 and 200 tokens/s; an MFU that is not kept by step is then unknown."""
    stored, steps = _stored([1.0] * 4, aggregation.skip_warmup(0))
    said = replace(stored.result, emitted={"tokens_per_sec_per_gpu": 150.0, "mfu": 0.4})
    printed = [None, 100.0, 300.0, 200.0]
    given = Steps.of(
        step._replace(tokens_per_sec_per_gpu=rate)
        for step, rate in zip(steps, printed, strict=True)
    )

    same = figures.recomputed(replace(stored, result=said), given, Asked())
    other = figures.recomputed(replace(stored, result=said), given, Asked(aggregation.last_n(3)))

    assert {"tokens_per_sec_per_gpu": 150.0, "mfu": 0.4} == same.emitted
    assert {"tokens_per_sec_per_gpu": 200.0} == other.emitted


@pytest.fixture
def shell_store(sqlite: URL, run: Path) -> str:
    """The address of a store that holds the run."""
    ingest([run], sqlite, Options())
    return sqlite.render_as_string()


def test_the_command_prints_what_changed_and_what_it_left(perfdb: Shell, shell_store: str) -> None:
    """What it left is named on stderr and in the JSON; the exit code is then 1."""
    arguments = ("recompute", "--db", shell_store, "--window")
    json_arguments = ("last", "--dry-run", "--json", "--release", "0.16.0")
    code, out, err = perfdb(*arguments, *json_arguments)
    found = json.loads(out)
    assert (0, "") == (code, err)
    counts = ("dry_run", "examined", "changed", "unchanged")
    assert [True, 1, 1, 0] == [found[name] for name in counts]
    [change] = found["changes"]
    assert ("llama3-8b", "0.16.0") == (change["model"], change["release"])
    assert ("skip_warmup(2)", "last") == (change["before"]["window"], change["after"]["window"])
    assert 12.0 == change["after"]["step_time_s"]

    code, out, _ = perfdb(*arguments, "last_n(3)")
    assert 0 == code
    assert "step time (s) 12.150 → 12.000" in out
    assert "window skip_warmup(2) → last_n(3)" in out
    assert out.endswith("1 changed, 0 unchanged\n")
    assert (0, "0 changed, 1 unchanged\n", "") == perfdb(*arguments, "last_n(3)")

    why = "only 10 of 11 steps; last_n(11) would include the warm-up"
    assert (
        1,
        "0 changed, 0 unchanged, 1 not recomputed\n",
        f"run {RUN_ID}: {why}; it keeps its figures; name another window\n",
    ) == perfdb(*arguments, "last_n(11)")
    code, out, err = perfdb(*arguments, "last_n(11)", "--dry-run", "--json")
    assert (1, "") == (code, err)
    [left] = json.loads(out)["left"]
    assert (RUN_ID, "0.16.0", why) == (left["run_id"], left["release"], left["reason"])


def test_bad_input_is_refused_with_what_to_do(perfdb: Shell, shell_store: str) -> None:
    for arguments, message in (
        (["--window", "last(1)"], "--window: 'last(1)' should be last; known: last, last_n(N)"),
        (["--window", "last_n(0)"], "--window: 'last_n(0)' holds no step"),
        (["--release", "9.9"], "no release '9.9'"),
        (["--model", "llama3-8"], "--model: no results of 'llama3-8'; did you mean llama3-8b?"),
        (["--convention", "nemo"], "'nemo' is not one of 'causal'"),
        (["--db", "none.sqlite"], "no database here"),
    ):
        code, out, err = perfdb("recompute", "--db", shell_store, *arguments)
        assert (2, "", True) == (code, out, message in err), arguments
