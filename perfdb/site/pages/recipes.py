"""The pages of recipes, and which published rows they cover."""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from pydantic import BaseModel

from perfdb import recipe, units
from perfdb.compare.coverage import RowCoverage, coverage, summary
from perfdb.compare.reproduce import Provenance, RecipeCase, case_of
from perfdb.compare.run_diff import of_spec
from perfdb.groups import grouped
from perfdb.hardware import without_secrets
from perfdb.jsonfile import read_json
from perfdb.site import addresses, cells
from perfdb.site.addresses import result_row
from perfdb.site.cells import HtmlCell, moment
from perfdb.site.data import RunData, SiteData, SiteResult
from perfdb.site.page import Block, Code, FileLinks, Section, SitePage
from perfdb.site.pages import releases
from perfdb.site.pages.parts import heads, link_cell, release_of
from perfdb.site.pages.runs import latest_first
from perfdb.site.tables import plain
from perfdb.site.templates import paragraph, render_text

DEEP_CHECK: Final = "deep-check.json"
"""In the folder of recipes: what `perfdb recipes validate --deep --json` printed of them."""
STAGES: Final = {
    "rows": "published rows", "with_recipe": "with a recipe", "buildable": "that build",
    "measured": "measured here", "reproduced": "reproduced",
}  # fmt: skip
"""How far published rows have come, as `perfdb recipes coverage` counts them."""


class CaseVerdict(BaseModel):
    """Whether a case builds and fits; `ok` is None where this cannot be found out."""

    case_key: str
    ok: bool | None


class DeepChecks(BaseModel):
    """The file of the last deep check."""

    deep: tuple[CaseVerdict, ...]


def with_recipes(found: SiteData, folder: Path | None) -> SiteData:
    """The data with what the recipes of a folder say of it. Raises RecipeError and RunDirError."""
    files: list[recipe.RecipeFile] = []
    verdicts: Iterable[CaseVerdict] = ()
    if folder:  # paths are as a person beside the folder names them
        read = recipe.load([folder])
        files = [replace(it, path=it.path.relative_to(folder.parent)) for it in read]
        if (checked := folder / DEEP_CHECK).is_file():
            verdicts = read_json(checked, DeepChecks).deep
    file_of = {id(spec): file for file in files for spec in file.points}
    by_text = {file.reference.sha256: [file] for file in files}
    rows = coverage(found.current, [spec for file in files for spec in file.points])
    of_rows = {}
    for it in rows:
        known = Provenance(it.row)
        if it.spec:
            made = RecipeCase(file_of[id(it.spec)], it.spec, it.corrections)
            known = Provenance(it.row, of_spec(it.spec, it.row), None, made)
        of_rows[it.row.result_id] = known.document
    runs = []
    for run in found.runs:
        some = by_text.get(run.record.recipe.sha256, ()) if run.record else files
        kept = {file.name: file.sha256 for file in run.files}
        one = case_of(run.result, run.record, some)
        known = Provenance(run.result, run.facts, run.record, one, kept)
        runs.append(replace(run, record=None, provenance=known.document))
    return replace(
        found,
        recipes=tuple(files),
        coverage=tuple(rows),
        buildable={it.case_key: it.ok for it in verdicts},
        provenance=of_rows,
        runs=tuple(runs),
    )


Texts = tuple[tuple[RunData, ...], ...]
"""The runs of each text of a recipe; the text that was run last comes first."""


@dataclass(frozen=True)
class ShownRecipe:
    """A recipe: its file, its texts in runs, and the published rows that its cases run."""

    name: str
    path: str = ""
    text: str | None = None
    texts: Texts = ()
    rows: tuple["ShownRow", ...] = ()


@dataclass(frozen=True)
class ShownRow:
    """A published row with its recipe. `built` as in CaseVerdict; `measured`: the row of runs."""

    covered: RowCoverage
    recipe: str
    built: bool | None
    measured: SiteResult | None


def _shown_rows(data: SiteData) -> list[ShownRow]:
    names = {id(spec): file.recipe.name for file in data.recipes for spec in file.points}
    measured = {it.case_key: it for it in data.results if it.is_measured}
    made = []
    for it in data.coverage:
        key, name = (it.spec.case.key, names[id(it.spec)]) if it.spec else ("", "")
        made.append(ShownRow(it, name, data.buildable.get(key), measured.get(key)))
    return made


def pages(data: SiteData) -> Iterator[SitePage]:
    """The page of each recipe of the folder, or that runs were made from, and their list."""
    named = grouped(latest_first(data.runs), lambda page: page.run.recipe or "")
    files = {file.recipe.name: file for file in data.recipes}
    rows = grouped(_shown_rows(data), lambda it: it.recipe)
    shown = []
    for name in sorted(filter(None, {*named, *files})):
        by_text = grouped(named.get(name, ()), lambda page: page.recipe_text)
        texts, file = tuple(map(tuple, by_text.values())), files.get(name)
        one = ShownRecipe(name, texts=texts, rows=tuple(rows.get(name, ())))
        if file:
            one = replace(one, path=str(file.path), text=without_secrets(file.text))
        shown.append(one)
    number = units.counted(len(shown), "recipe")
    about = f"{number} with the runs that were made from each."
    lines = tuple(
        (it.name, it.path, sum(map(len, it.texts)), len(it.texts), len(it.rows),
         moment(it.texts[0][0].run.started_at) if it.texts else units.UNKNOWN)
        for it in shown
    )  # fmt: skip
    below = [addresses.of_recipe(it.name) for it in shown]
    yield SitePage(addresses.RECIPES, "Recipes", about, partial(_recipes, lines), below=below)
    for it in shown:
        runs = units.counted(sum(map(len, it.texts)), "run")
        about = f"The recipe {it.name}, to copy and to run again, and {runs} made from it."
        yield SitePage(addresses.of_recipe(it.name), it.name, about, partial(_recipe, it))


def _recipes(lines: Sequence[tuple[str, str, int, int, int, str]]) -> list[Block]:
    covered = render_text(
        "<p>{{ link('Coverage', page) }} says which published rows have a recipe.</p>\n",
        page=addresses.COVERAGE,
    )
    if not lines:
        return [paragraph("No run in the store keeps a recipe."), covered]
    intro = "Each recipe there is, and each that runs in the store were made from, as they keep it."
    versions = "#Versions|different texts that the recipe had in the runs that were made from it"
    published = "#Published rows|rows of published pages that its cases run"
    rows: list[list[HtmlCell | str]] = [
        [
            link_cell(name, addresses.of_recipe(name)),
            path or units.UNKNOWN,
            *(f"{count:,}" for count in counts),
            last,
        ]
        for name, path, *counts, last in lines
    ]
    titles = heads("Recipe", "File", "#Runs", versions, published, "Last run started (UTC)")
    return [paragraph(intro), covered, plain("Recipes", titles, rows)]


def _recipe(shown: ShownRecipe) -> list[Block]:
    """Each text, to copy, to download, with the command that runs it, and its runs."""
    made: list[Block] = []
    if shown.text is not None:
        command = shlex.join(["perfdb", "run", shown.path])
        made.append(Section("Recipe", [Code(shown.text, "yaml"), Code(command, "bash")]))
    if shown.rows:
        made.append(Section("Published rows", [_table("Published rows", shown.rows)]))
    for number, runs in enumerate(shown.texts):
        text, file = runs[0].recipe_text, runs[0].recipe_file
        until = moment(runs[0].run.started_at)
        title = "Recipe" if number == 0 and not made else f"As it was until {until} UTC"
        blocks: list[Block] = [paragraph("The runs kept no recipe file.")]
        if text is not None and text == shown.text:
            title, blocks = "Runs", []
        elif text is not None and file is not None:
            after = " to the folder that you are in, and run it again:"
            command = f"perfdb run {shlex.quote(Path(file.name).name)}"
            download = FileLinks([file], "Download ", after)
            blocks = [Code(text, "yaml"), download, Code(command, "bash")]
        made.append(Section(title, [*blocks, _runs(runs)]))
    return made


def _runs(runs: Sequence[RunData]) -> Block:
    rows: list[list[HtmlCell | str]] = [
        [
            link_cell(it.run.run_id, addresses.of_run(it.run.run_id)),
            cells.outcome_badge(it.run.outcome),
            it.result.system_title,
            f"{it.result.num_gpus:,}",
            moment(it.run.started_at),
        ]
        for it in runs
    ]
    titles = heads("Run", "Outcome", "System", "#GPUs", "Started (UTC)")
    return plain("Runs of this recipe", titles, rows)


def coverage_pages(data: SiteData) -> Iterator[SitePage]:
    """How far published rows have come: from a recipe to the same figure."""
    by_release = grouped(_shown_rows(data), lambda it: release_of(it.covered.row))
    order = dict.fromkeys(release.title for release in releases.of_results(data.current))
    of_releases = tuple((name, tuple(by_release[name])) for name in order if name in by_release)
    body = partial(_coverage, of_releases, has_recipes=bool(data.recipes))
    counted = [f"{count} {STAGES[name]}" for name, count in _counts(of_releases).items()]
    yield SitePage(addresses.COVERAGE, "Coverage", f"{', '.join(counted)}.", body)


Releases = Sequence[tuple[str, Sequence[ShownRow]]]


def _counts(of_releases: Releases) -> Mapping[str, str]:
    """How many rows are in each stage, as `perfdb recipes coverage --deep` counts them."""
    rows = [it for _, some in of_releases for it in some]
    built = {it.covered.spec.name: it.built for it in rows if it.covered.spec}
    is_checked = any(it.built is not None for it in rows)
    found = summary([it.covered for it in rows], built if is_checked else None)
    return {name: units.text(found[name]) for name in STAGES}


def _coverage(of_releases: Releases, *, has_recipes: bool) -> list[Block]:
    if not of_releases:
        return [paragraph("The store has no published row.")]
    stages = [(count, STAGES[name]) for name, count in _counts(of_releases).items()]
    intro = render_text(
        '<div class="perf-counts">{% for count, what in stages %}'
        "<div><strong>{{ count }}</strong><span>{{ what }}</span></div>{% endfor %}</div>\n"
        "<p>A row builds where the last deep check has built its model and found that it fits into "
        "the memory of a GPU; – is not known. It is reproduced where its case was measured as fast "
        "as the row says, or faster. {{ code('perfdb recipes coverage') }} prints the same."
        "{% if not has_recipes %} No recipes are known here: {{ code('perfdb_recipes') }} in "
        "{{ code('conf.py') }} names the folder of them.{% endif %}</p>\n",
        stages=stages,
        has_recipes=has_recipes,
    )
    lines = [[name, *_counts([(name, rows)]).values()] for name, rows in of_releases]
    titles = heads("Release", *(f"#{title.capitalize()}" for title in STAGES.values()))
    sections = [Section(name, [_table(name, rows)]) for name, rows in of_releases]
    return [intro, plain("By release", titles, lines), *sections]


def _table(label: str, rows: Sequence[ShownRow]) -> Block:
    corrected = "~Row prints → recipe has|where the row contradicts itself"
    titles = heads("Row", "System", "Recipe", "Builds", "Measured", "Reproduced", corrected)
    return plain(f"Coverage, {label}", titles, map(_cells, rows))


def _cells(it: ShownRow) -> list[HtmlCell | str]:
    row, verdict = it.covered.row, it.covered.verdict
    document = addresses.of_release(row.framework, row.release)
    fixed = (f"{name} {a} → {b}" for name, (a, b) in it.covered.corrections.items())
    measured: HtmlCell | str = units.text(verdict)
    if it.measured:
        own = it.measured
        where = addresses.of_release(own.framework, own.release)
        measured = link_cell(units.text(verdict), where, result_row(own))
    return [
        link_cell(cells.work(row), document, result_row(row)),
        row.system_title,
        link_cell(it.recipe, addresses.of_recipe(it.recipe)) if it.recipe else units.UNKNOWN,
        {True: "yes", False: "no", None: units.UNKNOWN}[it.built],
        measured,
        units.UNKNOWN if verdict is None else ("no", "yes")[it.covered.is_reproduced],
        ", ".join(fixed) or units.UNKNOWN,
    ]
