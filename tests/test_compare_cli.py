"""`perfdb compare` on real stores: what it prints, and with which exit code it ends."""

import json
from collections.abc import Callable
from functools import partial
from itertools import permutations
from pathlib import Path

import pytest
from sqlalchemy import URL

from perfdb.compare import Side
from perfdb.compare.verdict import judge
from perfdb.db.session import reading_current
from perfdb.metrics import METRICS
from perfdb.queries import results as queries
from perfdb.record import Figures, Release
from tests import factories
from tests.factories import TEN_STEPS, case, published, release, stored, write_run
from tests.shell import Shell
from tests.test_trend import Lab

FASTER = tuple(time * 0.8 for time in TEN_STEPS)
"""Seconds; the median of the eight after the warm-up is 0.8 × 12.15 = 9.72."""
MEMORY = "peak_memory_bytes"


def address(url: URL) -> str:
    return url.render_as_string(hide_password=False)


Ran = Callable[..., None]
"""Adds a run of steady steps, which differ for sure beyond 2.3 %."""


@pytest.fixture
def lab(sqlite: URL, tmp_path: Path) -> Lab:
    """An empty store and a place for runs."""
    return Lab(sqlite, tmp_path)


@pytest.fixture
def ran(lab: Lab) -> Ran:
    return lab.ran


@pytest.fixture
def compare(lab: Lab, perfdb: Shell) -> Shell:
    """`perfdb compare 1 2` on the store."""
    return lambda *words: perfdb("compare", "1", "2", "--db", address(lab.store), *words)


@pytest.fixture
def back(lab: Lab, perfdb: Shell) -> Shell:
    """The other way round."""
    return lambda *words: perfdb("compare", "2", "1", "--db", address(lab.store), *words)


@pytest.fixture
def two_releases(ran: Ran) -> None:
    """Llama 3 8B in two releases, the second 1.25 times as fast, and a case of one alone."""
    ran("1", TEN_STEPS)
    ran("1", case=case(system="dgx-b200"))
    ran("2", FASTER)


@pytest.mark.usefixtures("two_releases")
def test_two_runs_of_a_case_are_compared_with_ratio_interval_and_verdict(
    compare: Shell, perfdb: Shell, lab: Lab, tmp_path: Path
) -> None:
    code, out, err = compare("--format", "json")
    (match,), (lone,) = json.loads(out)["matched"], json.loads(out)["only_a"]
    assert (0, "") == (code, err)
    assert ("llama3-8b", "faster", "tokens_per_sec_per_gpu", "r1", "r3", "r2") == (
        match["model"], match["verdict"], match["metric"], match["run_id_a"], match["run_id_b"],
        lone["run_id"],
    )  # fmt: skip
    assert f"{tmp_path}/r1/steps.jsonl" == match["source_a"]
    assert match["low"] < match["ratio"] < match["high"]
    rates = [128 * 8192 / 12.15 / 8, 128 * 8192 / 9.72 / 8, 1.25]
    assert rates == pytest.approx([match["a"], match["b"], match["ratio"]])
    by_time = json.loads(compare("--json", "--metric", "step_time_s").stdout)["matched"][0]
    assert ("faster", pytest.approx(0.8)) == (by_time["verdict"], by_time["ratio"])
    named = ("megatron-core 1", "megatron-core@2", "--db", address(lab.store))
    code, out, _ = perfdb("compare", *named)
    for said in ("Llama 3 8B", "1.250", "faster", "measured", "Only in megatron-core 1"):
        assert said in out
    assert (0, True) == (code, "1 matched: 1 faster. 1 only in A, 0 only in B." in out)


NOTHING_JUDGED = "error: no comparison has a verdict, so --fail-on exits with 1\n"


@pytest.mark.parametrize("gate", ["slower", "missing", "unknown"])
def test_a_gate_closes_where_nothing_matched(compare: Shell, ran: Ran, gate: str) -> None:
    ran("1")
    ran("2", case=case(num_gpus=16))
    code, out, err = compare("--fail-on", gate)
    assert (1, NOTHING_JUDGED) == (code, err)
    assert 0 == compare().code
    assert "0 matched" in out


@pytest.mark.usefixtures("two_releases")
def test_gates_close_on_what_vanished_and_on_what_got_slower(compare: Shell, back: Shell) -> None:
    """The DGX-B200 ran in 1 alone; what both ran got faster."""
    gates = ("slower", "missing", "slower,missing", "unknown", "never")
    assert [0, 1, 1, 0, 0] == [compare("--fail-on", gate).code for gate in gates]
    assert [1, 0, 1] == [back("--fail-on", gate).code for gate in ("slower", "missing", "Slower")]


@pytest.mark.usefixtures("two_releases")
def test_what_is_compared_can_be_narrowed(compare: Shell) -> None:
    found = json.loads(compare("--json", "--system", "dgx-h100", "--model", "LLAMA3-8B").stdout)
    assert (1, [], []) == (len(found["matched"]), found["only_a"], found["only_b"])
    code, _, err = compare("--system", "dgx-h10")
    assert (2, True) == (code, "--system: no results of 'dgx-h10'; did you mean dgx-h1" in err)
    _, out, _ = compare("--system", "dgx-b200")
    told = "Nothing to compare: megatron-core 2 has no results of --system dgx-b200.\n"
    assert out.startswith(told)


@pytest.mark.usefixtures("two_releases")
def test_what_does_not_exist_is_bad_input(perfdb: Shell, lab: Lab) -> None:
    for words, said in (
        (("1", "megatron-core 3"), "did you mean megatron-core 2 or megatron-core 1?"),
        (("1", "megatron-core 1"), "A and B are both megatron-core 1; name two; `perfdb trend`"),
        (("1", "2", "--db", "none.sqlite"), "none.sqlite: no database here"),
    ):
        code, out, err = perfdb("compare", "--db", address(lab.store), *words)
        assert (2, "", True) == (code, out, said in err)


def test_work_of_another_batch_size_is_hinted_at(compare: Shell, ran: Ran) -> None:
    ran("1")
    ran("2", case=case(global_batch_size=256))
    only_a, only_b = compare().stdout.split("Only in megatron-core ")[1:]
    assert "B has it at GBS 256" in only_a
    assert "B has it" not in only_b


def test_two_releases_with_nothing_in_common_say_why_and_succeed(
    perfdb: Shell, sqlite: URL
) -> None:
    other = case(framework="dfm", model="wan2.1-14b")
    later = published(case=other, release=Release(framework="dfm", version="26.02"))
    stored(sqlite, published())
    stored(sqlite, later, page="other.md")
    asked = ("compare", "25.04", "26.02", "--db", address(sqlite))
    said = "Nothing to compare: nemo 25.04 and dfm 26.02 share no work: different frameworks"
    code, out, err = perfdb(*asked)
    assert (0, "", True) == (code, err, said in out)
    code, out, err = perfdb(*asked, "--json")
    found = json.loads(out)
    assert (0, [], 1, 1) == (code, found["matched"], len(found["only_a"]), len(found["only_b"]))
    assert said in err


def test_published_figures_are_compared_and_printed_by_their_digits(
    perfdb: Shell, sqlite: URL
) -> None:
    """3332.5 is not rounded to the even 3,332; 492.50 and 492.51 may be one number."""
    tflops, tokens = "model_tflops_per_sec_per_gpu", "tokens_per_sec_per_gpu"
    for version, texts in (
        ("25.02", {tflops: "492.50"}),
        ("25.04", {tflops: "492.51", tokens: "3332.5"}),
        ("25.07", {tokens: "3331"}),
    ):
        row = published(
            release=Release(framework="nemo", version=version),
            figures=Figures(**{field: float(text) for field, text in texts.items()}),
            printed=texts,
        )
        stored(sqlite, row, page=f"{version}.md")
    asked = partial(perfdb, "compare", "--db", address(sqlite))
    out = asked("25.02", "25.04").stdout
    assert all(said in out for said in (" 492.50 ", " 492.51 ", "same"))
    assert "3,332.5" in asked("25.04", "25.07").stdout
    (match,) = json.loads(asked("25.02", "25.04", "--json").stdout)["matched"]
    assert (None, None, "same") == (match["low"], match["high"], match["verdict"])


def test_gates_close_on_what_failed(compare: Shell, ran: Ran) -> None:
    """Also where the runner is gone and did not say how the run ended."""
    ran("1")
    ran("1", case=case(num_gpus=16))
    ran("2", outcome="out_of_memory")
    ran("2", outcome=None, case=case(num_gpus=16))
    code, out, err = compare("--fail-on", "slower,missing")
    assert (1, "") == (code, err)
    for said in ("failed: out of memory", "failed: incomplete", "2 matched: 2 failed."):
        assert said in " ".join(out.split())
    silent = compare("--fail-on", "slower")
    assert (0, 1) == (silent.code, compare("--fail-on", "slower,unknown").code)
    assert "warning: 2 failed; --fail-on missing would fail here\n" == silent.stderr


def test_what_is_slower_by_less_than_asked_closes_no_gate(compare: Shell, ran: Ran) -> None:
    """12/12.36 is 2.9 % less."""
    ran("1", 12.0)
    ran("2", 12.36)
    rate = "tokens_per_sec_per_gpu"
    least = ((), ("1%",), ("4 %",), ("4%", f"{rate}=2%"), ("2%", f"{rate}=4%"), (f"{MEMORY}=9",))
    asked = [[word for one in some for word in ("--min-change", one)] for some in least]
    assert [1, 1, 0, 1, 0, 1] == [compare("--fail-on", "slower", *more).code for more in asked]
    assert "1 slower" in compare("--min-change", "4%").stdout
    wrong = compare("--min-change", "mfuu=4%")
    assert (2, True) == (wrong.code, "no metric 'mfuu'; did you mean mfu" in wrong.stderr)


def test_runs_that_fail_beside_one_that_finishes_close_the_gate(compare: Shell, ran: Ran) -> None:
    for version in ("1", "2"):
        ran(version)
    for _ in range(2):
        ran("2", outcome="out_of_memory")
    code, out, err = compare("--fail-on", "slower,missing", "--margin", "3%")
    [match] = json.loads(compare("--json").stdout)["matched"]
    said = "2 of 3 runs failed: out of memory"
    assert (1, "", True) == (code, err, said in out.replace("\n", " "))
    assert ("can't tell", None, said) == (match["verdict"], match["failed_a"], match["failed_b"])


@pytest.mark.parametrize(
    ("of_a", "of_b", "code"),
    [
        (("out_of_memory",), ("out_of_memory",), 0),  # as often as before
        ((), ("timed_out",), 1),
        ((), ("interrupted",), 0),  # stopped from outside, and run anew
    ],
)
def test_only_more_failures_than_before_close_it(
    compare: Shell, ran: Ran, of_a: tuple[str, ...], of_b: tuple[str, ...], code: int
) -> None:
    for version, outcomes in (("1", of_a), ("2", of_b)):
        ran(version)
        for outcome in outcomes:
            ran(version, outcome=outcome)
    assert code == compare("--fail-on", "missing").code


def test_versions_of_several_frameworks_are_compared_in_one_command(
    perfdb: Shell, sqlite: URL
) -> None:
    """NeMo is 10 % slower, AutoModel as fast, and DFM lacks the new version."""
    rates = {"nemo": (1000, 900), "automodel": (1000, 1000), "dfm": (1000,)}
    for framework, known in rates.items():
        for version, rate in zip(("25.09", "25.11"), known, strict=False):
            row = published(
                case=case(framework=framework),
                release=Release(framework=framework, version=version),
                figures=Figures(tokens_per_sec_per_gpu=rate),
            )
            stored(sqlite, row, page=f"{framework}-{version}.md")
    asked = partial(perfdb, "compare", "25.09", "25.11", "--db", address(sqlite), "--fail-on")
    code, out, err = asked("slower")
    assert (1, "") == (code, err)
    first, second = out.index("A is automodel 25.09"), out.index("A is nemo 25.09")
    assert first < second
    assert "Nothing to compare: dfm 25.11 has no results." in out
    assert out.endswith("3 frameworks: 2 matched: 1 slower, 1 same. 1 only in A, 0 only in B.\n")
    found = json.loads(asked("slower", "--json").stdout)["matched"]
    assert {("automodel", "same"), ("nemo", "slower")} == {
        (one["framework"], one["verdict"]) for one in found
    }
    narrowed = (asked("slower", "--framework", "automodel").code, asked("missing").code)
    assert (0, 1) == narrowed


def test_a_version_in_several_containers_asks_to_name_one(
    compare: Shell, lab: Lab, perfdb: Shell
) -> None:
    """In x the work is 5 % slower in 2, which y hides."""
    for version, box, seconds in (("1", "x", 12.0), ("1", "y", 12.6), ("2", "x", 12.6)):
        boxed = Release(framework="megatron-core", version=version, container=box)
        lab.ran(version, seconds, release=boxed)
    pooled, named = compare("--fail-on", "slower"), "megatron-core 1 [x]"
    alone = perfdb("compare", named, "2", "--db", address(lab.store), "--fail-on", "slower")
    said = "the runs of megatron-core 1 are of several containers: name one"
    assert pooled.stderr.startswith(f"warning: {said}, such as '{named}'\n")
    assert "2 containers, median" in " ".join(pooled.stdout.split())
    assert (1, "") == (alone.code, alone.stderr)


@pytest.fixture
def impossible(ran: Ran) -> None:
    """2 takes 4.05 s for 128 × 8,192 tokens: 1,666 TFLOP/s of a GPU that has 989."""
    ran("1", TEN_STEPS)
    ran("2", [time / 3 for time in TEN_STEPS])


@pytest.mark.usefixtures("impossible")
def test_what_has_an_open_error_is_not_judged(back: Shell, compare: Shell) -> None:
    """From 2 to 1 it is a third as fast, and that is no regression. A gate without a verdict is
    no gate: it closes."""
    code, out, err = back("--fail-on", "slower,unknown")
    told = "1 not judged because of open audit errors (⚑); see `perfdb audit` or use --judge-all\n"
    assert (1, NOTHING_JUDGED) == (code, err)
    assert "A: measured, ⚑ open errors; B: measured" in out
    assert "1 matched: 1 not judged. 0 only in A, 0 only in B." in out
    assert out.endswith(told)
    _, out, err = back("--format", "json")
    (match,) = json.loads(out)["matched"]
    assert ("not judged", True, False, told) == (
        match["verdict"], match["has_open_errors_a"], match["has_open_errors_b"], err,
    )  # fmt: skip
    (match,) = json.loads(compare("--json").stdout)["matched"]
    assert ("not judged", False, True, pytest.approx(3)) == (
        match["verdict"], match["has_open_errors_a"], match["has_open_errors_b"], match["ratio"],
    )  # fmt: skip
    code, out, err = back("--judge-all", "--fail-on", "slower")
    assert (1, "", False) == (code, err, "⚑" in out)


@pytest.mark.usefixtures("impossible")
@pytest.mark.parametrize("place", ["data/acknowledged.yaml", "elsewhere.yaml"])
def test_an_error_that_is_accepted_is_judged(
    compare: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """By the project's reviewed file, where it is, or by the one that is named."""
    reviewed = tmp_path / place
    reviewed.parent.mkdir(exist_ok=True)
    why = "reason: invented, by: A. Person, date: 2026-01-31"
    reviewed.write_text(f"- {{rule: peak, {why}}}\n- {{rule: flops_formula, {why}}}\n")
    monkeypatch.chdir(tmp_path)
    named = ("--acknowledged", place) if place == "elsewhere.yaml" else ()
    assert "1 matched: 1 faster." in compare(*named).stdout


def test_more_memory_is_invisible_by_time_and_closes_the_gate_by_memory(
    compare: Shell, lab: Lab, perfdb: Shell
) -> None:
    """58 and 74 GB: 74 ÷ 58 = 1.276, once in the warm-up. By default they are shown beside."""
    for version, peak_gb in (("1", 58), ("2", 74)):
        run = write_run(lab.folder, run_id=f"m{version}", release=release(version))
        warmup, *others = factories.steps((12.0,) * 10, **{MEMORY: peak_gb * 10**9 - 10**8})
        peak = warmup.model_copy(update={MEMORY: peak_gb * 10**9})
        factories.write_steps(run, [peak, *others])
        stored(lab.store, run)
    plain, memory = (compare("--json", "--fail-on", "slower", *more)
                     for more in ((), ("--metric", MEMORY)))  # fmt: skip
    assert (0, 1) == (plain.code, memory.code)
    [by_time], [by_memory] = (json.loads(done.stdout)["matched"] for done in (plain, memory))
    assert ("can't tell", 58 * 10**9, 74 * 10**9) == tuple(
        by_time[name] for name in ("verdict", f"{MEMORY}_a", f"{MEMORY}_b")
    )
    assert ("worse", 58 * 10**9, 74 * 10**9, None) == tuple(
        by_memory[name] for name in ("verdict", "a", "b", "low")
    )
    table = compare("--metric", MEMORY).stdout
    for said in ("Peak memory (bytes)", "58,000,000,000", "74,000,000,000", "1.276", "1 worse"):
        assert said in table
    followed = perfdb("trend", "llama3-8b", "--db", address(lab.store), "--metric", MEMORY,
                      "--fail-on", "regression")  # fmt: skip
    said = "1 followed over releases: 1 worse than before"
    assert (1, True, True) == (
        followed.code, "first worse: 2" in followed.stdout, said in followed.stdout,
    )  # fmt: skip


@pytest.mark.parametrize("metric", ["tokens_per_sec_per_gpu", "model_tflops_per_sec_per_gpu"])
def test_a_run_that_regains_what_was_lost_has_recovered(
    lab: Lab, perfdb: Shell, metric: str
) -> None:
    for version, seconds in (("1", 12.0), ("2", 18.0), ("3", 12.05)):
        lab.ran(version, seconds)
    code, out, _ = perfdb(
        "compare", "2", "3", "--db", address(lab.store), "--metric", metric, "--json"
    )
    (match,) = json.loads(out)["matched"]
    assert (0, "recovered") == (code, match["verdict"])


def test_verdicts_read_nothing_of_earlier_releases_that_is_not_there(lab: Lab) -> None:
    """By every figure, of runs and of rows of pages, against what is read as a whole."""
    for version, rate in (("1", 1_000), ("2", 640)):
        lab.ran(version, TEN_STEPS if version == "1" else FASTER)
        figures = Figures(tokens_per_sec_per_gpu=rate, model_tflops_per_sec_per_gpu=50)
        row = published(release=release(version), figures=figures)
        stored(lab.store, row, page=f"{version}.md")
    with reading_current(lab.store) as connection:
        whole, part = (
            sorted(queries.read(connection, question), key=lambda it: it.result_id)
            for question in (queries.current(), queries.compared())
        )
    assert 4 == len(whole) == len(part)
    sides, parts = ([Side((it,)) for it in some] for some in (whole, part))
    for metric in METRICS:
        for one, other in permutations(range(4), 2):
            found = judge(parts[one], parts[other], metric)
            assert judge(sides[one], sides[other], metric) == found
