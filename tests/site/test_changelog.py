"""The changelog of the data: what was added, corrected, withdrawn and rejected, and when."""

import re
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import URL

from perfdb import ingest
from perfdb.pages.base import PageContext
from perfdb.site import changelog, read
from perfdb.site.contents import Rejection, Revision
from perfdb.site.data import SourcePage
from perfdb.site.revisions import Event, corrections, events, withdrawals
from tests.factories import stored, write_run
from tests.site.samples import address

DAY = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
LATER = DAY + timedelta(days=1)

PAGE = """# NeMo

## Pre-training

### System: DGX-H100

| Model | #-GPUs | GBS | MBS | Sequence Length | TP | PP | CP | Tokens / sec / GPU |
|---|---|---|---|---|---|---|---|---|
| LLAMA3-8B | 8 | 128 | 1 | 8192 | 1 | 1 | 2 | {rate} |
"""
RATE = "Tokens / sec / GPU"
SECOND = "| LLAMA3-70B | 64 | 128 | 1 | 8192 | 4 | 8 | 1 | 1621 |\n"


def revision(number: int = 1, key: str = "a", **changed: object) -> Revision:
    fields: dict[str, object] = {
        "key": key,
        "revision": number,
        "created_at": DAY,
        "superseded": False,
        "superseded_at": None,
        "framework": "nemo",
        "release": "25.04",
        "system": "dgx-h100",
        "system_title": "DGX-H100",
        "model": "llama3-8b",
        "model_title": "Llama 3 8B",
        "qualifiers": "",
        "task": "pretrain",
        "precision": "fp8",
        "num_gpus": 8,
        "origin": "published",
        "source": "page.md",
        "source_sha256": "0123456789abcdef" * 4,
        "source_line": 9,
        "run_id": None,
        "outcome": "finished",
        "withheld": None,
        "step_time_s": None,
        "tokens_per_sec_per_gpu": 12.0,
        "model_tflops_per_sec_per_gpu": None,
        "mfu": None,
        "raw": {RATE: "12"},
    }
    return Revision.model_validate(fields | changed)


def acts(found: list[Event]) -> list[tuple[str, str]]:
    return [(event.day, event.act) for event in found]


def revised(**changed: object) -> list[Revision]:
    """A result, and a day later another revision of it with what is given changed."""
    old = revision(superseded=True, superseded_at=LATER)
    return [revision(2, created_at=LATER, result_id=7, **changed), old]


def test_another_figure_on_the_same_page_corrects_and_says_from_what_to_what() -> None:
    """The cells that differ are told as they are printed."""
    found = events(revised(tokens_per_sec_per_gpu=13.0, raw={RATE: "13", "New": "x"}), [])
    assert [("2026-03-05", "corrected"), ("2026-03-04", "added")] == acts(found)
    assert [f"{RATE}: 12 → 13", "New: – → x"] == [it.said for it in found[0].changes]


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        pytest.param(
            {"tokens_per_sec": 192_000.0, "raw": {"Throughput in tokens per second": "192,000"}},
            {"tokens_per_sec": 292_000.0, "raw": {"Throughput in tokens per second": "292,000"}},
            ["Throughput in tokens per second: 192,000 → 292,000"],
            id="the rate of all GPUs",
        ),
        pytest.param(
            {"peak_memory_bytes": 72_000_000_000, "raw": {}},
            {"peak_memory_bytes": 75_000_000_000, "raw": {}},
            ["Peak memory (bytes): 72,000,000,000 → 75,000,000,000"],
            id="the memory",
        ),
        pytest.param(
            {},
            {"flops_convention": "causal", "window": "last"},
            ["window: – → last", "FLOPs convention: – → causal"],
            id="what no cell prints",
        ),
        pytest.param(
            {},
            {"flops_convention": "causal", "raw": {RATE: "12", "GA": "4"}},
            ["GA: – → 4", "FLOPs convention: – → causal"],
            id="what no cell prints, beside a cell",
        ),
        pytest.param(
            {},
            {"tokens_per_sec_per_gpu": 12_000.0},
            ["Tokens/s/GPU: 12 → 12,000"],
            id="a cell that is read otherwise",
        ),
        pytest.param(
            {"step_time_s": 19.65055, "raw": {}},
            {"step_time_s": 19.647100000000002, "raw": {}},
            ["Step time (s): 19.651 → 19.647"],
            id="as many digits as tell two figures apart",
        ),
    ],
)
def test_a_figure_that_is_corrected_says_from_what_to_what(one, other, said) -> None:
    old = revision(superseded=True, superseded_at=LATER, **one)
    new = revision(2, created_at=LATER, result_id=7, **one | other)
    [event, _] = events([old, new], [])
    assert ("corrected", said) == (event.act, [it.said for it in event.changes])
    assert {7: f"corrected on 2026-03-05: {', '.join(said)}"} == corrections([old, new])


def test_the_rate_of_all_gpus_is_contradicted_and_withdrawn_as_others_are() -> None:
    printed = {
        "tokens_per_sec_per_gpu": None,
        "raw": {"Throughput in tokens per second": "380,000"},
    }
    old = revision(superseded=True, superseded_at=LATER, tokens_per_sec=380_000.0, **printed)
    printed["raw"] = {"Throughput in tokens per second": "190,000"}
    new = revision(2, created_at=LATER, source="w2.md", tokens_per_sec=190_000.0, **printed)
    [contradicted, _] = events([old, new], [])
    title = "Throughput in tokens per second"
    assert "contradicted" == contradicted.act
    assert [f"{title}: 380,000 → 190,000"] == [it.said for it in contradicted.changes]
    [gone] = withdrawals([old])
    assert [f"{title}: 380,000 → –"] == [it.said for it in gone.changes]


def test_a_page_that_lays_out_the_same_figures_otherwise_is_read_anew() -> None:
    """A cell beside the figures is no correction of them."""
    found = events(revised(raw={RATE: "12", "GA": "4"}), [])
    assert [("2026-03-05", "read again"), ("2026-03-04", "added")] == acts(found)
    assert ["GA: – → 4"] == [it.said for it in found[0].changes]


def test_a_note_that_changed_is_told_where_every_cell_stays() -> None:
    old = revision(superseded=True, superseded_at=LATER, notes=("cold", "of two nodes"))
    new = revision(2, created_at=LATER, notes=("of two nodes", "warm"))
    [again, _] = events([old, new], [])
    assert ("read again", ["note: cold → warm"]) == (again.act, [it.said for it in again.changes])
    other = changelog.other(changelog.changelog([old, new], []), address).text
    assert "note: cold → warm" in other


def test_another_page_that_prints_the_same_figures_corrects_nothing() -> None:
    """It may head its columns in other words."""
    found = events(revised(source="other.md", raw={"Rate": "12"}), [])
    assert [("2026-03-05", "also printed"), ("2026-03-04", "added")] == acts(found)
    made = changelog.changelog(revised(source="other.md"), [])
    assert "also printed by other.md" in changelog.other(made, address).text


def test_another_page_that_prints_other_figures_contradicts_as_printed() -> None:
    """4.30 s on one page and 4.10 s on the other are told with the zeros that they print."""
    old = revision(
        superseded=True, superseded_at=LATER, step_time_s=4.3, raw={"Step time (s)": "4.30"}
    )
    new = revision(
        2, created_at=LATER, step_time_s=4.1, source="other.md", raw={"Step time (s)": "4.10"}
    )
    [contradicted, _] = events([old, new], [])
    assert "contradicted" == contradicted.act
    assert ["Step time (s): 4.30 → 4.10"] == [it.said for it in contradicted.changes]
    made = changelog.changelog([old, new], [])
    text = BeautifulSoup(changelog.changed(made, address).text, "html.parser").get_text(" ")
    assert "contradicted by other.md Step time (s): 4.30 → 4.10" in " ".join(text.split())


def test_a_result_in_force_says_what_it_said_before_it_was_corrected() -> None:
    """What was only read anew says nothing, and neither does a result that is withdrawn."""
    corrected = revised(tokens_per_sec_per_gpu=13.0, raw={RATE: "13"})
    assert {7: f"corrected on 2026-03-05: {RATE}: 12 → 13"} == corrections(corrected)
    assert {} == corrections(revised(raw={RATE: "12", "GA": "4"}))
    gone = [corrected[0].model_copy(update={"superseded": True}), corrected[1]]
    assert {} == corrections(gone)


def test_a_result_that_went_and_came_back_was_withdrawn_and_restored() -> None:
    """Nothing says that the second is a correction of the first; each tells its own figure.

    What no page prints has four figures: 2574.768… is 2,575.
    """
    gone, back = DAY + timedelta(days=1), DAY + timedelta(days=2)
    other = revision(2, created_at=back, tokens_per_sec_per_gpu=2574.768278759741)
    found = events([revision(superseded=True, superseded_at=gone), other], [])
    days = [("2026-03-06", "restored"), ("2026-03-05", "withdrawn"), ("2026-03-04", "added")]
    assert days == acts(found)
    said = [[change.said for change in it.changes] for it in found]
    assert [["Tokens/s/GPU: – → 2,575"], ["Tokens/s/GPU: 12 → –"], []] == said


@pytest.mark.parametrize(
    ("logged", "why"),
    [
        ("2 withdrawn: a draft: not for print", "a draft: not for print"),
        ("2 withdrawn: b.md states: otherwise", "b.md states: otherwise"),
        ("2 withdrawn", None),
        ("1 withdrawn, 2 as b.md states: a draft", "a draft"),
        ("2 as b: c.md states, 1 as d.md states: a draft", "a draft"),
        ("2 as b: c.md states", None),
        ("1 that other pages hold no longer stated: a draft", "a draft"),
        ("1 new, 2 withdrawn", None),
        (None, None),
    ],
)
def test_a_row_is_withdrawn_for_the_reason_that_was_given_for_its_page(
    logged: str | None, why: str | None
) -> None:
    """It is what the log says behind the counts; a page that only dropped the row gives none."""
    [gone, _] = events([revision(superseded=True, superseded_at=LATER, logged=logged)], [])
    assert ("withdrawn", why) == (gone.act, gone.reason)


def test_what_ran_out_of_memory_says_so_when_it_is_withdrawn() -> None:
    """It has no figure; that another one finished is not told."""
    history = [revision(superseded=True, outcome="out_of_memory", tokens_per_sec_per_gpu=None)]
    [_, gone] = events(history, [])
    assert ["outcome: out_of_memory → –"] == [it.said for it in gone.changes]


def test_a_moment_that_nobody_noted_is_unknown_and_comes_last() -> None:
    """No day is made up for it."""
    found = events([revision(superseded=True)], [])
    assert [("2026-03-04", "added"), ("–", "withdrawn")] == acts(found)


def test_a_result_over_other_steps_says_so_and_its_figures_to_the_digits_that_tell() -> None:
    run = {"origin": "measured", "run_id": "run-1", "raw": {}, "source": "runs/run-1/steps.jsonl"}
    first = run | {"window": "skip_warmup(5)", "step_time_s": 0.09155060900229728, "mfu": 0.400001}
    over = {"window": "last_n(10)", "step_time_s": 0.08627898400300182, "mfu": 0.400002}
    old = revision(superseded=True, superseded_at=LATER, **first)
    [event] = changelog.changelog([old, revision(2, created_at=LATER, **first | over)], []).changed
    assert [it.said for it in event.changes] == [
        "window: skip_warmup(5) → last_n(10)",
        "Step time (s): 0.09155 → 0.08628",
        "MFU: 0.400001 → 0.400002",
    ]


def test_a_measured_result_is_told_by_its_figures_and_its_run() -> None:
    """Its files are at another path in each run, which is no other source."""
    run = {"origin": "measured", "run_id": "run-1", "raw": {}, "source": "runs/run-1/steps.jsonl"}
    old = revision(superseded=True, superseded_at=LATER, **run)
    new = revision(2, created_at=LATER, **run | {"tokens_per_sec_per_gpu": 13.0})
    made = changelog.changelog([old, new], [])
    [corrected] = made.changed
    assert ("runs", "corrected") == (corrected.source, corrected.act)
    assert ["Tokens/s/GPU: 12.00 → 13.00"] == [it.said for it in corrected.changes]
    assert "../runs/run-1.html" in changelog.changed(made, address).text


def test_what_was_rejected_stands_with_its_reason() -> None:
    """A reader finds the line."""
    rejected = Rejection(at=DAY, path="bad.md", line=3, reason="GBS is not a number")
    made = changelog.changelog([], [rejected])
    text = BeautifulSoup(changelog.changed(made, address).text, "html.parser").get_text(" ")
    assert "Reason: GBS is not a number" in text
    assert "bad.md:3" in text


def test_a_line_leads_to_its_page_where_the_site_has_that_state() -> None:
    """A rejection names the moment when its page was read; of another state no line is known."""

    def state(name: str, letter: str, when: datetime) -> SourcePage:
        return SourcePage(path=f"/home/me/{name}", sha256=letter * 64, text="#", read_at=when)

    later = revision(key="b", source_line=8, created_at=LATER)
    history = [revision(key="a", source_sha256="b" * 64), later]
    rejected = [Rejection(at=day, path="bad.md", line=3, reason=f"{day}") for day in (DAY, LATER)]
    kept = (state("page.md", "b", LATER), state("bad.md", "c", DAY))
    made = changelog.changelog(history, rejected, sources=kept)
    shown = [BeautifulSoup(part(made, address).text, "html.parser") for part in
             (changelog.changed, changelog.other)]  # fmt: skip
    cells = [row.select("td")[-1] for made in shown for row in made.select("tbody tr")]
    assert [
        ("bad.md:3", []),
        ("bad.md:3", ["../sources/cccccccccccccccc.html#L3"]),
        ("page.md:8", []),
        ("page.md:9", ["../sources/bbbbbbbbbbbbbbbb.html#L9"]),
    ] == [(cell.get_text(), [link["href"] for link in cell.select("a")]) for cell in cells]


def test_what_a_page_is_rejected_for_again_and_again_is_one_entry() -> None:
    """24 lines for one reason are told once, with their range, and counted as 24."""
    rejected = [Rejection(at=DAY, path="bad.md", line=18 + n, reason="no") for n in range(24)]
    other = Rejection(at=DAY, path="bad.md", line=20, reason="another")
    made = changelog.changelog([], [*rejected, other])
    text = BeautifulSoup(changelog.changed(made, address).text, "html.parser").get_text(" ")
    assert 2 == len(made.changed)
    assert "Reason: 24 × no bad.md:18–41" in " ".join(text.split())
    assert [25] == [it.count for it in made.counts]


def test_what_changes_a_figure_stands_apart_from_what_is_new() -> None:
    """The correction comes first on the page, however many results are added after it."""
    added = revision(key="b", created_at=LATER + timedelta(days=1))
    history = [*revised(tokens_per_sec_per_gpu=13.0, raw={RATE: "13"}), added]
    made = changelog.changelog(history, [])
    assert ["corrected"] == [it.act for it in made.changed]
    assert ["added", "added"] == [it.act for it in made.other]


def test_several_results_of_one_line_are_of_that_line() -> None:
    """The columns of a turned table share the line of their first figure."""
    rows = [revision(key=key, source_line=12) for key in ("a", "b")]
    made = changelog.changelog(rows, [])
    shown = BeautifulSoup(changelog.other(made, address).text, "html.parser").get_text()
    assert "page.md:12" in shown
    assert "12–12" not in shown


def test_what_a_page_adds_of_a_system_is_one_row_that_leads_to_its_table() -> None:
    """24 rows of two models, on lines 9 to 32; another system and another moment have their own."""
    rows = [
        revision(
            key=f"a{number:02}",
            source_line=number,
            model_title="Llama 3 8B" if number < 20 else "Llama 3 70B",
        )
        for number in range(9, 33)
    ]
    others = [revision(key="b", system="dgx-b200"), revision(key="c", created_at=LATER)]
    made = changelog.changelog([*rows, *others], [])
    assert {1: 2, 24: 1} == Counter(event.count for event in made.other)
    [many] = [event for event in made.other if event.count == 24]
    assert (9, 32) == (many.line, many.last_line)
    shown = BeautifulSoup(changelog.other(made, address).text, "html.parser")
    told = shown.find("a", string=re.compile("^24 results"))
    assert told is not None
    assert (
        "24 results · NeMo Framework 25.04 · DGX-H100 · Llama 3 8B, Llama 3 70B" == told.get_text()
    )
    assert "../performance/nemo/25.04.html?system=dgx-h100" == told["href"]
    assert "page.md:9–32" in shown.get_text()
    assert "26 of 26 entries in 3 rows, the newest first." in shown.get_text()


def test_of_many_models_the_first_five_are_named() -> None:
    rows = [revision(key=f"{number}", model_title=f"M{number}") for number in range(7)]
    for count, more in ((6, "1 more model"), (7, "2 more models")):
        text = changelog.other(changelog.changelog(rows[:count], []), address).text
        assert f"M0, M1, M2, M3, M4, {more}<" in text


def test_what_is_read_anew_is_one_row_where_the_same_was_read_anew() -> None:
    """Two rows of which GA is now known to be 4, and one of which it is 8."""
    steps = {"a": "4", "b": "4", "c": "8"}
    history = [
        one.model_copy(update={"key": key})
        for key, read in steps.items()
        for one in revised(raw={RATE: "12", "GA": read})
    ]
    anew = [it for it in changelog.changelog(history, []).other if it.act == "read again"]
    assert {(2, "GA: – → 4"), (1, "GA: – → 8")} == {(it.count, it.changes[0].said) for it in anew}


def test_runs_that_are_added_at_once_lead_to_the_list_of_runs() -> None:
    of_runs = [
        revision(key=run, origin="measured", run_id=run, source=f"runs/{run}/steps.jsonl")
        for run in ("one", "two")
    ]
    shown = changelog.other(changelog.changelog(of_runs, []), address).text
    assert '<a href="../runs/index.html">2 runs</a>' in shown


def test_only_the_newest_entries_are_told_in_full_and_the_rest_is_counted() -> None:
    """The counts say at what time of the day, in UTC, the first and the last came."""
    history = [
        revision(key=str(number), created_at=DAY + timedelta(minutes=number)) for number in range(5)
    ]
    made = changelog.changelog(history, [], most=2)
    assert ["4", "3"] == [event.result.key for event in made.other if event.result]
    assert [("2026-03-04", "page.md", "added", 5, ("05:06", "05:10"))] == [
        (it.day, it.source, it.act, it.count, it.times) for it in made.counts
    ]
    text = changelog.other(made, address).text
    assert "2 of 5 entries" in text
    assert "The 3 older ones are counted by day and source" in text
    assert "05:06–05:10" in changelog.counts(made, address).text


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 4)), unique=True), st.integers(0, 5)
)
def test_every_event_is_counted_once_in_whatever_order_it_was_read(
    pairs: list[tuple[str, int]], most: int
) -> None:
    """None is lost between what is told and what is counted."""
    history = [
        revision(number, key, created_at=DAY + timedelta(hours=number)) for key, number in pairs
    ]
    made = changelog.changelog(history, [], most)
    assert made == changelog.changelog(reversed(history), [], most)
    assert made.total == sum(one.count for one in made.counts)
    told = sum(event.count for event in (*made.changed, *made.other))
    assert made.total == told + sum(made.left)
    assert max(len(made.changed), len(made.other)) <= most


def test_a_page_that_is_withdrawn_says_why_and_what_and_is_restored_when_it_is_read_again(
    store: URL, tmp_path: Path
) -> None:
    """Each row shows the figure as printed, and the reason where its own page was given one."""
    page, other = tmp_path / "page.md", tmp_path / "other.md"
    page.write_text(PAGE.format(rate="12,273"))
    other.write_text(PAGE.format(rate="99").replace("LLAMA3-8B", "LLAMA3-70B"))
    options = ingest.Options(PageContext(framework="nemo", release="25.04"))
    assert 2 == ingest.ingest([page, other], store, options).new
    ingest.withdraw([str(page)], store, "a draft")
    ingest.withdraw([str(other)], store)

    text = shown(store)
    assert "a draft Tokens/s/GPU: 12,273 → –" in text
    assert "Tokens/s/GPU: 99 → –" in text
    assert 1 == text.count("a draft")
    assert 1 == ingest.ingest([page], store, options).revised
    ingest.withdraw([str(page)], store, "no draft")
    assert ["no draft", "restored", "a draft"] == re.findall(
        "no draft|a draft|restored", shown(store)
    )
    assert 2 == sum(it.count for it in made_of(store).counts if it.act == "added")


def test_a_page_that_is_withdrawn_withdraws_no_figure_that_another_page_states(
    store: URL, tmp_path: Path
) -> None:
    """Nothing was out of force: which page states it is told in one line, with the reason."""
    pages = [tmp_path / "old.md", tmp_path / "new.md"]
    for page in pages:
        page.write_text(PAGE.format(rate=12273) + SECOND)
    front = "---\nperfdb: {framework: nemo, release: '25.04'}\n---\n"
    pages[1].write_text(f"{front}{pages[1].read_text()}")
    options = ingest.Options(PageContext(framework="nemo", release="25.04"))
    for page in pages:
        ingest.ingest([page], store, options)
    ingest.withdraw([str(pages[0])], store, "moved")

    made = made_of(store)
    assert () == made.changed
    assert ["now stated", "added"] == [event.act for event in made.other]
    text = BeautifulSoup(changelog.other(made, address).text, "html.parser").get_text(" ")
    assert "Reason: moved now stated by new.md" in " ".join(text.split())


def made_of(store: URL) -> changelog.Changelog:
    """The changelog of a store."""
    contents = read.stored(store)
    return changelog.changelog(contents.revisions, contents.rejections)


def shown(store: URL) -> str:
    """What a reader sees of the entries that change a figure."""
    html = changelog.changed(made_of(store), address).text
    return " ".join(BeautifulSoup(html, "html.parser").get_text(" ").split())


def test_a_store_tells_what_ingesting_did(store: URL, tmp_path: Path) -> None:
    """A page with two rows, then corrected and short of one; a run; a page that is no page."""
    page = tmp_path / "page.md"
    options = ingest.Options(PageContext(framework="nemo", release="25.04"))
    for text in (PAGE.format(rate=12273) + SECOND, PAGE.format(rate=12372)):
        page.write_text(text)
        assert () == ingest.ingest([page], store, options).rejected
    stored(store, write_run(tmp_path, run_id="one"))
    contents = read.stored(store)
    made = changelog.changelog(contents.revisions, contents.rejections)
    counts = {(one.source == "runs", one.act): one.count for one in made.counts}
    assert {
        (False, "added"): 2,
        (False, "corrected"): 1,
        (False, "withdrawn"): 1,
        (True, "added"): 1,
    } == counts
    [corrected] = [event for event in made.changed if event.act == "corrected"]
    assert ["Tokens / sec / GPU: 12273 → 12372"] == [it.said for it in corrected.changes]
    now = [it.result_id for it in contents.results if not it.is_measured]
    assert now == list(corrections(contents.revisions))
