"""The pages that figures lead to: runs, and published pages as they were read."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from operator import itemgetter
from pathlib import PurePosixPath
from typing import Final

from perfdb.groups import grouped
from perfdb.site import about, addresses, headline, profiles, sources, tables
from perfdb.site.addresses import Address
from perfdb.site.contents import Contents
from perfdb.site.data import Link, Result, RunPage, RunsPage, SourcePage
from perfdb.site.markup import Html, table
from perfdb.site.page import (
    NO_DATA,
    Kind,
    Page,
    directive,
    document,
    listing,
    part,
    section,
    shown,
)
from perfdb.site.revisions import corrections
from perfdb.site.rows import row_id
from perfdb.site.words import myst
from perfdb.units import counted, significant

RUN_PARTS = (
    ("Figures", "figures"),
    ("Step times", "chart"),
    ("Steps", "steps"),
    ("Case", "case"),
    ("Recipe", "recipe"),
    ("Command", "command"),
    ("Files", "files"),
    ("Environment", "environment"),
)


EVERY_RUN: Final = (
    "Every run that counts, however it ended; the "
    "[changelog of the data](/performance/changelog.md) has those withdrawn. The last one that was "
    "started stands first; of logs, which do not say when, the last that was read.\n"
)
NO_RUNS: Final = "The store has no runs that count: every figure is from a published page.\n"


def _pages(contents: Contents) -> Iterator[Page]:
    results = tuple(page.result for page in latest_first(contents.runs))
    runs = RunsPage(results=results) if results else None
    about_runs = (
        f"{counted(len(results), 'run')} with the case, the outcome and the figures of each."
    )
    nothing = NO_RUNS if contents.results else NO_DATA
    yield listing(addresses.RUNS, about_runs, EVERY_RUN if runs else nothing, runs)
    corrected = corrections(contents.revisions)
    for run in _with_others(contents):
        yield _run(run, corrected.get(run.result.result_id))
    printed = {result.result_id for result in contents.results}
    repeats = (result for result in contents.in_force if result.result_id not in printed)
    every = (result for result in (*contents.results, *repeats) if not result.is_measured)
    published = grouped(every, lambda result: result.source_sha256)
    for source in sources.with_states(contents.sources, published):
        yield _source(source, published.get(source.sha256, ()), corrected)


def latest_first(runs: Iterable[RunPage]) -> list[RunPage]:
    """Runs by when they started, or were read where they do not say, as logs; the last first."""
    return sorted(runs, key=_place, reverse=True)


def _place(page: RunPage) -> tuple[bool, datetime | None, int]:
    moment = page.run.started_at or page.run.ingested_at
    return moment is not None, moment, page.run.id


def _with_others(contents: Contents) -> Iterator[RunPage]:
    """The runs, each with the others of its case: of several only one is in the tables."""
    shown = {result.run_id for result in contents.results}
    links = [_link(page, page.run.run_id in shown) for page in contents.runs]
    rows = [row_id(page.result) for page in contents.runs]
    alike = grouped(zip(rows, links, strict=True), itemgetter(0))
    for page, own, row in zip(contents.runs, links, rows, strict=True):
        others = tuple(link for _, link in alike[row] if link is not own)
        yield page.model_copy(update={"others": others}) if others else page


def _link(page: RunPage, is_shown: bool) -> Link:
    """'two (in the tables, 1 error)': what the audit found in a hidden run stands in no table."""
    remarks = ["in the tables"] if is_shown else []
    remarks += [page.result.flag.said] if page.result.flag else []
    more = f" ({', '.join(remarks)})" if remarks else ""
    return Link(text=f"{page.run.run_id}{more}", document=addresses.of_run(page.run.run_id))


def _run(page: RunPage, corrected: str | None) -> Page:
    parts = [directive("perfdb-run", part="outcome")]
    if corrected:
        changelog = "[changelog](/performance/changelog.md)"
        parts.append(f"{myst(corrected[0].upper() + corrected[1:])}; see the {changelog}.\n")
    parts += [section(title, directive("perfdb-run", part=name)) for title, name in RUN_PARTS]
    name = addresses.of_run(page.run.run_id)
    return Page(name, document(page.run.run_id, _about(page), *parts), page)


def _about(page: RunPage) -> str:
    """'Llama 3 8B, Pre-training, 8 GPUs, BF16 on DGX-H100: finished, 12.15 s/step.'"""
    result = page.result
    ended = page.run.outcome.replace("_", " ")
    known = result.step_time_s is not None
    figure = f", {significant(result.step_time_s)} s/step" if known else ""
    return f"{headline.work(result)} on {result.system_title}: {ended}{figure}."


def _source(source: SourcePage, results: Iterable[Result], corrected: Mapping[int, str]) -> Page:
    title = f"{PurePosixPath(source.path).name}{sources.when(source)}"
    name = addresses.of_source(source.sha256)
    by_line = tuple(sorted(results, key=lambda one: one.source_line or 0))
    parts = [shown("source")]
    parts += [section("What was read", shown("source-results"))] if by_line else []
    numbers = [result.result_id for result in by_line]
    of_page = {number: corrected[number] for number in numbers if number in corrected}
    page = source.model_copy(update={"results": by_line, "corrections": of_page})
    read = f", with the {about.results(by_line)} read from it" if by_line else ""
    return Page(name, document(title, f"{title}, line by line{read}.", *parts), page)


def _runs_table(page: RunsPage, address: Address) -> Html:
    return table(tables.results_table("Runs", page.results, profiles.RUNS, address))


KIND = Kind(
    _pages,
    {
        "runs": part(RunsPage, _runs_table),
        "source": part(SourcePage, sources.listing),
        "source-results": part(SourcePage, sources.entries),
    },
)
