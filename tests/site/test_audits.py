"""The pages of the audit: what is open over all releases, and the entries of each."""

from pathlib import Path

import pytest
from bs4.element import Tag
from sqlalchemy import URL

from perfdb import ingest
from perfdb.db.session import store_url
from perfdb.site import audits, findings
from perfdb.site.contents import Contents
from perfdb.site.pages import all_pages
from tests.site.conftest import EVIL, ROOT, Site, site_of
from tests.site.samples import address, audited, finding, result, soup, words

PAGE = ROOT / "data" / "published" / "nemo-25.04.md"
ACKNOWLEDGED = """\
- rule: micro_batch
  model: mixtral-8x22b
  system: dgx-b200
  reason: the page swaps the two columns
  by: A. Person
  date: 2026-01-31
"""


def test_entries_are_by_release_the_newest_first_and_the_gravest_first_in_each() -> None:
    """What was run without a GPU comes last."""
    old, new = "25.02", "25.11"
    page = audits.of_releases(
        [
            audited(finding("info"), key="a" * 64, release=new, source_line=1),
            audited(finding("error"), key="b" * 64, release=new, source_line=9),
            audited(finding("error"), key="c" * 64, release=new, source_line=3),
            audited(finding("error", acknowledged="fine"), key="d" * 64, release=new),
            audited(finding("warning"), key="e" * 64, release=old),
            audited(finding("info"), key="f" * 64, release=old, framework="automodel"),
            audited(finding("error"), key="0" * 64, release=new, framework="A", system="cpu"),
        ]
    )
    assert [
        ("automodel", old, ["f"]),
        ("dfm", new, ["c", "b", "a", "d"]),
        ("dfm", old, ["e"]),
        ("A", new, ["0"]),
    ] == [(one.framework, one.release, [it.anchor[-1] for it in one.results]) for one in page]


def test_the_page_of_findings_is_the_same_whatever_order_they_come_in() -> None:
    given = [audited(finding(), key=letter * 64, source_line=7) for letter in "abc"]
    assert audits.of_releases(given) == audits.of_releases(given[::-1])


def test_an_entry_says_all_of_a_finding_and_leads_back_to_the_line() -> None:
    one = audited(finding(), finding("info", suggestion=None, expected=None, rule="scaling"))
    [release] = audits.of_releases([one])
    entry = soup(audits.entries(release, address).text).select_one("article")
    assert entry is not None
    assert one.anchor == entry["id"]
    assert "WAN 2.1 14B, Pre-training: Megatron-Core, 32 GPUs on DGX-GB300" == words(entry.h2)
    source, table = entry.select("p.perf-entry-source a")
    assert "data/published/dfm.md, line 74" == words(source)
    assert str(source["href"]).endswith("#L74")
    assert "../performance/dfm/main.html?system=dgx-gb300" == table["href"]
    assert [
        "error micro_batch a global batch of 1 cannot hold micro-batches of 64. "
        "Expected GBS 64, MBS 1 Found GBS 1, MBS 64 Suggestion swap them: GBS 64, MBS 1",
        "info scaling a global batch of 1 cannot hold micro-batches of 64. "
        "Expected – Found GBS 1, MBS 64",
    ] == [words(item) for item in entry.select("li")]


def test_open_errors_of_all_releases_come_first_and_what_is_explained_is_not_among_them() -> None:
    """Each leads to its entry on the page of its release."""
    page = audits.of_releases(
        [
            audited(finding("warning"), key="a" * 64, release="25.11"),
            audited(finding("error"), finding("info"), key="b" * 64, release="25.02"),
            audited(finding("error", acknowledged="fine"), key="c" * 64),
        ]
    )
    shown = soup(audits.overview(audits.over_all(page), address).text)
    counted, opened = (
        [[words(it) for it in row.select("th, td")] for row in table.select("tbody tr")]
        for table in shown.select("table")
    )
    subject = "WAN 2.1 14B, Pre-training: Megatron-Core, 32 GPUs on DGX-GB300"
    assert [
        ["error", "micro_batch", subject, "NeMo DFM 25.02"],
        ["warning", "micro_batch", subject, "NeMo DFM 25.11"],
    ] == opened
    assert [
        ["NeMo DFM main", "0", "0", "0", "1"],
        ["NeMo DFM 25.11", "0", "1", "0", "0"],
        ["NeMo DFM 25.02", "1", "0", "1", "0"],
    ] == counted
    assert "1 error, 1 warning, 1 info, 1 explained." in words(shown.p)
    entries = {str(it["href"]) for it in shown.select("table")[1].select("th + td + td a")}
    assert "../performance/audit/dfm/25.02.html#result-bbbbbbbbbbbb" in entries


def test_of_very_many_the_gravest_are_listed_and_the_others_counted() -> None:
    """The last of 150 is the error; a release's own page has them all."""
    kinds = ["warning"] * 149 + ["error"]
    given = [audited(finding(one), key=f"{n:012}") for n, one in enumerate(kinds)]
    [release] = audits.of_releases(given)
    shown = soup(audits.overview(audits.over_all([release]), address).text)
    rows = shown.select("table")[1].select("tbody tr")
    assert 100 == len(rows)
    assert ["error", "warning"] == [words(row.th) for row in rows[:2]]
    assert "On the pages of their releases: 50 more." in words(shown)
    assert 150 == len(soup(audits.entries(release, address).text).select("article"))


def test_what_is_only_worth_knowing_is_folded() -> None:
    """Nothing of it is lost: it is below, for whoever opens it."""
    page = audits.of_releases(
        [audited(finding(kind), key=kind[0] * 64) for kind in ("info", "error", "warning")]
    )
    shown = soup(audits.entries(page[0], address).text)
    assert ["result-iiiiiiiiiiii"] == [it["id"] for it in shown.select("details article")]
    assert "1 result with nothing but info" == words(shown.summary)
    assert 3 == len(shown.select("article"))


def test_an_error_that_is_accepted_is_not_folded_with_what_is_worth_knowing() -> None:
    """A result with info and an accepted error is listed openly, whichever is the graver."""
    both = audited(finding("info"), finding("error", acknowledged="fine"), key="b" * 64)
    page = audits.of_releases([both, audited(finding("info"), key="i" * 64)])
    shown = soup(audits.entries(page[0], address).text)
    assert ["result-iiiiiiiiiiii"] == [it["id"] for it in shown.select("details article")]


def test_entries_of_two_precisions_or_variants_have_headings_of_their_own() -> None:
    """Rows that differ in nothing else read the same else."""
    works: tuple[dict[str, object], ...] = (
        {"precision": "fp8_cs"}, {"precision": "bf16"}, {"precision": "bf16", "variant": "nemo"},
    )  # fmt: skip
    every = [audited(finding(), key=str(n) * 12, **work) for n, work in enumerate(works)]
    every += [
        audited(finding(), key=mark * 12, precision="fp16", sequence_length=1024, **layout)
        for mark, layout in (("a", {"tensor_parallel": 2}), ("b", {}))
    ]
    [release] = audits.of_releases(every)
    titles = soup(audits.entries(release, address).text).select("h2")
    assert {
        "WAN 2.1 14B, FP8-CS, Pre-training: Megatron-Core, 32 GPUs on DGX-GB300",
        "WAN 2.1 14B, BF16, Pre-training: Megatron-Core, 32 GPUs on DGX-GB300",
        "WAN 2.1 14B, BF16, Pre-training: NeMo Framework, 32 GPUs on DGX-GB300",
        "WAN 2.1 14B, FP16, Pre-training: Megatron-Core, 32 GPUs on DGX-GB300, TP 2",
        "WAN 2.1 14B, FP16, Pre-training: Megatron-Core, 32 GPUs on DGX-GB300",
    } == {words(title) for title in titles}


def test_entries_of_one_configuration_are_told_apart_by_run_or_line() -> None:
    every = [
        findings.audited(result(run_id=name), name * 12, [finding()]) for name in ("a", "b")
    ] + [audited(finding(), key=str(n) * 12, source_line=n) for n in (7, 8)]
    names = [
        name
        for one in audits.of_releases(every)
        for name in findings.titles_of(one.results).values()
    ]
    run = "Llama 3 8B, BF16, Pre-training, 8 GPUs on DGX-H100, run"
    row = "WAN 2.1 14B, Pre-training: Megatron-Core, 32 GPUs on DGX-GB300, line"
    assert {f"{run} a", f"{run} b", f"{row} 7", f"{row} 8"} == set(names)


def test_an_entry_of_a_measured_result_leads_to_its_run() -> None:
    one = findings.audited(result(), "0" * 64, [finding()])
    [release] = audits.of_releases([one])
    link = soup(audits.entries(release, address).text).select_one("p a")
    assert link is not None
    assert ("run run-1", "../runs/run-1.html") == (words(link), link["href"])


def test_findings_full_of_markup_print_as_text() -> None:
    said = dict.fromkeys(("rule", "message", "expected", "found", "suggestion"), EVIL)
    one = audited(finding(**said, acknowledged=EVIL), model_title=EVIL, release=EVIL)
    page = audits.of_releases([one])
    made = audits.entries(page[0], address).text
    assert soup(made).script is None
    assert 7 == words(soup(made)).count(EVIL)
    texts = [page.text for page in all_pages(Contents(audited=(one,))) if page.text]
    assert "<script>" not in "".join(texts)


@pytest.fixture(scope="module")
def nemo(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """A site of NeMo 25.04's published page, of whose findings one is acknowledged."""
    folder = tmp_path_factory.mktemp("nemo")
    (folder / "data").mkdir()
    (folder / "data" / "acknowledged.yaml").write_text(ACKNOWLEDGED)
    url = store_url(str(folder / "store.sqlite"))
    assert () == ingest.ingest([PAGE], url, ingest.Options()).rejected
    return site_of(folder, url).built()


def flags(site: Site) -> dict[str, Tag]:
    """The marks on the page of NeMo 25.04, by the line that their row is from."""
    page = site.html / "performance" / "nemo" / "25.04.html"
    rows = soup(page.read_text()).select("table.perf tbody tr")
    marked = {
        words(row.select("td a")[-1]): row.select_one("a.perf-flag:not(.perf-sign)") for row in rows
    }
    return {line: mark for line, mark in marked.items() if mark is not None}


@pytest.mark.slow
def test_the_swapped_batch_sizes_of_nemo_25_04_are_marked_and_lead_to_the_finding(
    nemo: Site,
) -> None:
    """Line 29 is Mixtral 8x22B on DGX-GB200, of a global batch of 1 in micro-batches of 64."""
    line = PAGE.read_text().splitlines()[28]
    assert line.startswith("| Mixtral-8x22B |")

    mark = flags(nemo)["line 29"]
    assert "⚑ 1 error" == words(mark)
    document, anchor = str(mark["href"]).split("#")
    page = (nemo.html / "performance" / "nemo" / document).resolve()
    entry = soup(page.read_text()).find(id=anchor)
    assert isinstance(entry, Tag)
    assert "Mixtral 8x22B, FP8, Pre-training, 256 GPUs on DGX-GB200" == words(entry.h2)
    assert "Suggestion swap them: GBS 64, MBS 1" in words(entry)

    back = entry.select_one("p.perf-entry-source a")
    assert back is not None
    source, number = str(back["href"]).split("#")
    shown = soup((page.parent / source).resolve().read_text()).find(id=number)
    assert isinstance(shown, Tag)
    assert line in words(shown)


@pytest.mark.slow
def test_every_row_that_is_objected_to_is_marked_and_no_other(nemo: Site) -> None:
    """The known mistakes of the page; the one that is acknowledged is explained."""
    assert {
        "line 22": "⚑ 1 warning",
        "line 29": "⚑ 1 error",
        "line 37": "⚑ 1 warning",
        "line 44": "⚑ 1 explained",
        "line 52": "⚑ 1 warning",
        "line 59": "⚑ 2 errors",
        "line 76": "⚑ 1 error",
    } == {line: words(mark) for line, mark in flags(nemo).items()}
    page = soup((nemo.html / "performance" / "audit.html").read_text())
    assert "4 errors, 3 warnings, 6 info, 1 explained." in words(page.article)
    page = soup((nemo.html / "performance" / "audit" / "nemo" / "25.04.html").read_text())
    assert "the page swaps the two columns (A. Person, 2026-01-31)" in words(page.article)


@pytest.mark.slow
def test_a_file_of_acknowledgements_that_is_not_there_stops_the_build(
    tmp_path: Path, sqlite: URL
) -> None:
    """It says which option names it."""
    site = site_of(tmp_path, sqlite)
    with (site.docs / "conf.py").open("a") as conf:
        conf.write('perfdb_acknowledged = "nowhere.yaml"\n')
    done = site.build()
    assert 2 == done.returncode
    assert "nowhere.yaml: perfdb_acknowledged: no such file" in done.stderr
