"""The Sphinx extension: what happens in a build.

`perfdb_url` in conf.py names the store; where it is None, PERFDB_URL does. `perfdb_acknowledged`
names the file of accepted findings, `perfdb_recipes` the folder of recipes and
`perfdb_notes` that of notes on releases, FRAMEWORK/VERSION.md; all are relative to the folder of
conf.py; None: there are none.
With `perfdb_hostnames = True` pages of runs name the machine that they ran on, and folders of it.
`perfdb_profile` says for whom the site is: "internal" or "public".

The documents are written before Sphinx reads them. Where nothing has changed nothing is made, and
what makes it is not even loaded.
"""

import gc
import os
from collections.abc import Iterator, Sequence
from functools import cached_property
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Final

from docutils import nodes
from jinja2 import FileSystemBytecodeCache
from sphinx.application import Sphinx
from sphinx.builders.html import StandaloneHTMLBuilder
from sphinx.config import Config
from sphinx.environment import BuildEnvironment
from sphinx.jinja2glue import BuiltinTemplateLoader
from sphinx.util import logging
from sphinx.util.index_entries import split_index_msg
from sphinx.util.typing import ExtensionMetadata

from perfdb import __version__
from perfdb.site import files, templates
from perfdb.site.addresses import FOLDERS, PERFORMANCE
from perfdb.site.files import DOWNLOADS, GENERATED, BuildOptions, SiteLayout

if TYPE_CHECKING:
    from perfdb.site.build import Site

LOGGER = logging.getLogger(__name__)

STATIC: Final = Path(__file__).parent / "static"
_PATHS: Final = ("perfdb_acknowledged", "perfdb_recipes", "perfdb_notes")
_GARBAGE: Final = 100_000
"""How many objects are made between looks for garbage: a page has many, and few are garbage."""
_NEIGHBORS: Final = {"N": "next", "P": "prev"}
"""What a template calls the pages before and after, by the keys that Sphinx gives their links."""


def setup(app: Sphinx) -> ExtensionMetadata:
    """What Sphinx calls: our directives, our option, and what happens when a build begins."""
    gc.set_threshold(_GARBAGE)
    for extension in ("myst_parser", "sphinx_design"):
        app.setup_extension(extension)
    app.add_config_value("perfdb_url", None, "env", frozenset({str, type(None)}))
    for name in _PATHS:
        app.add_config_value(name, None, "", frozenset({str, type(None)}))
    app.add_config_value("perfdb_hostnames", False, "env", frozenset({bool}))
    app.add_config_value("perfdb_profile", "internal", "env", frozenset({str}))
    # Not to be set: what another perfdb made, or other libraries, is read and written anew.
    app.add_config_value("perfdb_code", files.code(), "env", frozenset({str}))
    templates.add_node(app)
    build = _Build(app)
    app.connect("config-inited", add_files)
    app.connect("builder-inited", serve_files)
    app.connect("builder-inited", keep_templates)
    app.connect("builder-inited", build.write_documents)
    app.connect("env-get-outdated", build.outdated)
    app.connect("env-before-read-docs", build.add_directives)
    app.connect("html-page-context", add_parents)
    app.connect("html-page-context", drop_neighbors)
    app.connect("html-collect-pages", complete_search)
    app.connect("build-finished", remove_stale)
    return {"version": __version__, "parallel_read_safe": True, "parallel_write_safe": True}


def add_files(app: Sphinx, config: Config) -> None:
    """Our style sheet and script are linked; what we make next to the documents is no document."""
    # A list of its own: that of other builds in this process may be the same one.
    config.exclude_patterns = [*config.exclude_patterns, GENERATED, DOWNLOADS]
    app.add_css_file("perfdb.css")
    app.add_js_file("perfdb.js", loading_method="defer")


def serve_files(app: Sphinx) -> None:
    """Serve them. Sphinx has hashed the settings by now: where perfdb lies is no part of a site."""
    app.config.html_static_path = [*app.config.html_static_path, str(STATIC)]


def keep_templates(app: Sphinx) -> None:
    """Keep the compiled templates of the theme: compiling takes a tenth of a build with nothing to
    do. Another Jinja compiles its own.
    """
    builder = app.builder
    if isinstance(builder, StandaloneHTMLBuilder) and isinstance(
        builder.templates, BuiltinTemplateLoader
    ):
        folder = app.doctreedir / f"templates-{version('jinja2')}"
        folder.mkdir(parents=True, exist_ok=True)
        builder.templates.environment.bytecode_cache = FileSystemBytecodeCache(str(folder))


class _Build:
    """One build: the site is made where the store or a document has changed."""

    def __init__(self, app: Sphinx) -> None:
        self.app = app

    @property
    def layout(self) -> SiteLayout:
        return SiteLayout(Path(self.app.srcdir))

    @property
    def options(self) -> BuildOptions:
        config = self.app.config
        accepted, recipes, notes = (
            None if config[name] is None else Path(self.app.confdir, config[name])
            for name in _PATHS
        )
        return BuildOptions(
            config.perfdb_url or os.environ.get("PERFDB_URL") or None,
            accepted,
            bool(config.perfdb_hostnames),
            recipes,
            notes,
            config.perfdb_profile,
        )

    @cached_property
    def site(self) -> "Site":
        from perfdb.site.build import Site  # noqa: PLC0415  as long to load as all of Sphinx

        return Site(self.layout, self.options)

    def write_documents(self, _app: Sphinx) -> None:
        """Write the documents. Raises ExtensionError where the store cannot be read."""
        key = self.options.key()
        if files.is_done(self.layout, key):
            LOGGER.info("perfdb.site: nothing has changed")
            return
        gc.disable()  # what is made stays for the whole build: looking for garbage takes long
        made = self.site.write()
        gc.freeze()
        gc.enable()
        files.note_done(self.layout, key, made, self.site.keys)

    def outdated(
        self, _app: Sphinx, env: BuildEnvironment, _added: object, _changed: object, _gone: object
    ) -> Sequence[str]:
        """The documents that show something else than when they were read."""
        keys = files.noted(self.layout).get("keys", {})
        return [
            name
            for name, front in env.metadata.items()
            if any(keys.get(one, "") != key for one, key in front.get(templates.KEYS, {}).items())
        ]

    def add_directives(self, app: Sphinx, _env: BuildEnvironment, documents: Sequence[str]) -> None:
        """Make our directives known, where there is a document to be read."""
        if documents:
            from perfdb.site.directives import DIRECTIVES, SiteDirective  # noqa: PLC0415  as above

            SiteDirective.site = self.site
            for name, directive in DIRECTIVES.items():
                app.add_directive(name, directive, override=True)


def add_parents(
    app: Sphinx, name: str, _template: str, context: dict[str, object], doctree: nodes.document
) -> None:
    """Breadcrumbs of a page in no toctree, such as those of runs.

    It is below the index of its folder; a published page is below that of performance.
    """
    folder = name.partition("/")[0]
    above = PERFORMANCE if folder == "sources" else f"{folder}/index"
    known = folder in FOLDERS and name != above and above in app.env.found_docs
    if doctree and known and not context["parents"]:
        title = escape(app.env.titles[above].astext())
        context["parents"] = [{"link": app.builder.get_relative_uri(name, above), "title": title}]


def drop_neighbors(
    _app: Sphinx, name: str, _template: str, context: dict[str, object], _doctree: nodes.document
) -> None:
    """No link to the page before or after where one of the two is made from the store.

    Which is next to which changes with the store, and Sphinx does not write a page anew for it.
    """
    links = context.get("rellinks")
    if not isinstance(links, list):
        return
    made = {key: _is_made(name) or _is_made(document) for document, _, key, _ in links}
    stale = {key for key in _NEIGHBORS if made.get(key)}
    context["rellinks"] = [one for one in links if one[2] not in stale]
    context.update({_NEIGHBORS[key]: None for key in stale})


def _is_made(document: str) -> bool:
    return document.partition("/")[0] in FOLDERS


def complete_search(app: Sphinx) -> Iterator[tuple[str, dict[str, object], str]]:
    """Have the search know the entries of pages that are not written again, and no word too many.

    Sphinx reads back all that it has written but the entries; of pages that are gone it keeps the
    words. No page is added.
    """
    builder = app.builder
    if isinstance(builder, StandaloneHTMLBuilder) and builder.indexer is not None:
        index = builder.indexer
        index._index_entries.clear()
        for name, entries in sorted(app.env.domains.index_domain.entries.items()):
            words = {
                (word, target, main)
                for kind, text, target, main, _ in entries
                for word in split_index_msg(kind, text)
            }
            index._index_entries[name] = sorted(words)
        for known in (index._mapping, index._title_mapping):
            for word in [word for word, pages in known.items() if not pages]:
                del known[word]
    yield from ()


def remove_stale(app: Sphinx, failed: Exception | None) -> None:
    """Put the files of all tables into the site; remove what no page is or leads to any more.

    Sphinx leaves it, and a figure that was withdrawn, or the file of a run, would stay published.
    """
    builder = app.builder
    if failed or not isinstance(builder, StandaloneHTMLBuilder):
        return
    out, found = Path(app.outdir), app.env.found_docs
    used = {Path(path) for paths in app.env.dependencies.values() for path in paths}
    files.publish(Path(app.srcdir), out, used)
    texts = [app.env.doc2path(document, base=False) for document in found]
    endings = ("", app.config.html_sourcelink_suffix)  # Sphinx adds it to some copies of texts
    wanted = {Path(builder.get_outfilename(document)) for document in found}
    wanted |= {out / "_downloads" / name for _, name in app.env.dlfiles.values()}
    wanted |= {out / "_sources" / f"{text}{ending}" for text in texts for ending in endings}
    stale = [path for folder in FOLDERS for path in (out / folder).rglob("*.html")]
    folders = [out / "_downloads", *(out / "_sources" / folder for folder in FOLDERS)]
    stale += [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    for path in stale:
        if path not in wanted:
            path.unlink()
    for folder in (*(out / folder for folder in FOLDERS), *folders):
        files.prune(folder)
    # What Sphinx told the last site by, where settings have changed.
    (out / ".buildinfo.bak").unlink(missing_ok=True)
