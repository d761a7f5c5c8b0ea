"""`perfdb audit` as a user sees it: findings, formats, gates, acknowledgements."""

import json
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import URL

from perfdb.ingest import Options, ingest
from perfdb.record import Figures
from tests.factories import case, published, release, stored, write_run
from tests.shell import Shell

PUBLISHED = Path(__file__).parents[1] / "data" / "published"
KEYS = [
    "rule", "severity", "fields", "expected", "found", "message", "suggestion", "model", "system",
    "release", "source", "source_line", "framework", "acknowledged",
]  # fmt: skip
SLIP = "attention flops = 24 * 32 * 6144^2 + 12 * 32 * 6144 * 4096 = 38666279738\n"


@pytest.fixture
def audit(perfdb: Shell) -> Shell:
    """`perfdb audit`."""
    return partial(perfdb, "audit")


def address(url: URL) -> str:
    return url.render_as_string()


@pytest.fixture
def swapped(sqlite: URL) -> str:
    """A store with one row whose GBS and MBS are swapped (an error) and a run of eight steps."""
    mixtral = case(
        framework="nemo", model="mixtral-8x22b", system="dgx-gb200", num_gpus=256,
        global_batch_size=1, micro_batch_size=64, gradient_accumulation=16, data_parallel=None,
        tensor_parallel=2, pipeline_parallel=4, context_parallel=8, sequence_length=65536,
    )  # fmt: skip
    row = published(line=132, case=mixtral, figures=Figures(tokens_per_sec_per_gpu=2731))
    stored(sqlite, row, page="page.md")
    return address(sqlite)


@pytest.fixture
def with_run(sqlite: URL, swapped: str, tmp_path: Path) -> str:
    stored(sqlite, write_run(tmp_path / "runs", case=case(), release=release()))
    return swapped


def test_json_is_a_list_of_findings_with_the_keys_of_the_contract(
    audit: Shell, swapped: str
) -> None:
    code, out, err = audit("--db", swapped, "--format", "json")
    assert (0, "") == (code, err)
    (finding,) = json.loads(out)
    assert KEYS == list(finding)
    assert {
        "rule": "micro_batch", "severity": "error", "expected": "GBS 64, MBS 1",
        "found": "GBS 1, MBS 64", "suggestion": "swap them: GBS 64, MBS 1",
        "model": "mixtral-8x22b", "system": "dgx-gb200", "release": "25.04", "source": "page.md",
        "source_line": 132, "framework": "nemo", "acknowledged": None,
        "fields": ["global_batch_size", "micro_batch_size"],
    }.items() <= finding.items()  # fmt: skip


@pytest.mark.parametrize(
    ("gate", "code"),
    [
        ((), 0),
        (("--fail-on", "never"), 0),
        (("--fail-on", "error"), 1),
        (("--fail-on",), 1),
        (("--fail-on=info",), 1),
    ],
)
def test_the_exit_code_is_1_only_where_a_gate_was_asked_for_and_closes(
    audit: Shell, swapped: str, gate: tuple[str, ...], code: int
) -> None:
    assert code == audit("--db", swapped, *gate)[0]


def test_json_has_an_option_of_its_own(audit: Shell, swapped: str) -> None:
    assert audit("--db", swapped, "--format", "json") == audit("--db", swapped, "--json")


def test_a_gate_lets_through_what_is_less_grave(audit: Shell, with_run: str) -> None:
    only = ("--db", with_run, "--release", "megatron-core 0.16.0", "--format", "json")
    code, out, _ = audit(*only, "--fail-on", "warning")
    assert (0, ["few_steps"]) == (code, [finding["rule"] for finding in json.loads(out)])
    assert 1 == audit(*only, "--fail-on", "info")[0]


def test_what_is_found_alike_in_several_runs_stands_once_in_the_table(
    audit: Shell, sqlite: URL, tmp_path: Path
) -> None:
    runs = [write_run(tmp_path, run_id=f"run-{number}") for number in range(3)]
    stored(sqlite, *runs)
    out = audit("--db", address(sqlite))[1]
    assert 1 == out.count("few_steps")
    assert "and 2 more" in out
    assert out.endswith("3 info in 3 results.\n")


def test_what_is_found_alike_in_lines_of_a_page_is_said_of_each(audit: Shell, sqlite: URL) -> None:
    rate = Figures(tokens_per_sec_per_gpu=1000)
    odd = [case(num_gpus=8, tensor_parallel=3, global_batch_size=size) for size in (64, 128)]
    rows = [published(line=line, case=it, figures=rate) for line, it in enumerate(odd, 20)]
    stored(sqlite, *rows, page="page.md")
    out = audit("--db", address(sqlite))[1]
    assert 2 == out.count("world_size")
    assert "page.md:20" in out
    assert "page.md:21" in out


def test_findings_can_be_narrowed_to_a_release_and_a_system(audit: Shell, with_run: str) -> None:
    of_system = audit("--db", with_run, "--system", "dgx-h100", "--format", "json")[1]
    of_release = audit("--db", with_run, "--release", "25.04", "--format", "json")[1]
    assert ["few_steps"] == [finding["rule"] for finding in json.loads(of_system)]
    assert ["micro_batch"] == [finding["rule"] for finding in json.loads(of_release)]


@pytest.fixture
def nemo(sqlite: URL) -> str:
    """A store of the published page of NeMo 25.04."""
    ingest([PUBLISHED / "nemo-25.04.md"], sqlite, Options())
    return address(sqlite)


def test_one_system_is_shown_with_all_of_its_findings_and_results(audit: Shell, nemo: str) -> None:
    """Of 39 rows DGX-H100 has 13: 8 of pre-training, 5 of fine-tuning."""
    only = ("--db", nemo, "--release", "25.04", "--system", "dgx-h100")
    found = json.loads(audit(*only, "--format", "json")[1])
    formula = [one["model"] for one in found if one["rule"] == "flops_formula"]
    assert ["llama3.1-405b", "mixtral-8x22b"] == formula
    assert audit(*only)[1].endswith("2 errors, 1 warning, 2 info in 13 results.\n")


def test_an_acknowledgement_of_one_system_explains_its_rows_alone(
    audit: Shell, nemo: str, tmp_path: Path
) -> None:
    (tmp_path / "reviewed.yaml").write_text(
        "- {rule: flops_formula, model: llama3.1-405b, system: dgx-h100, reason: the page counts "
        "one more projection, by: A. Person, date: 2026-01-31}\n"
    )
    _, out, err = audit("--db", nemo, "--acknowledged", "reviewed.yaml", "--format", "json")
    explained = [one["system"] for one in json.loads(out) if one["acknowledged"]]
    assert (["dgx-h100"], "") == (explained, err)


def test_the_table_says_what_to_change_and_counts(audit: Shell, with_run: str) -> None:
    code, out, _ = audit("--db", with_run)
    assert 0 == code
    for words in ("Mixtral 8x22B on DGX-GB200, nemo 25.04", "swap them: GBS 64", "page.md:132"):
        assert words in out
    assert out.endswith("1 error, 1 info in 2 results.\n")


def test_markdown_is_a_table_and_nothing_else(audit: Shell, swapped: str) -> None:
    _, out, err = audit("--db", swapped, "--format", "markdown")
    lines = out.splitlines()
    assert ["| Severity | Rule | Result | Finding | Source |", 3] == [lines[0], len(lines)]
    assert lines[2].startswith("| error | `micro_batch` | Mixtral 8x22B on DGX-GB200, nemo 25.04 |")
    assert "1 error in 1 result." in err


def test_sarif_names_the_rule_the_level_and_the_line(audit: Shell, with_run: str) -> None:
    document = json.loads(audit("--db", with_run, "--format", "sarif")[1])
    assert "2.1.0" == document["version"]
    (run,) = document["runs"]
    known = {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    found = run["results"]
    assert ["error", "note"] == [result["level"] for result in found]
    assert {result["ruleId"] for result in found} <= known
    place = found[0]["locations"][0]["physicalLocation"]
    assert ({"uri": "page.md"}, {"startLine": 132}) == (place["artifactLocation"], place["region"])


@pytest.mark.parametrize(
    ("name", "uri"),
    [
        ("perf [v1]#1 ü.md", "perf%20%5Bv1%5D%231%20%C3%BC.md"),
        ("a:b?c%20.md", "a%3Ab%3Fc%2520.md"),
        ("pages/nemo-25.04_x~.md", "pages/nemo-25.04_x~.md"),
    ],
)
def test_sarif_names_a_file_by_a_uri(audit: Shell, tmp_path: Path, name: str, uri: str) -> None:
    """As RFC 3986 writes what may not stand in one: UTF-8 bytes, a % and two digits each."""
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(SLIP)
    [run] = json.loads(audit(name, "--format", "sarif")[1])["runs"]
    [place] = run["results"][0]["locations"]
    assert uri == place["physicalLocation"]["artifactLocation"]["uri"]


def test_the_worked_examples_of_a_stored_page_are_audited_with_it(
    audit: Shell, sqlite: URL, tmp_path: Path
) -> None:
    """24 × 32 × 37,748,736 + 12 × 32 × 6,144 × 4,096 is 38,654,705,664; the rows have no fault."""
    (tmp_path / "page.md").write_bytes((PUBLISHED / "nemotron4.md").read_bytes())
    ingest([Path("page.md")], sqlite, Options())
    (tmp_path / "page.md").write_text(SLIP)

    def lines(*arguments: str) -> list[tuple[str, str, int]]:
        found = json.loads(audit("--db", address(sqlite), "--format", "json", *arguments)[1])
        return [(one["rule"], one["expected"], one["source_line"]) for one in found]

    assert [("arithmetic", "38654705664", 52)] == lines()
    assert [("arithmetic", "38654705664", 1)] == lines("page.md"), "as it is now"
    assert [] == lines("--system", "dgx-h100")


def test_documents_alone_need_no_store(audit: Shell, tmp_path: Path) -> None:
    (tmp_path / "recipe.md").write_text(f"# Recipe\n\n{SLIP}")
    code, out, err = audit("recipe.md", "--format", "json", "--fail-on", "error")
    (finding,) = json.loads(out)
    assert (1, "") == (code, err)
    assert ("arithmetic", "38654705664", "recipe.md", 3, None) == (
        finding["rule"], finding["expected"], finding["source"], finding["source_line"],
        finding["model"],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "the file is empty; write or copy it again"),
        (b" \n\n", "the file is empty; write or copy it again"),
        (b"\x7fELF\0\1 4 * 8 = 33\n", "the file is no text; save it as UTF-8 text"),
        (
            b"| Model | GBS |\n|---|---|\n| Llama3 8B | 128 |\n",
            "no worked example such as '4096 * 256 / 2.693 = 389371'; to audit its tables, "
            "`perfdb ingest` it and audit the store",
        ),
    ],
    ids=["empty", "blank", "binary", "page"],
)
def test_a_document_with_nothing_to_audit_is_bad_input(
    audit: Shell, tmp_path: Path, content: bytes, said: str
) -> None:
    """Also beside one with a worked example; every such document is named."""
    (tmp_path / "recipe.md").write_text(SLIP)
    for name in ("a.md", "b.md"):
        (tmp_path / name).write_bytes(content)
    code, out, err = audit("recipe.md", "a.md", "b.md", "--format", "json")
    assert (2, "") == (code, out)
    assert [f"{name}: nothing to audit: {said}" for name in ("a.md", "b.md")] == (
        err.removeprefix("error: ").splitlines()
    )


def test_a_document_that_computes_right_passes(audit: Shell, tmp_path: Path) -> None:
    """4 × 8 = 32."""
    (tmp_path / "recipe.md").write_text("tokens = 4 * 8 = 32\n")
    assert (0, "Nothing found in 1 document.\n", "") == audit("recipe.md")


def test_a_store_that_is_named_must_be_there(audit: Shell, tmp_path: Path) -> None:
    (tmp_path / "recipe.md").write_text(SLIP)
    assert (2, "") == audit("recipe.md", "--db", "none.sqlite")[:2]
    code, _, err = audit()
    assert 2 == code
    assert "perfdb.sqlite: no database here" in err


def test_a_store_without_anything_wrong_says_so(audit: Shell, sqlite: URL) -> None:
    assert (0, "Nothing found in 0 results.\n", "") == audit("--db", address(sqlite))
    assert (0, "[]\n", "") == audit("--db", address(sqlite), "--format", "json")


ACCEPTED = """
- rule: micro_batch
  model: mixtral-8x22b
  release: nemo 25.04
  reason: the page swaps the columns
  by: A. Person
  date: 2026-01-31
- rule: peak
  reason: measured twice
  by: A. Person
  date: 2026-01-31
"""


def test_an_acknowledged_finding_is_shown_as_explained_and_closes_no_gate(
    audit: Shell, swapped: str, tmp_path: Path
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "acknowledged.yaml").write_text(ACCEPTED)
    code, out, err = audit("--db", swapped, "--fail-on", "info", "--format", "json")
    (finding,) = json.loads(out)
    assert (0, "the page swaps the columns (A. Person, 2026-01-31)") == (
        code, finding["acknowledged"],
    )  # fmt: skip
    assert "note: data/acknowledged.yaml:8: no finding matches: peak; remove the entry" in err
    _, out, err = audit("--db", swapped)
    assert out.endswith("1 explained in 1 result.\n")
    sarif = json.loads(audit("--db", swapped, "--format", "sarif")[1])
    assert "external" == sarif["runs"][0]["results"][0]["suppressions"][0]["kind"]


def test_a_reviewed_file_that_is_no_utf_8_is_told(
    audit: Shell, swapped: str, tmp_path: Path
) -> None:
    (tmp_path / "reviewed.yaml").write_bytes(ACCEPTED.replace("Person", "Müller").encode("cp1252"))
    code, _, err = audit("--db", swapped, "--acknowledged", "reviewed.yaml")
    assert (2, True) == (code, err.startswith("error: reviewed.yaml: cannot be read: 'utf-8' "))


def test_an_entry_is_not_called_unused_where_only_a_part_was_audited(
    audit: Shell, swapped: str, tmp_path: Path
) -> None:
    (tmp_path / "reviewed.yaml").write_text(ACCEPTED)
    narrowed = ("--db", swapped, "--acknowledged", "reviewed.yaml", "--system", "dgx-h100")
    assert "" == audit(*narrowed)[2]


def test_an_entry_for_more_results_than_were_reviewed_is_told_and_leaves_the_gate_closed(
    audit: Shell, nemo: str, tmp_path: Path
) -> None:
    """The page swaps the columns of one model in three rows."""
    gate = ("--db", nemo, "--release", "nemo 25.04", "--fail-on", "error")
    (tmp_path / "reviewed.yaml").write_text(ACCEPTED)
    code, out, err = audit(*gate, "--acknowledged", "reviewed.yaml")
    assert (1, False) == (code, "explained" in out)
    assert (
        "note: reviewed.yaml:2: accepts nothing: 3 results match, and it was reviewed for 1: "
        "micro_batch mixtral-8x22b nemo 25.04; look at each; narrow it by line or found, or write "
        "`results: 3`\n"
    ) in err
    of_one = ("--system", "dgx-h100", "--acknowledged", "reviewed.yaml")
    code, out, err = audit(*gate, *of_one)
    assert (1, False, True) == (code, "explained" in out, "3 results match" in err)


def test_an_acknowledgement_without_a_name_is_bad_input_with_its_line(
    audit: Shell, swapped: str, tmp_path: Path
) -> None:
    (tmp_path / "reviewed.yaml").write_text(ACCEPTED.replace("  by: A. Person\n", "", 1))
    code, out, err = audit("--db", swapped, "--acknowledged", "reviewed.yaml")
    assert (2, "") == (code, out)
    assert "error: reviewed.yaml:2: acknowledged.0.by: is required and missing; add it" in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--release", "25.07"), "no release '25.07'"),
        (("--release", ""), "what follows --release is empty"),
        (("--system", "dgx-h10"), "no system 'dgx-h10'; known: cpu, "),
        (("--fail-on", "page.md"), "'page.md' is not one of"),
        (("none.md",), "'none.md' does not exist"),
    ],
)
def test_what_does_not_exist_is_bad_input(
    audit: Shell, swapped: str, arguments: tuple[str, ...], said: str
) -> None:
    code, out, err = audit("--db", swapped, *arguments)
    assert (2, "") == (code, out)
    assert said in err
