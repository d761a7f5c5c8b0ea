"""The pages of recipes: each text that a recipe had, with the runs that were made from it."""

from datetime import UTC, datetime

from bs4 import BeautifulSoup

from perfdb.site import recipes
from perfdb.site.contents import Contents
from perfdb.site.data import RunFile, RunPage
from perfdb.site.recipes import RecipePage, RecipesPage
from tests.site.samples import HASH, address, run_page


def ran(run_id: str, text: str | None, day: int | None) -> RunPage:
    """A run of the recipe llama3-8b on a day of January, with the text that it kept."""
    page = run_page(4.0)
    started = datetime(2026, 1, day, tzinfo=UTC) if day else None
    run = page.run.model_copy(update={"run_id": run_id, "started_at": started})
    file = RunFile(run_id=run_id, name="recipe.yaml", sha256=HASH, size_bytes=9)
    files = (file,) if text else ()
    return page.model_copy(update={"run": run, "recipe_text": text, "files": files})


def recipe(*runs: RunPage) -> RecipePage:
    [page] = [it.data for it in recipes.KIND.pages(Contents(runs=runs)) if it.name != LIST]
    assert isinstance(page, RecipePage)
    return page


LIST = "recipes/index"


def test_each_text_stands_once_the_newest_first_with_its_runs() -> None:
    page = recipe(ran("a", "old", 1), ran("b", "old", 2), ran("c", "new", 3))
    assert [("new", ["c"]), ("old", ["b", "a"])] == [
        (text.text, [run.run_id for run in text.runs]) for text in page.texts
    ]


def test_a_run_that_does_not_say_when_it_started_is_not_the_newest() -> None:
    page = recipe(ran("a", "old", 1), ran("b", "unknown", None), ran("c", "new", 3))
    assert ["new", "old", "unknown"] == [text.text for text in page.texts]


def test_a_texts_runs_lead_to_their_pages() -> None:
    page = recipe(ran("a", "text", 1))
    [link] = BeautifulSoup(recipes.runs(page, 0, address).text, "html.parser").select("a")
    assert ("../runs/a.html", "a") == (link["href"], link.get_text())


def test_a_run_that_kept_no_recipe_file_is_listed_without_a_text() -> None:
    [text] = recipe(ran("a", None, 1)).texts
    assert (None, None) == (text.text, text.file)


def test_the_list_says_that_published_rows_have_no_recipe() -> None:
    for contents in (Contents(), Contents(runs=(ran("a", "text", 1),))):
        [page] = [page for page in recipes.KIND.pages(contents) if page.name == LIST]
        assert page.text is not None
        assert "Published rows have none" in page.text


def test_the_list_counts_texts_and_runs() -> None:
    runs = (ran("a", "old", 1), ran("b", "new", 2), ran("c", "new", 3))
    [page] = [it.data for it in recipes.KIND.pages(Contents(runs=runs)) if it.name == LIST]
    assert isinstance(page, RecipesPage)
    assert [("llama3-8b", 2, 3)] == [(it.name, it.texts, it.runs) for it in page.lines]
    shown = BeautifulSoup(recipes.index(page, address).text, "html.parser")
    assert ["Recipe", "Runs", "Versions", "Last run started (UTC)"] == [
        head.get_text() for head in shown.select("thead th")
    ]
    assert ["llama3-8b", "3", "2"] == [cell.get_text() for cell in shown.select("tbody tr > *")][:3]
    assert "2026-01-03" in shown.get_text()
