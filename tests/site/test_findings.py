"""What the audit found is where the figure is: marks beside rows."""

from perfdb.site import findings, runs, tables
from perfdb.site.addresses import of_entry
from perfdb.site.data import Flag
from perfdb.site.profiles import ORIGIN
from tests.site.samples import address, audited, finding, published, run_page, soup, words


def test_a_mark_counts_errors_and_warnings_and_is_as_grave_as_the_gravest() -> None:
    mixed = audited(finding("info"), finding("warning"), finding("error"), finding("error"))
    assert Flag(said="2 errors, 1 warning", kind="error", anchor="result-0123456789ab") == (
        findings.flag(mixed)
    )


def test_what_is_only_worth_knowing_gives_no_mark() -> None:
    assert findings.flag(audited(finding("info"))) is None


def test_an_objection_that_is_acknowledged_is_marked_as_explained() -> None:
    one = findings.flag(audited(finding(acknowledged="as it was run (A. Person, 2026-01-31)")))
    assert one is not None
    assert ("1 explained", "explained") == (one.said, one.kind)


def test_a_row_with_a_mark_still_shows_where_it_is_from() -> None:
    marked = published(flag=findings.flag(audited(finding())))
    cell = tables.printed(ORIGIN, marked, address).content
    assert not isinstance(cell, str)
    shown = soup(cell.text)
    assert "published ⚑ 1 error line 74" == words(shown)
    mark = shown.select_one("a.perf-flag.error")
    assert mark is not None
    assert of_entry("dfm", "main", "result-0123456789ab", address) == mark["href"]
    assert "⚑" == words(mark.select_one("[aria-hidden=true]"))


def test_a_run_with_a_finding_says_so_on_its_page() -> None:
    flag = findings.flag(audited(finding("warning")))
    shown = soup(runs.outcome(run_page(4.0, 4.0, 4.0, flag=flag), address).text)
    assert "Audit ⚑ 1 warning" in words(shown)
