"""Precisions side by side: which results are the same work, and how much faster each is."""

import pytest
from bs4 import BeautifulSoup
from hypothesis import given
from hypothesis import strategies as st

from perfdb.metrics import METRICS
from perfdb.site import precisions
from perfdb.site.bests import FLOPS, RATE
from perfdb.site.data import Flag, Result
from perfdb.site.precisions import MOST_WORKS, newest, works_of
from tests.site import samples
from tests.site.conftest import EVIL
from tests.site.samples import address, result, soup

WRONG = Flag(said="1 error", kind="error", anchor="result-0")

NEMOTRON4 = (
    (16, 64, "bf16", 98550.0),
    (64, 256, "bf16", 392725.0),
    (2048, 8192, "bf16", 12069940.0),
    (16, 64, "fp8", 132396.0),
    (64, 256, "fp8", 529584.0),
    (2048, 8192, "fp8", 16054752.0),
)
"""GPUs, GBS, precision and tokens/s of all GPUs, as the recipe's tables of Nemotron-4 15B print
them."""


def nemotron4() -> list[Result]:
    return [
        samples.nemotron4(
            gpus,
            gbs,
            precision=precision,
            micro_batch_size=2,
            tensor_parallel=2,
            tokens_per_sec=total,
            source_line=line,
        )
        for line, (gpus, gbs, precision, total) in enumerate(NEMOTRON4, start=1)
    ]


def pair(**changed: object) -> list[Result]:
    """The same work in BF16, and in FP8-CS with what is given changed."""
    fields = {"precision": "fp8_cs", "tokens_per_sec_per_gpu": 48545.25} | changed
    return [result(), result(**fields)]


def made(*results: Result) -> BeautifulSoup:
    return soup(precisions.compared("Llama 3 8B", results, address).text)


def rows(*results: Result) -> list[dict[str, str]]:
    """The rows of every table, by the titles of their columns."""
    found = []
    for table in made(*results).select("table"):
        heads = [head.get_text() for head in table.select("thead th")]
        for row in table.select("tbody tr"):
            cells = [cell.get_text() for cell in row.find_all(["th", "td"])]
            found.append(dict(zip(heads, cells, strict=True)))
    return found


def note(*results: Result) -> str:
    [found] = made(*results).select(".perf-note")
    return found.get_text()


def test_the_ratio_is_that_of_the_published_totals() -> None:
    """98,550 ÷ 16 = 6,159 and 132,396 ÷ 16 = 8,275; 132,396 ÷ 98,550 = 1.343, 529,584 ÷ 392,725 =
    1.348, 16,054,752 ÷ 12,069,940 = 1.330."""
    wanted = [
        ("16", "6,159 (computed)", "8,275 (computed)", "1.34"),
        ("64", "6,136 (computed)", "8,275 (computed)", "1.35"),
        ("2,048", "5,894 (computed)", "7,839 (computed)", "1.33"),
    ]
    columns = ("GPUs", "BF16", "FP8", "FP8 ÷ BF16")
    assert wanted == [tuple(row[name] for name in columns) for row in rows(*nemotron4())]


def test_a_computed_figure_says_what_it_is_computed_from() -> None:
    assert "tokens/s of all GPUs ÷ GPUs" in note(*nemotron4())
    assert "tokens/s of all GPUs ÷ GPUs" not in note(*pair())
    [head] = made(*pair()).find_all("abbr", string="FP8-CS ÷ BF16")
    assert f"{METRICS[RATE].title} in FP8-CS ÷ that in BF16, computed" == head["title"]


def test_precisions_stand_in_the_order_of_the_catalogue_behind_bf16() -> None:
    """FP32 comes before BF16 in the catalogue; one that it lacks comes last."""
    names = ("other", "nvfp4", "fp8_mx", "fp32")
    results = [result(), *(result(precision=name) for name in names)]
    titles = ("FP32", "FP8-MX", "NVFP4", "other")
    heads = list(rows(*results)[0])
    wanted = ["BF16", *(head for one in titles for head in (one, f"{one} ÷ BF16"))]
    assert wanted == heads[2 : 2 + len(wanted)]


def test_a_precision_that_a_work_was_not_done_in_is_unknown() -> None:
    larger = {"num_gpus": 16, "global_batch_size": 256}
    small, large = rows(*pair(), result(**larger), result(precision="nvfp4", **larger))
    assert ("1.50", "–", "–") == (small["FP8-CS ÷ BF16"], small["NVFP4"], small["NVFP4 ÷ BF16"])
    assert ("–", "–", "1.00") == (large["FP8-CS"], large["FP8-CS ÷ BF16"], large["NVFP4 ÷ BF16"])


@pytest.mark.parametrize(
    "results",
    [
        [],
        [result()],
        [result(), result(tensor_parallel=2)],
        [result(precision="fp8_cs"), result(precision="nvfp4")],
        [result(), result(precision=None)],
        pair(tokens_per_sec_per_gpu=None, step_time_s=None, model_tflops_per_sec_per_gpu=None),
        pair(withheld="the run failed"),
        pair(flag=WRONG),
        [result(flag=WRONG), result(precision="fp8_cs")],
    ],
)
def test_nothing_to_compare_is_nothing_said(results: list[Result]) -> None:
    assert "" == precisions.compared("Llama 3 8B", results, address).text


@pytest.mark.parametrize(
    ("field", "other"),
    [
        ("framework", "nemo"),
        ("release", "0.9.1"),
        ("system", "dgx-b200"),
        ("task", "sft"),
        ("variant", "automodel"),
        ("qualifiers", "dropout"),
        ("origin", "published"),
        ("num_gpus", 16),
        ("sequence_length", 4096),
        ("global_batch_size", 256),
        ("window", "last"),
    ],
)
def test_other_work_is_not_compared(field: str, other: object) -> None:
    assert [] == works_of(pair(**{field: other}))
    assert 1 == len(works_of(pair()))


def test_of_several_configurations_the_fastest_is_taken_and_what_differs_is_noted() -> None:
    fast = {"tokens_per_sec_per_gpu": 60000.0, "tensor_parallel": 2, "fsdp_enabled": True}
    results = [*pair(tensor_parallel=1), result(precision="fp8_cs", **fast, kernels="fused")]
    assert ["60,000"] == [row["FP8-CS"] for row in rows(*results)]
    [said] = made(*results).select(".perf-notes li")
    wanted = "TP 2 against –, FSDP on against –, other kernels."
    assert f"FP8-CS is configured differently from BF16: {wanted}" == said.get_text()
    [mark] = made(*results).select("tbody th .perf-mark a")
    assert f"#{said['id']}" == mark["href"]


@pytest.mark.parametrize(
    ("its", "that", "said"),
    [
        ({"recompute": "full"}, {"recompute": "none"}, "recompute full against none"),
        ({"recompute": "full", "init": "a"}, {"init": "a"}, "recompute full against –"),
        (
            {},
            {"recompute": "full", "layers": 1200},
            "layers – against 1,200, recompute – against full",
        ),
        ({"overlap": True}, {"overlap": False}, "overlap 1 against 0"),
        (
            dict.fromkeys("fedcba", 1),
            {},
            "a 1 against –, b 1 against –, c 1 against –, d 1 against –, 2 other options",
        ),
        ({"e": EVIL}, {}, f"e {EVIL} against –"),
    ],
)
def test_options_that_differ_are_named_with_their_values(
    its: dict[str, object], that: dict[str, object], said: str
) -> None:
    results = [result(options=that), result(precision="fp8_cs", options=its)]
    [note] = made(*results).select(".perf-notes li")
    assert f"FP8-CS is configured differently from BF16: {said}." == note.get_text()


def test_one_layout_in_every_precision_needs_no_note() -> None:
    assert [] == made(*nemotron4()).select(".perf-notes, .perf-mark")


def test_rows_with_open_errors_are_left_out_and_counted() -> None:
    wrong = result(precision="fp8_cs", tokens_per_sec_per_gpu=99999.0, flag=WRONG)
    assert ["1.50"] == [row["FP8-CS ÷ BF16"] for row in rows(*pair(), wrong)]
    assert "1 row with open errors is left out." in note(*pair(), wrong)
    assert "open errors" not in note(*pair())


def test_flops_are_compared_where_tokens_are_not_known_and_within_a_convention() -> None:
    """700 ÷ 400 = 1.75; the same figures of two conventions are two quantities."""
    no_tokens = {"tokens_per_sec_per_gpu": None, "step_time_s": None}
    base = result(**no_tokens, model_tflops_per_sec_per_gpu=400.0, flops_convention="causal")
    fast = base.model_copy(update={"precision": "fp8_cs", "model_tflops_per_sec_per_gpu": 700.0})
    assert ["1.75"] == [row["FP8-CS ÷ BF16"] for row in rows(base, fast)]
    assert f"By precision: {METRICS[FLOPS].title}" in made(base, fast).get_text()
    other = fast.model_copy(update={"flops_convention": "full"})
    assert [] == works_of([base, other])
    [tokens] = works_of(pair(flops_convention="full"))
    assert RATE == tokens.rate


def test_the_newest_release_that_did_such_work_is_shown_for_each_framework_and_system() -> None:
    """The newest of all was run in FP8 alone; a rolling branch is newer than no number."""
    old, build, new, rolling, nemo, elsewhere = (
        [one.model_copy(update=changed) for one in pair()]
        for changed in (
            {"release": "0.9"},
            {"release": "0.10+c4d5e6f"},
            {"release": "0.10+1a2b3c4", "build": 1},
            {"release": "main"},
            {"framework": "nemo", "release": "25.04"},
            {"release": "0.9", "system": "dgx-b200"},
        )
    )
    alone = result(release="0.11", precision="fp8_cs")
    works = newest(works_of([*elsewhere, *old, *build, *new, *rolling, *nemo, alone]))
    assert [
        ("dgx-h100", "megatron-core", "0.10+1a2b3c4"),
        ("dgx-h100", "nemo", "25.04"),
        ("dgx-b200", "megatron-core", "0.9"),
    ] == [(one.base.system, one.base.framework, one.base.release) for one in works]


def test_what_is_beyond_the_first_works_of_a_system_is_folded() -> None:
    """No row is lost, and each has a name of its own."""
    counts = range(1, MOST_WORKS + 4)
    results = [one.model_copy(update={"num_gpus": count}) for count in counts for one in pair()]
    results += [one.model_copy(update={"system": "dgx-b200"}) for one in pair()]
    found = made(*results)
    assert ["3 rows more"] == [one.get_text() for one in found.select("details > summary")]
    assert 3 == len(found.select("details tbody tr"))
    assert MOST_WORKS + 1 + 3 == len(found.select("tbody tr"))
    ids = [str(row["id"]) for row in found.select("tbody tr")]
    assert len(results) / 2 == len(ids) == len(set(ids))


def test_names_full_of_markup_print_as_text() -> None:
    """A precision that the catalogue lacks keeps its name, and so does a variant."""
    changed = {"variant": EVIL, "qualifiers": EVIL}
    results = [result(**changed), result(**changed, precision=EVIL), *pair(kernels=EVIL)]
    found = made(*results)
    assert [] == found.select("script, em, code")
    assert EVIL in rows(*results)[0]
    assert EVIL in [row["Variant"] for row in rows(*results)]


FIELDS = {
    "num_gpus": st.sampled_from([8, 16]),
    "precision": st.sampled_from([None, "bf16", "fp8_cs", "nvfp4"]),
    "tokens_per_sec_per_gpu": st.one_of(st.none(), st.floats(1.0, 1e6)),
    "model_tflops_per_sec_per_gpu": st.one_of(st.none(), st.floats(1.0, 1e4)),
    "step_time_s": st.none(),
    "flag": st.sampled_from([None, WRONG]),
}


@given(st.lists(st.fixed_dictionaries(FIELDS), max_size=12))
def test_each_work_has_one_row_and_in_each_precision_the_highest_rate_of_it(
    given_fields: list[dict[str, object]],
) -> None:
    results = [result(**fields) for fields in given_fields]
    works = works_of(results)
    assert len(works) == len({one.base.num_gpus for one in works})
    for work in works:
        for name, best in work.best.items():
            same = [
                getattr(one, work.rate) or 0.0
                for one in results
                if (one.num_gpus, one.precision) == (work.base.num_gpus, name)
                and not one.has_open_errors
            ]
            assert max(same) == getattr(best, work.rate)
            speed_up = work.speed_up(name)
            assert speed_up == pytest.approx(max(same) / getattr(work.base, work.rate))
