"""Published pages as they were read, line by line, with the results read from each."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from io import StringIO
from pathlib import PurePosixPath
from typing import Final

from markupsafe import Markup

from perfdb.compare.reproduce import Provenance
from perfdb.groups import grouped
from perfdb.site import addresses, redaction
from perfdb.site.addresses import result_row
from perfdb.site.cells import flag_mark, gpus, moment
from perfdb.site.data import Link, SiteData, SiteResult, SourceData
from perfdb.site.grouping import section_title
from perfdb.site.page import Block, Section, SitePage, summary_of_results
from perfdb.site.pages.parts import drawer, label, release_of
from perfdb.site.tables import shared
from perfdb.site.templates import href, joined, link, render

Made = Mapping[int, tuple[Mapping[str, object], str | None]]
"""What belongs to the numbers of results that have a recipe, and its name."""
About = tuple[Mapping[int, str], Made]
"""What is known of results by their ids: corrections, and how they were made."""
Others = tuple[tuple[Link, int], ...] | Link
"""Other states of a page: the earlier ones with their rows, or the newest."""
_NO_RECIPE: Final = joined(("none for this row; see ", link("the recipes", addresses.RECIPES)))
_SEE_CHANGELOG: Final = joined(("; see the ", link("changelog", addresses.CHANGELOG)))


def pages(data: SiteData) -> Iterator[SitePage]:
    """A page for each state of each published page."""
    corrected = data.corrected
    shown = {result.result_id for result in data.results}
    repeats = (result for result in data.current if result.result_id not in shown)
    every = (result for result in (*data.results, *repeats) if not result.is_measured)
    rows = grouped(every, lambda result: result.source_sha256)
    recipes = {str(it.path): it.recipe.name for it in data.recipes}
    made = {
        key: (known, recipes.get(str(known["recipe"]))) for key, known in data.provenance.items()
    }
    for states in grouped(data.sources, lambda source: source.path).values():
        *earlier, newest = sorted(states, key=lambda it: (it.read_at is not None, it.read_at))
        of_earlier = tuple((_state(it), len(rows.get(it.sha256, ()))) for it in earlier)
        yield _page(newest, rows.get(newest.sha256, ()), (corrected, made), of_earlier)
        for one in earlier:
            yield _page(one, rows.get(one.sha256, ()), (corrected, made), _state(newest))


def _state(source: SourceData) -> Link:
    text = f"the state read on {moment(source.read_at)} UTC"
    return Link(text, addresses.of_source(source.sha256))


def _page(
    source: SourceData,
    rows: Sequence[SiteResult],
    about: About,
    others: Others,
) -> SitePage:
    results = sorted(rows, key=lambda one: one.source_line or 0)
    which = ", an earlier state" if isinstance(others, Link) else ""
    read_at = f", as read on {moment(source.read_at)} UTC" if source.read_at else ""
    title = f"{PurePosixPath(source.path).name}{which}{read_at}"
    read = f", with the {summary_of_results(results)} read from it" if results else ""
    numbers = {one.result_id for one in results}
    corrected, made = about
    own = {k: it for k, it in corrected.items() if k in numbers}
    known = {k: it for k, it in made.items() if k in numbers}
    body = partial(_source, source, tuple(results), (own, known), others)
    return SitePage(
        addresses.of_source(source.sha256), title, f"{title}, line by line{read}.", body
    )


def _source(
    source: SourceData,
    results: Sequence[SiteResult],
    about: About,
    others: Others,
) -> list[Block]:
    # a form feed ends no line for those who read pages, as it would for str.splitlines
    text = StringIO(source.text, newline=None)
    head = render(
        "source",
        source=replace(source, path=redaction.of_path(source.path)),
        newest=others if isinstance(others, Link) else None,
        earlier=() if isinstance(others, Link) else [it for it in others if it[1]],
        count=len(results),
        lines=enumerate((line.removesuffix("\n") for line in text), start=1),
    )
    return [head, *([Section("What was read", [_entries(results, *about)])] if results else [])]


def _entries(results: Sequence[SiteResult], corrected: Mapping[int, str], made: Made) -> Markup:
    """What holds for every result of the page, and an entry for each: where its figures are from.

    Of several of one case the one that represents them in tables has the name of their row.
    """
    named = {result_row(one): one for one in sorted(results, key=lambda it: it.num_results)}
    of_rows = [made.get(it.result_id) or (Provenance(it).document, None) for it in results]
    lines = [
        _lines(it, corrected.get(it.result_id, ""), recipe)
        for it, (_, recipe) in zip(results, of_rows, strict=True)
    ]
    common = shared(lines)
    entries = []
    for result, known, (document, recipe) in zip(results, lines, of_rows, strict=True):
        row = result_row(result)
        name = row if named[row] is result else ""
        own = [it for it in known if it not in common]
        where = link(recipe, addresses.of_recipe(recipe)) if recipe else ""
        anchor = addresses.drawer_anchor(name) if name else ""
        drawn = joined(drawer(f"#{row}", document, where, anchor))
        entries.append((work_title(result), name, own, drawn))
    return render("source_entries", entries=entries, common=common)


def work_title(result: SiteResult) -> str:
    """What was run: model, precision, task, GPUs and system."""
    task = section_title(result.task, result.variant)
    where = f"{gpus(result.num_gpus, result.system)} on {result.system_title}"
    return f"{label(('qualified model', 'precision'), result, ', ')}, {task}, {where}"


def _lines(result: SiteResult, corrected: str, recipe: str | None) -> Sequence[tuple[str, str]]:
    """What is behind the figures of a published row, and what is not known of them."""
    line = f"line {result.source_line}" if result.source_line else "this page"
    to_line = href(line, f"#L{result.source_line or 1}")
    printed = " · ".join(f"{name} {text}" for name, text in result.raw.items() if text)
    steps = f"{result.num_steps:,}" if result.num_steps else "not stated on the page"
    tab = addresses.tab(result.framework, result.release, result.system, result_row(result))
    known: list[tuple[str, str]] = [
        ("Figures", joined(("as published, on ", to_line))),
        ("As printed", printed),
        ("Steps", steps),
        ("Window", result.window or "not stated on the page"),
        ("Spread", "not stated on the page"),
        ("Convention", result.flops_convention or "not stated on the page"),
        ("No figures", result.withheld_text),
        *(("Note", note) for note in result.note_texts),
        ("Recipe", link(recipe, addresses.of_recipe(recipe)) if recipe else _NO_RECIPE),
        ("Audit", flag_mark(result) or "no error and no warning"),
        ("Table", href(f"{release_of(result)}, {result.system_title}", tab)),
        ("Earlier", joined((corrected, _SEE_CHANGELOG)) if corrected else ""),
    ]
    return [(name, text) for name, text in known if text]
