"""Pages of scaling: which results are a series, and its efficiency."""

from fractions import Fraction

import pytest
from bs4 import BeautifulSoup
from hypothesis import given
from hypothesis import strategies as st

from perfdb.record import Severity
from perfdb.site.data import Audited, SiteResult
from perfdb.site.pages import scaling
from tests.factories import finding
from tests.site.samples import WRONG, result, row, site_data, soup, table, words


def page_of(*results: SiteResult, audited: tuple[Audited, ...] = ()) -> BeautifulSoup:
    """The page of the one release and system that has a series."""
    _, page = scaling.pages(site_data(results, audited))
    return soup(page)


def nemotron4() -> list[SiteResult]:
    """The recipe's rows of Nemotron-4 15B in BF16, of no release."""
    sizes = ((16, 98_550.0), (64, 392_725.0), (2048, 12_069_940.0))
    return [
        row(model="nemotron4-15b", model_title="Nemotron-4 15B", release=None, precision="bf16",
            num_gpus=gpus, global_batch_size=4 * gpus, sequence_length=4096, fsdp_enabled=False,
            tokens_per_sec=total, tokens_per_sec_per_gpu=None)
        for gpus, total in sizes
    ]  # fmt: skip


def test_efficiency_and_days_follow_from_the_published_totals() -> None:
    """392,725 ÷ 64 of 98,550 ÷ 16 is 99.6 %; 12,069,940 ÷ 2,048 is 95.7 %.

    10¹² ÷ 98,550 ÷ 86,400 = 117.4 days.
    """
    shown = page_of(*nemotron4())
    columns = ("GPUs", "Efficiency", "Tokens/s, all GPUs", "Days to 1T tokens")
    assert [tuple(line[it] for it in columns) for line in table(shown)] == [
        ("16", "100.0%", "98,550", "117.4"),
        ("64", "99.6%", "392,725", "29.47"),
        ("2,048", "95.7%", "12,069,940", "0.9589"),
    ]
    assert words(shown.select_one("p.perf-notes")) == "All rows: FSDP off."


@pytest.mark.parametrize(
    "other",
    [
        {"sequence_length": 4096}, {"precision": "fp8_cs"}, {"release": "0.9.1"},
        {"global_batch_size": 100}, {"flag": WRONG}, {"model": "llama2-7b"},
    ],
)  # fmt: skip
def test_other_work_is_no_series(other: dict[str, object]) -> None:
    assert site_data([result(), result(num_gpus=16)]).scaling
    assert not site_data([result(), result(num_gpus=16, **other)]).scaling


def test_the_fastest_is_shown_and_rows_with_open_errors_are_counted() -> None:
    """What differs between the scales has a column."""
    slow = result(num_gpus=16, tokens_per_sec_per_gpu=1.0, tensor_parallel=2)
    fast = result(num_gpus=16, tokens_per_sec_per_gpu=2.0, tensor_parallel=4)
    wrong = result(num_gpus=32, tokens_per_sec_per_gpu=161_817.5, flag=WRONG)
    shown = page_of(result(num_gpus=8, tensor_parallel=1), fast, slow, wrong)
    assert [(line["GPUs"], line["TP"]) for line in table(shown)] == [("8", "1"), ("16", "4")]
    assert "1 row with open errors is left out." in words(shown)


def test_an_efficiency_above_100_percent_leads_to_what_may_be_why() -> None:
    """32,000 to 41,600 tokens/s/GPU is 130 %, with another layout."""
    results = [
        result(num_gpus=gpus, tokens_per_sec_per_gpu=rate, tensor_parallel=size,
               global_batch_size=16 * gpus, result_id=gpus)
        for gpus, rate, size in ((8, 32_000.0, 4), (16, 31_000.0, 4), (32, 41_600.0, 2))
    ]  # fmt: skip
    known = finding(Severity.INFO, rule="scaling")
    audited = Audited(result=results[2], anchor="result-32", findings=(known,))
    shown = page_of(*results, audited=(audited,))
    assert [line["Efficiency"] for line in table(shown)] == ["100.0%", "96.9%", "130.0% *"]
    [note] = shown.select("p[id$='-above']")
    assert words(note) == (
        "* Above 100 % at 32 GPUs: each GPU is faster than at the smallest scale, 8 GPUs. "
        "These settings differ: TP. The audit's findings: 32 GPUs ."
    )
    [entry] = note.select("a")
    assert str(entry["href"]).endswith("megatron-core/0.16.0#result-32")


@pytest.mark.parametrize(
    ("rates", "is_marked"),
    [
        ((1200.0, 1201.0), False),  # half a unit of 1,200 and of 1,201 is 0.08 %
        ((1200.0, 1202.0), True),
        ((32_000.5, 32_010.5), False),  # 100.03 % is printed as 100.0 %
    ],
)
def test_rounding_alone_is_not_above_100_percent(
    rates: tuple[float, float], *, is_marked: bool
) -> None:
    results = [
        result(num_gpus=gpus, global_batch_size=16 * gpus, tokens_per_sec_per_gpu=rate)
        for gpus, rate in zip((8, 16), rates, strict=True)
    ]
    assert bool(page_of(*results).select("p[id$='-above']")) == is_marked


SIZES = st.tuples(st.integers(1, 64), st.integers(1, 256), st.floats(1, 1e6))


@given(st.lists(SIZES, min_size=1, max_size=9))
def test_a_series_is_in_order_and_keeps_its_batch(sizes: list[tuple[int, int, float]]) -> None:
    results = [
        result(num_gpus=gpus, global_batch_size=gbs, tokens_per_sec_per_gpu=rate)
        for gpus, gbs, rate in sizes
    ]
    pages = site_data(results).scaling
    for one in (it for page in pages for model in page.models for it in model.series):
        counts = [point.num_gpus for point in one.points]
        assert sorted(set(counts)) == counts
        weak = one.scaling == "weak"
        batches = {Fraction(it.global_batch_size, it.num_gpus if weak else 1) for it in one.points}
        assert len(batches) == 1
