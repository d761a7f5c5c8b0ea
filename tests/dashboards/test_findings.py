"""The mark beside a row, and what stands behind it."""

import pytest

from dashboards.findings import bullets, by_result, gravest_first, is_wrong, mark, plain
from perfdb.record import Finding, Severity


def finding(severity: Severity, **changed: object) -> Finding:
    fields: dict[str, object] = {
        "rule": "peak", "severity": severity, "fields": ("mfu",), "expected": None, "found": None,
        "message": "120 % of the peak", "suggestion": None, "model": "llama3-8b",
        "system": "dgx-h100", "release": "25.04", "source": "page.md", "source_line": 7,
        "framework": "nemo", "result_id": 3,
    }  # fmt: skip
    return Finding.model_validate(fields | changed)


ERROR, INFO = finding(Severity.ERROR), finding(Severity.INFO)
ACCEPTED = finding(Severity.ERROR, acknowledged="known (A. Person, 2026-01-31)")


def test_findings_belong_to_their_results_the_open_and_grave_ones_first():
    of_document = finding(Severity.ERROR, result_id=None)
    other = finding(Severity.WARNING, result_id=4)
    assert {3: (ERROR, INFO, ACCEPTED), 4: (other,)} == by_result(
        [ACCEPTED, INFO, other, of_document, ERROR]
    )


def test_rows_with_errors_stand_before_those_with_less_and_rows_without_findings_nowhere():
    warned = (finding(Severity.WARNING),)
    marked = [("a", (INFO,)), ("b", ()), ("c", (ACCEPTED,)), ("d", (ERROR, INFO)), ("e", warned)]
    assert ["d", "e", "a", "c"] == [title for title, _ in gravest_first([*marked, ("b", ())])]


def test_a_mark_counts_and_says_how_grave():
    assert "⚑ 2 errors, 1 info, 1 explained" == mark([INFO, ERROR, ACCEPTED, ERROR])
    assert mark([]) is None


@pytest.mark.parametrize(
    ("found", "wrong"), [([ERROR, INFO], True), ([ACCEPTED], False), ([INFO], False), ([], False)]
)
def test_a_result_is_wrong_where_an_error_is_not_accepted(found, wrong):
    assert wrong is is_wrong(found)


def test_a_sentence_keeps_its_signs():
    """Markdown takes none of them for its own, in names of models least of all."""
    odd = finding(Severity.ERROR, message="a*b_c <i> $x$ [l](u)")
    assert r"- error (`peak`): a\*b\_c \<i\> \$x\$ \[l\]\(u\)\." == bullets([odd])
    assert "25 % of the peak" == plain("25 % of the peak")
