"""Files of the programs themselves, through the command line into a store, or refused and why."""

import json
import re
import shutil
import sys
from pathlib import Path

import pytest
from sqlalchemy import create_engine, select

from perfdb import cli
from perfdb.db.session import store_url
from perfdb.db.tables import results, runs, steps
from tests.shell import Shell

CORPUS = Path(__file__).parents[2] / "shared" / "corpus"
pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus is not beside the project")

H100 = ("model=llama3-8b", "system=dgx-h100", "num_gpus=8", "sequence_length=4096", "task=sft")
BATCH = (*H100, "global_batch_size=32")
GOLDEN = (*BATCH, "precision=bf16")

# The options of --set; the runs with their steps and outcomes; how many results with figures, and
# how many that somebody has still to say something of. Counted with grep and by eye.
STORED = {
    "automodel_old_training_phi_4_squad_h100.jsonl": (BATCH, [(100, "finished")], 1, 0),
    "automodel_training_gpt_oss_20b_h100.jsonl": (BATCH, [(100, "finished")], 1, 0),
    "automodel_training_llama3_2_1b_squad_h100.jsonl": (BATCH, [(100, "finished")], 1, 0),
    "automodel_training_qwen3_moe_30b_te_deepep_h100.jsonl": (BATCH, [(100, "finished")], 1, 0),
    "cloudai_fixture_megatron_bridge_0.log": (H100, [(1, "finished")], 1, 0),
    "cloudai_fixture_megatron_run_0.log": (H100, [(3, "incomplete")], 0, 0),
    "cloudai_fixture_nemo_run_0.log": (H100, [(12, "incomplete")], 0, 0),
    "cloudai_fixture_nemo_run_1.log": (H100, [(2, "incomplete")], 0, 0),
    "cloudai_fixture_nemo_run_3.log": (BATCH, [(2, "incomplete")], 0, 0),
    "mbridge_card_gpt-oss-120b.yaml": ((), [], 6, 1),
    "mbridge_card_qwen3-30b-a3b.yaml": ((), [], 12, 2),
    "mlm_golden_gpt3_7b_tp4pp1_memory_speed_h100.json": (GOLDEN, [(12, "finished")], 1, 0),
    "mlm_golden_list_values_old_schema_a100.json": (GOLDEN, [], 1, 0),
    "mlperf_v5.0_nyx_n1_ngc25.04_nemo_llama2_70b_lora.txt": (
        ("framework=nemo",), [], 1, 0,
    ),
    "nemo2_embedding_ft.log": (H100, [(100, "finished")], 1, 0),
}  # fmt: skip

_NO_LOG = "neither a run directory, a page with a table of results nor a log of a known format"
_NO_RESULT = "says what a run was and holds no result; name the log beside it"
REFUSED = {
    "INDEX.tsv": _NO_LOG,
    "dgxc_cluster_config.yaml": _NO_LOG,
    "dgxc_llama3.1_metadata.yaml": _NO_LOG,
    "dgxc_example_llmb_config.yaml": _NO_RESULT,
    "mlm_model_config_gpt3_7b_tp4pp1_memory_speed.yaml": _NO_RESULT,
    "mlm_golden_empty_object_lts_a100.json": "an empty object: no value was recorded",
}


def ingest(path: Path, settings: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> object:
    """The exit code of `perfdb ingest FILE`, in a folder where nothing else lies."""
    given = [word for setting in settings for word in ("--set", setting)]
    monkeypatch.chdir(path.parent)
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setattr(sys, "argv", ["perfdb", "ingest", path.name, "--release", "1.0", *given])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return ended.value.code


def alone(name: str, folder: Path) -> Path:
    """A copy of a file of the corpus, without those that lie beside it."""
    return Path(shutil.copy(CORPUS / name, folder))


def stored(folder: Path) -> tuple[list[tuple[int, str]], int]:
    """The runs with their steps and outcomes, and how many results have a step time."""
    engine = create_engine(store_url(str(folder / "perfdb.sqlite")))
    with engine.connect() as connection:
        told = connection.execute(select(runs.c.id, runs.c.outcome)).all()
        of = [one for (one,) in connection.execute(select(steps.c.run_id))]
        times = connection.execute(select(results.c.step_time_s)).scalars().all()
    engine.dispose()
    return [(of.count(run), outcome) for run, outcome in told], sum(map(bool, times))


@pytest.mark.parametrize("name", STORED)
def test_a_file_becomes_runs_and_results(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As many as it holds, each with its steps and how it ended."""
    settings, expected, num_results, unattributed = STORED[name]

    code = ingest(alone(name, tmp_path), settings, monkeypatch)

    said = capsys.readouterr()
    assert (0, (expected, num_results)) == (code, stored(tmp_path))
    found = re.search(r"(\d+) unattributed", said.out + said.err)
    assert unattributed == int(found[1] if found else 0)


def cut(name: str, path: Path, marker: str, most: int) -> str:
    """A copy of a file of the corpus up to the line of so many with a marker."""
    kept, found = [], 0
    for line in (CORPUS / name).read_text(errors="replace").splitlines(keepends=True):
        found += marker in line
        kept.append(line)
        if found == most:
            break
    path.write_text("".join(kept))
    return path.name


def exported(perfdb: Shell) -> list[dict[str, object]]:
    """The results in the store."""
    found: list[dict[str, object]] = json.loads(perfdb("export", "results", "--json").stdout)
    return found


@pytest.mark.parametrize(
    ("most", "options", "expected"),
    [
        (59, (), (None, None)),
        (60, (), (50, "skip_warmup(10)")),
        (40, ("--window", "window(31,40)"), (10, "window(31,40)")),
        (40, ("--window", "window(41,50)"), (None, None)),
    ],
)
def test_a_log_that_ends_early_has_figures_of_50_steps_or_of_a_window_and_no_row_in_tables(
    perfdb: Shell, most: int, options: tuple[str, ...], expected: tuple[int | None, str | None]
) -> None:
    """A real log of 100 steps, cut. Its figures are of no release, and may be recomputed."""
    name = cut("nemo2_embedding_ft.log", Path("cut.log"), "Training epoch", most)
    given = [word for setting in H100 for word in ("--set", setting)]
    done = perfdb("ingest", name, *given, "--release", "1.0", *options)

    [result] = exported(perfdb)
    assert ("incomplete", *expected) == tuple(
        result[it] for it in ("outcome", "num_steps", "window")
    )
    assert (result["step_time_s"] is None) == (result["withheld"] is not None)
    told = f"{name}: the log ends at step {most} of 100: its figures are in no table of its release"
    assert (told in done.stderr) == (expected[0] is not None)
    assert "No results with figures" in perfdb("publish", "--output", "pages").stderr
    assert 0 == perfdb("verify").code

    assert 0 == perfdb("recompute", "--window", "last_n(5)").code
    assert [("incomplete", 5)] == [(it["outcome"], it["num_steps"]) for it in exported(perfdb)]
    assert 0 == perfdb("verify").code


def test_an_unfinished_run_is_no_measure_of_its_release(perfdb: Shell) -> None:
    """Against the whole log, of which it is the beginning, it counts as before: as no figure."""
    name = cut("nemo2_embedding_ft.log", Path("cut.log"), "Training epoch", 70)
    alone("nemo2_embedding_ft.log", Path())
    given = [word for setting in H100 for word in ("--set", setting)]
    perfdb("ingest", name, *given, "--release", "1.0")
    perfdb("ingest", "nemo2_embedding_ft.log", *given, "--release", "1.1")

    [match] = json.loads(perfdb("compare", "1.1", "1.0", "--json").stdout)["matched"]

    assert (None, "failed") == (match["b"], match["verdict"])
    assert 60 == next(it for it in exported(perfdb) if it["release"] == "1.0")["num_steps"]


def test_an_mlperf_log_without_the_time_of_a_step_has_its_time_to_train(perfdb: Shell) -> None:
    """A real log without its tracked_stats; 663.896 s by its own run_start and run_stop."""
    name = "mlperf_v5.0_nyx_n1_ngc25.04_nemo_llama2_70b_lora.txt"
    lines = (CORPUS / name).read_text().splitlines(keepends=True)
    kept = [line for line in lines if '"tracked_stats"' not in line]
    Path("short.txt").write_text("".join(kept))
    Path("neither.txt").write_text("".join(it for it in kept if '"run_stop"' not in it))

    perfdb("ingest", "short.txt", "--framework", "nemo", "--release", "2.0")
    neither = perfdb("ingest", "neither.txt", "--framework", "nemo", "--release", "2.0")

    [result] = exported(perfdb)
    assert ("finished", None) == (result["outcome"], result["step_time_s"])
    assert 1 == neither.code
    assert 1 == neither.stderr.count("no time to train")
    assert (0, 0) == (perfdb("verify").code, perfdb("audit").code)
    perfdb("publish", "--output", "pages")
    assert "663.896" in Path("pages/nemo/2.0.md").read_text()


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_that_holds_no_result_is_refused_with_the_reason(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 1, and the file and what is wrong with it in one line."""
    code = ingest(alone(name, tmp_path), BATCH, monkeypatch)

    said = capsys.readouterr()
    assert 1 == code
    assert re.search(rf"{re.escape(name)}.*{re.escape(REFUSED[name])}", said.err)
    assert ([], 0) == stored(tmp_path)
