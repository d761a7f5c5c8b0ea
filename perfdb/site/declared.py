"""The directives of pages written by hand: tables of a release, and tables made from the code.

`{perfdb-table}` is one table, or one tab for each system or model; `{perfdb-release-page}` is a
section of tabs for each task. They are empty until the store has the results.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import ClassVar, Final, get_args

from docutils import nodes
from docutils.parsers.rst import directives
from docutils.statemachine import StringList
from pydantic import TypeAdapter
from sphinx.domains.std import Glossary

from perfdb import catalog
from perfdb.catalog import titles
from perfdb.errors import suggestion
from perfdb.site import addresses, columns, page, releases
from perfdb.site.addresses import UNATTRIBUTED
from perfdb.site.columns import TERMS
from perfdb.site.data import SiteData, SiteResult
from perfdb.site.directives import PageDirective, SiteDirective
from perfdb.site.files import SiteLayout, write
from perfdb.site.grouping import Grouping, ReleaseName, by_name, sections
from perfdb.site.links import release_title, result_row, section_title
from perfdb.site.page import Block, Tab, Tabs, offered
from perfdb.site.releases import ReleaseData
from perfdb.site.templates import paragraph

OPTIONS: Final = ("framework", "release", "task", "system", "group-by", "profile")
GROUPINGS: Final[Sequence[Grouping]] = get_args(Grouping)
INDEX: Final = "declared/index"
OVERVIEW: Final = "declared/overview"


@dataclass(frozen=True)
class ReleaseIndex:
    """Which releases and systems there are: a page that waits for one is read anew by it."""

    names: tuple[ReleaseName, ...] = ()
    systems: tuple[str, ...] = ()


@cache
def _adapters() -> tuple[TypeAdapter[ReleaseIndex], TypeAdapter[ReleaseData]]:
    return TypeAdapter(ReleaseIndex), TypeAdapter(ReleaseData)


def write_data(layout: SiteLayout, data: SiteData) -> set[Path]:
    """Write what directives of pages written by hand read: the results of each release."""
    index, of_release = _adapters()
    made = releases.of_data(data)
    names = tuple((one.framework, one.release) for one in made)
    systems = tuple(sorted({result.system for result in data.results}))
    kept = {write(layout.data(INDEX), index.dump_json(ReleaseIndex(names, systems)))}
    for one in made:
        kept.add(write(_path(layout, one.document), of_release.dump_json(one, warnings=False)))
    return kept


def _path(layout: SiteLayout, document: str) -> Path:
    return layout.data(f"declared/{document}")


@dataclass(frozen=True)
class Declared:
    """Which results a page declares, and how it shows them. None: all, or as the release does."""

    framework: str
    release: str | None
    task: str | None = None
    system: str | None = None
    group_by: Grouping | None = None
    profile: str | None = None
    seen: Counter[str] = field(default_factory=Counter)
    """How often the page has each row."""

    def chosen(self, results: Iterable[SiteResult]) -> list[SiteResult]:
        """The declared ones of a release's results."""
        return [
            one
            for one in results
            if self.task in (None, one.task) and self.system in (None, one.system)
        ]

    @property
    def title(self) -> str:
        """'NeMo Framework 25.07, Fine-tuning (LoRA), DGX-H100'."""
        known = (
            release_title(self.framework, self.release),
            section_title(self.task) if self.task else None,
            titles.system(self.system) if self.system else None,
        )
        return ", ".join(filter(None, known))

    def table(self, label: str, results: Sequence[SiteResult]) -> list[Block]:
        """A table with the columns that are declared, or those that the release prints."""
        own = columns.of_results(results)
        profile = columns.NAMED[self.profile] if self.profile else own
        if self.group_by == "model":
            profile = columns.by_system(profile)
        ids = list(map(self._anchor, map(result_row, results)))
        return offered(f"{label} results", results, profile, ids)

    def tabs(self, label: str, results: Sequence[SiteResult]) -> Tabs:
        """A tab for each system or model."""
        group_by = self.group_by or "system"
        tabs = [
            Tab(it.name, it.title, self.table(f"{label}, {it.title}", it.results))
            for it in by_name(results, group_by)
        ]
        return Tabs(group_by, tabs)

    def _anchor(self, row: str) -> str:
        """The anchor of a row on this page: as everywhere, but for one that it has already."""
        self.seen[row] += 1
        return row if self.seen[row] == 1 else f"{row}-{self.seen[row]}"


class DeclaredDirective(SiteDirective):
    """Results of a release that a page written by hand declares."""

    option_spec: ClassVar = dict.fromkeys(OPTIONS, directives.unchanged_required)

    def run(self) -> list[nodes.Node]:
        """The results, or that there are none yet."""
        declared = self._declared()
        release = self._release(declared)
        results = declared.chosen(release.results if release else ())
        if results:
            return self.made(self.blocks(declared, results))
        text = (
            f"There are no results yet of {declared.title}. They appear here when they are read "
            "into the store and the site is built again."
        )
        return self.made([paragraph(text, "perf-empty")])

    def blocks(self, declared: Declared, results: Sequence[SiteResult]) -> list[Block]:
        """The results as blocks."""
        raise NotImplementedError

    def _release(self, declared: Declared) -> ReleaseData | None:
        """The declared release; None where the store has no such release."""
        if (declared.framework, declared.release) not in self._index().names:
            return None
        document = addresses.of_release(declared.framework, declared.release)
        _, of_release = _adapters()
        return of_release.validate_json(self._read(_path(self.layout, document)))

    def _index(self) -> ReleaseIndex:
        index, _ = _adapters()
        return index.validate_json(self._read(self.layout.data(INDEX)))

    def _read(self, path: Path) -> bytes:
        """A file that this document depends on from now on."""
        self.env.note_dependency(str(path))
        return path.read_bytes()

    def _declared(self) -> Declared:
        if problems := self._problems():
            raise self.error(f"{self.name}: {'; '.join(problems)}")
        release = self.options["release"]
        seen = self.env.temp_data.setdefault("perfdb-rows", Counter())
        assert isinstance(seen, Counter)
        return Declared(
            framework=self.options["framework"],
            release=None if release == UNATTRIBUTED else release,
            task=self.options.get("task"),
            system=self.options.get("system"),
            group_by=next((one for one in GROUPINGS if one == self.options.get("group-by")), None),
            profile=self.options.get("profile"),
            seen=seen,
        )

    def _problems(self) -> list[str]:
        """Everything that is wrong with the options."""
        known = self._index()
        frameworks = {*titles.FRAMEWORKS, *(framework for framework, _ in known.names)}
        allowed: dict[str, Collection[str]] = {
            "framework": sorted(frameworks),
            "task": list(titles.TASKS),
            "system": sorted({*catalog.systems(), *known.systems}),
            "group-by": GROUPINGS,
            "profile": list(columns.NAMED),
        }
        missing = [name for name in ("framework", "release") if name not in self.options]
        wrong = [
            f":{name}: there is no {self.options[name]!r}; "
            f"{suggestion(self.options[name], allowed[name])}"
            for name in allowed
            if name in self.options and self.options[name] not in allowed[name]
        ]
        return [*(f":{name}: is missing" for name in missing), *wrong]


class TableDirective(DeclaredDirective):
    """A table of a release's results, or a tab for each system or model."""

    def blocks(self, declared: Declared, results: Sequence[SiteResult]) -> list[Block]:
        """The table, or the tabs."""
        if declared.group_by is None:
            return declared.table(declared.title, results)
        return [declared.tabs(declared.title, results)]


class ReleasePageDirective(DeclaredDirective):
    """All of a release: what its labels mean, and a section of tabs for each task."""

    def blocks(self, declared: Declared, results: Sequence[SiteResult]) -> list[Block]:
        """The head and the sections."""
        made: list[Block] = [
            page.Section(part.title, [declared.tabs(part.title, part.results)])
            for part in sections(results)
        ]
        release = self._release(declared)
        return [*([releases.head(release)] if release else []), *made]


class OverviewDirective(SiteDirective):
    """The newest releases and headline numbers."""

    def run(self) -> list[nodes.Node]:
        """Counts and cards, or how to get data."""
        return self.stored(OVERVIEW)


class NoDataDirective(SiteDirective):
    """What a page of results shows while there are none."""

    def run(self) -> list[nodes.Node]:
        """How to get some."""
        return self.made([page.no_data()])


class DownloadsDirective(SiteDirective):
    """The files of all results."""

    def run(self) -> list[nodes.Node]:
        """Links to those that there are."""
        return self.all_downloads()


class ReferenceDirective(SiteDirective):
    """A table made from the code: systems, models, metrics, conventions, peaks, schema, …"""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The table of the name that is asked for."""
        from perfdb.site import reference  # noqa: PLC0415  only a few pages need it

        name = self.arguments[0]
        if name not in reference.TABLES:
            known = ", ".join(reference.TABLES)
            raise self.error(f"{self.name}: no table {name!r}; known: {known}")
        return self.made([reference.TABLES[name]()])


class GlossaryDirective(Glossary):
    """The abbreviations as a glossary, so that {term}`GBS` links to its entry."""

    has_content = False

    def run(self) -> list[nodes.Node]:
        """Sphinx's own glossary, filled from the one table."""
        lines = [
            line
            for term in TERMS.values()
            for line in (term.short, f"    {term.name}: {term.meaning}", "")
        ]
        self.content = StringList(lines, source=__file__)
        return super().run()


DIRECTIVES: Final = {
    "perfdb-downloads": DownloadsDirective,
    "perfdb-glossary": GlossaryDirective,
    "perfdb-no-data": NoDataDirective,
    "perfdb-overview": OverviewDirective,
    "perfdb-page": PageDirective,
    "perfdb-reference": ReferenceDirective,
    "perfdb-release-page": ReleasePageDirective,
    "perfdb-table": TableDirective,
}
"""Every directive by the name that pages call it."""
