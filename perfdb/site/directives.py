"""The directives: each puts the blocks of a page, or a table of the code, into its document."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar
from urllib.parse import quote

from docutils import nodes
from markupsafe import Markup
from sphinx import addnodes
from sphinx.builders import Builder
from sphinx.util.docutils import SphinxDirective
from sphinx.util.osutil import relative_uri

from perfdb.site import addresses, page
from perfdb.site.addresses import slug
from perfdb.site.blocks import Keeper, Stored, blocks_of
from perfdb.site.downloads import FORMAT_TITLES
from perfdb.site.files import DOWNLOADS, EVERYTHING, PUBLISHED, SiteLayout
from perfdb.site.made_html import made_block, made_html
from perfdb.site.page import Block
from perfdb.site.templates import render_text, resolved


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
