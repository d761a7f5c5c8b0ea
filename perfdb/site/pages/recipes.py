"""The pages of recipes, and which published rows they cover."""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from markupsafe import Markup
from pydantic import BaseModel

from perfdb import recipe, units
from perfdb.compare.coverage import REPRODUCED, Corrections, RowCoverage, coverage, summary
from perfdb.compare.reproduce import Provenance, RecipeCase, case_of
from perfdb.compare.run_diff import of_spec
from perfdb.compare.verdict import Verdict
from perfdb.groups import grouped
from perfdb.hardware import without_secrets
from perfdb.jsonfile import read_json
from perfdb.record import Result
from perfdb.site import addresses, cells
from perfdb.site.cells import HtmlCell, moment
from perfdb.site.data import RunData, SiteData, SiteResult
from perfdb.site.grouping import ReleaseName, release_title
from perfdb.site.page import Block, Code, FileLinks, Section, SitePage
from perfdb.site.pages import releases
from perfdb.site.pages.parts import heads, link_cell
from perfdb.site.pages.runs import latest_first
from perfdb.site.tables import plain
from perfdb.site.templates import href, paragraph, render_text

DEEP_CHECK: Final = "deep-check.json"
"""In the folder of recipes: what `perfdb recipes validate --deep --json` printed of them."""
STAGES: Final = {
    "rows": "published rows", "with_recipe": "with a recipe", "buildable": "that build",
    "measured": "measured here", "reproduced": "reproduced",
}  # fmt: skip
"""How far published rows have come, as `perfdb recipes coverage` counts them."""
ROW: Final = heads(
    "Row", "System", "Recipe", "Builds", "Measured", "Reproduced",
    "~Row prints → recipe has|where the row contradicts itself",
)  # fmt: skip
"""What is said of each row."""


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
Cells = Sequence[HtmlCell | str]


class CoveredRow(NamedTuple):
    """A published row: its recipe, whether that builds, and how its measurement compares."""

    row: Result
    recipe: str | None
    builds: bool | None
    corrections: Corrections
    verdict: Verdict | None
    measured: SiteResult | None


@dataclass(frozen=True)
class ShownRecipe:
    """A recipe: its file, its texts in runs, and lines on the published rows that it covers."""

    name: str
    path: str = ""
    text: str | None = None
    texts: Texts = ()
    rows: Sequence[CoveredRow] = ()

    @property
    def cells(self) -> tuple[str, ...]:
        last = moment(self.texts[0][0].run.started_at) if self.texts else units.UNKNOWN
        counts = sum(map(len, self.texts)), len(self.texts), len(self.rows)
        return self.name, *(f"{it:,}" for it in counts), last, self.path or units.UNKNOWN


def pages(data: SiteData) -> Iterator[SitePage]:
    """The page of each recipe of the folder, or that runs were made from, and their list."""
    named = grouped(latest_first(data.runs), lambda page: page.run.recipe or "")
    files = {file.recipe.name: file for file in data.recipes}
    names = {id(spec): name for name, file in files.items() for spec in file.points}
    rows = grouped(data.coverage, lambda it: names.get(id(it.spec)))
    measured = _measured(data)
    shown = []
    for name in sorted(filter(None, {*named, *files})):
        by_text = grouped(named.get(name, ()), lambda page: page.recipe_text)
        own = tuple(_line(it, data, measured, name) for it in rows.get(name, ()))
        one = ShownRecipe(name, texts=tuple(map(tuple, by_text.values())), rows=own)
        if file := files.get(name):
            one = replace(one, path=str(file.path), text=without_secrets(file.text))
        shown.append(one)
    number = units.counted(len(shown), "recipe")
    about = f"{number} with the runs that were made from each."
    below = [addresses.of_recipe(it.name) for it in shown]
    body = partial(_recipes, tuple(it.cells for it in shown))
    yield SitePage(addresses.RECIPES, "Recipes", about, body, below=below)
    for it in shown:
        runs = units.counted(sum(map(len, it.texts)), "run")
        about = f"The recipe {it.name}, to copy and to run again, and {runs} made from it."
        yield SitePage(addresses.of_recipe(it.name), it.name, about, partial(_recipe, it))


def _recipes(lines: Sequence[tuple[str, ...]]) -> list[Block]:
    intro = render_text(
        "<p>{% if lines %}All recipes, and those that runs kept.{% else %}No run has a recipe."
        "{% endif %} See which published rows have one: {{ link('Coverage', page) }}.</p>\n",
        lines=lines,
        page=addresses.COVERAGE,
    )
    versions = "#Versions|versions of the recipe among its runs"
    published = "#Published rows|published rows that its cases reproduce"
    titles = heads("Recipe", "#Runs", versions, published, "Last run started (UTC)", "File")
    rows: list[Cells] = [
        [link_cell(name, addresses.of_recipe(name)), *counts] for name, *counts in lines
    ]
    return [intro, *([plain("Recipes", titles, rows)] if lines else [])]


def _recipe(shown: ShownRecipe) -> list[Block]:
    """Each text, to copy, to download, with the command that runs it, and its runs."""
    made: list[Block] = []
    if shown.text is not None:
        command = shlex.join(["perfdb", "run", shown.path])
        made.append(Section("Recipe", [Code(shown.text, "yaml"), Code(command, "bash")]))
    if shown.rows:
        made.append(
            Section("Published rows", [plain("Published rows", ROW, map(_cells, shown.rows))])
        )
    for number, runs in enumerate(shown.texts):
        text, file = runs[0].recipe_text, runs[0].recipe_file
        until = moment(runs[0].run.started_at)
        title = "Recipe" if number == 0 and not made else f"As it was until {until} UTC"
        blocks: list[Block] = [paragraph("No run kept the recipe file.")]
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
    """How far published rows have come, from a recipe to the same figure: counts by release, and
    a page with the rows of each."""
    names = {id(spec): file.recipe.name for file in data.recipes for spec in file.points}
    by_release = grouped(data.coverage, lambda it: (it.row.framework, it.row.release))
    every = [(it.framework, it.release) for it in releases.of_results(data.current)]
    of_releases = {name: by_release[name] for name in every if name in by_release}
    counts = {name: _counts(rows, data) for name, rows in of_releases.items()}
    total = _counts(data.coverage, data)
    body = partial(_coverage, total, counts, has_recipes=bool(data.recipes))
    below = [addresses.of_coverage(*name) for name in of_releases]
    yield SitePage(addresses.COVERAGE, "Coverage", _told(total), body, below=below)
    measured = _measured(data)
    for name, rows in of_releases.items():
        title = f"Coverage of {release_title(*name)}"
        lines = tuple(_line(it, data, measured, names.get(id(it.spec))) for it in rows)
        body = partial(_covered, title, counts[name], lines)
        yield SitePage(addresses.of_coverage(*name), title, _told(counts[name]), body)


def _told(counts: Mapping[str, str]) -> str:
    return f"{', '.join(f'{count} {what}' for what, count in counts.items())}."


def _counts(rows: Sequence[RowCoverage], data: SiteData) -> Mapping[str, str]:
    """How many rows are in each stage, as `perfdb recipes coverage --deep` counts them."""
    built = {it.spec.name: data.buildable.get(it.spec.case.key) for it in rows if it.spec}
    found = summary(rows, built if data.buildable else None)
    return {title: units.text(found[name]) for name, title in STAGES.items()}


def _coverage(
    total: Mapping[str, str],
    of_releases: Mapping[ReleaseName, Mapping[str, str]],
    *,
    has_recipes: bool,
) -> list[Block]:
    if not of_releases:
        return [paragraph("There are no published rows.")]
    intro = render_text(
        "<p>A row builds if the last deep check built its model and it fits in GPU memory; – means "
        "not checked. A row is reproduced if its case was measured as fast or faster. See also "
        "{{ code('perfdb recipes coverage') }}.{% if not has_recipes %} To show recipes, set "
        "{{ code('perfdb_recipes') }} in {{ code('conf.py') }}.{% endif %}</p>\n",
        has_recipes=has_recipes,
    )
    lines: list[Cells] = [
        [link_cell(release_title(*name), addresses.of_coverage(*name)), *counts.values()]
        for name, counts in of_releases.items()
    ]
    titles = heads("Release", *(f"#{title.capitalize()}" for title in STAGES.values()))
    return [_in_numbers(total), intro, plain("By release", titles, lines)]


def _in_numbers(counts: Mapping[str, str]) -> Markup:
    return render_text(
        '<div class="perf-counts">{% for what, count in counts.items() %}'
        "<div><strong>{{ count }}</strong><span>{{ what }}</span></div>{% endfor %}</div>\n",
        counts=counts,
    )


def _covered(title: str, counts: Mapping[str, str], rows: Sequence[CoveredRow]) -> list[Block]:
    return [_in_numbers(counts), plain(title, ROW, map(_cells, rows))]


def _measured(data: SiteData) -> Mapping[str, SiteResult]:
    """The first measured result of each case, by its key."""
    return {it.case_key: it for it in reversed(data.results) if it.is_measured}


def _line(
    it: RowCoverage, data: SiteData, measured: Mapping[str, SiteResult], name: str | None
) -> CoveredRow:
    """What is known of a published row; `name` is that of its recipe."""
    key = it.spec.case.key if it.spec else ""
    builds = data.buildable.get(key)
    return CoveredRow(it.row, name, builds, it.corrections, it.verdict, measured.get(key))


def _cells(it: CoveredRow) -> Cells:
    """A line on a published row, by `ROW`."""
    row, name, verdict = it.row, it.recipe, units.text(it.verdict)
    work = cells.work(row)
    fixed = (f"{field} {a} → {b}" for field, (a, b) in it.corrections.items())
    is_reproduced = it.verdict in REPRODUCED
    return [
        HtmlCell(href(work, addresses.table_row(row)), sort=work),
        row.system_title,
        link_cell(name, addresses.of_recipe(name)) if name else units.UNKNOWN,
        {True: "yes", False: "no", None: units.UNKNOWN}[it.builds],
        href(verdict, addresses.table_row(it.measured)) if it.measured else verdict,
        units.UNKNOWN if it.verdict is None else ("no", "yes")[is_reproduced],
        ", ".join(fixed) or units.UNKNOWN,
    ]
