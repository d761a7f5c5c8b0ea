"""`perfdb compare` on real stores: what it prints, and with which exit code it ends."""

import json
from pathlib import Path

import pytest
from sqlalchemy import URL

from perfdb.record import Figures, Outcome, Release
from tests.factories import TEN_STEPS, case, published, release, stored, write_run

FASTER = tuple(time * 0.8 for time in TEN_STEPS)
"""Seconds; the median of the eight after the warm-up is 0.8 × 12.15 = 9.72."""


def address(url: URL) -> str:
    return url.render_as_string(hide_password=False)


@pytest.fixture
def two_releases(sqlite: URL, tmp_path: Path) -> URL:
    """Llama 3 8B in two releases, the second 1.25 times as fast, and a case of one alone."""
    stored(
        sqlite,
        write_run(tmp_path, run_id="old", step_times=TEN_STEPS),
        write_run(tmp_path, run_id="alone", case=case(system="dgx-b200")),
        write_run(tmp_path, run_id="new", release=release("0.16.1"), step_times=FASTER),
    )
    return sqlite


def test_two_runs_of_a_case_are_compared_with_ratio_interval_and_verdict(perfdb, two_releases):
    code, out, err = perfdb(
        "compare", "0.16.0", "0.16.1", "--db", address(two_releases), "--format", "json"
    )
    found = json.loads(out)
    assert (0, "") == (code, err)
    assert ["matched", "only_a", "only_b"] == list(found)
    (match,) = found["matched"]
    assert ("llama3-8b", "dgx-h100", "bf16") == (
        match["model"], match["system"], match["precision"],
    )  # fmt: skip
    assert 1.25 == pytest.approx(match["ratio"])
    assert match["low"] < 1.25 < match["high"]
    assert ("faster", "tokens_per_sec_per_gpu") == (match["verdict"], match["metric"])
    assert [128 * 8192 / 12.15 / 8, 128 * 8192 / 9.72 / 8] == pytest.approx(
        [match["a"], match["b"]]
    )
    assert (["dgx-b200"], []) == ([one["system"] for one in found["only_a"]], found["only_b"])


def test_the_table_says_the_same_in_words(perfdb, two_releases):
    code, out, _ = perfdb(
        "compare", "megatron-core 0.16.0", "megatron-core@0.16.1", "--db", address(two_releases)
    )
    assert 0 == code
    for said in ("Llama 3 8B", "1.250", "faster", "measured", "Only in megatron-core 0.16.0"):
        assert said in out
    assert "1 matched: 1 faster. 1 only in A, 0 only in B." in out


def test_json_has_an_option_of_its_own(perfdb, two_releases):
    asked = ("compare", "0.16.0", "0.16.1", "--db", address(two_releases))
    assert perfdb(*asked, "--format", "json") == perfdb(*asked, "--json")


def test_work_of_another_batch_size_is_hinted_at(perfdb, sqlite, tmp_path):
    new = {"release": release("0.16.1"), "case": case(global_batch_size=256)}
    stored(sqlite, write_run(tmp_path, run_id="old"), write_run(tmp_path, run_id="new", **new))
    _, out, _ = perfdb("compare", "0.16.0", "0.16.1", "--db", address(sqlite))
    only_a, only_b = out.split("Only in megatron-core ")[1:]
    assert "B has it at GBS 256" in only_a
    assert "B has it" not in only_b


def test_the_document_names_runs_and_their_files(perfdb, two_releases, tmp_path):
    _, out, _ = perfdb("compare", "0.16.0", "0.16.1", "--json", "--db", address(two_releases))
    found = json.loads(out)
    (match,), (lone,) = found["matched"], found["only_a"]
    assert ["old", "new", "alone"] == [match["run_id_a"], match["run_id_b"], lone["run_id"]]
    files = [str(tmp_path / name / "steps.jsonl") for name in ("old", "new")]
    assert files == [match["source_a"], match["source_b"]]


def test_the_metric_that_is_asked_for_is_compared(perfdb, two_releases):
    _, out, _ = perfdb(
        "compare", "0.16.0", "0.16.1", "--metric", "step_time_s", "--format", "json",
        "--db", address(two_releases),
    )  # fmt: skip
    (match,) = json.loads(out)["matched"]
    assert ("step_time_s", "faster") == (match["metric"], match["verdict"])
    assert 0.8 == pytest.approx(match["ratio"])


def test_a_run_that_failed_in_the_new_release_is_shown_as_such(perfdb, sqlite, tmp_path):
    stored(
        sqlite,
        write_run(tmp_path, run_id="old", step_times=TEN_STEPS),
        write_run(tmp_path, run_id="new", release=release("0.16.1"), outcome=Outcome.OUT_OF_MEMORY),
    )
    _, out, _ = perfdb("compare", "0.16.0", "0.16.1", "--db", address(sqlite))
    assert "B: measured, the run was out of memory" in out
    assert "failed: out of memory" in out
    assert "1 matched: 1 failed." in out


def test_two_releases_with_nothing_in_common_say_why_and_succeed(perfdb, sqlite):
    stored(sqlite, published())
    other = published(
        case=case(framework="dfm", model="wan2.1-14b"),
        release=Release(framework="dfm", version="26.02"),
    )
    stored(sqlite, other, page="other.md")
    code, out, err = perfdb("compare", "nemo 25.04", "dfm 26.02", "--db", address(sqlite))
    assert 0 == code
    assert "Nothing to compare: nemo 25.04 and dfm 26.02 share no work: different frameworks" in out
    code, out, err = perfdb(
        "compare", "25.04", "26.02", "--db", address(sqlite), "--format", "json"
    )
    found = json.loads(out)
    assert (0, [], 1, 1) == (code, found["matched"], len(found["only_a"]), len(found["only_b"]))
    assert "Nothing to compare" in err


def test_a_release_without_results_of_what_is_asked_is_not_said_to_have_none(perfdb, sqlite):
    stored(sqlite, published(), published(case=case(model="mixtral-8x7b")))
    stored(sqlite, published(release=Release(framework="nemo", version="25.07")), page="other.md")
    asked = "compare", "25.04", "25.07", "--db", address(sqlite)
    _, out, _ = perfdb(*asked, "--model", "mixtral-8x7b", "--system", "dgx-h100")
    told = "nemo 25.07 has no results of --system dgx-h100 --model mixtral-8x7b.\n"
    assert out.startswith(f"Nothing to compare: {told}")


def test_published_figures_are_compared_by_their_digits(perfdb, sqlite):
    stored(sqlite, published())
    later = published(
        release=Release(framework="nemo", version="25.07"),
        figures=Figures(tokens_per_sec_per_gpu=12_274),
    )
    stored(sqlite, later, page="later.md")
    _, out, _ = perfdb("compare", "25.04", "25.07", "--db", address(sqlite), "--format", "json")
    (match,) = json.loads(out)["matched"]
    assert (None, None, "same") == (match["low"], match["high"], match["verdict"])


def test_an_unknown_release_is_bad_input_and_lists_the_known(perfdb, two_releases):
    code, out, err = perfdb(
        "compare", "0.16.0", "megatron-core 0.16.2", "--db", address(two_releases)
    )
    assert (2, "") == (code, out)
    assert "error: release: no release 'megatron-core 0.16.2'; did you mean megatron-core" in err
    assert "known: megatron-core 0.16.0, megatron-core 0.16.1" in err


def test_a_missing_database_is_named(perfdb, tmp_path):
    code, _, err = perfdb("compare", "a", "b", "--db", str(tmp_path / "none.sqlite"))
    assert 2 == code
    assert f"{tmp_path}/none.sqlite: no database here" in err


@pytest.mark.parametrize(
    ("gate", "expected"),
    [("slower", 0), ("missing", 1), ("slower,missing", 1), ("unknown", 0), ("never", 0)],
)
def test_a_gate_closes_on_what_vanished(perfdb, two_releases, gate, expected):
    """The DGX-B200 ran in 0.16.0 alone; what both ran got faster."""
    code, _, err = perfdb(
        "compare", "0.16.0", "0.16.1", "--fail-on", gate, "--db", address(two_releases)
    )
    assert (expected, "") == (code, err)


@pytest.mark.parametrize(("gate", "expected"), [("slower", 1), ("missing", 0), ("Slower", 1)])
def test_a_gate_closes_on_what_got_slower(perfdb, two_releases, gate, expected):
    """The other way round: the new release was faster."""
    code, _, _ = perfdb(
        "compare", "0.16.1", "0.16.0", "--fail-on", gate, "--db", address(two_releases)
    )
    assert expected == code


def test_a_gate_says_what_it_cannot_tell(perfdb, sqlite, tmp_path):
    stored(
        sqlite,
        write_run(tmp_path, run_id="old", step_times=TEN_STEPS),
        write_run(tmp_path, run_id="new", release=release("0.16.1"), outcome=Outcome.OUT_OF_MEMORY),
    )
    asked = ("compare", "0.16.0", "0.16.1", "--db", address(sqlite), "--fail-on")

    code, _, err = perfdb(*asked, "slower")

    assert (0, 1) == (code, perfdb(*asked, "slower,unknown")[0])
    assert "warning: 1 failed, and --fail-on missing was not asked for\n" == err


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        (Outcome.OUT_OF_MEMORY, "failed: out of memory"),
        (Outcome.NAN_LOSS, "failed: NaN loss"),
        (None, "failed: incomplete"),
    ],
)
def test_a_gate_for_what_is_missing_closes_on_what_failed(perfdb, sqlite, tmp_path, outcome, said):
    """None: the runner is gone and did not say how the run ended."""
    stored(
        sqlite,
        write_run(tmp_path, run_id="old", step_times=TEN_STEPS),
        write_run(tmp_path, run_id="new", release=release("0.16.1"), outcome=outcome),
    )
    code, out, err = perfdb(
        "compare", "0.16.0", "0.16.1", "--fail-on", "slower,missing", "--db", address(sqlite)
    )
    assert (1, "") == (code, err)
    assert said in out


@pytest.fixture
def nightly(sqlite: URL) -> URL:
    """Two nights of two frameworks: NeMo is 10 % slower, AutoModel as fast."""
    for framework, rates in (("nemo", (1000, 900)), ("automodel", (1000, 1000))):
        for version, rate in zip(("25.09", "25.11"), rates, strict=True):
            row = published(
                case=case(framework=framework),
                release=Release(framework=framework, version=version),
                figures=Figures(tokens_per_sec_per_gpu=rate),
            )
            stored(sqlite, row, page=f"{framework}-{version}.md")
    return sqlite


def test_versions_of_several_frameworks_are_compared_in_one_command(perfdb, nightly):
    asked = ("compare", "25.09", "25.11", "--fail-on", "slower", "--db", address(nightly))
    code, out, err = perfdb(*asked)
    assert (1, "") == (code, err)
    first, second = out.index("A: automodel 25.09"), out.index("A: nemo 25.09")
    assert first < second
    assert out.endswith("2 frameworks: 2 matched: 1 slower, 1 same. 0 only in A, 0 only in B.\n")
    found = json.loads(perfdb(*asked, "--format", "json")[1])
    assert {("automodel", "same"), ("nemo", "slower")} == {
        (one["framework"], one["verdict"]) for one in found["matched"]
    }
    assert 0 == perfdb(*asked, "--framework", "automodel")[0]


def test_a_framework_that_lacks_the_new_version_is_missing(perfdb, nightly):
    row = published(case=case(framework="dfm"), release=Release(framework="dfm", version="25.09"))
    stored(nightly, row, page="dfm.md")
    code, out, _ = perfdb(
        "compare", "25.09", "25.11", "--fail-on", "missing", "--db", address(nightly)
    )
    assert 1 == code
    assert "Nothing to compare: dfm 25.11 has no results." in out


def test_a_release_against_itself_is_bad_input(perfdb, two_releases):
    code, out, err = perfdb(
        "compare", "0.16.0", "megatron-core 0.16.0", "--db", address(two_releases)
    )
    assert (2, "") == (code, out)
    assert "A and B are both megatron-core 0.16.0; name two; `perfdb trend` has the runs" in err


def test_only_a_system_is_compared(perfdb, two_releases):
    asked = ("compare", "0.16.0", "0.16.1", "--db", address(two_releases), "--format", "json")
    found = json.loads(perfdb(*asked, "--system", "dgx-h100", "--model", "LLAMA3-8B")[1])
    code, _, err = perfdb(*asked, "--system", "dgx-h10")

    assert (1, [], []) == (len(found["matched"]), found["only_a"], found["only_b"])
    assert 2 == code
    assert "--system: no results of 'dgx-h10'; did you mean dgx-h100?" in err


@pytest.fixture
def impossible(sqlite: URL, tmp_path: Path) -> URL:
    """0.16.1 takes 4.05 s for 128 × 8,192 tokens: 1,666 TFLOP/s of a GPU that has 989."""
    stored(
        sqlite,
        write_run(tmp_path, run_id="old"),
        write_run(
            tmp_path,
            run_id="new",
            release=release("0.16.1"),
            step_times=[time / 3 for time in TEN_STEPS],
        ),
    )
    return sqlite


def test_what_has_an_open_error_is_not_judged_and_closes_no_gate(perfdb, impossible):
    """The other way round it is a third as fast, and that is no regression."""
    asked = ("compare", "0.16.1", "0.16.0", "--db", address(impossible))
    code, out, err = perfdb(*asked, "--fail-on", "slower,unknown")

    assert (0, "") == (code, err)
    assert "A: measured, ⚑ open errors; B: measured" in out
    assert "1 matched: 1 not judged. 0 only in A, 0 only in B." in out
    told = "1 not judged for open errors (⚑): see `perfdb audit`, or give --judge-all\n"
    assert out.endswith(told)
    code, out, err = perfdb(*asked, "--format", "json")
    (match,) = json.loads(out)["matched"]
    assert ("not judged", True, False, told) == (
        match["verdict"], match["has_open_errors_a"], match["has_open_errors_b"], err,
    )  # fmt: skip
    assert 1 / 3 == pytest.approx(match["ratio"])


def test_all_is_judged_where_that_is_asked_for(perfdb, impossible):
    code, out, err = perfdb(
        "compare", "0.16.1", "0.16.0", "--judge-all", "--fail-on", "slower",
        "--db", address(impossible),
    )  # fmt: skip
    assert (1, "") == (code, err)
    assert "1 matched: 1 slower." in out
    assert "⚑" not in out


@pytest.mark.parametrize("place", ["data/acknowledged.yaml", "elsewhere.yaml"])
def test_an_error_that_is_accepted_is_judged(perfdb, impossible, tmp_path, monkeypatch, place):
    """By the project's reviewed file, where it is, or by the one that is named."""
    reviewed = tmp_path / place
    reviewed.parent.mkdir(exist_ok=True)
    why = "reason: invented, by: A. Person, date: 2026-01-31"
    reviewed.write_text(f"- {{rule: peak, {why}}}\n- {{rule: flops_formula, {why}}}\n")
    monkeypatch.chdir(tmp_path)
    named = ("--acknowledged", place) if place == "elsewhere.yaml" else ()
    _, out, _ = perfdb("compare", "0.16.0", "0.16.1", "--db", address(impossible), *named)
    assert "1 matched: 1 faster." in out


def test_published_figures_have_the_digits_of_their_page(perfdb, sqlite):
    """Llama 3 8B in TFLOP/s; 3332.5 is not rounded to the even 3,332."""
    for number, (version, title, text) in enumerate(
        (
            ("25.02", "Model TFLOP / sec / GPU", "484"),
            ("25.04", "Model TFLOP / sec / GPU", "492.50"),
            ("25.07", "Tokens / sec / GPU", "3332.5"),
        )
    ):
        field = "tokens_per_sec_per_gpu" if "Tokens" in title else "model_tflops_per_sec_per_gpu"
        row = published(
            release=Release(framework="nemo", version=version),
            figures=Figures(**{field: float(text)}),
            raw={title: text},
            printed={field: text},
        )
        stored(sqlite, row, page=f"{number}.md")
    _, out, _ = perfdb("compare", "25.02", "25.04", "--db", address(sqlite))
    assert " 484 " in out
    assert " 492.50 " in out
    _, out, _ = perfdb("compare", "25.04", "25.07", "--db", address(sqlite))
    assert "3,332.5" in out
