"""Exports: results, the same columns in the same order in every format; steps, as DuckDB reads."""

import csv
import io
import json
from pathlib import Path

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import URL, create_engine

from perfdb import catalog
from perfdb.db.session import reading
from perfdb.errors import InputError
from perfdb.export import FORMATS, results
from perfdb.export.formats import Cell, Column, Table
from perfdb.export.results import table
from perfdb.ingest import Options, ingest
from perfdb.pages.base import PageContext
from perfdb.record import Figures, Outcome
from tests import factories
from tests.shell import Shell

CONTRACT = (
    "framework, release, container, system, model, qualifiers, task, precision, num_gpus, "
    "global_batch_size, micro_batch_size, local_batch_size, gradient_accumulation, "
    "sequence_length, tensor_parallel, pipeline_parallel, context_parallel, expert_parallel, "
    "expert_tensor_parallel, virtual_pipeline, data_parallel, fsdp_enabled, fsdp_size, "
    "sequence_parallel, kernels, variant, options, step_time_s, step_time_mean_s, "
    "step_time_stdev_s, step_time_p10_s, step_time_p90_s, tokens_per_sec_per_gpu, tokens_per_sec, "
    "model_tflops_per_sec_per_gpu, mfu, peak_memory_bytes, flops_convention, window, num_steps, "
    "origin, outcome, withheld, notes, run_id, source, source_line, source_url, published_on, "
    "emitted_tokens_per_sec_per_gpu, emitted_model_tflops_per_sec_per_gpu, emitted_mfu, "
    "computed_tokens_per_sec_per_gpu, computed_mfu"
)
"""What other tools rely on. A change here is a change of perfdb's contract."""

FIELDS = CONTRACT.split(", ")


@pytest.fixture
def filled(store: URL, tmp_path: Path) -> URL:
    """A finished run, a run out of memory, and a published row that was revised."""
    factories.stored(
        store,
        factories.write_run(tmp_path, run_id="a"),
        factories.write_run(tmp_path, run_id="b", outcome=Outcome.OUT_OF_MEMORY, step_times=()),
    )
    options = {"recompute_granularity": "full", "overlap_grad_reduce": True}
    row = factories.case(
        framework="nemo", fsdp_enabled=False, kernels=("TE", "a|b"), qualifiers=("dropless",),
        options=options,
    )  # fmt: skip
    for tokens in (12_273, 12_300.5):
        figures = Figures(tokens_per_sec_per_gpu=tokens)
        factories.stored(
            store, factories.published(case=row, figures=figures, notes=("a, b; c", "d"))
        )
    return store


def exported(url: URL, style: str) -> bytes:
    with reading(url) as connection:
        return FORMATS[style].render(table(connection))


def rows_of(url: URL, style: str) -> list[dict[str, object]]:
    """What a reader of the format gets back."""
    content = exported(url, style)
    if style == "parquet":
        from pyarrow import parquet

        return list(parquet.read_table(io.BytesIO(content)).to_pylist())
    if style == "json":
        return list(json.loads(content))
    return [dict(row) for row in csv.DictReader(io.StringIO(content.decode()))]


def test_every_format_has_the_columns_in_order_and_what_is_known_in_full(filled: URL) -> None:
    """No figure is rounded, and none is 0 because it is not known."""
    for style in ("csv", "json", "parquet"):
        assert [FIELDS] * 3 == [list(row) for row in rows_of(filled, style)]
    finished, failed, published = rows_of(filled, "csv")
    for row, expected in (
        (finished, {
            "run_id": "a", "step_time_s": "12.15", "window": "skip_warmup(2)", "num_steps": "8",
            "flops_convention": "causal", "origin": "measured", "outcome": "finished",
            "tokens_per_sec_per_gpu": "10787.818930041152",
        }),
        (failed, {
            "step_time_s": "", "tokens_per_sec_per_gpu": "", "mfu": "", "num_steps": "",
            "window": "", "run_id": "b", "outcome": "out_of_memory",
            "withheld": "the run ran out of memory",
        }),
        (published, {
            "run_id": "", "release": "25.04", "container": "nvcr.io/nvidia/nemo:25.04",
            "qualifiers": "dropless", "kernels": "TE, a|b", "fsdp_enabled": "false",
            "options": '{"overlap_grad_reduce": true, "recompute_granularity": "full"}',
            "fsdp_size": "", "tokens_per_sec_per_gpu": "12300.5", "step_time_s": "",
            "source": "data/published/page.md", "source_line": "7", "notes": "a, b; c | d",
        }),
    ):  # fmt: skip
        assert expected == {name: row[name] for name in expected}
    assert str(finished["source"]).endswith("a/steps.jsonl")
    assert 4 == len(exported(filled, "csv").splitlines())


def test_json_and_parquet_keep_types_and_agree(filled: URL) -> None:
    """A number is a number, a flag a flag, and unknown is null in both.

    The spread by hand: eight steps, 98.1 s; 0.79875 s² over 7; 12.0 and 12.6 + 0.3 × 0.3 s; 60 GiB.
    """
    rows = rows_of(filled, "json")
    assert rows == rows_of(filled, "parquet")
    finished, failed, published = rows
    names = ("fsdp_enabled", "fsdp_size", "num_gpus", "tokens_per_sec_per_gpu")
    assert (False, None, 8, 12_300.5) == tuple(published[name] for name in names)
    known = {
        "step_time_mean_s": 12.2625, "step_time_stdev_s": 0.3377975, "step_time_p10_s": 12.0,
        "step_time_p90_s": 12.69, "peak_memory_bytes": 64_424_509_440,
    }  # fmt: skip
    assert known == pytest.approx({name: finished[name] for name in known})
    assert {None} == {row[name] for row in (failed, published) for name in known}


ROW = "| LLAMA3-8B | 8 | 128 | 8192 | 12,812 |"
ORIGINAL_PAGE = f"""---
perfdb:
  source_url: https://example.org/performance.html
  published_on: 2025-04-30
---

# Throughput

## Pre-training on the Megatron-Core backend

### System: DGX-H100

| Model | #-GPUs | GBS | Sequence Length | Tokens / sec / GPU |
|---|---|---|---|---|
{ROW}

Note: Mock data, no padding; last of 50 steps.

## Pre-training on the AutoModel backend

### System: DGX-H100

| Model | #-GPUs | GBS | Sequence Length | Tokens / sec / GPU |
|---|---|---|---|---|
{ROW}
"""


def test_rows_that_are_alike_say_what_tells_them_apart(sqlite: URL, tmp_path: Path) -> None:
    """And what their page says of them and of its original."""
    page = tmp_path / "page.md"
    page.write_text(ORIGINAL_PAGE)
    ingest([page], sqlite, Options(PageContext(framework="dfm", release="main")))
    names = ("variant", "notes", "source_url", "published_on")
    original = ("https://example.org/performance.html", "2025-04-30")
    assert {
        ("megatron-core", "Mock data, no padding; last of 50 steps.", *original),
        ("automodel", "", *original),
    } == {tuple(row[name] for name in names) for row in rows_of(sqlite, "csv")}


COMPUTED = ("computed_tokens_per_sec_per_gpu", "computed_mfu")


@pytest.mark.parametrize(
    ("figures", "expected"),
    [
        # 98,500 tokens/s ÷ 8 GPUs; the step time (128 × 8,192 ÷ 4 ÷ 8 = 32,768) comes second.
        ({"tokens_per_sec": 98_500, "step_time_s": 4}, (12_312.5, None)),
        ({"step_time_s": 4}, (32_768.0, None)),
        # 494.5 of the 989 TFLOP/s that an H100 has in BF16.
        ({"model_tflops_per_sec_per_gpu": 494.5}, (None, 0.5)),
        ({"tokens_per_sec_per_gpu": 12_000, "tokens_per_sec": 98_500, "mfu": 0.4}, (None, None)),
    ],
)
def test_what_follows_from_stated_figures_stands_beside_them(
    sqlite: URL, figures: dict[str, float], expected: tuple[float | None, float | None]
) -> None:
    """What is stated stays where it is, and is not computed as well."""
    factories.stored(sqlite, factories.published(figures=Figures.model_validate(figures)))
    [row] = rows_of(sqlite, "json")
    assert expected == tuple(row[name] for name in COMPUTED)
    assert figures == {name: row[name] for name in Figures.model_fields if row[name] is not None}


def test_results_are_narrowed_as_in_other_commands(perfdb: Shell, sqlite: URL) -> None:
    """By each of these alone, or several together. All names that the store lacks are refused."""
    nemo, dfm = ({"framework": name} for name in ("nemo", "dfm"))
    published, made, of = factories.published, factories.release, factories.case
    factories.stored(
        sqlite,
        published(notes=("a",)),
        published(notes=("b",), case=of(**nemo, system="dgx-b200"), release=made("25.07", **nemo)),
        published(notes=("c",), case=of(**dfm, model="llama3-70b"), release=made("main", **dfm)),
    )
    words = ("export", "results", "--db", sqlite.render_as_string())
    for options, expected in (
        ((), "abc"),
        (("--framework", "nemo"), "ab"),
        (("--release", "nemo 25.07"), "b"),
        (("--release", "25.04"), "a"),
        (("--system", "dgx-b200"), "b"),
        (("--model", "Llama 3 70B"), "c"),
        (("--framework", "nemo", "--model", "llama3-70b"), ""),
    ):
        for style in (("--json",), ("--format", "json", "--convention", "causal")):
            done = perfdb(*words, *options, *style)
            assert list(expected) == sorted(row["notes"] for row in json.loads(done.stdout))
    wrong = ("--framework", "nemoo", "--system", "dgx-h10", "--model", "llama3-8")
    done = perfdb(*words, "--json", *wrong)
    assert (2, "") == (done.code, done.stdout)
    for told in (
        "--framework: no results of 'nemoo'; did you mean nemo?",
        "--system: no results of 'dgx-h10'; did you mean dgx-", "--model: no results of 'llama3-8'",
    ):  # fmt: skip
        assert told in done.stderr
    assert 2 == perfdb(*words).code, "a format must be named"


def test_an_empty_store_exports_its_columns_alone_with_their_types(sqlite: URL) -> None:
    """Two lines of Markdown, one of CSV, an empty list of JSON; the same schema of Parquet."""
    from pyarrow import parquet

    assert CONTRACT.replace(", ", ",") + "\n" == exported(sqlite, "csv").decode()
    assert [] == json.loads(exported(sqlite, "json"))
    assert 2 == len(exported(sqlite, "markdown").splitlines())
    schema = parquet.read_table(io.BytesIO(exported(sqlite, "parquet"))).schema
    assert FIELDS == schema.names
    assert {"string", "int64", "double", "bool"} == {str(field.type) for field in schema}


def test_any_text_comes_back_from_csv_as_it_was_unless_it_is_a_formula() -> None:
    """Each sign that ends a line or a cell is quoted, a lone carriage return too.

    A spreadsheet would compute a formula. Markdown shows an escape, which clears a terminal.
    """
    cells: tuple[Cell, ...] = (
        "a\rb", "a\nb", "a\r\nb", "a\r", 'a"b', "a,b", " a ", "\x1b[2J", -1.5, None,
        "=1+1", "@sum", "-x", "+x",
    )  # fmt: skip
    made = Table((Column("model", str), Column("system", str)), tuple((one, "x") for one in cells))
    _, *rows = csv.reader(io.StringIO(FORMATS["csv"].render(made).decode(), newline=""))
    plain = [*cells[:8], "-1.5", "", "'=1+1", "'@sum", "'-x", "'+x"]
    assert [[one, "x"] for one in plain] == rows
    assert "| \\\\x1b[2J |" in FORMATS["markdown"].render(made).decode()


@given(
    st.lists(
        st.tuples(
            st.none() | st.text(st.characters(codec="utf-8")),
            st.none() | st.integers(-(2**63), 2**63 - 1),
            st.none() | st.floats(allow_nan=False, allow_infinity=False),
            st.none() | st.booleans(),
        ),
        max_size=10,
    )
)
@settings(max_examples=40)
def test_parquet_holds_every_value_exactly(
    rows: list[tuple[str | None, int | None, float | None, bool | None]],
) -> None:
    """Whatever the text, to the last bit of a number; and what is unknown stays unknown."""
    from pyarrow import parquet

    columns = (Column("a", str), Column("b", int), Column("c", float), Column("d", bool))
    written = FORMATS["parquet"].render(Table(columns, tuple(rows)))
    read = parquet.read_table(io.BytesIO(written)).to_pylist()
    assert rows == [tuple(row.values()) for row in read]


def test_markdown_is_a_table_that_renders() -> None:
    """Numbers to the right, a pipe in a cell escaped, nothing where nothing is known."""
    shown = Table(
        (Column("model", str), Column("num_gpus", int), Column("fsdp_enabled", bool)),
        (("a|b\\c", 8, True), ("two\nlines", None, False), ("", 1, None)),
    )
    expected = (
        "| model | num_gpus | fsdp_enabled |\n"
        "| --- | ---: | ---: |\n"
        "| a\\|b\\\\c | 8 | true |\n"
        "| two lines |  | false |\n"
        "|  | 1 |  |\n"
    )
    assert expected == FORMATS["markdown"].render(shown).decode()


RATES = Table(
    (Column("system", str), Column("tokens_per_sec_per_gpu", float),
     Column("computed_tokens_per_sec_per_gpu", float)),
    (("dgx-h100", 12_500.0, None), ("dgx-b200", 25_000.0, None), ("dgx-h100", None, None),
     ("dgx-h100", None, 6_250.0), ("dgx-h100", 0.0, None)),
)  # fmt: skip


def test_a_million_tokens_cost_what_the_gpu_hours_for_them_cost() -> None:
    """By hand: 12,500 tokens/s are 45 million an hour, of which a million cost a 45th of 2.25.

    A rate that is computed counts where none is stated.
    """
    found = results.with_cost(RATES, results.prices(["dgx-h100=2.25"])).rows
    assert [2.25, None, 2.25, 2.25, 2.25] == [row[3] for row in found]
    costs = [row[4] for row in found]
    assert [pytest.approx(0.05), None, None, pytest.approx(0.1), None] == costs


def test_every_price_that_is_none_is_told_of_at_once() -> None:
    """An unknown system, no number, nothing, less than nothing, no end; a second price."""
    said = ["dgx-h1000=2", "dgx-h100=two", "dgx-b200", "dgx-b300=-1", "dgx-gb200=inf", "cpu=2_49"]
    with pytest.raises(InputError) as error:
        results.prices(said)
    assert said == [problem.where.removeprefix("--price ") for problem in error.value.problems]
    assert catalog.other_systems("dgx-h1000") == error.value.problems[0].remedy
    with pytest.raises(InputError, match=r"^--price: dgx-h100: given twice; keep one of them$"):
        results.prices(["dgx-h100=2.49", "dgx-b200=4", "dgx-h100=24.9"])


SUMS = "SELECT count(*), sum(step_time_s), sum(tokens), min(step), max(step) FROM "


def test_duckdb_finds_the_steps_that_sql_finds(store: URL, perfdb: Shell, tmp_path: Path) -> None:
    """As many, and the same sums; a version that looks like a number is a text."""
    made = (
        ("a", "25.10", "dgx-h100"), ("b", "25.10", "dgx-b200"), ("c", "a/b=%é", "dgx-b200"),
        ("d", None, "dgx-h100"),
    )  # fmt: skip
    for run_id, version, system in made:
        of = {"case": factories.case(system=system), "release": factories.release(version)}
        factories.stored(store, factories.write_run(tmp_path / "runs", run_id=run_id, **of))
    db = ("--db", store.render_as_string(hide_password=False))
    partition = ("--partition", "release,system")
    asked = ("export", "steps", "--format", "parquet", "--output", "steps")
    assert 0 == perfdb(*asked, *partition, *db).code

    read = "read_parquet('steps/**/*.parquet', hive_partitioning=true)"
    engine = create_engine(store)
    with engine.connect() as connection:
        expected = connection.exec_driver_sql(SUMS + "steps").one()
    engine.dispose()
    database = duckdb.connect()
    [found] = database.execute(SUMS + read).fetchall()
    assert pytest.approx(tuple(map(float, expected))) == tuple(map(float, found))
    of_runs = f"SELECT DISTINCT run_id, release, system FROM {read} ORDER BY run_id"
    assert list(made) == database.execute(of_runs).fetchall()
    refused = perfdb(*asked, *db)
    assert 2 == refused.code
    assert "steps: is there already" in refused.stderr
    assert 2 == perfdb(*asked, "--partition", "gpu", *db).code
