"""The pages of recipes: each text that runs were made from, to copy, and the runs of it."""

import shlex
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from perfdb import units
from perfdb.groups import grouped
from perfdb.site import addresses
from perfdb.site.cells import HtmlCell, moment, outcome_badge
from perfdb.site.data import RunData, SiteData
from perfdb.site.page import Block, Code, FileLinks, Page, Section
from perfdb.site.pages.runs import latest_first
from perfdb.site.tables import HtmlHead, plain
from perfdb.site.templates import link, paragraph

PUBLISHED: Final = (
    "Published rows have none: where their page names configuration files, so does a note below "
    "the table."
)
NONE: Final = f"No run in the store keeps a recipe. {PUBLISHED}"
WHAT: Final = f"Each recipe that runs in the store were made from, as the runs keep it. {PUBLISHED}"
_VERSIONS: Final = "different texts that the recipe had in the runs that were made from it"

Texts = tuple[tuple[RunData, ...], ...]
"""The runs of each text of a recipe; the text that was run last comes first."""


def pages(data: SiteData) -> Iterator[Page]:
    """The page of each recipe, and their list."""
    named = grouped(data.runs, lambda page: page.run.recipe or "")
    recipes = {name: _texts(named[name]) for name in sorted(filter(None, named))}
    number = units.counted(len(recipes), "recipe")
    about = f"{number} that runs were made from, with the runs of each."
    lines = tuple(
        (name, sum(map(len, texts)), len(texts), moment(texts[0][0].run.started_at))
        for name, texts in recipes.items()
    )
    below = [addresses.of_recipe(name) for name in recipes]
    yield Page(addresses.RECIPES, "Recipes", about, partial(_index, lines), below=below)
    for name, texts in recipes.items():
        runs = units.counted(sum(map(len, texts)), "run")
        about = f"The recipe {name}, to copy and to run again, and {runs} made from it."
        yield Page(addresses.of_recipe(name), name, about, partial(_recipe, texts))


def _texts(runs: Sequence[RunData]) -> Texts:
    by_text = grouped(latest_first(runs), lambda page: page.recipe_text)
    return tuple(map(tuple, by_text.values()))


def _index(lines: Sequence[tuple[str, int, int, str]]) -> list[Block]:
    if not lines:
        return [paragraph(NONE)]
    heads = [
        HtmlHead("Recipe"),
        HtmlHead("Runs", numeric=True),
        HtmlHead("Versions", _VERSIONS, numeric=True),
        HtmlHead("Last run started (UTC)"),
    ]
    rows: list[list[HtmlCell | str]] = [
        [
            HtmlCell(link(name, addresses.of_recipe(name)), sort=name),
            f"{runs:,}",
            f"{texts:,}",
            last,
        ]
        for name, runs, texts, last in lines
    ]
    return [paragraph(WHAT), plain("Recipes", heads, rows)]


def _recipe(texts: Texts) -> list[Block]:
    made: list[Block] = []
    for number, runs in enumerate(texts):
        until = moment(runs[0].run.started_at)
        title = "Recipe" if number == 0 else f"As it was until {until} UTC"
        made.append(Section(title, [*_text(runs[0]), _runs(runs)]))
    return made


def _text(run: RunData) -> list[Block]:
    """A text of a recipe, to copy, to download, and the command that runs it."""
    if run.recipe_text is None or run.recipe_file is None:
        return [paragraph("The runs kept no recipe file.")]
    after = " to the folder that you are in, and run it again:"
    command = f"perfdb run {shlex.quote(Path(run.recipe_file.name).name)}"
    return [
        Code(run.recipe_text, "yaml"),
        FileLinks([run.recipe_file], "Download ", after),
        Code(command, "bash"),
    ]


def _runs(runs: Sequence[RunData]) -> Block:
    heads = [
        HtmlHead("Run"),
        HtmlHead("Outcome"),
        HtmlHead("System"),
        HtmlHead("GPUs", numeric=True),
        HtmlHead("Started (UTC)"),
    ]
    rows: list[list[HtmlCell | str]] = [
        [
            HtmlCell(link(it.run.run_id, addresses.of_run(it.run.run_id)), sort=it.run.run_id),
            outcome_badge(it.run.outcome),
            it.result.system_title,
            f"{it.result.num_gpus:,}",
            moment(it.run.started_at),
        ]
        for it in runs
    ]
    return plain("Runs of this recipe", heads, rows)
