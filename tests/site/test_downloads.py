"""The files beside tables: exact, harmless to spreadsheets, the same in every build."""

import csv
import io
import json
from pathlib import Path

import pytest
from pyarrow import parquet
from sqlalchemy import URL

from perfdb.db.session import reading
from perfdb.export import results as exports
from perfdb.export.results import COLUMNS
from perfdb.queries import findings
from perfdb.site import dictionary, downloads
from perfdb.site import read as site_read
from perfdb.site.data import Result
from perfdb.site.files import DOWNLOADS, PUBLISHED, publish
from perfdb.site.markup import Offer
from perfdb.site.rows import offer_name
from tests.site.samples import published, result

FORMULA = '=HYPERLINK("http://evil","x")'


def files(folder: Path, *results: Result) -> dict[str, bytes]:
    """The bytes of a table's files by the suffix of each."""
    paths = downloads.write_offer(folder, Offer("rows", results), taken=set())
    return {path.suffix: path.read_bytes() for path in paths}


def read(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content.decode())))


def test_a_row_is_the_result_with_every_digit_and_nothing_where_unknown(tmp_path: Path) -> None:
    """The columns are those of an export; what a page formats is not formatted here."""
    made = files(tmp_path, result(tokens_per_sec_per_gpu=32363.53125), published())
    assert {".csv", ".json", ".parquet"} == made.keys()
    measured, page = read(made[".csv"])
    assert [*COLUMNS, "findings", "printed"] == list(measured)
    assert ("32363.53125", "0.4312") == (measured["tokens_per_sec_per_gpu"], measured["mfu"])
    assert ("", "1022.26", "74") == (
        page["mfu"],
        page["model_tflops_per_sec_per_gpu"],
        page["source_line"],
    )


def test_json_and_parquet_say_what_csv_says_with_types(tmp_path: Path) -> None:
    made = files(tmp_path, result(), published())
    rows = json.loads(made[".json"])
    assert rows == parquet.read_table(io.BytesIO(made[".parquet"])).to_pylist()
    assert (None, False, 32) == (rows[1]["mfu"], rows[1]["fsdp_enabled"], rows[1]["num_gpus"])


def test_a_file_says_what_the_audit_found_and_what_the_page_printed(tmp_path: Path) -> None:
    """A VP of 1 is no virtual pipeline, but it is what was printed."""
    said = "batch-below-dp (error), missing-figure (warning)"
    flagged = published(findings=said, virtual_pipeline=None, raw={"VP": "1", "Model": "WAN"})
    made = files(tmp_path, flagged, result())
    page, run = json.loads(made[".json"])
    assert (said, None) == (page["findings"], page["virtual_pipeline"])
    assert {"VP": "1", "Model": "WAN"} == json.loads(page["printed"])
    assert (None, None) == (run["findings"], run["printed"])
    assert ["", ""] == [read(made[".csv"])[1][name] for name in ("findings", "printed")]


def test_a_file_says_what_tells_rows_apart_and_where_their_original_is(tmp_path: Path) -> None:
    """In CSV a switch is true or false, as the dictionary has it, and a figure may be computed."""
    page = published(
        notes=("Mock data", "Last of 50 steps"),
        source_url="https://example.org/a.html",
        published_on="2025-04-30",
        precision="bf16",
        system="dgx-h100",
        model_tflops_per_sec_per_gpu=494.5,
    )
    [row] = read(files(tmp_path, page)[".csv"])
    expected = {
        "variant": "megatron-core",
        "notes": "Mock data | Last of 50 steps",
        "source_url": "https://example.org/a.html",
        "published_on": "2025-04-30",
        "fsdp_enabled": "false",
        "mfu": "",
        "computed_mfu": "0.5",
    }
    assert expected == {name: row[name] for name in expected}


def test_the_file_of_all_results_is_an_export_and_what_the_audit_found(full_store: URL) -> None:
    """Each rule once, and nothing where it found nothing."""
    with reading(full_store) as connection:
        made = downloads.table(site_read.contents(connection).in_force)
        stored = connection.execute(findings.current()).mappings().all()
        exported = exports.table(connection)
    assert exported.columns == made.columns[:-2]
    at = exported.names.index("source")
    for mine, theirs in zip(made.rows, exported.rows, strict=True):
        assert (*mine[:at], *mine[at + 1 : -2]) == (*theirs[:at], *theirs[at + 1 :])
        # A run's path from its own folder on, and a page's name.
        *_, folder, name = str(theirs[at]).split("/")
        told = theirs[at], f"{folder}/{name}" if name == "steps.jsonl" else name
        assert mine[at] == told[str(theirs[at]).startswith("/")]
    rows = [dict(zip(made.names, row, strict=True)) for row in made.rows]
    assert [*COLUMNS, "findings", "printed"] == made.names
    objected = {row["result_id"] for row in stored}
    assert len(objected) == sum(row["findings"] is not None for row in rows) > 0
    assert {f"{row['rule']} ({row['severity']})" for row in stored} == {
        one for row in rows if row["findings"] for one in str(row["findings"]).split(", ")
    }
    assert {"published"} == {row["origin"] for row in rows if row["printed"]}


@pytest.mark.parametrize("text", [FORMULA, "+1", "-1+1", "@SUM(A1)", "\t=1"])
def test_no_text_is_a_formula_in_a_spreadsheet(text: str, tmp_path: Path) -> None:
    """CSV alone gets the apostrophe: programs that read JSON or Parquet run no formulas."""
    made = files(tmp_path, result(kernels=text))
    assert f"'{text}" == read(made[".csv"])[0]["kernels"]
    assert text == json.loads(made[".json"])[0]["kernels"]


def test_a_negative_number_stays_a_number(tmp_path: Path) -> None:
    [row] = read(files(tmp_path, result(mfu=-0.5))[".csv"])
    assert "-0.5" == row["mfu"]


def test_markup_from_the_store_is_data(tmp_path: Path) -> None:
    words = '<script>alert(1)</script> | "q",\n*x*'
    made = files(tmp_path, result(kernels=words))
    assert words == read(made[".csv"])[0]["kernels"]
    assert words == json.loads(made[".json"])[0]["kernels"]


def test_the_same_results_make_the_same_bytes(tmp_path: Path) -> None:
    assert files(tmp_path / "one", result()) == files(tmp_path / "two", result())


def test_what_is_there_already_is_left_alone(tmp_path: Path) -> None:
    """A document that is read again does not touch the files of tables that are as they were."""
    [path, *_] = downloads.write_offer(tmp_path, Offer("rows", [result()]), taken=set())
    before = path.stat().st_mtime_ns
    downloads.write_offer(tmp_path, Offer("rows", [result()]), taken=set())
    assert before == path.stat().st_mtime_ns
    downloads.write_offer(tmp_path, Offer("rows", [published()]), taken=set())
    assert "dfm" == read(path.read_bytes())[0]["framework"]


def test_two_tables_of_a_document_have_files_of_their_own(tmp_path: Path) -> None:
    one = downloads.write_offer(tmp_path, Offer("rows", [result()]), taken=set())
    other = downloads.write_offer(tmp_path, Offer("rows", [published()]), taken=set(one))
    assert ["rows.csv", "rows-2.csv"] == [one[0].name, other[0].name]


def test_a_file_is_called_by_what_its_results_share() -> None:
    assert "dfm-main-pretrain-megatron-core-wan2.1-14b-dgx-gb300" == offer_name([published()])
    assert "pretrain" == offer_name([published(), result()])
    assert "results" == offer_name([published(), result(task="sft")])


def test_a_file_of_all_fine_tuning_says_so() -> None:
    """It is not that of the whole system: pre-training has one of its own."""
    both = [result(framework="nemo", release="25.04", task=task) for task in ("lora", "sft")]
    assert "nemo-25.04-fine-tuning-llama3-8b-dgx-h100" == offer_name(both)


def test_the_site_has_the_files_that_documents_use_and_no_others(tmp_path: Path) -> None:
    """A table that is gone takes its files with it, on both sides."""
    docs, out = tmp_path / "docs", tmp_path / "html"
    folder = docs / DOWNLOADS / "performance/dfm/main"
    kept = downloads.write_offer(folder, Offer("kept", [published()]), taken=set())
    gone = downloads.write_offer(folder, Offer("gone", [published()]), taken=set())
    publish(docs, out, [*kept, *gone])
    publish(docs, out, [*kept, docs / DOWNLOADS / "waited-for", docs / "x.md"])
    site = out / PUBLISHED / "performance/dfm/main"
    assert {"kept.csv", "kept.json", "kept.parquet"} == {path.name for path in site.iterdir()}
    assert kept[0].read_bytes() == (site / "kept.csv").read_bytes()
    assert not gone[0].exists()


def test_every_column_of_the_files_is_explained() -> None:
    """With a meaning, and a source; the unit is one of the field's, or there is none."""
    said = dictionary.fields()
    assert [*COLUMNS, "findings", "printed"] == [one.name for one in said]
    assert all(one.meaning and one.source for one in said)
    units = {one.name: one.unit for one in said}
    assert ("s", "tokens/s", "TFLOP/s", "fraction") == tuple(
        units[name]
        for name in ("step_time_s", "tokens_per_sec_per_gpu", "model_tflops_per_sec_per_gpu", "mfu")
    )
