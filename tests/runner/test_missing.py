"""`perfdb run --missing-for`: what a comparison of two releases in the store lacks."""

import json
from pathlib import Path

import pytest

from perfdb import hardware, recipe
from perfdb.cli.another import answer
from perfdb.record import Outcome, Release
from runner import missing, session
from tests import factories
from tests.runner.quick_launcher import BACKENDS
from tests.shell import Shell

ROOT = Path(__file__).parents[2]
TOOLS = session.Tools(hardware.without_gpu("no GPU"), BACKENDS)
RECIPE = (ROOT / "recipes" / "smoke" / "single.yaml").read_text()
OLD, NEW = "megatron-core 0.15.0", "megatron-core 0.16.1"
"""The second is the one that is installed here."""


@pytest.fixture
def sweep(perfdb: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A recipe of which the store has cases at one release, at both, or at none."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    text = RECIPE + "\nmatrix: {sequence_length: [32, 64, 128, 256, 512]}\n"
    path = tmp_path / "sweep.yaml"
    path.write_text(text)
    [file] = recipe.load([path])
    lengths = {spec.case.sequence_length: spec.case for spec in file.points}
    runs = [(32, OLD), (64, OLD), (64, NEW), (128, NEW), (512, OLD)]
    for length, name in runs:
        release = Release(framework="megatron-core", version=name.split()[1])
        failed = {"outcome": Outcome.FAILED} if length == 512 else {}
        factories.write_run(
            tmp_path / "stored", case=lengths[length], release=release,
            run_id=f"{length}-{release.version}", **failed,
        )  # fmt: skip
    assert 0 == perfdb("ingest", "stored").code
    return str(path)


def test_what_was_measured_at_the_other_release_alone_is_run(perfdb: Shell, sweep: str) -> None:
    done = perfdb("run", sweep, "--missing-for", f"{OLD}..{NEW}", "--dry-run", "--json", obj=TOOLS)
    assert 0 == done.code, done.stderr
    cases = {case["case"].rpartition("=")[2]: case for case in json.loads(done.stdout)["cases"]}
    alone = f"not measured at one of {OLD} and {NEW} alone"
    there = f"{NEW} has it, {OLD} lacks it: run it there"
    reasons = {name: case["reason"] for name, case in cases.items()}
    assert {"32": "", "64": alone, "128": there, "256": alone, "512": alone} == reasons


def test_a_pair_that_means_no_releases_is_refused(perfdb: Shell, sweep: str) -> None:
    for pair, said in (
        ("0.15.0", "'0.15.0' is not RELEASE_A..RELEASE_B"),
        ("0.15.0..0.99", "no release '0.99'"),
    ):
        done = perfdb("run", sweep, "--missing-for", pair, obj=TOOLS)
        assert (2, True, True) == (done.code, "--missing-for: " in done.stderr, said in done.stderr)


@pytest.mark.parametrize(
    ("name", "version", "container", "expected"),
    [
        ("nemo 25.04", "25.04", None, True),
        ("nemo@25.04", "25.04", "image", True),
        ("25.04", "25.04", None, True),
        ("25.04", "25.06", None, False),
        ("nemo 25.04 [image]", "25.04", "other", False),
        ("nemo 25.04 [no container]", "25.04", None, True),
        # what is in an image is known once it has run
        ("nemo 25.04", None, "image", False),
        ("nemo 25.04 [image]", None, "image", True),
    ],
)
def test_a_release_is_known_by_its_name(
    name: str, version: str | None, container: str | None, expected: bool
) -> None:
    release = Release(framework="nemo", version=version, container=container)
    assert expected is missing.is_of(name, release)


def test_a_command_that_prints_nothing_is_an_error_with_its_words() -> None:
    with pytest.raises(
        missing.RunError, match=r"perfdb compare ended with 2: .*\n.*\n\nError: No such option"
    ):
        answer(["compare", "a", "b", "--no-such"], is_quiet=True)
