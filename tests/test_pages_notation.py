"""Numbers that two notations read differently, and figures that contradict one another."""

import pytest

from perfdb.pages import reader
from perfdb.pages.base import PageContext, PageRead

SAID = PageContext(framework="acme", system="dgx-b200", precision="bf16")
TITLES = "Model | GPUs | GBS | Seq Length | Step Time (s) | Tokens/s/GPU | TFLOP/s/GPU"


def table(*rows: str) -> str:
    lines = "".join(f"| Llama3 8B | {row} |\n" for row in rows)
    return f"| {TITLES} |\n{'|---' * 7}|\n{lines}\n"


def read(*rows: str) -> PageRead:
    return reader.read("page.md", table(*rows), SAID)


def rejected(*rows: str) -> dict[int | None, tuple[str | None, str]]:
    """What is wrong with the rows, by line; the first row is on line 3."""
    return {one.line: (one.field, one.message) for one in read(*rows).problems}


PLAIN = "8 | 128 | 8192 | 5.61 | - | 800"


@pytest.mark.parametrize(
    "european",
    [
        "8 | 128 | 8192 | 5,61 | - | -",
        "8 | 128 | 8192 | 5,6145 | - | -",
        "8 | 128 | 8192 | - | 23.346,5 | -",
        "8 | 128 | 8192 | - | 23 346,5 | -",
        "8 | 128 | 8192 | - | 3150,8 | -",
        "8 | 128 | 8192 | - | - | 0,125",
        "8 | 128 | 8.192 | - | 3150 | -",
        "8 | 1.048.576 | 8 | - | 3150 | -",
    ],
)
@pytest.mark.parametrize(
    ("ambiguous", "field"),
    [
        ("8 | 128 | 8192 | 5,614 | - | -", "Step Time (s)"),
        ("8 | 128 | 8192 | - | 23.346 | -", "Tokens/s/GPU"),
        ("8 | 128 | 8192 | - | - | 1.201 (1.199)", "TFLOP/s/GPU"),
        ("1,024 | 128 | 8192 | - | 3150 | -", "GPUs"),
    ],
)
def test_beside_a_decimal_comma_a_number_that_may_be_a_thousandth_is_rejected(
    european: str, ambiguous: str, field: str
) -> None:
    """Wherever on the page; what can be read in one way alone is read."""
    for rows in ((PLAIN, ambiguous, european), (PLAIN, european, ambiguous)):
        found = rejected(*rows)
        assert {4, 5} == found.keys()
        wrong, message = found[3 + rows.index(ambiguous)]
        assert field == wrong
        assert f"on line {3 + rows.index(european)} has a decimal comma" in message
    apart = reader.read("page.md", f"{table(ambiguous)}# Others\n\n{table(european)}", SAID)
    assert ((), 2) == (apart.results, len(apart.problems))


@pytest.mark.parametrize(
    ("mistyped", "field"),
    [
        ("8 | 128 | 8192 | 5.614 | 2,07 | 800", "Tokens/s/GPU"),
        ("8 | 128 | 8192 | 5.614 | 1,0050 | 800", "Tokens/s/GPU"),
        ("8 | 128 | 8.192 | 5.614 | 2,071 | 800", "Seq Length"),
    ],
)
def test_one_comma_among_rows_with_a_decimal_point_rejects_its_row_alone(
    mistyped: str, field: str
) -> None:
    """Two rows beside it are enough; a comma in a second row leaves doubt again."""
    sure = "8 | 128 | 8192 | 5.614 | 1,022.5 | 800"
    found = rejected(PLAIN, sure, "8 | 128 | 8192 | 5.614 | 23,346 | -", mistyped)
    wrong, message = found.pop(6)
    assert ({}, field) == (found, wrong)
    assert "number" in message
    doubtful = rejected(PLAIN, sure, mistyped, "16 | 128 | 8192 | 5,61 | - | -")
    assert {4, 5, 6} == doubtful.keys()
    assert "on line 5 has a decimal comma" in doubtful[4][1]


@pytest.mark.parametrize(
    ("row", "figures"),
    [
        ("8 | 1,024 | 8192 | 5.125 | - | 1,201", (5.125, None, 1201.0)),
        ("8 | 128 | 8192 | 44.9 | 2,918 | -", (44.9, 2918.0, None)),
        ("8 | 128 | 8192 | 0.125 | - | 1 201.5", (0.125, None, 1201.5)),
    ],
)
def test_a_page_without_a_decimal_comma_is_read_as_it_always_was(row: str, figures: object) -> None:
    (one,) = read(row).results
    found = one.figures
    assert figures == (
        found.step_time_s,
        found.tokens_per_sec_per_gpu,
        found.model_tflops_per_sec_per_gpu,
    )


def test_two_values_with_a_comma_between_are_no_decimal_of_a_size() -> None:
    """`8,16` GPUs are rejected, and say nothing of how the page writes decimals."""
    assert {4} == rejected("8 | 128 | 8192 | 5.614 | - | -", "8,16 | 1 | 1 | 1 | - | -").keys()


@pytest.mark.parametrize(
    ("row", "factor"),
    [
        # 128 × 8192 tokens in 10.7 s on 8 GPUs are 12,250 tokens/s/GPU.
        ("8 | 128 | 8192 | 10.7 | 12.25 | -", "1,000"),
        ("8 | 128 | 8192 | 10,700 | 12250 | -", "1,000"),
        ("8 | 128 | 8192 | 10,700 | 12,250,000 | -", "1,000,000"),
        ("8 | 128 | 8192 | 10.7 | 12.9 | -", "1,000"),
        # 512 × 8192 tokens in 2 s on 1,024 GPUs are 2,048 of each, and 2,097,152 of all.
        ("1024 | 512 | 8192 | 2 | 2,097,152 | -", "1,024, the number of GPUs"),
        ("1024 | 512 | 8192 | 2 | 2,048,000 | -", "1,000"),
    ],
)
def test_tokens_that_are_off_by_thousands_of_the_step_time_are_rejected(
    row: str, factor: str
) -> None:
    ((field, message),) = rejected(row).values()
    assert "Tokens/s/GPU" == field
    assert f"by a factor of {factor}:" in message


@pytest.mark.parametrize("rate", ["12,250", "11,000", "24,500", "1,225", "1.225"])
def test_tokens_that_are_off_by_anything_else_are_the_audits_to_judge(rate: str) -> None:
    assert {} == rejected(f"8 | 128 | 8192 | 10.7 | {rate} | -")


def test_a_page_that_is_european_throughout_is_known_by_its_peak() -> None:
    """5,614 s × 23.346 × 8 are the tokens of a step in either notation; 0.05 % of a peak is not."""
    found = rejected("8 | 128 | 8192 | 5,614 | 23.346 | 1.201")
    ((field, message),) = found.values()
    assert ("TFLOP/s/GPU", True) == (field, message.startswith("'1.201' is below 1 % of the peak"))


@pytest.mark.parametrize("flops", ["1.20", "25.125", "3.201"])
def test_a_low_figure_that_is_no_thousandth_of_a_likely_one_is_read(flops: str) -> None:
    """Without three decimals, above 1 % of the peak of 2,250, or as thousands above the peak."""
    assert {} == rejected(f"8 | 128 | 8192 | - | - | {flops}")


@pytest.mark.parametrize(
    "caption",
    [
        '<span class="caption-number">Table 3 </span>System: DGX-H100',
        "Table 3: System: DGX-H100",
        "Table 4.1. System: DGX-H100",
        "System: DGX\u2011H100",
        "System: DGX\u2010H100",
    ],
)
def test_a_caption_says_its_system_behind_a_number_and_with_any_hyphen(caption: str) -> None:
    head = "".join(f"<th>{title}</th>" for title in TITLES.split(" | "))
    row = "".join(f"<td>{text}</td>" for text in f"Llama3 8B | {PLAIN}".split(" | "))
    text = f"<html><table><caption>{caption}</caption><tr>{head}</tr><tr>{row}</tr></table></html>"
    (one,) = reader.read("page.html", text, PageContext(framework="acme")).results
    assert "dgx-h100" == one.case.system
