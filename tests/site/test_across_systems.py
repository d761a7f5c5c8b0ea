"""Systems side by side at the same work, and what a trillion tokens takes on each."""

import pytest

from perfdb.site import across_systems, bests, figures, tables
from perfdb.site.across_systems import sides_of
from perfdb.site.data import Flag, Result
from perfdb.site.profiles import MFU, ours
from tests.site.samples import address, published, soup

WRONG = Flag(said="1 error", kind="error", anchor="result-0")


def llama3_70b(system: str, num_gpus: int, rate: float, **changed: object) -> Result:
    """A row of Llama 3 70B on the page of NeMo Framework 25.04."""
    fields: dict[str, object] = {
        "framework": "nemo",
        "release": "25.04",
        "model": "llama3-70b",
        "model_title": "Llama 3 70B",
        "variant": None,
        "system": system,
        "system_title": system.upper(),
        "precision": "fp8",
        "num_gpus": num_gpus,
        "global_batch_size": 128,
        "sequence_length": 8192,
        "tokens_per_sec_per_gpu": rate,
        "model_tflops_per_sec_per_gpu": None,
        "raw": {},
    }
    return published(**(fields | changed))


def rows(*results: Result) -> list[dict[str, str]]:
    made = soup(across_systems.compared("Llama 3 70B", results, address).text)
    heads = [cell.get_text(strip=True) for cell in made.select("thead th")]
    return [
        dict(
            zip(
                heads,
                (cell.get_text(" ", strip=True) for cell in row.select("th, td")),
                strict=True,
            )
        )
        for row in made.select("tbody tr")
    ]


def test_a_system_is_held_against_the_first_that_did_the_same_work() -> None:
    """3,562 ÷ 1,621 = 2.197; 10¹² ÷ 1,621 ÷ 3,600 = 171,362 hours, ÷ 64 GPUs ÷ 24 = 111.6 days."""
    first, second = rows(llama3_70b("dgx-b200", 64, 3562.0), llama3_70b("dgx-h100", 64, 1621.0))
    assert ("DGX-H100", "1,621", "–") == tuple(
        first[it] for it in ("System", "Tokens/s/GPU", "Against")
    )
    assert ("171,362", "111.6") == (first["GPU-hours per 1T tokens"], first["Days to 1T tokens"])
    assert ("DGX-B200", "2.20 × DGX-H100") == (second["System"], second["Against"])
    assert "77,984" == second["GPU-hours per 1T tokens"]


def test_of_each_system_the_fastest_of_the_newest_release_is_taken() -> None:
    """An older release and a slower layout are in other tables."""
    old = llama3_70b("dgx-h100", 64, 9000.0, release="24.12")
    slow = llama3_70b("dgx-h100", 128, 1500.0)
    given = (old, slow, llama3_70b("dgx-h100", 64, 1621.0), llama3_70b("dgx-b200", 64, 3562.0))
    assert ["1,621", "3,562"] == [row["Tokens/s/GPU"] for row in rows(*given)]


def test_systems_are_held_against_each_other_at_the_same_gpus_and_batch_where_both_have_it() -> (
    None
):
    """1,600 ÷ 800 = 2; against 1,000 tokens/s/GPU on 64 GPUs it would be 1.6."""
    alone = llama3_70b("dgx-h100", 64, 1000.0)
    equal = llama3_70b("dgx-h100", 512, 800.0, global_batch_size=1024)
    given = (alone, equal, llama3_70b("dgx-b200", 512, 1600.0, global_batch_size=1024))
    assert [("512", "–"), ("512", "2.00 × DGX-H100")] == [
        (row["GPUs"], row["Against"]) for row in rows(*given)
    ]
    assert "Not the same work" not in across_systems.compared("Llama 3 70B", given, address).text


def test_other_numbers_of_gpus_and_other_batches_are_said_beside_the_ratio() -> None:
    other = llama3_70b("dgx-b200", 512, 1600.0, global_batch_size=1024)
    given = (llama3_70b("dgx-h100", 64, 1000.0), other)
    html = across_systems.compared("Llama 3 70B", given, address).text
    assert "1.60 × DGX-H100" in html
    assert "Not the same work: GPUs 512 against 64, GBS 1,024 against 128." in html


def test_each_system_has_the_row_of_the_first_that_it_is_held_against_above_it() -> None:
    """A third system that ran at another size than the second has another base."""
    given = (
        llama3_70b("dgx-h100", 64, 1000.0),
        llama3_70b("dgx-h100", 512, 800.0),
        llama3_70b("dgx-b200", 512, 1600.0),
        llama3_70b("dgx-gb200", 64, 3000.0),
    )
    sides = list(sides_of(given))
    assert [("dgx-h100", 512), ("dgx-b200", 512), ("dgx-h100", 64), ("dgx-gb200", 64)] == [
        (side.result.system, side.result.num_gpus) for side in sides
    ]
    assert [1.0, 2.0, 1.0, 3.0] == [side.ratio for side in sides]
    assert 4 == len({side.anchor for side in sides})


@pytest.mark.parametrize(
    "other",
    [
        {"precision": "bf16"},
        {"sequence_length": 4096},
        {"task": "lora"},
        {"qualifiers": "dropless"},
    ],
)
def test_other_work_is_held_against_nothing(other: dict[str, object]) -> None:
    given = (llama3_70b("dgx-h100", 64, 1621.0), llama3_70b("dgx-b200", 64, 3562.0, **other))
    assert [1.0, 1.0] == [side.ratio for side in sides_of(given)]


def test_a_row_with_open_errors_is_left_out_and_counted() -> None:
    wrong = llama3_70b("dgx-b200", 64, 35620.0, flag=WRONG)
    given = (llama3_70b("dgx-h100", 64, 1621.0), llama3_70b("dgx-b200", 64, 3562.0), wrong)
    html = across_systems.compared("Llama 3 70B", given, address).text
    assert "35,620" not in html
    assert "1 row with open errors is left out." in html


def test_one_system_is_compared_with_none() -> None:
    one = llama3_70b("dgx-h100", 64, 1621.0)
    assert "" == across_systems.compared("Llama 3 70B", (one, one), address).text


def test_systems_of_which_no_two_did_the_same_work_are_compared_with_none() -> None:
    """FP8 on one and BF16 on the other would stand side by side without a ratio."""
    given = (
        llama3_70b("dgx-h100", 64, 1621.0),
        llama3_70b("dgx-b200", 64, 3562.0, precision="bf16"),
    )
    assert "" == across_systems.compared("Llama 3 70B", given, address).text


def test_a_name_that_counts_the_nodes_is_no_other_work() -> None:
    """AutoModel's page calls a row on 16 GPUs '2-node'; the one on 8 is faster."""
    two = llama3_70b("dgx-h100", 16, 984.85, qualifiers="2-node")
    given = (two, llama3_70b("dgx-h100", 8, 1091.85), llama3_70b("dgx-b200", 8, 3562.0))
    assert ["1,092", "3,562"] == [row["Tokens/s/GPU"] for row in rows(*given)]


def test_another_layout_is_said_beside_the_ratio() -> None:
    split = llama3_70b("dgx-b200", 64, 3562.0, tensor_parallel=2)
    given = (llama3_70b("dgx-h100", 64, 1621.0, tensor_parallel=4), split)
    html = across_systems.compared("Llama 3 70B", given, address).text
    assert "DGX-B200 is configured differently from DGX-H100: TP 2 against 4." in html


def test_an_mfu_that_no_page_states_follows_from_its_flops_and_the_dense_peak() -> None:
    """1,715 of 4,500 TFLOP/s that a B200 has in FP8; of an unknown precision none is known."""
    row = llama3_70b("dgx-b200", 64, 3562.0, model_tflops_per_sec_per_gpu=1715.0)
    assert pytest.approx(1715 / 4500) == figures.figure(row, "mfu")
    assert "38.1% (computed)" == bests.marked(row, "mfu")
    assert "38.1% (computed)" == tables.printed(*ours(MFU), row, address).content

    unknown = row.model_copy(update={"precision": None})
    stated = row.model_copy(update={"mfu": 0.4})
    measured = row.model_copy(update={"origin": "measured"})
    assert [None, 0.4, None] == [figures.figure(it, "mfu") for it in (unknown, stated, measured)]
