"""The pages of recipes: the text that runs were made from, to copy, and the runs of each text."""

from collections.abc import Iterator, Sequence

from perfdb import units
from perfdb.groups import grouped
from perfdb.record import Frozen
from perfdb.site import addresses, markup
from perfdb.site.addresses import Address
from perfdb.site.contents import Contents
from perfdb.site.data import RunFile, RunPage
from perfdb.site.evidence import latest_first
from perfdb.site.markup import Cell, Head, Html, link
from perfdb.site.page import (
    Kind,
    Page,
    directive,
    document,
    listing,
    numbered,
    part,
    section,
    shown,
)
from perfdb.site.tables import moment, outcome_badge


class RecipeRun(Frozen):
    """A run of a recipe: enough of it to find it."""

    run_id: str
    outcome: str
    system: str
    num_gpus: int
    started: str


class RecipeText(Frozen):
    """A text that a recipe had, the file it is kept in, and the runs that were made from it.

    None: the runs kept no recipe file.
    """

    text: str | None
    file: RunFile | None
    runs: tuple[RecipeRun, ...]


class RecipePage(Frozen):
    """Everything on the page of a recipe; the text that was run last comes first."""

    name: str
    texts: tuple[RecipeText, ...]


class RecipeLine(Frozen):
    """A line of the list of recipes."""

    name: str
    texts: int
    runs: int
    last: str


class RecipesPage(Frozen):
    """The list of recipes."""

    lines: tuple[RecipeLine, ...]


PUBLISHED = (
    "Published rows have none: where their page names configuration files, so does a note below "
    "the table.\n"
)
NONE = f"No run in the store keeps a recipe. {PUBLISHED}"
_VERSIONS = "different texts that the recipe had in the runs that were made from it"
WHAT = f"Each recipe that runs in the store were made from, as the runs keep it. {PUBLISHED}"


def _pages(contents: Contents) -> Iterator[Page]:
    named = grouped(contents.runs, lambda page: page.run.recipe or "")
    pages = [_recipe(name, named[name]) for name in sorted(filter(None, named))]
    lines = tuple(map(_line, pages))
    below = [addresses.of_recipe(page.name) for page in pages]
    data = RecipesPage(lines=lines) if lines else None
    told = f"{units.counted(len(pages), 'recipe')} that runs were made from, with the runs of each."
    yield listing(addresses.RECIPES, told, WHAT if data else NONE, data, below)
    yield from map(_document, pages)


def _recipe(name: str, runs: Sequence[RunPage]) -> RecipePage:
    texts = grouped(latest_first(runs), lambda page: page.recipe_text)
    made = tuple(
        RecipeText(text=text, file=some[0].recipe_file, runs=tuple(map(_run, some)))
        for text, some in texts.items()
    )
    return RecipePage(name=name, texts=made)


def _run(page: RunPage) -> RecipeRun:
    return RecipeRun(
        run_id=page.run.run_id,
        outcome=page.run.outcome,
        system=page.result.system_title,
        num_gpus=page.result.num_gpus,
        started=moment(page.run.started_at),
    )


def _line(page: RecipePage) -> RecipeLine:
    return RecipeLine(
        name=page.name,
        texts=len(page.texts),
        runs=sum(len(text.runs) for text in page.texts),
        last=page.texts[0].runs[0].started,
    )


def _document(page: RecipePage) -> Page:
    parts = []
    for number, text in enumerate(page.texts):
        title = "Recipe" if number == 0 else f"As it was until {text.runs[0].started} UTC"
        recipe = directive("perfdb-recipe", number=number)
        parts.append(section(title, recipe, shown("recipe-runs", number)))
    runs = units.counted(sum(len(text.runs) for text in page.texts), "run")
    about = f"The recipe {page.name}, to copy and to run again, and {runs} made from it."
    return Page(addresses.of_recipe(page.name), document(page.name, about, *parts), page)


def index(page: RecipesPage, address: Address) -> Html:
    """The list of recipes."""
    heads = [Head("Recipe"), Head("Runs", numeric=True), Head("Versions", _VERSIONS, numeric=True)]
    heads.append(Head("Last run started (UTC)"))
    rows = [
        [
            Cell(link(one.name, address(addresses.of_recipe(one.name))), sort=one.name),
            Cell(f"{one.runs:,}"),
            Cell(f"{one.texts:,}"),
            Cell(one.last),
        ]
        for one in page.lines
    ]
    return markup.table(markup.Table("Recipes", heads, rows))


def runs(page: RecipePage, number: int, address: Address) -> Html:
    """The runs of a text."""
    heads = [Head("Run"), Head("Outcome"), Head("System"), Head("GPUs", numeric=True)]
    heads.append(Head("Started (UTC)"))
    rows = [
        [
            Cell(link(one.run_id, address(addresses.of_run(one.run_id))), sort=one.run_id),
            Cell(outcome_badge(one.outcome)),
            Cell(one.system),
            Cell(f"{one.num_gpus:,}"),
            Cell(one.started),
        ]
        for one in page.texts[number].runs
    ]
    return markup.table(markup.Table("Runs of this recipe", heads, rows))


KIND = Kind(
    _pages, {"recipes": part(RecipesPage, index), "recipe-runs": numbered(RecipePage, runs)}
)
