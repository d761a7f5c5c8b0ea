"""Findings that a person accepts: the reviewed file, what it explains, and what is wrong in it."""

from pathlib import Path

import pytest

from perfdb.audit import review
from perfdb.audit.check import RULES, audit
from perfdb.audit.rules import ReleaseRows
from perfdb.errors import InputError
from perfdb.record import Result
from tests.test_audit import DATA, ROOT, result

ACKNOWLEDGED = DATA / "acknowledged" / "good.yaml"


def entries(path: Path) -> tuple[review.Entry, ...]:
    return review.entries(f"acknowledged/{path.name}", path.read_text())


def test_an_entry_explains_what_it_matches_and_is_told_where_it_matches_nothing() -> None:
    row = result(model="mixtral-8x22b", framework="nemo", release="25.04", global_batch_size=1,
                 micro_batch_size=64)  # fmt: skip
    known = entries(ACKNOWLEDGED)
    (found,) = review.explained(RULES["micro_batch"].check(ReleaseRows([row])), known)
    assert "the page swaps the two columns (A. Person, 2026-01-31)" == found.acknowledged
    assert not found.is_open_error
    first, second = review.unused((), known)
    assert (
        "acknowledged/good.yaml:1: no finding matches: micro_batch mixtral-8x22b nemo 25.04; "
        "remove the entry if the number was mended"
    ) == str(first)
    assert 8 == second.line


def test_a_name_that_nothing_has_is_told_with_the_one_it_is_like() -> None:
    [other] = audit([result(model="another-model")])
    for named, remedy in (
        ("model: mixtral-8x22", "no 'mixtral-8x22': did you mean mixtral-8x22b?"),
        ("system: dgx-gb20", "no 'dgx-gb20': did you mean dgx-gb200?"),
        ("model: another-model", "remove the entry if the number was mended"),  # of a finding
        ("model: llama3-8b", "remove the entry if the number was mended"),
    ):
        known = f"- {{rule: peak, {named}, reason: none, by: A. Person, date: 2026-01-31}}"
        [problem] = review.unused([other], review.entries("reviewed.yaml", known))
        assert remedy == problem.remedy


def swapped(line: int, tokens_per_sec_per_gpu: float) -> Result:
    """128 × 8,192 tokens in 10.7 s on 8 GPUs are 12,250 tokens/s/GPU: another rate is wrong."""
    rate = {"step_time_s": 10.7, "tokens_per_sec_per_gpu": tokens_per_sec_per_gpu}
    return result(source="page.md", source_line=line, micro_batch_size=line, **rate)


def test_an_acknowledgement_holds_for_as_many_results_as_were_reviewed() -> None:
    """A row that is ten times off came to the page later: nobody has looked at it."""
    found = [
        one for one in audit([swapped(7, 14_000), swapped(9, 122_000)]) if one.rule == "throughput"
    ]
    assert [7, 9] == sorted(one.source_line or 0 for one in found)
    two = "2 results match, and it was reviewed for 1: throughput page.md; look at each"
    for narrowed, explained, told in (
        ("", [], two),
        (", results: 2", [7, 9], ""),
        (", line: 7", [7], ""),
        (", found: '14,000'", [7], ""),
        (", found: '122000'", [9], ""),
        (", line: 9, found: '14000'", [], ""),
    ):
        entry = (
            f"rule: throughput, source: page.md, reason: asked, by: A, date: 2026-01-31{narrowed}"
        )
        known = review.entries("reviewed.yaml", f"[{{{entry}}}]")
        judged = review.explained(found, known)
        assert explained == sorted(one.source_line or 0 for one in judged if one.acknowledged)
        exceeded = list(map(str, review.exceeded(judged, known)))
        assert bool(told) == bool(exceeded)
        assert told in "".join(exceeded)


def test_a_reviewed_file_without_entries_accepts_nothing() -> None:
    for text in ("", "\n\n", "# none\n\n  # yet\n", "[]"):
        assert () == review.entries("reviewed.yaml", text)


def test_an_acknowledgement_without_reason_name_or_rule_is_refused() -> None:
    for name, message in {
        "no-reason": ":7: acknowledged.1.reason: is required and missing; add it",
        "no-name": ":11: acknowledged.1.by: String should have at least 1 character",
        "no-rule": ":7: rule: no rule 'flops_per_tokens'; did you mean flops_per_token?",
        "no-list": ":1: acknowledged: expected a list",
    }.items():
        with pytest.raises(InputError) as caught:
            entries(DATA / "acknowledged" / f"{name}.yaml")
        assert str(caught.value).startswith(f"acknowledged/{name}.yaml{message}")


def test_the_reviewed_file_of_the_repository_can_be_read() -> None:
    path = ROOT / "data" / "acknowledged.yaml"
    assert isinstance(review.entries(str(path), path.read_text()), tuple)
