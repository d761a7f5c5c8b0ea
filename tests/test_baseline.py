"""Baselines by name, and trends that start from one, as the formats for CI have them."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from sqlalchemy import URL

from perfdb.record import Figures, Release
from tests.factories import case, published, stored
from tests.shell import Done, Shell


@pytest.fixture
def ask(sqlite: URL, perfdb: Shell, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """`perfdb` on a store: nemo 1 to 4 at 100, 90, 90 and 95, and dfm 1 and 2 at 50 and 60."""
    monkeypatch.setenv("PERFDB_URL", sqlite.render_as_string(hide_password=False))
    for framework, rates in (("nemo", (100, 90, 90, 95)), ("dfm", (50, 60))):
        for version, rate in enumerate(rates, start=1):
            row = published(
                case=case(framework=framework),
                release=Release(framework=framework, version=str(version)),
                figures=Figures(tokens_per_sec_per_gpu=rate * 100),
                raw={},
            )
            stored(sqlite, row, page=f"{framework}-{version}.md")
    return perfdb


def matches(done: Done) -> list[tuple[str, str, str]]:
    """The framework and both releases of each match."""
    found = json.loads(done.stdout)["matched"]
    return [(it["framework"], it["release_a"], it["release_b"]) for it in found]


def test_a_baseline_stands_for_a_release_of_each_framework(ask: Shell) -> None:
    file = Path("data/baselines.yaml")
    assert 0 == ask("baseline", "show").code
    assert 0 == ask("baseline", "set", "production", "nemo 2", "dfm@1").code
    file.write_text(f"# reviewed by the release team\n{file.read_text()}")
    said = ask("baseline", "set", "last-good", "nemo 1").stdout
    assert f"{file}: last-good is nemo 1\n" == said
    assert file.read_text().startswith("# reviewed by the release team\n")
    known = {"production": ["nemo 2", "dfm 1"], "last-good": ["nemo 1"]}
    assert known == json.loads(ask("baseline", "show", "--json").stdout)

    assert [("nemo", "2", "4")] == matches(ask("compare", "production", "nemo 4", "--json"))
    both = [("dfm", "1", "2"), ("nemo", "1", "2")]
    assert both == sorted(matches(ask("compare", "1", "2", "--json")))
    assert [("dfm", "1", "2")] == matches(
        ask("compare", "production", "2", "--framework", "dfm", "--json")
    )
    assert [("nemo", "1", "2")] == matches(ask("compare", "last-good", "production", "--json"))
    assert ask("report", "production", "nemo 4").stdout.startswith("# nemo 2 → nemo 4\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("set", "x", "nemo 7"), "no release 'nemo 7'"),
        (("set", "x", "nemo 1", "nemo 2"), "nemo 1 and nemo 2 are both of nemo; name one of each"),
        (("set", "1", "nemo 2"), "'1' is a release; choose another name"),
        (("set", "-x", "nemo 2"), "No such option"),
        (("set", "a b", "nemo 2"), "'a b' is no name; begin with a letter"),
    ],
)
def test_what_is_no_baseline_is_refused(ask: Shell, words: tuple[str, ...], said: str) -> None:
    code, out, err = ask("baseline", *words)
    assert (2, "", True) == (code, out, said in err)
    assert not Path("data/baselines.yaml").exists()


def test_a_file_that_is_wrong_says_where(ask: Shell) -> None:
    Path("data").mkdir()
    Path("data/baselines.yaml").write_text("production:\n  nemo 2\n")
    code, _, err = ask("compare", "production", "nemo 4")
    assert (2, True) == (code, "data/baselines.yaml:1: production: expected a list" in err)


def test_a_trend_since_a_baseline_forgets_what_was_before(ask: Shell) -> None:
    """From 100 to 90 is a regression that stands; from 90 to 95 is none."""
    assert 1 == ask("trend", "--framework", "nemo", "--fail-on", "regression").code
    assert 0 == ask("baseline", "set", "production", "nemo 2").code
    code, out, _ = ask("trend", "--since", "production", "--fail-on", "regression", "--json")
    found = {it["framework"]: it["points"] for it in json.loads(out)["series"]}
    assert ["2", "3", "4"] == [point["release"] for point in found["nemo"]]
    assert ["1", "2"] == [point["release"] for point in found["dfm"]]
    assert 0 == code


def test_trends_have_the_formats_of_comparisons(ask: Shell) -> None:
    """NeMo lost 10 % and has 95 of 100 again: a regression; DFM is faster."""
    asked = ("trend", "--fail-on", "regression")
    table = ask(*asked, "--format", "markdown").stdout
    assert "| Release | Tokens/s/GPU | Change | 99 % interval | Verdict | Runs |" in table
    assert "| 2 | 9,000 | -10.0% | – | slower |" in table
    root = ElementTree.fromstring(ask(*asked, "--format", "junit").stdout)
    suites = {it.get("name"): it for it in root}
    assert ("1", "0") == (suites["nemo"].get("failures"), suites["dfm"].get("failures"))
    [failure] = suites["nemo"].iter("failure")
    assert "first slower: 2" in str(failure.get("message"))
    lines = ask(*asked, "--format", "github").stdout.splitlines()
    assert [True, True, True] == [
        any(line.startswith(start) for line in lines)
        for start in ("::error title=perfdb::Llama 3 8B", "::notice title=perfdb::Llama 3 8B",
                      "::notice title=perfdb::2 followed")
    ]  # fmt: skip


def test_notes_on_two_frameworks_are_refused_before_anything_is_compared(
    ask: Shell, tmp_path: Path
) -> None:
    """No comparison complains that the store has no such system."""
    notes = tmp_path / "notes.md"
    notes.write_text("The sampler is new.\n")
    code, out, err = ask("report", "1", "2", "--notes", str(notes), "--system", "nowhere")
    assert (2, "") == (code, out)
    assert "name it with --framework" in err
    assert "nowhere" not in err
