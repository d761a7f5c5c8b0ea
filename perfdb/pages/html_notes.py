"""The footnotes of an HTML page: what each mark stands for."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import Final

from bs4 import Tag

from perfdb.pages import html_tree

_OF_DOCUTILS: Final = "footnote"
_ROW_OF_TABLE: Final = 4
"""How far above its label a footnote may be: a table with one row."""
_MOST: Final = 500
"""Footnotes of a page that are read."""
_LISTS: Final = frozenset({"footnote", "footnotes", "footnotes-list"})
_BACK: Final = " \u21a9\ufe0e\ufe0f↑^"
"""Signs that lead back to where a footnote is referred to."""


@dataclass(frozen=True)
class Note:
    """A footnote: its mark without brackets, its text, and the element that holds it."""

    mark: str
    text: str
    holder: Tag


def of(tree: Tag) -> tuple[Note, ...]:
    """The footnotes of a page. A paragraph that starts with a raised mark is one."""
    found = islice(chain(_labelled(tree), _listed(tree), _raised(tree)), _MOST)
    return tuple(note for note in found if note.mark and note.text)


def _labelled(tree: Tag) -> Iterator[Note]:
    """As docutils writes them: a label, and the text behind it."""
    for label in tree.find_all(class_="label"):
        near = islice(label.parents, _ROW_OF_TABLE)
        holder = next((one for one in near if _OF_DOCUTILS in html_tree.classes(one)), None)
        text = label.find_next_sibling()
        if holder and text:
            mark = html_tree.short_text(label).strip("[]")
            yield Note(mark, html_tree.words(text), holder)


def _listed(tree: Tag) -> Iterator[Note]:
    """As Markdown's renderers write them: a list, of which a mark is the number."""
    for items in tree.find_all("ol"):
        above = items.parent
        holders = [items, above] if above else [items]
        if any(
            _LISTS & html_tree.classes(one) or one.has_attr("data-footnotes") for one in holders
        ):
            for number, item in enumerate(items.find_all("li", recursive=False), start=1):
                yield Note(str(number), html_tree.words(item).rstrip(_BACK), items)


def _raised(tree: Tag) -> Iterator[Note]:
    for holder in tree.find_all(("p", "small")):
        first = next((node for node in holder.contents if str(node).strip()), None)
        if isinstance(first, Tag) and first.name == "sup":
            mark = html_tree.short_text(first)
            text = html_tree.words(holder)
            yield Note(mark, text.removeprefix(html_tree.mark(first) or "").strip(), holder)
