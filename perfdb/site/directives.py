"""The directives: each reads the data of its page and puts the HTML of a part in its place."""

from pathlib import Path
from typing import ClassVar, TypeVar

from docutils import nodes
from docutils.parsers.rst import directives
from docutils.statemachine import StringList
from sphinx import addnodes
from sphinx.domains.std import Glossary
from sphinx.util.docutils import SphinxDirective

from perfdb.record import Frozen
from perfdb.site import commands, findings, overview, profiles, reference, runs, sources, tables
from perfdb.site.data import AuditPage, Overview, ReleasePage, RunPage, RunsPage, SourcePage
from perfdb.site.files import Layout
from perfdb.site.glossary import TERMS
from perfdb.site.markup import Html, table

OVERVIEW = "overview"
"""The name of the landing page's data, whatever document it is shown on."""

CODE = sorted(str(module) for module in Path(__file__).parent.glob("*.py"))
"""What the HTML also depends on: a page is made anew when the code that makes it changes."""

Data = TypeVar("Data", bound=Frozen)


class SiteDirective(SphinxDirective):
    """A part of a page that is made from data."""

    @property
    def layout(self) -> Layout:
        """Where the data lies."""
        return Layout(Path(self.env.srcdir))

    def data(self, name: str, kind: type[Data]) -> Data:
        """The data of a document; the document depends on it from now on."""
        path = self.layout.data(name)
        self.env.note_dependency(str(path))
        if not path.is_file():
            raise self.error(f"{self.name}: the store has nothing for {name!r}")
        return kind.model_validate_json(path.read_bytes())

    def address(self, target: str) -> str:
        """The address of a document, as seen from this one."""
        return self.env.app.builder.get_relative_uri(self.env.docname, target)

    def raw(self, html: Html) -> list[nodes.Node]:
        """HTML as a node of this document."""
        for module in CODE:
            self.env.note_dependency(module)
        return [nodes.raw("", html.text, format="html")]


class ResultsDirective(SiteDirective):
    """The table of one tab of a release's page."""

    option_spec: ClassVar = {
        "section": directives.nonnegative_int,
        "table": directives.nonnegative_int,
    }

    def run(self) -> list[nodes.Node]:
        """The table."""
        page = self.data(self.env.docname, ReleasePage)
        shown = page.sections[self.options["section"]].systems[self.options["table"]]
        measured = any(result.run_id is not None for result in shown.results)
        profile = profiles.of_table(page.framework, measured=measured)
        made = tables.results_table(f"{shown.title} results", shown.results, profile, self.address)
        return self.raw(table(made))


class ReleaseDirective(SiteDirective):
    """The head of a release's page."""

    def run(self) -> list[nodes.Node]:
        """The containers, and what the labels mean."""
        page = self.data(self.env.docname, ReleasePage)
        return self.raw(sources.release_head(page, self.address))


class AuditDirective(SiteDirective):
    """What the audit found: how much there is of it, or all that there is of one release."""

    option_spec: ClassVar = {"release": directives.nonnegative_int}

    def run(self) -> list[nodes.Node]:
        """The counts, or the entries."""
        page = self.data(self.env.docname, AuditPage)
        if "release" not in self.options:
            return self.raw(findings.head(page))
        return self.raw(findings.entries(page.releases[self.options["release"]], self.address))


class RunsDirective(SiteDirective):
    """The list of all runs."""

    def run(self) -> list[nodes.Node]:
        """The table."""
        page = self.data(self.env.docname, RunsPage)
        made = tables.results_table("Runs", page.results, profiles.RUNS, self.address)
        return self.raw(table(made))


class RunDirective(SiteDirective):
    """A part of a run's page."""

    option_spec: ClassVar = {"part": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        """The part; recipe, command and files are nodes, so that Sphinx highlights and copies."""
        page = self.data(self.env.docname, RunPage)
        part = self.options["part"]
        if part in runs.PARTS:
            return self.raw(runs.PARTS[part](page, self.address))
        if part == "files":
            return self._files(page)
        text = page.recipe_text if part == "recipe" else commands.shell(page.run.command)
        language = "yaml" if part == "recipe" else "bash"
        if not text:
            kept = "recipe file" if part == "recipe" else "command"
            return [nodes.paragraph(text=f"The run kept no {kept}.")]
        return [nodes.literal_block(text, text, language=language, force=True)]

    def _files(self, page: RunPage) -> list[nodes.Node]:
        listed = nodes.bullet_list()
        for file in page.files:
            path = self.layout.run_file(file).relative_to(self.env.srcdir)
            name = nodes.literal(text=file.name)
            download = addnodes.download_reference("", "", name, reftarget=f"/{path.as_posix()}")
            size = nodes.Text(f" {file.size_bytes:,} bytes")
            listed += nodes.list_item("", nodes.paragraph("", "", download, size))
        return [listed]


class SourceDirective(SiteDirective):
    """A published page as it was read."""

    def run(self) -> list[nodes.Node]:
        """Its lines."""
        return self.raw(sources.listing(self.data(self.env.docname, SourcePage), self.address))


class OverviewDirective(SiteDirective):
    """The newest releases and headline numbers."""

    def run(self) -> list[nodes.Node]:
        """Counts and cards, or how to get data."""
        return self.raw(overview.html(self.data(OVERVIEW, Overview), self.address))


class NoDataDirective(SiteDirective):
    """What stands on a page of results where there are none."""

    def run(self) -> list[nodes.Node]:
        """How to get some."""
        return self.raw(overview.NO_DATA)


class ReferenceDirective(SiteDirective):
    """A table made from the code: systems, models, metrics, conventions, peaks, schema, …"""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The table of the name that is given."""
        name = self.arguments[0]
        if name not in reference.TABLES:
            known = ", ".join(reference.TABLES)
            raise self.error(f"{self.name}: no table {name!r}; known: {known}")
        for path in reference.FILES:
            self.env.note_dependency(path)
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
        self.content = StringList(lines, source=CODE[0])
        self.env.note_dependency(str(Path(__file__).with_name("glossary.py")))
        return super().run()


DIRECTIVES = {
    "perfdb-audit": AuditDirective,
    "perfdb-glossary": GlossaryDirective,
    "perfdb-no-data": NoDataDirective,
    "perfdb-overview": OverviewDirective,
    "perfdb-reference": ReferenceDirective,
    "perfdb-release": ReleaseDirective,
    "perfdb-results": ResultsDirective,
    "perfdb-run": RunDirective,
    "perfdb-runs": RunsDirective,
    "perfdb-source": SourceDirective,
}
"""Every directive by the name that pages call it."""
