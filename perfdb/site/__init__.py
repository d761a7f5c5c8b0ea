"""The Sphinx extension: `extensions = ["perfdb.site"]` makes pages from the store.

`perfdb_url` in conf.py names the store; where it is None, PERFDB_URL does. `perfdb_acknowledged`
names the file of findings that are accepted, from the folder of conf.py on; None: none are.
`perfdb_hostnames = True` has pages of runs say on which machine they ran, and where on it.
"""

from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

from perfdb import __version__
from perfdb.site import fresh, nodes
from perfdb.site.events import (
    add_directives,
    add_files,
    add_parents,
    drop_neighbours,
    keep_entries,
    make_pages,
    note_site,
    publish_downloads,
    purge_words,
    remove_stale,
    serve_files,
    write_touched_again,
)

__all__ = ["setup"]


def setup(app: Sphinx) -> ExtensionMetadata:
    """What Sphinx calls: our directives, our option, and what happens when a build begins."""
    for extension in ("myst_parser", "sphinx_design"):
        app.setup_extension(extension)
    app.add_config_value("perfdb_url", None, "env", frozenset({str, type(None)}))
    app.add_config_value("perfdb_acknowledged", None, "", frozenset({str, type(None)}))
    app.add_config_value("perfdb_hostnames", False, "env", frozenset({bool}))
    # Not to be set: what another perfdb made, or other libraries, is read and written anew.
    app.add_config_value("perfdb_code", fresh.code(), "env", frozenset({str}))
    nodes.add(app)
    from perfdb.site.next import directives  # noqa: PLC0415

    directives.add_node(app)
    app.connect("config-inited", add_files)
    app.connect("builder-inited", serve_files)
    app.connect("builder-inited", make_pages)
    app.connect("builder-inited", write_touched_again)
    app.connect("env-before-read-docs", add_directives)
    app.connect("html-page-context", add_parents)
    app.connect("html-page-context", drop_neighbours)
    app.connect("html-collect-pages", keep_entries)
    app.connect("build-finished", purge_words)
    app.connect("build-finished", remove_stale)
    app.connect("build-finished", publish_downloads)
    app.connect("build-finished", note_site, priority=1000)
    return {"version": __version__, "parallel_read_safe": True, "parallel_write_safe": True}
