"""The labels of tabs and cards in HTML, whichever way a page ties them to their panels."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Final

from bs4 import Tag

from perfdb.pages import html_tree

_PANELS: Final = frozenset({"sd-tab-content", "tabbed-content", "tab-content"})
"""Classes of panels that stand right behind their label: sphinx-design, MkDocs, inline-tabs."""
_CARDS: Final = {"sd-card-title": "sd-card", "card-title": "card"}
"""Classes of the titles of cards, and of the cards: sphinx-design, Bootstrap."""
_MOST: Final = 1000
"""Tabs or cards of a page that are followed."""
_NEAR: Final = 6
"""How far above a tab its list is looked for."""
_BLOCK: Final = "tabbed-block"
"""The class of panels that stand in the order of the labels: Material for MkDocs."""


def labels(tree: Tag) -> Mapping[int, str]:
    """The label of each panel or card, by the id() of its element."""
    return dict((*_behind_label(tree), *_in_order(tree), *_by_role(tree), *_of_cards(tree)))


def card_of(title: Tag) -> Tag | None:
    """The card that an element is a title in; None where it is no such title."""
    found = html_tree.classes(title) & _CARDS.keys()
    return title.find_parent("div", class_=_CARDS[next(iter(found))]) if found else None


def _of_cards(tree: Tag) -> Iterable[tuple[int, str]]:
    """The first title of each card; a later one is a title within it."""
    found: dict[int, str] = {}
    for title in tree.find_all(class_=list(_CARDS), limit=_MOST):
        if card := card_of(title):
            found.setdefault(id(card), html_tree.words(title))
    return found.items()


def _behind_label(tree: Tag) -> Iterator[tuple[int, str]]:
    for label in tree.find_all("label", limit=_MOST):
        panel = label.find_next_sibling()
        if panel and html_tree.classes(panel) & _PANELS:
            yield id(panel), html_tree.words(label)


def _in_order(tree: Tag) -> Iterator[tuple[int, str]]:
    for content in tree.find_all("div", class_="tabbed-content", limit=_MOST):
        before = content.find_previous_sibling(class_="tabbed-labels")
        if before:
            named = before.find_all("label", recursive=False)
            panels = content.find_all(class_=_BLOCK, recursive=False)
            yield from _matched(panels, named)


def _by_role(tree: Tag) -> Iterator[tuple[int, str]]:
    """By the ids that ARIA has for it, or else by their order: panels follow their list of tabs."""
    by_id: dict[str, Tag] = {}
    lists: dict[int, list[Tag]] = {}
    groups: dict[int, tuple[list[Tag], list[Tag]]] = {}
    latest: list[Tag] = []
    for node in tree.find_all(role=("tablist", "tab", "tabpanel"), limit=_MOST):
        role = html_tree.attribute(node, "role")
        if role == "tablist":
            latest = lists[id(node)] = []
        elif role == "tab":
            by_id |= {html_tree.attribute(node, name): node for name in ("id", "aria-controls")}
            _list_of(node, lists).append(node)
        else:
            groups.setdefault(id(node.parent), (latest, []))[1].append(node)
    for tabs, panels in groups.values():
        yield from _matched(panels, tabs)
        for panel in panels:
            keys = (html_tree.attribute(panel, name) for name in ("id", "aria-labelledby"))
            named = [by_id[key] for key in keys if key and key in by_id]
            yield from ((id(panel), html_tree.words(tab)) for tab in named)


def _list_of(tab: Tag, lists: Mapping[int, list[Tag]]) -> list[Tag]:
    near = islice(tab.parents, _NEAR)
    return next((lists[id(parent)] for parent in near if id(parent) in lists), [])


def _matched(panels: list[Tag], named: list[Tag]) -> Iterator[tuple[int, str]]:
    pairs = zip(panels, named, strict=False)
    yield from ((id(panel), html_tree.words(label)) for panel, label in pairs)
