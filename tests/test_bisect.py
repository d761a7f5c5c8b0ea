"""`perfdb bisect`: the search, its file, and a version whose steps are slower."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfdb.cli.bisect import between, load
from perfdb.compare import Judgement, Verdict
from perfdb.compare.bisect import is_changed, search
from perfdb.errors import InputError
from tests.runner.megatron_worker import needs_megatron
from tests.shell import Shell

ROOT = Path(__file__).parents[1]
TORCHRUN = """\
# In place of torchrun and its worker: steps take as long as the version says, within 4 %.
import json, os, sys
step_s = float(os.environ["STEP_S"])
with open(sys.argv[sys.argv.index("--steps") + 1], "a") as file:
    for number in range(1, 26):
        step = {"step": number, "step_time_s": step_s * (1 + number % 5 / 100)}
        file.write(json.dumps(step) + "\\n")
"""
STEPS_S = {"1.0": 0.05, "1.1": 0.05, "1.2": 0.15, "1.3": 0.15}


@given(st.integers(2, 40), st.data())
def test_the_first_changed_version_is_found_and_what_cannot_be_told_is_left(
    count: int, data: st.DataObject
) -> None:
    first = data.draw(st.integers(1, count - 1))
    untold = data.draw(st.sets(st.integers(1, count - 1)))
    asked: list[int] = []

    def changed(number: int) -> bool | None:
        asked.append(number)
        return None if number in untold else number >= first

    low, high = search(count, changed)
    assert low < first <= high
    assert set(range(low + 1, high)) <= untold
    assert len(asked) == len(set(asked))
    if not untold:
        assert (first - 1, first) == (low, high)
        assert len(asked) <= (count - 1).bit_length()


def judged(verdict: Verdict, *figures: float | None) -> Judgement:
    ratio, low, high = figures or (None, None, None)
    return Judgement(ratio, low, high, verdict)


@pytest.mark.parametrize(
    ("found", "least", "expected"),
    [
        (judged(Verdict.SLOWER, 0.9, 0.88, 0.92), 0, True),
        (judged(Verdict.SLOWER, 0.9, 0.88, 0.92), 0.1, True),
        (judged(Verdict.SLOWER, 0.9, 0.88, 0.92), 0.2, False),
        (judged(Verdict.FASTER, 1.9, 1.8, 2.0), 0, False),
        (judged(Verdict.SAME, 1.0, 0.99, 1.01), 0, False),
        # too noisy for a verdict, and yet not slower by a half
        (judged(Verdict.UNKNOWN, 0.95, 0.8, 1.15), 0, None),
        (judged(Verdict.UNKNOWN, 0.95, 0.8, 1.15), 0.5, False),
        (judged(Verdict.UNKNOWN, 0.95, 0.8, 1.15), 0.15, None),
        (judged(Verdict.UNKNOWN), 0.5, None),
        (judged(Verdict.FAILED), 0, None),
    ],
)
def test_a_version_has_become_slower_by_its_verdict(
    found: Judgement, least: float, expected: bool | None
) -> None:
    assert expected is is_changed(found, Verdict.SLOWER, least)


def test_a_version_that_finishes_has_not_failed_however_fast_it_is() -> None:
    assert is_changed(judged(Verdict.FAILED), Verdict.FAILED, 0.5)
    assert is_changed(judged(Verdict.SLOWER, 0.5, 0.4, 0.6), Verdict.FAILED, 0) is False
    assert is_changed(judged(Verdict.UNKNOWN), Verdict.FAILED, 0) is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name: x\n", "is no list"),
        ("- {name: a}\n- {nam: b}\n", "FILE:2: "),
        ("- {name: a/b}\n", "letters, digits"),
        ("- {name: a}\n- {name: a}\n", "a is there twice"),
        ("- [\n", "not YAML"),
    ],
)
def test_a_file_of_versions_that_is_wrong_is_refused(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "versions.yaml"
    file.write_text(text)
    with pytest.raises(InputError, match=said.replace("FILE", str(file))):
        load(file)


def test_the_versions_between_two_are_walked_backwards_too(tmp_path: Path) -> None:
    file = tmp_path / "versions.yaml"
    file.write_text("- {name: a}\n- {name: b}\n- {name: c}\n- {name: d}\n")
    versions = load(file)
    assert ["b", "c", "d"] == [it.name for it in between(versions, "b", "d", "here")]
    assert ["c", "b", "a"] == [it.name for it in between(versions, "c", "a", "here")]
    for a, b in (("a", "a"), ("a", "x")):
        with pytest.raises(InputError):
            between(versions, a, b, "here")


def test_what_cannot_be_walked_is_refused_before_anything_is_run(
    perfdb: Shell, tmp_path: Path
) -> None:
    (tmp_path / "versions.yaml").write_text('- {name: a, container: "x:1"}\n- {name: b}\n')
    asked = ("bisect", "a", "b", "--versions", "versions.yaml", "--recipes", str(ROOT / "recipes"))
    done = perfdb(*asked, "--case", "smoke-single")
    assert (2, True) == (done.code, "a is a container image; give --launcher slurm" in done.stderr)
    done = perfdb(*asked, "--case", "smoke-singl", "--launcher", "slurm")
    assert (2, True) == (done.code, "did you mean smoke-single" in done.stderr)
    assert not (tmp_path / "bisect").exists()


def versions(preloaded: Path) -> str:
    """A file of versions, whose perfdb does not wait for its imports."""
    python = str(preloaded / "alone" / "python")
    return json.dumps(
        [
            {"name": name, "python": python, "environment": {"STEP_S": str(step_s)}}
            for name, step_s in STEPS_S.items()
        ]
    )


@needs_megatron
@pytest.mark.slow
def test_the_version_whose_steps_are_slower_is_found(
    perfdb: Shell, preloaded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in = tmp_path / "stand-in"
    (stand_in / "torch" / "distributed").mkdir(parents=True)
    (stand_in / "torch" / "__init__.py").touch()
    (stand_in / "torch" / "distributed" / "__init__.py").touch()
    (stand_in / "torch" / "distributed" / "run.py").write_text(TORCHRUN)
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}{os.pathsep}{stand_in}")
    (tmp_path / "versions.yaml").write_text(versions(preloaded))
    asked = ("bisect", "1.0", "1.3", "--case", "smoke-single", "--versions", "versions.yaml",
             "--recipes", str(ROOT / "recipes" / "smoke" / "single.yaml"), "--repeat", "2",
             "--max-repeat", "2", "--min-change", "30%")  # fmt: skip
    done = perfdb(*asked, "--json")
    assert 0 == done.code, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert ("slower", "1.2") == (found["sought"], found["first"])
    assert ["1.1", "1.2", "1.3"] == [it["name"] for it in found["versions"]]
    runs = list((tmp_path / "bisect").glob("*/*/run.json"))
    again = perfdb(*asked)
    assert (0, True) == (again.code, "first slower: 1.2 (after 1.1)" in again.stdout)
    assert runs == list((tmp_path / "bisect").glob("*/*/run.json"))
