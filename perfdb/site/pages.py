"""Which pages there are, and the MyST text of each: a frame that directives fill from data."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePosixPath

from perfdb import catalog
from perfdb.record import Frozen, Origin
from perfdb.site import addresses, findings, overview
from perfdb.site.data import (
    Audited,
    AuditPage,
    ReleasePage,
    Result,
    RunPage,
    RunsPage,
    Section,
    SourcePage,
    SystemTable,
)
from perfdb.site.words import (
    framework_title,
    myst,
    natural,
    release_title,
    section_title,
    slug,
)

MARK = "# Made by perfdb.site from the store; what is changed here is lost."
"""Stands on the second line of every page that is made, and of none that is written."""

TASK_ORDER = ("pretrain", "sft", "lora")


@dataclass(frozen=True)
class Page:
    """A document: its name, its MyST text, and the data its directives read."""

    name: str
    text: str
    data: Frozen | None = None


@dataclass(frozen=True)
class Contents:
    """All that the store says to the site.

    `results` are those that tables print, one for each case, release and origin; `runs` are all;
    `audited` are the results that have findings.
    """

    results: tuple[Result, ...] = ()
    runs: tuple[RunPage, ...] = ()
    sources: tuple[SourcePage, ...] = ()
    audited: tuple[Audited, ...] = ()


def all_pages(contents: Contents) -> list[Page]:
    """Every page of the site that is made from the store."""
    releases = release_pages(contents.results)
    return [
        _performance_index(releases),
        *(_release_page(release) for release in releases),
        _audit_page(findings.page_of(contents.audited)),
        _runs_index(contents.runs),
        *(_run_page(run) for run in contents.runs),
        *(_source_page(source) for source in contents.sources),
    ]


def overview_of(contents: Contents) -> Frozen:
    """What the landing page shows."""
    return overview.of_results(contents.results, len(contents.runs))


def release_pages(results: Iterable[Result]) -> list[ReleasePage]:
    """The pages of all releases, by framework, the newest first."""
    by_release: dict[tuple[str, str | None], list[Result]] = defaultdict(list)
    for result in results:
        by_release[result.framework, result.release].append(result)
    newest_first = sorted(by_release, key=lambda one: natural(one[1] or ""), reverse=True)
    ordered = sorted(newest_first, key=lambda one: framework_title(one[0]))
    return [_release(framework, version, by_release[framework, version])
            for framework, version in ordered]  # fmt: skip


def _release(framework: str, version: str | None, results: Sequence[Result]) -> ReleasePage:
    sections: dict[tuple[str, str | None], list[Result]] = defaultdict(list)
    for result in results:
        sections[result.task, result.variant].append(result)
    ordered = sorted(sections, key=_section_order)
    return ReleasePage(
        framework=framework,
        release=version,
        containers=tuple(sorted({one.container for one in results if one.container})),
        sections=tuple(_section(*key, sections[key]) for key in ordered),
    )


def _section_order(key: tuple[str, str | None]) -> tuple[int, str, bool, str]:
    """Pre-training first; Megatron-Core before the other variants, as published pages have it."""
    task, variant = key
    place = TASK_ORDER.index(task) if task in TASK_ORDER else len(TASK_ORDER)
    return place, task, variant not in (None, "megatron-core"), variant or ""


def _section(task: str, variant: str | None, results: Sequence[Result]) -> Section:
    systems: dict[str, list[Result]] = defaultdict(list)
    for result in sorted(results, key=_row_order):
        systems[result.system].append(result)
    tables = [
        SystemTable(system=name, title=rows[0].system_title, results=tuple(rows))
        for name, rows in sorted(systems.items(), key=lambda item: _system_order(item[0]))
    ]
    return Section(task=task, variant=variant, systems=tuple(tables))


def _system_order(name: str) -> tuple[int, str]:
    """As the catalogue has them; a system that it lacks comes last."""
    known = list(catalog.systems())
    return (known.index(name) if name in known else len(known)), name


def _row_order(result: Result) -> tuple[bool, str, int]:
    """Published rows as they stand on their page; measured rows after them, as they come."""
    if result.origin == Origin.MEASURED.value:
        return True, "", 0
    return False, result.source, result.source_line or 0


def _front(*, orphan: bool) -> str:
    lines = ["---", MARK, "html_theme.sidebar_secondary.remove: true"]
    return "\n".join([*lines, *(["orphan: true"] if orphan else []), "---", ""])


def _directive(name: str, **options: object) -> str:
    given = "".join(f":{option}: {value}\n" for option, value in options.items())
    return f"```{{{name}}}\n{given}```\n"


def _performance_index(releases: Sequence[ReleasePage]) -> Page:
    parts = [_front(orphan=False), "# Performance\n"]
    if not releases:
        return Page(addresses.PERFORMANCE, "\n".join([*parts, _directive("perfdb-no-data")]))
    parts.append("A page for each release of each framework, the newest first.\n")
    frameworks = dict.fromkeys(release.framework for release in releases)
    parts += [_framework_toctree(name, releases) for name in frameworks]
    return Page(addresses.PERFORMANCE, "\n".join(parts))


def _framework_toctree(framework: str, releases: Sequence[ReleasePage]) -> str:
    entries = "".join(
        f"/{addresses.of_release(release.framework, release.release)}\n"
        for release in releases
        if release.framework == framework
    )
    title = myst(framework_title(framework))
    return f"## {title}\n\n```{{toctree}}\n:maxdepth: 1\n\n{entries}```\n"


def _release_page(release: ReleasePage) -> Page:
    title = myst(release_title(release.framework, release.release))
    parts = [_front(orphan=False), f"# {title}\n", _directive("perfdb-release")]
    for number, section in enumerate(release.sections):
        parts += [f"## {myst(section_title(section.task, section.variant))}\n"]
        parts += [_tabs(number, section)]
    name = addresses.of_release(release.framework, release.release)
    return Page(name, "\n".join(parts), release)


def _audit_page(page: AuditPage) -> Page:
    # Whether it stands in a toctree is for the project that uses these pages to say.
    parts = [_front(orphan=True), "# Audit\n"]
    if not page.releases:
        parts.append("There are no findings.\n")
        return Page(addresses.AUDIT, "\n".join(parts), page)
    parts.append(_directive("perfdb-audit"))
    for number, release in enumerate(page.releases):
        title = myst(release_title(release.framework, release.release))
        parts += [f"## {title}\n", _directive("perfdb-audit", release=number)]
    return Page(addresses.AUDIT, "\n".join(parts), page)


def _tabs(number: int, section: Section) -> str:
    """A tab for each system; they share a group, so that choosing one chooses it everywhere."""
    items = [
        f"`````{{tab-item}} {myst(table.title)}\n:sync: {slug(table.system)}\n\n"
        + _directive("perfdb-results", section=number, table=index)
        + "`````\n"
        for index, table in enumerate(section.systems)
    ]
    return "``````{tab-set}\n:sync-group: system\n\n" + "\n".join(items) + "``````\n"


def _runs_index(runs: Sequence[RunPage]) -> Page:
    parts = [_front(orphan=False), "# Runs\n"]
    if not runs:
        return Page(addresses.RUNS, "\n".join([*parts, _directive("perfdb-no-data")]))
    parts.append("Every run in the store, however it ended.\n")
    newest = sorted(runs, key=_started, reverse=True)
    results = tuple(page.result for page in newest)
    text = "\n".join([*parts, _directive("perfdb-runs")])
    return Page(addresses.RUNS, text, RunsPage(results=results))


def _started(page: RunPage) -> tuple[bool, datetime | None]:
    """Runs that do not say when they started come last of the newest first."""
    return page.run.started_at is not None, page.run.started_at


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


def _run_page(page: RunPage) -> Page:
    parts = [_front(orphan=True), f"# {myst(page.run.run_id)}\n"]
    parts.append("[All runs](index.md)\n")
    parts.append(_directive("perfdb-run", part="outcome"))
    for title, part in RUN_PARTS:
        parts += [f"## {title}\n", _directive("perfdb-run", part=part)]
    return Page(addresses.of_run(page.run.run_id), "\n".join(parts), page)


def _source_page(source: SourcePage) -> Page:
    title = myst(PurePosixPath(source.path).name)
    parts = [_front(orphan=True), f"# {title}\n", _directive("perfdb-source")]
    return Page(addresses.of_source(source.sha256), "\n".join(parts), source)
