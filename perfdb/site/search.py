"""What the search knows pages by beside their words: the entries of the index."""

from collections.abc import Iterator

from sphinx.application import Sphinx
from sphinx.builders.html import StandaloneHTMLBuilder
from sphinx.util.index_entries import split_index_msg


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
                for kind, said, target, main, _ in entries
                for word in split_index_msg(kind, said)
            }
            known[name] = sorted(words)
    yield from ()
