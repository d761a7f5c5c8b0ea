"""What stands beside a row: the flag by its name, and what its copies say."""

import pytest
from bs4 import BeautifulSoup

from perfdb.site import markup
from perfdb.site.data import Flag, Result
from perfdb.site.profile import Profile
from perfdb.site.profiles import AUTOMODEL, DFM, MEASURED, NEMO, RUNS
from perfdb.site.tables import results_table
from tests.site.samples import address, published, result


def soup(profile: Profile, *results: Result) -> BeautifulSoup:
    made = markup.table(results_table("Results", results, profile, address))
    return BeautifulSoup(made.text, "html.parser")


@pytest.mark.parametrize("profile", [MEASURED, DFM, NEMO, AUTOMODEL, RUNS], ids=lambda it: it.name)
def test_a_row_that_the_audit_objects_to_is_marked_where_it_is_named(profile: Profile) -> None:
    """The first cell stays in sight; its mark leads to the findings and says how many they are."""
    flag = Flag(said="2 errors", kind="error", anchor="result-1")
    marked, plain = soup(profile, result(flag=flag), result()).select("tbody tr")
    mark = marked.select_one("th[scope=row] a.perf-sign.error")
    assert mark is not None
    assert "../performance/audit/megatron-core/0.16.0.html#result-1" == mark["href"]
    assert "2 errors found by the audit" == mark["aria-label"] == mark["title"]
    assert "" == mark.get_text(), "the sign is no part of the row's name"
    assert [] == plain.select(".perf-flag")


def test_rates_are_sorted_from_the_fastest_and_nothing_else_is() -> None:
    falling = soup(MEASURED, result(), result(mfu=0.4)).select("thead th[data-falling]")
    assert ["Tokens/s/GPU", "TFLOP/s/GPU", "MFU"] == [head.get_text() for head in falling]


def test_a_row_holds_its_findings_and_its_source_for_copies() -> None:
    [row] = soup(DFM, published(findings="tiny-batch (error)")).select("tbody tr")
    assert ("tiny-batch (error)", "data/published/dfm.md:74") == (
        row["data-findings"],
        row["data-source"],
    )


def test_the_source_of_a_run_in_a_copy_names_the_run() -> None:
    """Of a run directory the path does; many logs are called alike."""
    rows = soup(MEASURED, result(run_id="log-5f0c", source="rep0.log", source_line=12), result())
    said = [row["data-source"] for row in rows.select("tbody tr")]
    assert ["run log-5f0c, rep0.log:12", "runs/run-1/steps.jsonl"] == said
