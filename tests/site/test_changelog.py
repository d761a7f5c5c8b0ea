"""The changelog of the data, and what is where everything of a page was withdrawn."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from sqlalchemy import URL

from perfdb import ingest
from perfdb.groups import grouped
from perfdb.pages.base import PageContext
from perfdb.record import Note, NoteCode
from perfdb.site import read
from perfdb.site.build import all_pages
from perfdb.site.data import Rejection, ResultRevision, SiteData, SourceData
from perfdb.site.pages import changelog
from perfdb.site.pages.revisions import of_release
from tests.factories import EVIL, stored, write_run
from tests.site.samples import HASH, soup, table, words

DAY = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
LATER = DAY + timedelta(days=1)
RATE = "Tokens / sec / GPU"
PAGE = """# NeMo

## Pre-training

### System: DGX-H100

| Model | #-GPUs | GBS | MBS | Sequence Length | TP | PP | CP | Tokens / sec / GPU |
|---|---|---|---|---|---|---|---|---|
| LLAMA3-8B | 8 | 128 | 1 | 8192 | 1 | 1 | 2 | {rate} |
"""


def revision(number: int = 1, key: str = "a", **changed: object) -> ResultRevision:
    """A row of NeMo 25.04's page, with these fields changed."""
    unknown = ("superseded_at", "run_id", "withheld", "step_time_s", "model_tflops_per_sec_per_gpu",
               "mfu")  # fmt: skip
    fields: dict[str, object] = dict.fromkeys(unknown) | {
        "key": key, "revision": number, "created_at": DAY, "superseded": False,
        "framework": "nemo", "release": "25.04", "system": "dgx-h100", "system_title": "DGX-H100",
        "model": "llama3-8b", "model_title": "Llama 3 8B", "qualifiers": "", "task": "pretrain",
        "precision": "fp8", "num_gpus": 8, "global_batch_size": 128, "sequence_length": 8192,
        "origin": "published", "source": "page.md", "source_sha256": HASH, "source_line": 9,
        "outcome": "finished", "tokens_per_sec_per_gpu": 12.0, "raw": {RATE: "12"},
        "printed": {"tokens_per_sec_per_gpu": "12"},
    }  # fmt: skip
    return ResultRevision(**(fields | changed))  # type: ignore[arg-type]


def revised(old: dict[str, object], new: dict[str, object]) -> list[ResultRevision]:
    """A result, and another revision of it a day later."""
    first = revision(superseded=True, superseded_at=LATER, **old)
    return [revision(2, created_at=LATER, **old | new), first]


def shown(
    revisions: Iterable[ResultRevision], rejections: Iterable[Rejection] = (),
    sources: Iterable[SourceData] = (),
) -> BeautifulSoup:  # fmt: skip
    """The page of the changelog."""
    known = replace(data_of(revisions), rejections=tuple(rejections), sources=tuple(sources))
    [page] = changelog.pages(known)
    return soup(page)


def data_of(revisions: Iterable[ResultRevision]) -> SiteData:
    """What a site has of results that are in no table."""
    releases = grouped(revisions, lambda one: one.release).values()
    return SiteData(changelog=tuple(of_release(some, ()) for some in releases))


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ({}, {"tokens_per_sec_per_gpu": 13.0, "raw": {RATE: "13", "New": "x"},
          "printed": {"tokens_per_sec_per_gpu": "13"}},
         f"{RATE}: 12 → 13 New: – → x"),
        ({"step_time_s": 19.65055, "raw": {}}, {"step_time_s": 19.6471},
         "Step time (s): 19.651 → 19.647"),
        ({}, {"flops_convention": "causal", "window": "last"},
         "window: – → last FLOPs convention: – → causal"),
        ({}, {"source": "other.md", "raw": {"Rate": "12"}}, "also printed by other.md"),
        ({"step_time_s": 4.3, "printed": {"step_time_s": "4.30"}},
         {"step_time_s": 4.1, "printed": {"step_time_s": "4.10"}, "source": "other.md"},
         "contradicted by other.md Step time (s): 4.30 → 4.10"),
        ({"notes": (Note.of(NoteCode.FOOTNOTE, text="cold"),)},
         {"notes": (Note.of(NoteCode.FOOTNOTE, text="warm"),)},
         "note: cold → warm"),
    ],
)  # fmt: skip
def test_a_revision_says_from_what_to_what(
    old: dict[str, object], new: dict[str, object], text: str
) -> None:
    [line, *_] = [it for it in table(shown(revised(old, new))) if "Moment (UTC)" in it]
    assert line["Change"] == text


@pytest.mark.parametrize("reason", ["a draft: not for print", None])
def test_a_result_that_came_back_was_withdrawn_and_restored(reason: str | None) -> None:
    """What no page prints has four figures: 2574.768… is 2,575."""
    gone = revision(superseded=True, superseded_at=LATER, stated_reason=reason)
    back = revision(2, created_at=LATER + timedelta(days=1), tokens_per_sec_per_gpu=2574.768278)
    text = words(shown([gone, back]))
    assert "Tokens/s/GPU: 12 → –" in text
    assert "Tokens/s/GPU: – → 2,575" in text
    assert f"Reason: {reason}" in text if reason else "Reason:" not in text


def test_lines_that_are_rejected_for_one_reason_are_one_entry() -> None:
    many = [Rejection(at=DAY, path="bad.md", line=18 + n, reason="no") for n in range(24)]
    text = words(shown([], [*many, Rejection(at=DAY, path="bad.md", line=3, reason=EVIL)]))
    assert "24 × no bad.md:18–41" in text
    assert f"Reason: {EVIL} bad.md:3" in text


def test_a_line_leads_to_its_page_where_the_site_has_that_state() -> None:
    kept = SourceData(path="/home/me/page.md", sha256=HASH, text="#", read_at=LATER)
    other = revision(key="b", source_sha256="b" * 64, source_line=8, created_at=LATER)
    links = [str(link["href"]) for link in shown([revision(), other], sources=[kept]).select("a")]
    assert [link for link in links if "#L" in link] == [f"perfdb:sources/{HASH[:16]}#L9"]


GONE = "performance/nemo/25.04"
SOURCE = f"sources/{HASH[:16]}"


def texts(*revisions: ResultRevision) -> dict[str, str]:
    """The words of each page of what was withdrawn."""
    return withdrawn(data_of(revisions))


def withdrawn(data: SiteData) -> dict[str, str]:
    made = all_pages(data)
    return {page.name: words(soup(page)) for page in made if page.title.endswith("(withdrawn)")}


def gone(key: str, reason: str | None = None, **changed: object) -> ResultRevision:
    """A result that was withdrawn a day later."""
    fields = {"superseded": True, "superseded_at": LATER, "stated_reason": reason}
    return revision(key=key, **fields | changed)


def test_a_page_of_which_all_was_withdrawn_has_when_and_why() -> None:
    """A page of which a result is left is not withdrawn."""
    made = texts(gone("a", "a *draft*"), gone("b", "a *draft*"), gone("c", superseded_at=DAY))
    assert made.keys() == {GONE, "models/llama3-8b", "systems/dgx-h100", SOURCE}
    assert "2 results were withdrawn on 2026-03-05: a *draft*" in made[GONE]
    assert "1 result was withdrawn on 2026-03-04; no reason stated." in made[GONE]
    assert texts(gone("a"), revision(key="b", release="25.07")).keys() == {GONE}
    assert texts(gone("a"), revision(2, "a", created_at=LATER)) == {}

    run = {"source": "one/steps.jsonl", "source_sha256": "e" * 64, "recipe": "tiny"}
    other = revision(key="b", source="other.md")
    assert {"runs/one", "recipes/tiny"} <= texts(gone("a", run_id="one", **run), other).keys()
    left = revision(key="b", run_id="two", **run)
    assert "recipes/tiny" not in texts(gone("a", run_id="one", **run), left)


def test_a_store_has_what_was_withdrawn_until_it_is_back(sqlite: URL, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE.format(rate="12,273"))
    options = ingest.Options(PageContext(framework="nemo", release="25.04"))
    ingest.ingest([page], sqlite, options)
    stored(sqlite, write_run(tmp_path, run_id="bad"), write_run(tmp_path, run_id="good"))
    assert withdrawn(read.stored(sqlite)) == {}
    ingest.withdraw([str(page)], sqlite, "a draft")
    ingest.withdraw(["bad"], sqlite, "shared with another job")

    made = withdrawn(read.stored(sqlite))
    assert ": a draft" in made[GONE]
    assert ": shared with another job" in made["runs/bad"]
    ingest.ingest([page], sqlite, options)
    ingest.restore(["bad"], sqlite)
    assert withdrawn(read.stored(sqlite)) == {}
