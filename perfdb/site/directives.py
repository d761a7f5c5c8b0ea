"""The directives: each reads the data of its page and puts the HTML of a part in its place."""

import shlex
from collections.abc import Iterable
from functools import cache, partial
from pathlib import Path
from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from docutils.statemachine import StringList
from sphinx.domains.std import Glossary

from perfdb.site import addresses, overview, pages, places, reference, runs
from perfdb.site.base import SiteDirective
from perfdb.site.data import RunPage
from perfdb.site.declared import ReleasePageDirective, TableDirective
from perfdb.site.files import DOWNLOADS, EVERYTHING
from perfdb.site.glossary import TERMS
from perfdb.site.overview import Overview
from perfdb.site.recipes import RecipePage


class PartDirective(SiteDirective):
    """A part of a page that is made from the store."""

    required_arguments = 1
    option_spec: ClassVar = {"number": directives.nonnegative_int}

    def run(self) -> list[nodes.Node]:
        """The part of the name that is given; of several that of the number."""
        read = partial(self.data, self.env.docname)
        make = pages.PARTS[self.arguments[0]]
        return self.raw(make(read, self.options.get("number", 0), cache(self.address)))


class RunDirective(SiteDirective):
    """A part of a run's page."""

    option_spec: ClassVar = {"part": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        """The part; recipe, command and files are nodes, so that Sphinx highlights and copies."""
        page, part = self.data(self.env.docname, RunPage), self.options["part"]
        if part != "steps":  # no other shows lines, and to tell a thousand takes 20 ms
            page = page.model_copy(update={"lines": {}})
        page = page if self.config.perfdb_hostnames else places.without(page)
        if part in runs.PARTS:
            return self.raw(runs.PARTS[part](page, self.address))
        if part == "files":
            return self._files(page)
        if part == "recipe":
            text, language, what = page.recipe_text, "yaml", "recipe file"
        else:
            text, language, what = shell(page.run.command), "bash", "command"
        return [_code(text, language) if text else nodes.paragraph(text=f"The run kept no {what}.")]

    def _files(self, page: RunPage) -> list[nodes.Node]:
        listed = nodes.bullet_list()
        for file in page.files:
            size = nodes.Text(f" {file.size_bytes:,} bytes")
            listed += nodes.list_item("", nodes.paragraph("", "", self.download(file), size))
        return [listed]


def _code(text: str, language: str) -> nodes.Node:
    return nodes.literal_block(text, text, language=language, force=True)


def shell(command: Iterable[str]) -> str:
    """A command as a person would type it: each option with its value on a line of its own."""
    words = map(shlex.quote, command)
    return "".join(f" \\\n    {it}" if it.startswith("-") else f" {it}" for it in words)[1:]


class RecipeDirective(SiteDirective):
    """A text of a recipe, to copy, to download, and the command that runs it."""

    option_spec: ClassVar = {"number": directives.nonnegative_int}

    def run(self) -> list[nodes.Node]:
        """Nodes, so that Sphinx highlights and copies."""
        kept = self.data(self.env.docname, RecipePage).texts[self.options["number"]]
        if kept.text is None or kept.file is None:
            return [nodes.paragraph(text="The runs kept no recipe file.")]
        said = nodes.Text(" to the folder that you are in, and run it again:")
        download = nodes.paragraph("", "", nodes.Text("Download "), self.download(kept.file), said)
        command = f"perfdb run {shlex.quote(Path(kept.file.name).name)}"
        return [_code(kept.text, "yaml"), download, _code(command, "bash")]


class OverviewDirective(SiteDirective):
    """The newest releases and headline numbers."""

    def run(self) -> list[nodes.Node]:
        """Counts and cards, or how to get data."""
        return self.raw(overview.html(self.data(addresses.OVERVIEW, Overview), self.address))


class NoDataDirective(SiteDirective):
    """What stands on a page of results where there are none."""

    def run(self) -> list[nodes.Node]:
        """How to get some."""
        return self.raw(overview.NO_DATA)


class DownloadsDirective(SiteDirective):
    """The files of all results."""

    def run(self) -> list[nodes.Node]:
        """Links to those that there are."""
        folder = Path(self.env.srcdir, DOWNLOADS)
        made = sorted(folder.glob(f"{EVERYTHING}.*"))
        if not made:
            self.env.note_dependency(str(folder / EVERYTHING))
            return self.raw(overview.NO_DATA)
        return self.raw(self.links(made, "all data"))


class ReferenceDirective(SiteDirective):
    """A table made from the code: systems, models, metrics, conventions, peaks, schema, …"""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The table of the name that is given."""
        name = self.arguments[0]
        if name not in reference.TABLES:
            known = ", ".join(reference.TABLES)
            raise self.error(f"{self.name}: no table {name!r}; known: {known}")
        return self.raw(reference.TABLES[name]())


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


DIRECTIVES = {
    "perfdb-downloads": DownloadsDirective,
    "perfdb-glossary": GlossaryDirective,
    "perfdb-no-data": NoDataDirective,
    "perfdb-overview": OverviewDirective,
    "perfdb-part": PartDirective,
    "perfdb-recipe": RecipeDirective,
    "perfdb-reference": ReferenceDirective,
    "perfdb-release-page": ReleasePageDirective,
    "perfdb-run": RunDirective,
    "perfdb-table": TableDirective,
}
"""Every directive by the name that pages call it."""
