"""Files of the programs themselves, cut off or cut short, through the command line into a store.

What becomes of each whole one is in tests/data/oracle.
"""

import json
import shutil
from pathlib import Path

import pytest

from tests.shell import Shell

CORPUS = Path(__file__).parents[2] / "shared" / "corpus"
pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus is not beside the project")

H100 = ("model=llama3-8b", "system=dgx-h100", "num_gpus=8", "sequence_length=4096", "task=sft")


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
    shutil.copy(CORPUS / "nemo2_embedding_ft.log", ".")
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
