"""The best figures as bars: which results are drawn, and what a chart says of them."""

import pytest
from bs4 import BeautifulSoup

from perfdb.site import bests, models, systems
from perfdb.site.contents import Contents
from perfdb.site.data import Flag
from perfdb.site.subjects import Entries
from tests.site.conftest import EVIL
from tests.site.samples import address, model_page, published, result, soup, system_page


def chart_of(made: BeautifulSoup) -> tuple[str, str]:
    """What the first chart and the words below it say."""
    desc, note = made.select_one("svg desc"), made.select_one(".perf-note")
    assert desc is not None
    assert note is not None
    return desc.get_text(), note.get_text()


def test_the_chart_has_the_best_of_the_newest_releases_only() -> None:
    page = model_page(
        result(release="0.9.1", tokens_per_sec_per_gpu=99_999.0),
        result(),
        result(system="dgx-b200", system_title="DGX-B200", tokens_per_sec_per_gpu=50_000.0),
        result(tokens_per_sec_per_gpu=1.0, tensor_parallel=8),
    )
    title = soup(models.results(page, 0, address).text).select_one("svg desc")
    assert title is not None
    assert title.get_text() == (
        "Tokens/s/GPU. DGX-B200 · Megatron-Core 0.16.0 · BF16 · 8 GPUs: 50,000; "
        "DGX-H100 · Megatron-Core 0.16.0 · BF16 · 8 GPUs: 32,364."
    )


def test_a_row_with_open_errors_is_no_bar_and_is_counted() -> None:
    """5,611 contradicts itself; the screen reader hears the same as the eye sees."""
    wrong = Flag(said="1 error", kind="error", anchor="result-0")
    page = model_page(
        result(),
        result(system="dgx-gb200", system_title="DGX-GB200", tokens_per_sec_per_gpu=3238.0),
        result(
            system="dgx-b200",
            system_title="DGX-B200",
            tokens_per_sec_per_gpu=5611.0,
            flag=wrong,
        ),
    )
    made = soup(models.results(page, 0, address).text)
    assert made.svg is not None
    assert "DGX-GB200" in made.svg.get_text()
    assert "DGX-B200" not in made.svg.get_text()
    note = made.select_one(".perf-note")
    assert note is not None
    assert "1 row with open errors is left out." in note.get_text()


def test_bars_say_which_convention_they_follow_where_it_is_not_the_same() -> None:
    """Of one convention nothing has to be said."""
    alike = (result(flops_convention="causal"), result(model="b", flops_convention="causal"))
    other = result(model="c", model_title="C", flops_convention="full")
    labels = []
    for results in (alike, (*alike, other, result(model="d", model_title="D"))):
        page = system_page(*(it.model_copy(update={"model_title": it.model}) for it in results))
        desc = soup(systems.results(page, 0, address).text).select_one("svg desc")
        assert desc is not None
        labels.append(desc.get_text())
    assert "causal" not in labels[0]
    assert "b · causal · Megatron-Core" in labels[1]
    assert "c · full · Megatron-Core" in labels[1]
    assert "d · Megatron-Core" in labels[1]


def test_bars_of_several_sequence_lengths_say_theirs_and_hide_none_of_them() -> None:
    """A rate at 16,384 is no rate at 4,096; of one length nothing has to be said."""
    given = [
        result(sequence_length=length, system=system, system_title=system)
        for length, system in ((4096, "dgx-h100"), (16384, "dgx-h100"), (16384, "dgx-b200"))
    ]
    said, below = chart_of(soup(models.results(model_page(*given), 0, address).text))
    assert "dgx-b200 · sequence 16,384 · Megatron-Core" in said
    assert "dgx-h100 · sequence 4,096 · Megatron-Core" in said
    assert "dgx-h100 · sequence 16,384 · Megatron-Core" in said
    assert "a system, sequence length, framework, precision and number of GPUs," in below
    alike, below = chart_of(soup(models.results(model_page(*given[1:]), 0, address).text))
    assert "sequence" not in alike
    assert "a system, framework, precision and number of GPUs, in the newest release" in below


def test_bars_of_several_variants_say_theirs() -> None:
    """Two variants of a release on one system are two bars."""
    variants = ("megatron-core", "automodel")
    given = [published(variant=name, num_gpus=128) for name in variants]
    said, below = chart_of(soup(models.results(model_page(*given), 0, address).text))
    for title in ("Megatron-Core", "NeMo AutoModel"):
        assert f"DGX-GB300 · variant {title} · NeMo DFM main · 128 GPUs" in said
    assert "a system, variant, framework," in below
    page = model_page(published(), published(num_gpus=64))
    assert "variant" not in chart_of(soup(models.results(page, 0, address).text))[0]


def test_a_chart_warns_of_bars_of_different_frameworks_and_of_no_others() -> None:
    """They are two programs, and not one in two precisions."""
    other = result(framework="nemo", release="25.04", precision="fp8")
    for second, warned in ((other, True), (result(precision="fp8"), False)):
        _, below = chart_of(soup(models.results(model_page(result(), second), 0, address).text))
        assert warned == ("they do not compare precisions alone" in below)


@pytest.mark.parametrize(
    ("frameworks", "conventions", "said"),
    [
        (("nemo", "automodel"), (None, None), "; no convention is stated here."),
        (("nemo", "nemo"), (None, None), "; no convention is stated here."),
        (("nemo", "automodel"), ("full", None), "; no convention is stated where none is named."),
        (("nemo", "automodel"), ("full", "causal"), "."),
        (("nemo", "nemo"), ("full", "causal"), "."),
        (("nemo", "automodel"), ("causal", "causal"), None),
    ],
)
def test_a_chart_warns_of_flops_that_may_not_be_counted_alike(
    frameworks: tuple[str, str], conventions: tuple[str | None, ...], said: str | None
) -> None:
    """Of TFLOP/s; a token is one by every convention."""
    warning = "TFLOP/s/GPU of different programs or FLOPs conventions may count other FLOPs for the"
    given = [
        result(framework=name, flops_convention=convention, precision=precision)
        for name, convention, precision in zip(
            frameworks, conventions, ("bf16", "fp8"), strict=True
        )
    ]
    _, below = chart_of(soup(systems.results(system_page(*given), 0, address).text))
    assert (f"{warning} same work{said}" in below) if said else ("may count" not in below)
    _, below = chart_of(soup(models.results(model_page(*given), 0, address).text))
    assert "may count" not in below


def test_results_without_the_figure_that_is_drawn_are_counted() -> None:
    """Unknown or withheld; a row with open errors is counted once, as that."""
    given = [published(num_gpus=32 * count) for count in range(1, 4)]
    wrong = Flag(said="1 error", kind="error", anchor="result-0")
    unknown = (
        published(num_gpus=8, model_tflops_per_sec_per_gpu=None),
        published(num_gpus=16, withheld="the run was cut off"),
        published(num_gpus=24, model_tflops_per_sec_per_gpu=None, flag=wrong),
    )
    for more, said in (
        ((), None),
        (unknown[:1], "1 result has no TFLOP/s/GPU."),
        (unknown, "1 row with open errors is left out. 2 results have no TFLOP/s/GPU."),
    ):
        page = model_page(*given, *more)
        _, below = chart_of(soup(models.results(page, 0, address).text))
        assert (said in below) if said else ("no TFLOP/s/GPU" not in below)


def test_where_every_row_has_open_errors_a_sentence_stands_for_the_chart() -> None:
    """Of one row there would be no chart anyway."""
    wrong = result(flag=Flag(said="1 error", kind="error", anchor="result-0"))
    said = "No bars are drawn: all 2 rows of the newest releases have open errors."
    for given, notes in (
        ((wrong, wrong.model_copy(update={"num_gpus": 16})), [said]),
        ((wrong,), []),
        ((result(),), []),
    ):
        for made in (
            models.results(model_page(*given), 0, address),
            systems.results(system_page(*given), 0, address),
        ):
            assert notes == [one.get_text() for one in soup(made.text).select(".perf-note")]
            assert not soup(made.text).svg


def test_a_bars_colour_is_that_of_its_precisions_peak() -> None:
    """Blue, vermilion and green of the theme; grey where no peak is known to hold it against."""
    names = ("bf16", "fp16", "fp8", "fp8_mx", "nvfp4", "fp32", None, EVIL)
    given = [
        result(precision=name, tokens_per_sec_per_gpu=1000.0 - place)
        for place, name in enumerate(names)
    ]
    made = models.results(model_page(*given), 0, address).text
    bars = [path["style"] for path in soup(made).select("svg path") if "width: 12" in str(path)]
    found = [str(style).split("var(")[1].split(",")[0] for style in bars]
    blue, red, green = "--perf-step", "--perf-median", "--perf-good"
    grey = "--pst-color-text-muted"
    assert [blue, blue, red, red, green, grey, grey, grey] == found


def test_a_chart_of_one_bar_is_no_chart() -> None:
    assert soup(models.results(model_page(result()), 0, address).text).svg is None


def test_a_rate_that_follows_from_the_step_time_is_a_best_and_says_so() -> None:
    """64 samples of 4,096 tokens in 1.98 s on 16 GPUs are 8,275 tokens/s of each, more than 7,915;
    132,396 tokens/s of all of them, as printed, are as many."""
    stated = published(tokens_per_sec_per_gpu=7915.0, num_gpus=64)
    size = {"num_gpus": 16, "global_batch_size": 64, "sequence_length": 4096}
    for known in ({"step_time_s": 1.98}, {"tokens_per_sec": 132396.0}):
        computed = published(**size, **known)
        pages = models.KIND.pages(Contents(results=(stated, computed)))
        [index] = [page.data for page in pages if isinstance(page.data, Entries)]
        assert "DGX-GB300 8,275 (computed)" in models.index(index, address).text
        said, _ = chart_of(soup(models.results(model_page(stated, computed), 0, address).text))
        assert "16 GPUs · computed: 8,275" in said
        assert "64 GPUs: 7,915" in said
        assert bests.figure(computed.model_copy(update={"withheld": "cut off"}), bests.RATE) is None


def test_a_figure_that_is_withheld_or_unknown_is_in_no_chart() -> None:
    assert bests.figure(result(withheld="the run was cut off"), "mfu") is None
    assert bests.figure(result(mfu=None), "mfu") is None
    assert "tokens_per_sec_per_gpu" == bests.metric_for([result()], bests.OF_A_MODEL).name
    assert "model_tflops_per_sec_per_gpu" == bests.metric_for([published()], bests.OF_A_MODEL).name


def test_a_systems_chart_compares_models_by_their_flops() -> None:
    page = system_page(result(), result(model="llama3-70b", model_title="Llama 3 70B"))
    made = soup(systems.results(page, 0, address).text)
    desc = made.select_one("svg desc")
    assert desc is not None
    assert desc.get_text().startswith("TFLOP/s/GPU. Llama 3 70B")


def test_bars_say_which_are_measured_and_which_published_where_there_are_both() -> None:
    """In the label, and so to who hears the chart; where all are of one kind nobody has to ask."""
    ours = result(framework="nemo", release="25.04")
    theirs = published(
        framework="nemo", release="25.04", model="llama3-8b", model_title="Llama 3 8B",
        num_gpus=16, tokens_per_sec_per_gpu=30_000.0, raw={}, variant=None, sequence_length=8192,
    )  # fmt: skip
    both = soup(models.results(model_page(ours, theirs), 0, address).text).select_one("svg desc")
    assert both is not None
    assert "8 GPUs · measured: 32,364; " in both.get_text()
    assert "16 GPUs · published: 30,000." in both.get_text()
    alone = model_page(ours, result(framework="nemo", release="25.04", num_gpus=16))
    one = soup(models.results(alone, 0, address).text).select_one("svg desc")
    assert one is not None
    assert "measured" not in one.get_text()
