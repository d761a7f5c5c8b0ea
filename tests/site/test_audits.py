"""Pages of the audit: what is open over all releases, and the entries of each."""

from dataclasses import replace

from bs4 import BeautifulSoup

from perfdb.record import Finding, Severity
from perfdb.site.data import Audited
from perfdb.site.page import SitePage
from perfdb.site.pages import audits
from tests.factories import EVIL, finding
from tests.site.samples import row, site_data, soup, table, words

ERROR, WARNING, INFO = Severity.ERROR, Severity.WARNING, Severity.INFO
FOLDER = "performance/audit"


def audited(key: str, *found: Finding, **changed: object) -> Audited:
    """A published result with findings."""
    return Audited(result=row(**changed), anchor=f"result-{key}", findings=found)


def pages_of(*known: Audited) -> dict[str, SitePage]:
    return {page.name: page for page in audits.pages(site_data([], known))}


def entries(shown: BeautifulSoup, where: str = "article") -> list[str]:
    return [str(entry["id"]).removeprefix("result-") for entry in shown.select(where)]


def test_open_findings_come_first_and_each_release_has_its_entries() -> None:
    """The gravest at the top; those with nothing but info are folded."""
    accepted = finding(ERROR, acknowledged="fine")
    made = pages_of(
        audited("info", finding(INFO), source_line=1),
        audited("ninth", finding(), source_line=9),
        audited("third", finding(), source_line=3),
        audited("accepted", finding(INFO), accepted),
        audited("older", finding(WARNING), release="25.02"),
        audited("other", finding(INFO), framework="automodel"),
    )
    names = ("automodel/25.04", "nemo/25.04", "nemo/25.02")
    assert list(made) == [FOLDER, *(f"{FOLDER}/{name}" for name in names)]
    shown = soup(made[f"{FOLDER}/nemo/25.04"])
    assert entries(shown) == ["third", "ninth", "accepted", "info"]
    assert entries(shown, "details article") == ["info"]

    index = soup(made[FOLDER])
    lines = [list(line.values()) for line in table(index)]
    assert lines[:3] == [
        ["NeMo AutoModel 25.04", "0", "0", "1", "0"],
        ["NeMo Framework 25.04", "2", "0", "2", "1"],
        ["NeMo Framework 25.02", "0", "1", "0", "0"],
    ]
    assert [line[0] for line in lines[3:]] == ["error", "error", "warning"]
    assert "2 errors, 1 warning, 3 info, 1 explained." in words(index.p)
    assert f"perfdb:{FOLDER}/nemo/25.02#result-older" in [it["href"] for it in index.select("a")]


def test_an_entry_has_all_of_a_finding_and_leads_to_its_line_and_table() -> None:
    known = (finding(), finding(INFO, suggestion=None, expected=None, rule="scaling"))
    _, page = pages_of(audited("a", *known)).values()
    shown = soup(page)
    assert words(shown.h2) == "Llama 3 70B, FP8, Pre-training, 64 GPUs on DGX-H100"
    source, tab = shown.select("p.perf-entry-source a")
    assert words(source) == "data/published/nemo.md, line 74"
    assert str(source["href"]).endswith("#L74")
    assert tab["href"] == "perfdb:performance/nemo/25.04?system=dgx-h100"
    message = "a global batch of 1 cannot hold micro-batches of 64."
    assert [words(item) for item in shown.select("li")] == [
        f"error micro_batch {message} "
        "Expected GBS 64, MBS 1 Found GBS 1, MBS 64 Suggestion swap them: GBS 64, MBS 1",
        f"info scaling {message} Expected – Found GBS 1, MBS 64",
    ]


def test_of_very_many_findings_the_gravest_are_listed_and_the_others_counted() -> None:
    known = [audited(str(n), finding(WARNING)) for n in range(149)]
    index, page = pages_of(*known, audited("last", finding())).values()
    shown = soup(index)
    assert len(shown.select("table.perf")[1].select("tbody tr")) == audits.MOST_OBJECTIONS
    assert "50 more are on the pages of their releases." in words(shown)
    assert len(entries(soup(page))) == 150


def test_findings_full_of_markup_print_as_text() -> None:
    texts = dict.fromkeys(("rule", "message", "expected", "found", "suggestion"), EVIL)
    one = audited("a", finding(**texts, acknowledged=EVIL))
    made = pages_of(replace(one, result=replace(one.result, model_title=EVIL)))
    for shown in map(soup, made.values()):
        assert not shown.select("script, em")
    assert words(shown).count(EVIL) == 7


def test_what_a_rule_finds_in_many_results_is_folded_by_rule_and_can_be_linked_to() -> None:
    spread = finding(WARNING, rule="step_spread")
    known = [audited(str(n), spread, source_line=n) for n in (1, 2)]
    index, page = pages_of(*known, audited("3", finding(), spread)).values()
    assert len(soup(index).select("table.perf")[1].select("tbody tr")) == 2
    shown = soup(page)
    assert entries(shown) == ["3"]
    assert words(shown.select_one("details summary")) == "warning step_spread in 3 results"
    lines = shown.select("details li")
    assert [line.get("id") for line in lines] == [None, "result-1", "result-2"]
