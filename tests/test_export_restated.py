"""Restated figures: every model TFLOP/s and MFU of a store in one FLOPs convention.

Golden figures are of published pages and worked by hand: NeMo 25.04 counts Llama 3 70B at 8,192 as
481.5 GFLOP per token, attention in full; with the half that a causal mask leaves it is 449.3.
"""

import csv
import io
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import URL

from perfdb import flops
from perfdb.audit.restated import restate
from perfdb.db.session import reading, store_url
from perfdb.export import csv as csv_format
from perfdb.export import restated
from perfdb.export.results import table as plain_table
from perfdb.flops import CONVENTIONS
from perfdb.ingest import Options, ingest
from perfdb.queries.scope import Scope
from perfdb.record import Figures, Outcome, Result
from tests import factories
from tests.shell import Shell

PUBLISHED = Path(__file__).parents[1] / "data" / "published"
CAUSAL, NEMO, FULL = (CONVENTIONS[name] for name in ("causal", "nemo-25.04", "full"))


def rows(url: URL, convention: str) -> list[dict[str, str]]:
    """What a reader of the CSV gets."""
    with reading(url) as connection:
        content = csv_format.render(restated.table(connection, CONVENTIONS[convention]))
    return list(csv.DictReader(io.StringIO(content.decode())))


Pages = Callable[[str], list[dict[str, str]]]


@pytest.fixture(scope="module")
def restated_pages(pages: URL) -> Pages:
    """The rows of the pages in a convention."""
    return cache(partial(rows, pages))


@pytest.fixture(scope="module")
def pages(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> URL:
    """A store of the published pages of NeMo 25.04, AutoModel and the Nemotron-4 recipe."""
    path = tmp_path_factory.mktemp("pages") / "store.sqlite"
    path.write_bytes(sqlite_template.read_bytes())
    names = ("nemo-25.04.md", "automodel.md", "nemotron4.md")
    ingest([PUBLISHED / name for name in names], url := store_url(str(path)), Options())
    return url


def test_a_page_that_counted_attention_in_full_is_restated_by_hand(restated_pages: Pages) -> None:
    """80 layers, hidden size 8,192: half of 6 × 2 × 8,192 × 8,192 × 80 is 32.2 GFLOP less."""
    [row] = [
        row
        for row in restated_pages("causal")
        if (row["model"], row["task"], row["system"], row["framework"])
        == ("llama3-70b", "pretrain", "dgx-h100", "nemo")
    ]
    half_of_attention = 6 * 2 * 8192 * 8192 * 80 / 2 / 1e9
    stated = float(row["model_tflops_per_sec_per_gpu"])
    found = float(row["restated_model_tflops_per_sec_per_gpu"])
    assert ("causal", "nemo-25.04") == (row["restated_convention"], row["restated_from"])
    assert "identified by 481." in row["restated_note"]
    assert stated * (481.5 - half_of_attention) / 481.5 == pytest.approx(found, rel=2e-4)


@pytest.mark.parametrize(
    ("convention", "of_lora"), [("causal", 1342), ("full", 1342), ("megatron-bridge", 1342 * 1.5)]
)
def test_fine_tuning_on_packed_examples_is_not_given_attention_over_all_of_them(
    restated_pages: Pages, convention: str, of_lora: float
) -> None:
    """Llama 3 8B on GB200: the weights are the same; Megatron-Bridge counts LoRA as training."""
    found = {
        row["task"]: row
        for row in restated_pages(convention)
        if (row["model"], row["system"], row["framework"]) == ("llama3-8b", "dgx-gb200", "nemo")
    }
    for task, stated in (("sft", 1515.0), ("lora", of_lora)):
        row = found[task]
        assert stated == pytest.approx(float(row["restated_model_tflops_per_sec_per_gpu"]))
        assert row["restated_note"].endswith(
            "; examples are packed, of lengths that are not stated: attention is not counted"
        )
    assert "packed" not in found["pretrain"]["restated_note"]


def test_fine_tuning_on_full_sequences_keeps_its_attention(restated_pages: Pages) -> None:
    """Llama 3 8B at 4,096: 7,504,658,432 weights that a token goes through, 8,030,261,248 held.

    AutoModel counts half of the attention and all of it times (2 + 41,943,040 ÷ 8,030,261,248) ÷ 3.
    """
    [row] = [
        row
        for row in restated_pages("nemo-25.04")
        if (row["model"], row["task"], row["framework"]) == ("llama3-8b", "lora", "automodel")
    ]
    attention = 32 * 2 * 4096 * 4096
    automodel = 6 * (7_504_658_432 + attention / 2) * (2 + 41_943_040 / 8_030_261_248) / 3
    wanted = 402 * (4 * 7_504_658_432 + 6 * attention) / automodel
    found = float(row["restated_model_tflops_per_sec_per_gpu"])
    assert wanted == pytest.approx(found, rel=1e-4)
    assert "packed" not in row["restated_note"]


WEIGHTS, ATTENTION = 7_504_658_432, 32 * 2 * 8192 * 4096
"""Of Llama 3 8B at 8,192: multiply-adds of a token through weights, and in full attention."""


def fine_tuned(**changed: object) -> Result:
    """Full fine-tuning of Llama 3 8B at 500 TFLOP/s."""
    fields: dict[str, object] = {
        "framework": "nemo", "system": "dgx-h100", "model": "llama3-8b", "num_gpus": 8,
        "sequence_length": 8192, "task": "sft", "global_batch_size": 128,
        "model_tflops_per_sec_per_gpu": 500,
    }  # fmt: skip
    return Result(**(fields | changed))  # type: ignore[arg-type]  # by the names of fields


def test_a_run_is_restated_as_the_conventions_take_fine_tuning() -> None:
    """What was measured spans the whole sequence, whichever convention its figures follow."""
    found = restate(fine_tuned(origin="measured"), NEMO, CAUSAL)
    wanted = 500 * (WEIGHTS + ATTENTION / 2) / WEIGHTS
    assert (pytest.approx(wanted), None) == (found.tflops_per_sec_per_gpu, found.note)


def test_figures_as_stated_stay_beside_the_restated_ones(pages: URL) -> None:
    """The columns of the plain export, unchanged, with five more behind them."""
    with reading(pages) as connection:
        plain = plain_table(connection)
        found = restated.table(connection, CAUSAL)

    assert plain.columns == found.columns[:-5]
    assert plain.rows == tuple(row[:-5] for row in found.rows)
    assert all(column.name.startswith("restated_") for column in found.columns[-5:])


def test_an_mfu_without_tflops_is_restated_too(restated_pages: Pages) -> None:
    """The recipe prints MFU alone, with keys and values of the 15B model as wide as queries.

    32 layers, hidden size 6,144, of which keys and values have 1,024 each: 12.1 of 106.1 GFLOP per
    token (434.479e12 a sample of 4,096) are too many.
    """
    too_many = 6 * 2 * 32 * 6144 * (6144 - 1024) / (434.479e12 / 4096)
    found = [
        row for row in restated_pages("full") if row["model"] == "nemotron4-15b" and row["mfu"]
    ]
    assert len(found) == 16
    for row in found:
        assert ("nemotron4-recipe", "") == (
            row["restated_from"], row["restated_model_tflops_per_sec_per_gpu"],
        )  # fmt: skip
        expected = float(row["mfu"]) * (1 - too_many)
        assert expected == pytest.approx(float(row["restated_mfu"]), rel=1e-4)


def test_an_mfu_that_follows_from_tflops_is_restated_too(sqlite: URL) -> None:
    """TFLOP/s ÷ the 989 that an H100 has in BF16, before and after."""
    figures = Figures(tokens_per_sec_per_gpu=12_273, model_tflops_per_sec_per_gpu=711)
    factories.stored(sqlite, factories.published(figures=figures))
    [row] = rows(sqlite, "causal")
    assert ("", 711 / 989) == (row["mfu"], pytest.approx(float(row["computed_mfu"])))
    restated_tflops = float(row["restated_model_tflops_per_sec_per_gpu"])
    assert restated_tflops != 711
    assert restated_tflops / 989 == pytest.approx(float(row["restated_mfu"]))


def test_one_system_alone_is_restated_as_with_the_others(pages: URL, restated_pages: Pages) -> None:
    """All rows of a release tell what it counts, whichever are asked for."""
    of_all = restated_pages("causal")
    with reading(pages) as connection:
        made = restated.table(connection, CAUSAL, Scope(system="dgx-b200"))
    found = list(csv.DictReader(io.StringIO(csv_format.render(made).decode())))
    assert found
    assert found == [row for row in of_all if row["system"] == "dgx-b200"]


def test_what_no_convention_explains_stays_empty_and_says_why(restated_pages: Pages) -> None:
    """NeMo 25.04's rows of Llama 3.1 405B state 2,648 GFLOP per token."""
    found = [row for row in restated_pages("causal") if "no convention" in row["restated_note"]]
    assert found
    for row in found:
        assert row["restated_note"].startswith("counts ")
        assert ["", "", "", ""] == [row[column.name] for column in restated.COLUMNS[:4]]


def test_a_measured_figure_follows_the_convention_that_is_stored(
    sqlite: URL, tmp_path: Path
) -> None:
    """Without a note: nothing had to be identified. A run that failed has none, and says why."""
    factories.stored(
        sqlite,
        factories.write_run(tmp_path, run_id="a"),
        factories.write_run(tmp_path, run_id="b", outcome=Outcome.OUT_OF_MEMORY),
    )

    ran, failed = rows(sqlite, "causal")

    assert ("causal", "") == (ran["restated_from"], ran["restated_note"])
    assert ran["model_tflops_per_sec_per_gpu"] == ran["restated_model_tflops_per_sec_per_gpu"]
    assert "the run ran out of memory" == failed["restated_note"]


UNRESTATED = [
    (12_273, None, "llama3-8b", "states neither model TFLOP/s nor"),
    (None, 711, "llama3-8b", "without tokens/s or a step time"),
    (1000, 50, "some-model", "no formula covers some-model"),
    (12_273, 71, "llama3-8b", "counts 5.785 GFLOP per token, which no convention gives"),
]


def test_each_row_that_is_not_restated_says_why(sqlite: URL) -> None:
    """Llama 3 8B, or a model that the catalog lacks; tokens/s and TFLOP/s as stated."""
    for gpus, (tokens, tflops, model, _) in enumerate(UNRESTATED, 1):
        case = factories.case(framework="nemo", model=model, num_gpus=8 * gpus)
        figures = Figures(tokens_per_sec_per_gpu=tokens, model_tflops_per_sec_per_gpu=tflops)
        version = factories.release(f"25.0{gpus}", framework="nemo")
        row = factories.published(case=case, figures=figures, release=version)
        factories.stored(sqlite, row, page=f"{gpus}.md")
    found = sorted(rows(sqlite, "causal"), key=lambda row: int(row["num_gpus"]))
    for row, (*_, note) in zip(found, UNRESTATED, strict=True):
        assert note in row["restated_note"]
        assert "" == row["restated_model_tflops_per_sec_per_gpu"]


@given(st.floats(1, 5000), st.sampled_from(list(CONVENTIONS.values())))
def test_there_and_back_is_where_it_was(tflops: float, other: flops.base.Convention) -> None:
    row = Result(
        framework="nemo", system="dgx-h100", model="llama3-70b", num_gpus=64, sequence_length=8192,
        global_batch_size=128, model_tflops_per_sec_per_gpu=tflops, mfu=tflops / 989,
    )  # fmt: skip

    there = restate(row, NEMO, other)
    moved = replace(row, model_tflops_per_sec_per_gpu=there.tflops_per_sec_per_gpu, mfu=there.mfu)
    back = restate(moved, other, NEMO)

    assert tflops == pytest.approx(back.tflops_per_sec_per_gpu)
    assert tflops / 989 == pytest.approx(back.mfu)


def test_the_command_adds_the_columns_and_refuses_what_it_cannot_do(
    perfdb: Shell, sqlite: URL
) -> None:
    factories.stored(sqlite, factories.published())
    command = ("export", "results", "--db", sqlite.render_as_string(), "--format")
    _, out, err = perfdb(*command, "csv", "--convention", "megatron-lm")
    [first, *_] = csv.DictReader(io.StringIO(out))
    assert [column.name for column in restated.COLUMNS] == list(first)[-5:]
    code, out, err = perfdb(*command, "csv", "--convention", "nemo")
    assert (2, "", True) == (code, out, "'nemo' is not one of 'causal'" in err)
    for option in (("--convention", "full"), ("--price", "dgx-h100=2.49")):
        code, out, err = perfdb(*command, "pytorch", *option)
        remedy = "--format pytorch cannot hold these figures; choose another --format"
        assert (2, "", f"error: {option[0]}: {remedy}\n") == (code, out, err)
