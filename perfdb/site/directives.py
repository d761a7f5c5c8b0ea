"""The directives: each puts the blocks of a page, or a table of the code, into its document."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import ClassVar, Final, get_args
from urllib.parse import quote

from docutils import nodes
from docutils.parsers.rst import directives
from docutils.statemachine import StringList
from markupsafe import Markup
from sphinx import addnodes
from sphinx.domains.std import Glossary
from sphinx.util.docutils import SphinxDirective

from perfdb import catalog
from perfdb.catalog import titles
from perfdb.errors import suggestion
from perfdb.site import addresses, columns, page
from perfdb.site.addresses import UNATTRIBUTED, result_row, slug
from perfdb.site.build import OVERVIEW, Site
from perfdb.site.columns import TERMS
from perfdb.site.data import SiteResult
from perfdb.site.downloads import FORMAT_TITLES, write_download
from perfdb.site.files import DOWNLOADS, EVERYTHING, PUBLISHED
from perfdb.site.grouping import (
    Grouping,
    by_name,
    newest_systems_first,
    release_title,
    section_title,
    sections,
)
from perfdb.site.page import Block, Section, Tab, Tabs
from perfdb.site.pages import home, releases
from perfdb.site.templates import FILE_SCHEME, KEYS, made_html, paragraph, render_text

NO_RESULTS: Final = "No results of {} yet. Ingest them and build the site again to show them here."


class SiteDirective(SphinxDirective):
    """Blocks of a page as nodes. `site` is that of the build that goes on."""

    site: ClassVar[Site]

    def note_key(self, name: str) -> None:
        """Have this document read again when a part of the site changes (`Site.keys`)."""
        known = self.env.metadata[self.env.docname].setdefault(KEYS, {})
        known[name] = self.site.keys.get(name, "")

    def made(self, blocks: Iterable[Block]) -> list[nodes.Node]:
        return [
            made_html(block) if isinstance(block, Markup) else self._node(block)
            for block in blocks
            if block
        ]

    def _node(self, block: page.StructuredBlock) -> nodes.Node:
        match block:
            case Section(title, blocks):
                node: nodes.Node = self._section(title, blocks)
            case Tabs(group, tabs):
                node = self._tab_set(tabs, group)
            case page.Download(results):
                node = self._download(block.name, results)
            case page.Code(text, language):
                node = nodes.literal_block(text, text, language=language, force=True)
            case page.FileLinks():
                node = self._files(block)
            case page.IndexEntry(words):
                node = addnodes.index(entries=[("single", words, "", "main", None)])
            case page.AllDownloads():
                node = self.all_downloads()
        return node

    def _download(self, name: str, results: Sequence[SiteResult]) -> nodes.Node:
        """The files of a table; the search finds it by the titles of its models, too."""
        folder = Path(self.env.srcdir, DOWNLOADS, self.env.docname)
        taken = set(map(str, self.env.dependencies.get(self.env.docname, ())))
        paths = write_download(folder, name, self.site.written(results), taken)
        return made_html(self._links(paths), dict.fromkeys(it.model_title for it in results))

    def _section(self, title: str, blocks: Iterable[Block]) -> nodes.section:
        section = nodes.section("", nodes.title(title, title), names=[title.lower()])
        self.state.document.note_implicit_target(section, section)
        # the anchor that MyST has for a heading, where that of docutils is another
        anchor = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        if anchor and anchor not in self.state.document.ids:
            self.state.document.ids[anchor] = section
            section["ids"].append(anchor)
        section += self.made(blocks)
        return section

    def _tab_set(self, tabs: Iterable[Tab], group: str) -> nodes.container:
        """A tab for each; they share a group, so that choosing one chooses it everywhere."""
        tab_set = _component("tab-set")
        for tab in tabs:
            label = nodes.rubric(tab.title, tab.title, classes=["sd-tab-label"])
            label["sync_id"], label["sync_group"] = slug(tab.name), group
            content, item = _component("tab-content"), _component("tab-item")
            content += self.made(tab.blocks)
            item += [label, content]
            tab_set += item
        return tab_set

    def _files(self, block: page.FileLinks) -> nodes.Node:
        layout = self.site.layout
        links = [
            addnodes.download_reference(
                "", "", nodes.literal(text=file.name),
                reftarget=f"/{layout.run_file(file).relative_to(layout.root).as_posix()}",
            )
            for file in block.files
        ]  # fmt: skip
        if block.before:
            return nodes.paragraph(
                "", "", nodes.Text(block.before), *links, nodes.Text(block.after)
            )
        items = nodes.bullet_list()
        for file, link in zip(block.files, links, strict=True):
            size = nodes.Text(f" {file.size_bytes:,} bytes")
            items += nodes.list_item("", nodes.paragraph("", "", link, size))
        return items

    def all_downloads(self) -> nodes.Node:
        folder = Path(self.env.srcdir, DOWNLOADS)
        made = sorted(folder.glob(f"{EVERYTHING}.*"))
        if not made:
            self.env.note_dependency(str(folder / EVERYTHING))
            return made_html(page.no_data())
        return made_html(self._links(made, "all data"))

    def _links(self, paths: Iterable[Path], what: str = "") -> Markup:
        """Links to files of tables; this document depends on them from now on."""
        links = []
        for path in paths:
            self.env.note_dependency(str(path))
            name = path.relative_to(Path(self.env.srcdir, DOWNLOADS)).as_posix()
            address = f"{FILE_SCHEME}{quote(f'{PUBLISHED}/{name}')}"
            links.append((FORMAT_TITLES[path.suffix[1:]], address))
        known = addresses.DICTIONARY in self.env.found_docs
        return render_text(
            '<p class="perf-downloads">Download {{ what }}'
            "{% for title, path in links %}{% if not loop.first %} · {% endif %}"
            '<a href="{{ path }}" download="">{{ title }}</a>{% endfor %}'
            "{% if known %} · {{ link('what the columns mean', dictionary) }}{% endif %}</p>\n",
            what=f"{what}: " if what else "",
            links=links,
            known=known and self.env.docname != addresses.DICTIONARY,
            dictionary=addresses.DICTIONARY,
        )


def _component(name: str) -> nodes.container:
    """A component of sphinx-design, as its own directives make it."""
    return nodes.container(is_div=True, design_component=name, classes=[f"sd-{name}"])


class PageDirective(SiteDirective):
    """Everything on a page that is made from the store."""

    def run(self) -> list[nodes.Node]:
        name = self.env.docname
        self.note_key(name)
        if name not in self.site.pages:
            raise self.error(f"{self.name}: the store has nothing for {name!r}")
        return self.made(self.site.pages[name].body())


class OverviewDirective(SiteDirective):
    """The newest releases and headline numbers."""

    def run(self) -> list[nodes.Node]:
        self.note_key(OVERVIEW)
        return self.made([home.overview(self.site.data)])


class DeclaredDirective(SiteDirective):
    """Results of a release that a page written by hand declares."""

    option_spec: ClassVar = dict.fromkeys(
        ("framework", "release", "task", "system", "group-by", "profile"),
        directives.unchanged_required,
    )

    def run(self) -> list[nodes.Node]:
        if problems := self._problems():
            raise self.error(f"{self.name}: {'; '.join(problems)}")
        framework, stated = self.options["framework"], self.options["release"]
        version = None if stated == UNATTRIBUTED else stated
        document = addresses.of_release(framework, version)
        self.note_key(document)
        task, system = self.options.get("task"), self.options.get("system")
        release = self.site.releases.get(document)
        results = [
            one
            for one in (release.results if release else ())
            if task in (None, one.task) and system in (None, one.system)
        ]
        title = ", ".join([
            release_title(framework, version),
            *([section_title(task)] if task else []),
            *([titles.system(system)] if system else []),
        ])  # fmt: skip
        if release is None or not results:
            return self.made([paragraph(NO_RESULTS.format(title), "perf-empty")])
        if self.name == "perfdb-release-page":
            parts = [Section(it.title, self.tabs(it.title, it.results)) for it in sections(results)]
            return self.made([releases.head(release), *parts])
        blocks = self.tabs if "group-by" in self.options else self.table
        return self.made(blocks(title, results))

    def tabs(self, label: str, results: Sequence[SiteResult]) -> list[Block]:
        group_by: Grouping = "model" if self.options.get("group-by") == "model" else "system"
        of_models = group_by == "model"
        groups = by_name(results, group_by) if of_models else newest_systems_first(results)
        tabs = [
            Tab(it.name, it.title, self.table(f"{label}, {it.title}", it.results)) for it in groups
        ]
        return [Tabs(group_by, tabs)]

    def table(self, label: str, results: Sequence[SiteResult]) -> list[Block]:
        """A table with the columns that are declared, or those that the release prints.

        The anchors of its rows are those of the release's page, but for rows that this page has
        already.
        """
        named = self.options.get("profile")
        own = columns.figures_first(columns.of_results(results))
        profile = columns.NAMED[named] if named else own
        if self.options.get("group-by") == "model":
            profile = columns.by_system(profile)
        seen = self.env.temp_data.setdefault("perfdb-rows", Counter())
        assert isinstance(seen, Counter)
        ids = []
        for row in map(result_row, results):
            seen[row] += 1
            ids.append(row if seen[row] == 1 else f"{row}-{seen[row]}")
        return page.offered(f"{label} results", results, profile, ids)

    def _problems(self) -> list[str]:
        known = self.site.data.results
        allowed: dict[str, Collection[str]] = {
            "framework": sorted({*titles.FRAMEWORKS, *(one.framework for one in known)}),
            "task": list(titles.TASKS),
            "system": sorted({*catalog.systems(), *(one.system for one in known)}),
            "group-by": get_args(Grouping),
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


class DownloadsDirective(SiteDirective):
    """The files of all results."""

    def run(self) -> list[nodes.Node]:
        return [self.all_downloads()]


class ReferenceDirective(SiteDirective):
    """A table made from the code: systems, models, metrics, conventions, peaks, schema, …"""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
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
    "perfdb-overview": OverviewDirective,
    "perfdb-page": PageDirective,
    "perfdb-reference": ReferenceDirective,
    "perfdb-release-page": DeclaredDirective,
    "perfdb-table": DeclaredDirective,
}
"""Every directive by its name on pages."""
