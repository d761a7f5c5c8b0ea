"""What stands where an old link leads when every result of a page has been withdrawn."""

from pathlib import Path

from sqlalchemy import URL

from perfdb import ingest
from perfdb.pages.base import PageContext
from perfdb.site import read, withdrawn
from perfdb.site.contents import Contents, Revision
from perfdb.site.data import SourcePage
from perfdb.site.pages import all_pages
from tests.factories import stored, write_run
from tests.site.test_changelog import DAY, LATER, PAGE, revision

GONE = "performance/nemo/25.04"
SOURCE = "sources/0123456789abcdef"


def texts(*revisions: Revision) -> dict[str, str]:
    """The text of each page, by its name, without its front matter."""
    made = withdrawn.KIND.pages(Contents(revisions=revisions))
    return {page.name: (page.text or "").rpartition("---\n")[2] for page in made}


def gone(key: str, reason: str | None = None, **changed: object) -> Revision:
    """A result of a page that was withdrawn a day later for a reason."""
    logged = f"2 withdrawn: {reason}" if reason else None
    fields = {"superseded": True, "superseded_at": LATER, "logged": logged}
    return revision(key=key, **fields | changed)


def test_a_page_of_which_all_is_withdrawn_says_when_and_why() -> None:
    """The reason is text, whatever signs are in it; no figure is told."""
    made = texts(gone("a", "a *draft*"), gone("b", "a *draft*"), gone("c", superseded_at=DAY))
    assert {GONE, "models/llama3-8b", "systems/dgx-h100", SOURCE} == made.keys()
    assert [
        "# NeMo Framework 25\\.04 \\(withdrawn\\)",
        "- 2 results were withdrawn on 2026-03-05: a \\*draft\\*",
        "- 1 result was withdrawn on 2026-03-04; no reason was given.",
        "The [changelog of the data](/performance/changelog.md) has each with its figures.",
    ] == [line for line in made[GONE].splitlines() if line]


def test_a_page_of_which_one_result_is_left_is_none_of_them() -> None:
    """The model and the system are another release's too; nothing is said of what came back."""
    other = revision(key="b", release="25.07")
    assert {GONE} == texts(gone("a"), other).keys()
    assert {} == texts(gone("a"), revision(2, "a", created_at=LATER))


def test_a_run_that_was_read_again_as_of_another_release_is_not_said_to_be_withdrawn() -> None:
    """The log of it is the same run; its old page leads to where it counts now."""
    run = {"run_id": "one", "source": "one.log"}
    made = texts(gone("a", **run), revision(key="b", release="25.07", **run))
    line = "- 1 result was read again as one of Llama 3 8B in [NeMo Framework 25\\.07]"
    assert f"{line}(/performance/nemo/25.07.md)." in made[GONE]
    assert {GONE} == made.keys()


def test_a_recipe_is_gone_with_its_last_run_and_a_source_with_its_last_row() -> None:
    """What another state of the page still says, or the same bytes elsewhere, is not withdrawn."""
    run = {"source": "one/steps.jsonl", "source_sha256": "e" * 64, "recipe": "tiny"}
    assert {"runs/one", "recipes/tiny"} == texts(
        gone("a", run_id="one", **run), revision(key="b", source="other.md")
    ).keys() - {GONE}
    left = revision(key="b", run_id="two", **run)
    assert {"runs/one", SOURCE} == texts(gone("a", run_id="one", **run), gone("c"), left).keys()
    other = revision(key="b", source_sha256="f" * 64)
    assert {} == texts(gone("a"), other)
    page = SourcePage(path="copy.md", sha256="0123456789abcdef" * 4, text="#")
    made = withdrawn.KIND.pages(Contents(revisions=(gone("a"),), sources=(page,)))
    assert SOURCE not in {one.name for one in made}


def test_a_store_tells_of_a_release_a_run_and_a_source_and_nothing_once_they_are_back(
    store: URL, tmp_path: Path
) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE.format(rate="12,273"))
    options = ingest.Options(PageContext(framework="nemo", release="25.04"))
    ingest.ingest([page], store, options)
    stored(store, write_run(tmp_path, run_id="bad"), write_run(tmp_path, run_id="good"))
    assert {} == texts(*read.stored(store).revisions)
    ingest.withdraw([str(page)], store, "a draft")
    ingest.withdraw(["bad"], store, "shared with another job")

    contents = read.stored(store)
    made = texts(*contents.revisions)
    [source] = [name for name in made if name.startswith("sources/")]
    assert {GONE, "runs/bad", source} == made.keys()
    assert "# page\\.md \\(withdrawn\\)" in made[source]
    assert ": a draft\n" in made[GONE]
    assert ": shared with another job\n" in made["runs/bad"]
    names = [one.name for one in all_pages(contents)]
    assert len(set(names)) == len(names)
    assert made.keys() <= set(names)
    ingest.ingest([page], store, options)
    ingest.restore(["bad"], store)
    assert {} == texts(*read.stored(store).revisions)
