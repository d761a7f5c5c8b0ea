"""How exactly the audit takes a figure: by the digits of the cell that the reader took it from."""

import pytest
from perfdb.normalize import published_row

from perfdb.audit import printed
from perfdb.audit.check import audit
from perfdb.audit.subject import Finding
from perfdb.pages import reader
from perfdb.pages.base import PageContext
from tests.test_audit import subject_of

PAGE = """---
perfdb: {{framework: acme, release: "1"}}
---
# Pre-Training

## System: DGX-B200

| Model | Precision | #-GPUs | GBS | Sequence Length | {} | {} |
|---|---|---|---|---|---|---|
| LLAMA3-8B | FP8-CS | 8 | 64 | 4096 | {} | {} |
"""

SECOND = [
    ("Step Time (s)", "1.000"),
    ("Step Time (seconds)", "1.000"),
    ("Step Time (s) (median)", "1.000"),
    ("Step Time (s), mean", "1.000"),
    ("Step Time (s) FP8-CS", "1.000"),
    ("Time per Step (s)", "1.000"),
    ("Iteration time (s)", "1.000"),
    ("Elapsed time per iteration (s)", "1.000"),
    ("Time/iter (s)", "1.000"),
    ("sec/step", "1.000"),
    ("Step Time (ms)", "1000"),
    ("Step Time (ms)", "1,000.0"),
    ("ms/step", "**1000**"),
    ("Step Time (s)", "1.000¹"),
]
"""A step of one second, known to a thousandth, in the spellings that are read as a step time."""

SHARE = [
    ("MFU (%)", "37.8"), ("MFU (%)", "37.8%"), ("MFU", "37.8%"), ("MFU", "0.378"),
    ("MFU (%) FP8-CS", "37.8"),
]  # fmt: skip


def found(titles: tuple[str, str], texts: tuple[str, str]) -> list[Finding]:
    """What the audit says of a page with one row."""
    read = reader.read("page.md", PAGE.format(*titles, *texts), PageContext())
    (result,) = read.results
    return list(audit([subject_of(published_row(result), "page.md")]))


@pytest.mark.parametrize(("title", "text"), SECOND)
@pytest.mark.parametrize(("rate", "rules"), [("32,768", []), ("32,900", ["throughput"])])
def test_a_step_time_is_as_exact_as_its_cell_whatever_its_title(
    title: str, text: str, rate: str, rules: list[str]
) -> None:
    """64 × 4,096 ÷ 8 GPUs are 32,768 tokens in 1.000 s, and 32,900 in 0.996 s."""
    assert rules == [one.rule for one in found((title, "Tokens/s/GPU"), (text, rate))]


@pytest.mark.parametrize(("title", "text"), SHARE)
def test_an_mfu_that_rounds_to_its_cell_is_right_whatever_its_title(title: str, text: str) -> None:
    """1,699 of 4,500 TFLOP/s is 37.76 %."""
    assert [] == found(("TFLOP/s/GPU", title), ("1699", text))


def test_an_mfu_that_is_a_little_off_is_not_of_another_precision_s_peak() -> None:
    """1,699 of 4,500 TFLOP/s is 37.76 %; 38.1 % is of 4,459, which is no peak of the system."""
    (one,) = found(("TFLOP/s/GPU", "MFU (%)"), ("1699", "38.1"))
    assert ("mfu", "info") == (one.rule, one.severity.value)
    assert one.message.endswith("38.10%, which is of a peak of 4,459")


@pytest.mark.parametrize(
    ("raw", "cell"),
    [
        ({"Step Time (ms)": "1,004", "Step Time (s)": "1.0"}, "1.0"),
        ({"Step Time (s) (mean)": "1.004", "Step Time (s)": "1.0"}, "1.0"),
        ({"Step Time (ms)": "1,004", "Tokens/s/GPU": "9"}, "1,004"),
        ({"Tokens/s/GPU": "9"}, None),
    ],
)
def test_the_cell_of_a_figure_is_the_one_that_is_read(
    raw: dict[str, str], cell: str | None
) -> None:
    """A title that says no more than the figure goes before one with words behind it."""
    assert cell == printed.cell(raw, "step_time_s")


@pytest.mark.parametrize(
    ("title", "text", "suggestions"),
    [
        ("Time to train 1,000B tokens in days", "117.7", []),
        ("Time to train 1 000B tokens in days", "117.7", []),
        ("Time to train 1,500B tokens in days", "176.5", []),
        ("Time to train 0B tokens in days", "117.7", []),
        ("Time to train 1,5T tokens in days", "999", []),
        ("Est. time to train in days (1T tokens, 1,000 GPUs)", "0.941", []),
        ("Est. time to train in days (1T tokens, 1,024 GPUs)", "0.919", []),
        ("Est. time to train in days (1T tokens, 2.5K GPUs)", "0.376", []),
        ("Est. time to train in days (1T tokens, 0 GPUs)", "0.919", []),
        ("Time to train 10T tokens in days", "1 176.6", []),
        ("Time to train 10T tokens in days", "1'176.6", []),
        ("Time to train 10T tokens in days", "1\u202f176.6", []),
        ("Time to train 10T tokens in days", "1 276.6", ["write 1,177"]),
        ("Time to train 10T tokens in days", "1,277", ["write 1,177"]),
        ("Time to train 10T tokens in days", "1,277²", ["write 1,177"]),
        ("Time to train 10T tokens in days", "1.2K", []),
        ("Time to train 10T tokens in days", "1.2万", []),
    ],
)
def test_a_time_to_train_is_read_with_its_thousands(
    title: str, text: str, suggestions: list[str]
) -> None:
    """12,296 tokens/s of each of 8 GPUs are 1T tokens in 117.66 days."""
    said = found(("Tokens/s/GPU", title), ("12,296", text))
    assert suggestions == [one.suggestion for one in said]


@pytest.mark.parametrize(("days", "suggestions"), [("1,694.6", []), ("1,695.4", ["write 1,694.8"])])
def test_a_total_that_was_cut_off_gives_a_time_within_what_it_lost(
    days: str, suggestions: list[str]
) -> None:
    """1T tokens at 6,829 to 6,830 tokens/s of all GPUs are 1,694.6 to 1,694.8 days."""
    titles = ("Throughput (tokens per second)", "Time to train 1T tokens in days")
    assert suggestions == [one.suggestion for one in found(titles, ("6829", days))]
