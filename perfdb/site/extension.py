"""The Sphinx extension: what happens in a build.

`perfdb_url` in conf.py names the store; where it is None, PERFDB_URL does. `perfdb_acknowledged`
names the file of findings that are accepted, from the folder of conf.py on; None: none are.
`perfdb_hostnames = True` has pages of runs name the machine that they ran on, and folders of it.

The pages are made before Sphinx reads them, and downloads put next to them. Where nothing has
changed nothing is made, and what makes it is not even loaded.
"""

import gc
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import Final

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.builders.html import StandaloneHTMLBuilder
from sphinx.config import Config
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.util.index_entries import split_index_msg
from sphinx.util.typing import ExtensionMetadata

from perfdb import __version__
from perfdb.site import build_cache, files, templates
from perfdb.site.addresses import FOLDERS, PERFORMANCE
from perfdb.site.build_cache import BuildOptions
from perfdb.site.files import DOWNLOADS, GENERATED, SiteLayout

LOGGER = logging.getLogger(__name__)

STATIC: Final = Path(__file__).parent / "static"


def setup(app: Sphinx) -> ExtensionMetadata:
    """What Sphinx calls: our directives, our option, and what happens when a build begins."""
    for extension in ("myst_parser", "sphinx_design"):
        app.setup_extension(extension)
    app.add_config_value("perfdb_url", None, "env", frozenset({str, type(None)}))
    app.add_config_value("perfdb_acknowledged", None, "", frozenset({str, type(None)}))
    app.add_config_value("perfdb_hostnames", False, "env", frozenset({bool}))
    # Not to be set: what another perfdb made, or other libraries, is read and written anew.
    app.add_config_value("perfdb_code", build_cache.code(), "env", frozenset({str}))
    templates.add_node(app)
    app.connect("config-inited", add_files)
    app.connect("builder-inited", serve_files)
    app.connect("builder-inited", make_pages)
    app.connect("builder-inited", write_touched_again)
    app.connect("env-before-read-docs", add_directives)
    app.connect("html-page-context", add_parents)
    app.connect("html-page-context", drop_neighbors)
    app.connect("html-collect-pages", keep_entries)
    app.connect("build-finished", purge_words)
    app.connect("build-finished", remove_stale)
    app.connect("build-finished", publish_downloads)
    app.connect("build-finished", note_site, priority=1000)
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


def make_pages(app: Sphinx) -> None:
    """Make the pages from the store. Raises ExtensionError where it cannot be read."""
    layout = SiteLayout(Path(app.srcdir))
    address = app.config.perfdb_url or os.environ.get("PERFDB_URL") or None
    named = app.config.perfdb_acknowledged
    accepted = None if named is None else Path(app.confdir, named)
    options = BuildOptions(address, accepted, bool(app.config.perfdb_hostnames))
    key = build_cache.key_of(options)
    if build_cache.holds(layout, key):
        LOGGER.info("perfdb.site: nothing has changed")
        return
    with _nothing_thrown_away():
        from perfdb.site import build  # noqa: PLC0415  it takes as long to load as all of Sphinx

        made = build.everything(layout, options)
    build_cache.keep(layout, key, made)


@contextmanager
def _nothing_thrown_away() -> Iterator[None]:
    """Modules and results stay for the whole build: to look for garbage among them takes long."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def write_touched_again(app: Sphinx) -> None:
    """Have every page written again where the site is not as the last build left it.

    Sphinx writes a page whose file is gone, and with all of them the lists of what is in them.
    """
    builder = app.builder
    if not isinstance(builder, StandaloneHTMLBuilder):
        return
    if not build_cache.is_as_left(Path(app.outdir), _note(app)):
        for document in app.env.found_docs:
            Path(builder.get_outfilename(document)).unlink(missing_ok=True)


def note_site(app: Sphinx, failed: Exception | None) -> None:
    """Note the site as it was left, once nothing more is written into it."""
    if not failed and app.builder.format == "html":
        build_cache.leave(Path(app.outdir), _note(app))


def _note(app: Sphinx) -> Path:
    return Path(app.doctreedir, "perfdb-site.json")


def add_directives(app: Sphinx, _env: BuildEnvironment, documents: Sequence[str]) -> None:
    """Make our directives known, where there is a document to be read."""
    if documents:
        from perfdb.site.directives import DIRECTIVES, SiteDirective  # noqa: PLC0415  as above

        SiteDirective.builder = app.builder
        for name, directive in DIRECTIVES.items():
            app.add_directive(name, directive, override=True)


def add_parents(
    app: Sphinx, name: str, _template: str, context: dict[str, object], doctree: nodes.document
) -> None:
    """Breadcrumbs of a page in no toctree, as those of runs, of which there may be thousands.

    The index of its folder; of published pages that of performance.
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
    neighbors = {key: document for document, _, key, _ in links if key in _NEIGHBORS}
    stale = {key for key, document in neighbors.items() if _is_made(name) or _is_made(document)}
    context["rellinks"] = [one for one in links if one[2] not in stale]
    context.update(dict.fromkeys(map(_NEIGHBORS.__getitem__, stale)))


_NEIGHBORS: Final = {"N": "next", "P": "prev"}
"""What a page calls those next to it, by the keys that Sphinx gives the links to them."""


def _is_made(document: str) -> bool:
    return document.partition("/")[0] in FOLDERS


def keep_entries(app: Sphinx) -> Iterator[tuple[str, dict[str, object], str]]:
    """Have the search know the entries also of pages that are not written again; no page is added.

    Of what it has written Sphinx reads back all but them.
    """
    builder = app.builder
    if isinstance(builder, StandaloneHTMLBuilder) and builder.indexer is not None:
        known = builder.indexer._index_entries
        known.clear()
        for name, entries in sorted(app.env.domains.index_domain.entries.items()):
            words = {
                (word, target, main)
                for kind, text, target, main, _ in entries
                for word in split_index_msg(kind, text)
            }
            known[name] = sorted(words)
    yield from ()


def purge_words(app: Sphinx, failed: Exception | None) -> None:
    """Take the words that no page has any more out of what the search knows.

    Sphinx takes withdrawn pages away from their words, and keeps the words.
    """
    builder = app.builder
    if failed or not isinstance(builder, StandaloneHTMLBuilder) or builder.indexer is None:
        return
    path = Path(app.outdir, builder.searchindex_filename)
    if not path.is_file():  # a builder of a single page has no search
        return
    text = path.read_text(encoding="utf-8")
    if ":[]" in text:  # it takes long to read, and few builds leave such a word
        index = builder.indexer_format.loads(text)
        for kind in ("terms", "titleterms"):
            index[kind] = {word: pages for word, pages in index[kind].items() if pages != []}
        path.write_text(builder.indexer_format.dumps(index), encoding="utf-8")


def publish_downloads(app: Sphinx, failed: Exception | None) -> None:
    """Put the files of all tables into the site."""
    if not failed and app.builder.format == "html":
        used = {Path(path) for paths in app.env.dependencies.values() for path in paths}
        files.publish(Path(app.srcdir), Path(app.outdir), used)


def remove_stale(app: Sphinx, failed: Exception | None) -> None:
    """Remove what an earlier build put into the site and no page is or leads to any more.

    Sphinx leaves it, and a figure that was withdrawn, or the file of a run, would stay published.
    """
    builder = app.builder
    if failed or not isinstance(builder, StandaloneHTMLBuilder):
        return
    out, downloads = Path(app.outdir), Path(app.outdir, "_downloads")
    wanted = {Path(builder.get_outfilename(document)) for document in app.env.found_docs}
    wanted |= _copied_texts(app) | {downloads / name for _, name in app.env.dlfiles.values()}
    pages = [page for folder in FOLDERS for page in (out / folder).rglob("*.html")]
    texts = [out / "_sources" / folder for folder in FOLDERS]
    for path in (*pages, *downloads.rglob("*"), *(it for one in texts for it in one.rglob("*"))):
        if path not in wanted and path.is_file():
            path.unlink()
    for folder in (*(out / folder for folder in FOLDERS), downloads, *texts):
        files.prune(folder)
    # What Sphinx told the last site by, where settings have changed.
    (out / ".buildinfo.bak").unlink(missing_ok=True)


def _copied_texts(app: Sphinx) -> set[Path]:
    """Where Sphinx puts copies of what pages are made of; it names some without a second ending."""
    written = [app.env.doc2path(document, base=False) for document in app.env.found_docs]
    endings = ("", app.config.html_sourcelink_suffix)
    return {Path(app.outdir, "_sources", f"{path}{end}") for path in written for end in endings}
