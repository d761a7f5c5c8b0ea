"""What every directive of the site can do: read data, link, and put HTML into its document."""

from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar, TypeVar
from urllib.parse import quote

from docutils import nodes
from sphinx import addnodes
from sphinx.builders import Builder
from sphinx.util.docutils import SphinxDirective
from sphinx.util.osutil import relative_uri

from perfdb.record import Frozen
from perfdb.site import downloads, memory
from perfdb.site.data import RunFile
from perfdb.site.files import DOWNLOADS, PUBLISHED, Layout
from perfdb.site.markup import Html, Offer, joined
from perfdb.site.nodes import of_html

Data = TypeVar("Data", bound=Frozen)


class SiteDirective(SphinxDirective):
    """A part of a page that is made from data. `builder` is that of the build that goes on."""

    builder: ClassVar[Builder]

    @property
    def layout(self) -> Layout:
        """Where the data lies."""
        return Layout(Path(self.env.srcdir))

    def data(self, name: str, kind: type[Data]) -> Data:
        """The data of a document; this document depends on it from now on."""
        path = self.layout.data(name)
        self.env.note_dependency(str(path))
        if not path.is_file():
            raise self.error(f"{self.name}: the store has nothing for {name!r}")
        return memory.recall(path, kind)

    def download(self, file: RunFile) -> addnodes.download_reference:
        """A file of a run, to be downloaded."""
        path = self.layout.run_file(file).relative_to(self.env.srcdir)
        name = nodes.literal(text=file.name)
        return addnodes.download_reference("", "", name, reftarget=f"/{path.as_posix()}")

    def address(self, target: str) -> str:
        """The address of a document, as seen from this one."""
        return self.builder.get_relative_uri(self.env.docname, target)

    def raw(self, html: Html) -> list[nodes.Node]:
        """HTML as a node of this document, with the downloads that its tables offer below it.

        The search finds it by the titles of models, too: a table calls them as its page does.
        """
        made = joined((html, *map(self._offered, html.offers)))
        models = dict.fromkeys(one.model_title for it in html.offers for one in it.results)
        return [of_html(made.text, models)]

    def _offered(self, offer: Offer) -> Html:
        """Links to the files of a table, which are made here."""
        made = Path(self.env.srcdir, DOWNLOADS)
        taken = set(map(Path, self.env.dependencies.get(self.env.docname, ())))
        return self.links(downloads.write_offer(made / self.env.docname, offer, taken))

    def links(self, paths: Iterable[Path], what: str = "") -> Html:
        """Links to files that can be downloaded; this document depends on them from now on."""
        made = Path(self.env.srcdir, DOWNLOADS)
        here = self.builder.get_target_uri(self.env.docname)
        addresses = []
        for path in paths:
            self.env.note_dependency(str(path))
            name = f"{PUBLISHED}/{path.relative_to(made).as_posix()}"
            addresses.append(relative_uri(here, quote(name)))
        known = downloads.DICTIONARY in self.env.found_docs
        elsewhere = known and self.env.docname != downloads.DICTIONARY
        dictionary = self.address(downloads.DICTIONARY) if elsewhere else None
        return downloads.links(addresses, dictionary, what)
