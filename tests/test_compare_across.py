"""Two systems beside each other. The published figures are those of NeMo 25.04's page."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import click
import pytest
from sqlalchemy import URL

from perfdb.compare import across, report
from perfdb.ingest import Options, ingest
from tests.factories import case
from tests.shell import Shell
from tests.test_compare import at, printed

PAGE = Path(__file__).parents[1] / "data" / "published" / "nemo-25.04.md"
TFLOPS = "model_tflops_per_sec_per_gpu"
GB200, H100 = "dgx-gb200", "dgx-h100"
RATE = "tokens_per_sec_per_gpu"


@pytest.fixture
def compare(sqlite: URL, perfdb: Shell) -> Shell:
    """`perfdb compare nemo 25.04` with itself, across systems."""
    ingest([PAGE], sqlite, Options())
    names = ("nemo 25.04", "25.04", "--db", sqlite.render_as_string(hide_password=False))
    return partial(perfdb, "compare", *names, "--across", "systems")


def test_the_systems_of_a_page_are_paired_without_a_verdict(compare: Shell) -> None:
    """The page has 13 works on either system; 2 of each are not on the other."""
    code, out, _ = compare("--system", GB200, "--system", H100, "--json")
    found = json.loads(out)
    by_work = {(it["model"], it["task"]): it for it in found["pairs"]}
    pair = by_work["llama3-70b", "pretrain"]
    assert (0, 11, 2, 2) == (code, len(by_work), found["only_a"], found["only_b"])
    assert (4035, 1621, pytest.approx(1621 / 4035)) == (pair["a"], pair["b"], pair["ratio"])
    assert (GB200, H100, "systems") == (pair["system_a"], pair["system_b"], pair["level"])
    assert {"tensor_parallel": [1, 4], "pipeline_parallel": [1, 8]}.items() <= pair[
        "differences"
    ].items()
    assert [128, 1024] == by_work["llama3.1-405b", "pretrain"]["differences"]["num_gpus"]
    assert not {"verdict", "low", "system"} & pair.keys()


def test_a_table_says_what_differs_and_which_system_is_which(compare: Shell) -> None:
    code, out, err = compare("--system", GB200, "--system", H100, "--model", "gpt3-175b")
    assert (0, "") == (code, err)
    for said in (
        "A is nemo 25.04 on dgx-gb200, B is nemo 25.04 on dgx-h100",
        "GPT-3 175B · Pre-training · FP8 · sequence 2,048", "128 × DGX-GB200 → 512 × DGX-H100",
        "GBS 256 → 2,048", "1,804", "824", "0.457", "1 on both. 0 only on A, 0 only on B.",
    ):  # fmt: skip
        assert said in out
    for word in ("slower", "faster", "can't tell", "not judged"):
        assert word not in out


def test_open_errors_are_said_first_so_that_no_terminal_cuts_them_off(
    compare: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The LoRA row of the page's DGX-GB200 has tokens/s or TFLOP/s wrong by 2.00."""
    asked = ("--system", H100, "--system", GB200, "--model", "llama3-70b")
    sizes, flag = "8 × DGX-H100 → 8 × DGX-GB200", "⚑ open errors in B"
    lines = compare(*asked).stdout.splitlines()
    assert lines[lines.index(sizes) - 1] == flag
    assert 1 == sum("⚑" in line for line in lines)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    out = click.unstyle(compare(*asked).stdout)
    assert f"    {flag} · {sizes} · best of each" in out
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "takes two systems"),
        (("--system", GB200), "takes two systems"),
        (("--system", GB200, "--system", GB200), "takes two systems"),
        (("--system", GB200, "--system", "dgx-h10"), "did you mean dgx-h1"),
        (("--system", GB200, "--system", H100, "--fail-on", "slower"), "gives no verdict"),
        (("--system", GB200, "--system", H100, "--format", "junit"), "table or json"),
    ],
)
def test_what_does_not_name_two_systems_or_asks_for_a_verdict_is_bad_input(
    compare: Shell, words: tuple[str, ...], said: str
) -> None:
    code, out, err = compare(*words)
    assert (2, "", True) == (code, out, said in err)


class TestPairs:
    def test_the_best_of_a_precision_family_at_any_size(self):
        """FP8 recipes are one family, BF16 is another; by tokens/s/GPU, not by the step."""
        a = [at(4.0, case=case(system=GB200, precision="fp8_cs")),
             at(3.0, case=case(system=GB200, precision="fp8_mx")),
             at(2.0, case=case(system=GB200))]  # fmt: skip
        b = [at(9.0, case=case(precision="fp8_cs", num_gpus=64))]
        found = across.paired(a, b)
        (pair,) = found.pairs
        assert (1, 0) == (found.only_a, found.only_b)
        assert (pytest.approx(3 / 9), RATE) == (pair.judgement.ratio, pair.metric)
        sizes = {"precision": ("fp8_mx", "fp8_cs"), "num_gpus": (8, 64)}
        assert sizes.items() <= pair.differences.items()
        assert "system" not in pair.differences

    def test_a_figure_with_open_errors_is_the_best_only_where_there_is_no_other(self):
        right, wrong = (
            at(4.0, case=case(system=GB200)),
            at(1.0, case=case(system=GB200, num_gpus=16), has_open_errors=True),
        )
        for a, expected in (([wrong, right], 4.0), ([wrong], 1.0)):
            (pair,) = across.paired(a, [at(8.0)]).pairs
            assert expected == pair.a.shown.step_time_s

    def test_flops_of_two_conventions_are_restated_or_have_no_ratio(self):
        """By hand, of Llama 3 8B at 8,192: 57.91 GFLOP per token in full, 51.47 under the mask."""
        a = printed(20_000.0, case=case(system=GB200), **{TFLOPS: 1158.3})
        b = printed(10_000.0, **{TFLOPS: 514.7})
        (pair,) = across.paired([a], [b], TFLOPS).pairs
        assert pytest.approx(0.5, rel=1e-3) == pair.judgement.ratio
        assert "B restated from causal as full" in report.remark(pair)
        others = (replace(it, model="acme") for it in (a, b))
        (pair,) = across.paired(*([it] for it in others), TFLOPS).pairs
        assert (None, True) == (pair.judgement.ratio, "GFLOP per token" in report.remark(pair))

    def test_what_is_published_is_not_paired_with_runs_where_both_have_both(self):
        on = case(system=GB200)
        found = across.paired([at(4.0, case=on), printed(1.0, case=on)], [at(8.0), printed(2.0)])
        assert [pytest.approx(0.5), pytest.approx(2.0)] == [
            it.judgement.ratio for it in found.pairs
        ]
