"""`perfdb audit` as a user sees it: findings, formats, gates, acknowledgements."""

import json
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import URL

from perfdb.ingest import Options, ingest
from perfdb.record import Figures
from tests.factories import case, published, release, stored, write_run
from tests.seeds import FOLDER
from tests.shell import Shell

PUBLISHED = Path(__file__).parents[1] / "data" / "published"
GPUS_BY_DP = """
| Model | GBS | MBS | TP | EP | DP | GA |
|---|---|---|---|---|---|---|
| Llama3 70B | 64 | 1 | 4 | 8 | 8 | 9 |
"""
KEYS = [
    "rule", "severity", "fields", "expected", "found", "message", "suggestion", "model", "system",
    "release", "source", "source_line", "framework", "acknowledged",
]  # fmt: skip
SLIP = "attention flops = 24 * 32 * 6144^2 + 12 * 32 * 6144 * 4096 = 38666279738\n"
"""24 × 32 × 37,748,736 + 12 × 32 × 6,144 × 4,096 is 38,654,705,664."""


def address(url: URL) -> str:
    return url.render_as_string()


@pytest.fixture
def audit(sqlite: URL, perfdb: Shell) -> Shell:
    """`perfdb audit` of a store."""
    return partial(perfdb, "audit", "--db", address(sqlite))


@pytest.fixture
def swapped(sqlite: URL, tmp_path: Path) -> None:
    """A store with one row whose GBS and MBS are swapped (an error) and a run of eight steps."""
    mixtral = case(
        framework="nemo", model="mixtral-8x22b", system="dgx-gb200", num_gpus=256,
        global_batch_size=1, micro_batch_size=64, gradient_accumulation=16, data_parallel=None,
        tensor_parallel=2, pipeline_parallel=4, context_parallel=8, sequence_length=65536,
    )  # fmt: skip
    row = published(line=132, case=mixtral, figures=Figures(tokens_per_sec_per_gpu=2731))
    stored(sqlite, row, page="page.md")
    stored(sqlite, write_run(tmp_path / "runs", case=case(), release=release()))


@pytest.fixture
def nemo(sqlite: URL) -> None:
    """A store of the published page of NeMo 25.04."""
    ingest([PUBLISHED / "nemo-25.04.md"], sqlite, Options())


@pytest.mark.usefixtures("swapped")
def test_json_is_a_list_of_findings_with_the_keys_of_the_contract(audit: Shell) -> None:
    code, out, err = audit("--format", "json")
    assert (0, "") == (code, err)
    assert out == audit("--json").stdout
    finding, _ = json.loads(out)
    assert KEYS == list(finding)
    assert {
        "rule": "micro_batch", "severity": "error", "expected": "GBS 64, MBS 1",
        "found": "GBS 1, MBS 64", "suggestion": "swap them: GBS 64, MBS 1",
        "model": "mixtral-8x22b", "system": "dgx-gb200", "release": "25.04", "source": "page.md",
        "source_line": 132, "framework": "nemo", "acknowledged": None,
        "fields": ["global_batch_size", "micro_batch_size"],
    }.items() <= finding.items()  # fmt: skip


@pytest.mark.usefixtures("swapped")
def test_findings_can_be_narrowed_and_a_gate_closes_on_what_is_as_grave(audit: Shell) -> None:
    both = ["micro_batch", "few_steps"]
    for words, rules, code in (
        ((), both, 0),
        (("--fail-on", "never"), both, 0),
        (("--fail-on", "error"), both, 1),
        (("--system", "dgx-h100", "--fail-on"), both[1:], 0),
        (("--release", "megatron-core 0.16.0", "--fail-on", "warning"), both[1:], 0),
        (("--system", "dgx-h100", "--fail-on=info"), both[1:], 1),
        (("--release", "25.04"), both[:1], 0),
    ):
        done = audit("--json", *words)
        found = [finding["rule"] for finding in json.loads(done.stdout)]
        assert (rules, code) == (found, done.code), words


@pytest.mark.usefixtures("nemo")
def test_one_release_is_judged_by_all_and_shown_alone(
    audit: Shell, sqlite: URL, perfdb: Shell
) -> None:
    """Nemotron-4 15B: 66.07 % of 989 TFLOP/s × 16 GPUs ÷ 98,550 tokens/s is 106.1 GFLOP per token;
    it is 94.0 on NeMo's page. The 340B begins at line 39."""
    ingest([PUBLISHED / "nemotron4.md"], sqlite, Options())
    rule, lines = "flops_across_releases", {"nemo dgxc-benchmarking": [23, 39], "nemo 25.04": []}
    for release_name, of_release in lines.items():
        found = json.loads(audit("--json", "--release", release_name).stdout)
        across = [it for it in found if it["rule"] == rule]
        assert of_release == [it["source_line"] for it in across]
        assert all("106.1 GFLOP" in it["message"] for it in across[:1])
    assert 2 == audit().stdout.count(rule)
    store = ("--db", address(sqlite))
    forward = perfdb("report", "nemo 25.04", "nemo dgxc-benchmarking", *store).stdout
    assert f"| `{rule}` | 2 info |" in forward
    assert rule not in perfdb("report", "nemo dgxc-benchmarking", "nemo 25.04", *store).stdout


@pytest.mark.usefixtures("swapped")
def test_what_people_read_and_what_code_hosts_read(audit: Shell) -> None:
    out = audit().stdout
    for words in ("Mixtral 8x22B on DGX-GB200, nemo 25.04", "swap them: GBS 64", "page.md:132"):
        assert words in out
    assert out.endswith("1 error, 1 info in 2 results.\n")

    _, out, err = audit("--format", "markdown")
    lines = out.splitlines()
    assert ["| Severity | Rule | Result | Finding | Source |", 4] == [lines[0], len(lines)]
    assert lines[2].startswith("| error | `micro_batch` | Mixtral 8x22B on DGX-GB200, nemo 25.04 |")
    assert "1 error, 1 info in 2 results." in err

    document = json.loads(audit("--format", "sarif").stdout)
    (run,) = document["runs"]
    known = {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    found = run["results"]
    assert ("2.1.0", ["error", "note"]) == (document["version"], [it["level"] for it in found])
    assert {result["ruleId"] for result in found} <= known
    place = found[0]["locations"][0]["physicalLocation"]
    assert ({"uri": "page.md"}, {"startLine": 132}) == (place["artifactLocation"], place["region"])


def test_what_runs_have_in_common_is_printed_once_and_each_line_of_a_page_by_itself(
    audit: Shell, sqlite: URL, tmp_path: Path
) -> None:
    assert (0, "Nothing found in 0 results.\n", "") == audit()
    assert (0, "[]\n", "") == audit("--format", "json")
    times = ([1.0] * number for number in (10, 12, 22))
    runs = (write_run(tmp_path, run_id=f"run-{len(some)}", step_times=some) for some in times)
    stored(sqlite, *runs)
    rate = Figures(tokens_per_sec_per_gpu=1000)
    odd = [case(num_gpus=8, tensor_parallel=3, global_batch_size=size) for size in (64, 128)]
    rows = [published(line=line, case=it, figures=rate) for line, it in enumerate(odd, 20)]
    stored(sqlite, *rows, page="page.md")
    out = audit().stdout
    assert (1, 2) == (out.count("few_steps"), out.count("world_size"))
    assert (3, 3) == (
        audit("--json").stdout.count("few_st"),
        audit("--each").stdout.count("few_st"),
    )
    for said in ("and 2 more", "page.md:20", "page.md:21"):
        assert said in out
    assert " 3 info in 5 results.\n" in out
    assert (
        "3 results against this rule: a measured run has 40 steps or more after its warm-up"
        in " ".join(out.split())
    )


@pytest.mark.usefixtures("nemo")
def test_one_system_is_shown_with_all_of_its_findings_and_results(audit: Shell) -> None:
    """Of 39 rows DGX-H100 has 13: 8 of pre-training, 5 of fine-tuning."""
    only = ("--release", "25.04", "--system", "dgx-h100")
    found = json.loads(audit(*only, "--json").stdout)
    formula = [one["model"] for one in found if one["rule"] == "flops_formula"]
    assert ["llama3.1-405b", "mixtral-8x22b"] == formula
    assert audit(*only).stdout.endswith("2 errors, 1 warning, 2 info in 13 results.\n")


def test_sarif_names_a_file_by_a_uri(audit: Shell, tmp_path: Path) -> None:
    """As RFC 3986 writes what may not stand in one: UTF-8 bytes, a % and two digits each."""
    for name, uri in {
        "perf [v1]#1 ü.md": "perf%20%5Bv1%5D%231%20%C3%BC.md",
        "a:b?c%20.md": "a%3Ab%3Fc%2520.md",
        "pages/nemo-25.04_x~.md": "pages/nemo-25.04_x~.md",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(SLIP)
        [run] = json.loads(audit(name, "--format", "sarif").stdout)["runs"]
        [place] = run["results"][0]["locations"]
        assert uri == place["physicalLocation"]["artifactLocation"]["uri"]


def test_the_worked_examples_of_a_stored_page_are_audited_with_it(
    audit: Shell, sqlite: URL, tmp_path: Path
) -> None:
    (tmp_path / "page.md").write_bytes((PUBLISHED / "nemotron4.md").read_bytes())
    ingest([Path("page.md")], sqlite, Options())
    (tmp_path / "page.md").write_text(SLIP)

    def lines(*words: str) -> list[tuple[str, str, int]]:
        found = json.loads(audit("--json", *words).stdout)
        return [(one["rule"], one["expected"], one["source_line"]) for one in found]

    assert [("arithmetic", "38654705664", 54)] == lines()
    assert [("arithmetic", "38654705664", 1)] == lines("page.md"), "as it is now"
    assert [] == lines("--system", "dgx-h100")


CONFIGURATIONS = FOLDER / "nemotron4-dgxc-recipe.txt"
"""Its tables of lines 3 to 18 state how twelve jobs use their GPUs."""


def test_tables_of_configurations_are_audited_by_line(
    audit: Shell, sqlite: URL, perfdb: Shell, tmp_path: Path
) -> None:
    """64 ÷ (2 × 8) is 4; 512 ÷ (8 × 8) is 8. They are no results, alone or beside results."""
    text = CONFIGURATIONS.read_text()
    damaged = text.replace("| 8 | NA | 2 | 64 | 4 |", "| 8 | NA | 2 | 64 | 8 |")
    damaged = damaged.replace("| NA | 8 | NA | 1 | 128 |", "| NA | 16 | NA | 1 | 128 |")
    tables = "".join(damaged.splitlines(keepends=True)[:18])
    (tmp_path / "alone.md").write_text(tables + "\n" + GPUS_BY_DP)
    found = json.loads(perfdb("audit", "alone.md", "--json").stdout)
    assert [
        ("gradient_accumulation", "GA 4", 5, None),
        ("data_parallel", "DP 8", 16, None),
        ("gradient_accumulation", "GA 8", 23, "llama3-70b"),
        ("expert_parallel", "EP 1", 23, "llama3-70b"),
    ] == [(it["rule"], it["expected"], it["source_line"], it["model"]) for it in found]
    refused = perfdb("ingest", "alone.md", "--db", address(sqlite))
    assert refused.code == 1
    assert "alone.md:3: configurations without figures are no results" in refused.stderr
    assert "`perfdb audit alone.md` checks them" in refused.stderr
    (tmp_path / "page.md").write_text(text)
    ingest([Path("page.md")], sqlite, Options())
    summary = "Nothing found in 24 results; nothing found in 12 configurations; 1 error in worked"
    assert summary in audit().stdout


def test_documents_alone_need_no_store(perfdb: Shell, tmp_path: Path) -> None:
    """A store that is named must be there; 4 × 8 = 32."""
    (tmp_path / "recipe.md").write_text(f"# Recipe\n\n{SLIP}")
    (tmp_path / "right.md").write_text("tokens = 4 * 8 = 32\n")
    code, out, err = perfdb("audit", "recipe.md", "--json", "--fail-on", "error")
    (finding,) = json.loads(out)
    assert (1, "") == (code, err)
    assert ("arithmetic", "38654705664", "recipe.md", 3, None) == (
        finding["rule"], finding["expected"], finding["source"], finding["source_line"],
        finding["model"],
    )  # fmt: skip
    assert (0, "Nothing found in 1 document.\n", "") == perfdb("audit", "right.md")
    assert (2, "") == perfdb("audit", "recipe.md", "--db", "none.sqlite")[:2]
    code, _, err = perfdb("audit")
    assert (2, True) == (code, "perfdb.sqlite: no database here" in err)


def test_a_document_with_nothing_to_audit_is_bad_input(audit: Shell, tmp_path: Path) -> None:
    """Also beside one with a worked example; every such document is named."""
    (tmp_path / "recipe.md").write_text(SLIP)
    (tmp_path / "blank.md").write_bytes(b" \n\n")
    (tmp_path / "binary.md").write_bytes(b"\x7fELF\0\1 4 * 8 = 33\n")
    (tmp_path / "page.md").write_bytes(b"| Model | GBS |\n|---|---|\n| Llama3 8B | 128 |\n")
    code, out, err = audit("recipe.md", "blank.md", "binary.md", "page.md", "--json")
    assert (2, "") == (code, out)
    assert [
        "blank.md: nothing to audit: the file is empty; write or copy it again",
        "binary.md: nothing to audit: the file is no text; save it as UTF-8 text",
        "page.md: nothing to audit: no worked example such as '4096 * 256 / 2.693 = 389371', nor "
        "table of configurations; to audit tables of results, `perfdb ingest` it and audit the "
        "store",
    ] == err.removeprefix("error: ").splitlines()


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


@pytest.mark.usefixtures("swapped")
def test_an_acknowledged_finding_is_shown_as_explained_and_closes_no_gate(
    audit: Shell, tmp_path: Path
) -> None:
    """An entry is not called unused where only a part was audited."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "acknowledged.yaml").write_text(ACCEPTED)
    code, out, err = audit("--fail-on", "warning", "--json")
    assert (0, "the page swaps the columns (A. Person, 2026-01-31)") == (
        code, json.loads(out)[0]["acknowledged"],
    )  # fmt: skip
    assert "note: data/acknowledged.yaml:8: no finding matches: peak; remove the entry" in err
    assert audit().stdout.endswith("1 info, 1 explained in 2 results.\n")
    sarif = json.loads(audit("--format", "sarif").stdout)
    assert "external" == sarif["runs"][0]["results"][0]["suppressions"][0]["kind"]
    assert "" == audit("--system", "dgx-h100").stderr


@pytest.mark.usefixtures("nemo")
def test_an_entry_holds_for_the_results_that_were_reviewed_alone(
    audit: Shell, tmp_path: Path
) -> None:
    """The page swaps the columns of one model in three rows: the gate stays closed."""
    gate = ("--release", "nemo 25.04", "--fail-on", "error", "--acknowledged", "reviewed.yaml")
    (tmp_path / "reviewed.yaml").write_text(ACCEPTED)
    said = (
        "note: reviewed.yaml:2: accepts nothing: 3 results match, and it was reviewed for 1: "
        "micro_batch mixtral-8x22b nemo 25.04; look at each; narrow it by line or found, or write "
        "`results: 3`\n"
    )
    for narrowed in ((), ("--system", "dgx-h100")):
        code, out, err = audit(*gate, *narrowed)
        assert (1, False, True) == (code, "explained" in out, said in err)
    (tmp_path / "reviewed.yaml").write_text(
        "- {rule: flops_formula, model: llama3.1-405b, system: dgx-h100, reason: the page counts "
        "one more projection, by: A. Person, date: 2026-01-31}\n"
    )
    _, out, err = audit("--acknowledged", "reviewed.yaml", "--json")
    explained = [one["system"] for one in json.loads(out) if one["acknowledged"]]
    assert (["dgx-h100"], "") == (explained, err)


@pytest.mark.usefixtures("swapped")
def test_what_does_not_exist_or_cannot_be_read_is_bad_input(audit: Shell, tmp_path: Path) -> None:
    (tmp_path / "no-name.yaml").write_text(ACCEPTED.replace("  by: A. Person\n", "", 1))
    (tmp_path / "no-text.yaml").write_bytes(ACCEPTED.replace("Person", "Müller").encode("cp1252"))
    for words, said in (
        (("--release", "25.07"), "no release '25.07'"),
        (("--release", ""), "what follows --release is empty"),
        (("--system", "dgx-h10"), "no system 'dgx-h10'; nearest: dgx-h100, "),
        (("--fail-on", "page.md"), "'page.md' is not one of"),
        (("none.md",), "'none.md' does not exist"),
        (("--acknowledged", "no-name.yaml"),
         "error: no-name.yaml:2: acknowledged.0.by: is required and missing; add it"),
        (("--acknowledged", "no-text.yaml"), "error: no-text.yaml: cannot be read: 'utf-8' "),
    ):  # fmt: skip
        code, out, err = audit(*words)
        assert (2, "", True) == (code, out, said in err)
