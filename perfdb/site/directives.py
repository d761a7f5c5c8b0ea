"""The directives: each puts the blocks of a page, or a table of the code, into its document."""

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import ClassVar, Final, get_args
from urllib.parse import quote

from docutils import nodes
from docutils.parsers.rst import directives
from docutils.statemachine import StringList
from markupsafe import Markup
from pydantic import TypeAdapter
from sphinx import addnodes
from sphinx.builders import Builder
from sphinx.domains.std import Glossary
from sphinx.util.docutils import SphinxDirective
from sphinx.util.osutil import relative_uri

from perfdb import catalog
from perfdb.catalog import titles
from perfdb.errors import suggestion
from perfdb.site import addresses, columns, page
from perfdb.site.addresses import UNATTRIBUTED, result_row, slug
from perfdb.site.columns import TERMS
from perfdb.site.data import SiteData, SiteResult
from perfdb.site.downloads import FORMAT_TITLES, Keeper, Stored, blocks_of
from perfdb.site.files import DOWNLOADS, EVERYTHING, PUBLISHED, SiteLayout, write
from perfdb.site.grouping import (
    Grouping,
    ReleaseName,
    by_name,
    release_title,
    section_title,
    sections,
)
from perfdb.site.page import Block, Tab, Tabs, offered
from perfdb.site.pages import releases
from perfdb.site.pages.releases import ReleaseData
from perfdb.site.templates import made_block, made_html, paragraph, render_text, resolved


class SiteDirective(SphinxDirective):
    """Blocks of a page as nodes. `builder` is that of the build that goes on."""

    builder: ClassVar[Builder]

    @property
    def layout(self) -> SiteLayout:
        """Where the files of the build are."""
        return SiteLayout(Path(self.env.srcdir))

    def html(self, html: str, names: Iterable[str] = ()) -> made_block:
        """HTML as a node of this document, with its links to others."""
        docname = self.env.docname
        address = self.builder.get_relative_uri
        return made_html(resolved(html, lambda name: address(docname, name)), names)

    def stored(self, name: str) -> list[nodes.Node]:
        """The blocks that the build has made; this document depends on them from now on."""
        path = self.layout.data(name)
        self.env.note_dependency(str(path))
        if not path.is_file():
            raise self.error(f"{self.name}: the store has nothing for {name!r}")
        return self.as_nodes(blocks_of(path))

    def made(self, blocks: Iterable[Block]) -> list[nodes.Node]:
        """Blocks that were made just now, for a page written by hand."""
        keeper = Keeper(self.layout, self.env.docname)
        taken = set(map(Path, self.env.dependencies.get(self.env.docname, ())))
        stored = keeper.blocks(blocks, taken)
        return self.as_nodes(json.loads(json.dumps(stored)))

    def as_nodes(self, blocks: Iterable[Stored]) -> list[nodes.Node]:
        """Blocks as nodes of this document."""
        return [node for block in blocks for node in self._nodes(block)]

    def _nodes(self, block: Stored) -> Iterator[nodes.Node]:
        match block:
            case {"html": str(html)}:
                yield self.html(html)
            case {"section": str(title), "blocks": list(blocks)}:
                yield self._section(title, blocks)
            case {"tabs": list(tabs), "group": str(group)}:
                yield self._tab_set(tabs, group)
            case {"downloads": list(paths), "models": list(models)}:
                yield self.html(self.download_links(paths), models)
            case _:
                yield from self._leaves(block)

    def _leaves(self, block: Stored) -> Iterator[nodes.Node]:
        match block:
            case {"code": str(text), "language": str(language)}:
                yield nodes.literal_block(text, text, language=language, force=True)
            case {"files": list(listed), "before": str(before), "after": str(after)}:
                yield _files(listed, before, after)
            case {"everything": True}:
                yield from self.all_downloads()
            case {"entry": str(words)}:
                yield addnodes.index(entries=[("single", words, "", "main", None)])
            case _:
                raise self.error(f"{self.name}: {block!r} is no block")

    def _section(self, title: str, blocks: Sequence[Stored]) -> nodes.section:
        section = nodes.section("", nodes.title(title, title), names=[title.lower()])
        self.state.document.note_implicit_target(section, section)
        # the anchor that MyST has for a heading, where that of docutils is another
        anchor = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        if anchor and anchor not in self.state.document.ids:
            self.state.document.ids[anchor] = section
            section["ids"].append(anchor)
        section += self.as_nodes(blocks)
        return section

    def _tab_set(self, tabs: Sequence[Mapping[str, object]], group: str) -> nodes.container:
        """A tab for each; they share a group, so that choosing one chooses it everywhere."""
        tab_set = _component("tab-set")
        for tab in tabs:
            title, blocks = str(tab["title"]), tab["blocks"]
            label = nodes.rubric(title, title, classes=["sd-tab-label"])
            label["sync_id"], label["sync_group"] = slug(str(tab["name"])), group
            content = _component("tab-content")
            assert isinstance(blocks, list)
            content += self.as_nodes(blocks)
            item = _component("tab-item")
            item += [label, content]
            tab_set += item
        return tab_set

    def all_downloads(self) -> list[nodes.Node]:
        """Links to the files of all results."""
        root = Path(self.env.srcdir)
        made = sorted((root / DOWNLOADS).glob(f"{EVERYTHING}.*"))
        if not made:
            self.env.note_dependency(str(root / DOWNLOADS / EVERYTHING))
            return [self.html(page.no_data())]
        paths = [path.relative_to(root).as_posix() for path in made]
        return [self.html(self.download_links(paths, "all data"))]

    def download_links(self, paths: Iterable[str], what: str = "") -> Markup:
        """Links to files of tables; this document depends on them from now on."""
        here = self.builder.get_target_uri(self.env.docname)
        links = []
        for path in paths:
            self.env.note_dependency(str(Path(self.env.srcdir, path)))
            name = f"{PUBLISHED}/{path.removeprefix(f'{DOWNLOADS}/')}"
            title = FORMAT_TITLES[path.rpartition(".")[2]]
            links.append((title, relative_uri(here, quote(name))))
        known = addresses.DICTIONARY in self.env.found_docs
        is_elsewhere = known and self.env.docname != addresses.DICTIONARY
        return render_text(
            '<p class="perf-downloads">Download {{ what }}'
            "{% for title, path in links %}{% if not loop.first %} · {% endif %}"
            '<a href="{{ path }}" download="">{{ title }}</a>{% endfor %}'
            "{% if known %} · {{ link('what the columns mean', dictionary) }}{% endif %}</p>\n",
            what=f"{what}: " if what else "",
            links=links,
            known=is_elsewhere,
            dictionary=addresses.DICTIONARY,
        )


class PageDirective(SiteDirective):
    """Everything on a page that is made from the store."""

    def run(self) -> list[nodes.Node]:
        """The blocks that the build has made of this page."""
        return self.stored(self.env.docname)


def _component(name: str) -> nodes.container:
    """A component of sphinx-design, as its own directives make it."""
    return nodes.container(is_div=True, design_component=name, classes=[f"sd-{name}"])


def _files(listed: Sequence[Mapping[str, object]], before: str, after: str) -> nodes.Node:
    """Files of a run to download: one in a sentence, or a list with their sizes."""
    links = [
        addnodes.download_reference(
            "", "", nodes.literal(text=str(file["name"])), reftarget=f"/{file['path']}"
        )
        for file in listed
    ]
    if before:
        return nodes.paragraph("", "", nodes.Text(before), *links, nodes.Text(after))
    items = nodes.bullet_list()
    for file, link in zip(listed, links, strict=True):
        size = nodes.Text(f" {file['size']:,} bytes")
        items += nodes.list_item("", nodes.paragraph("", "", link, size))
    return items


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
        from perfdb.site.pages import reference  # noqa: PLC0415  only a few pages need it

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
