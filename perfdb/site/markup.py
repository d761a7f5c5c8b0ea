"""HTML for people: text escaped, tables that scroll, sort and read well."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from typing import Final

from perfdb.site.data import Result


@dataclass(frozen=True)
class Offer:
    """The results of a table, to be downloaded beside it under a name."""

    name: str
    results: Sequence[Result]


@dataclass(frozen=True, slots=True)
class Html:
    """Text that is HTML already. Everything else is escaped where it is printed.

    `offers` are downloads of the tables in it, for which the page makes files and links.
    """

    text: str
    offers: tuple[Offer, ...] = ()


Content = str | Html


@dataclass(frozen=True)
class Head:
    """The head of a column; `hint` explains an abbreviation, `wide` holds sentences.

    `falling`: the first click sorts the largest up. `near`: on a narrow screen it stands beside the
    name of the row, before the rates.
    """

    title: str
    hint: str | None = None
    numeric: bool = False
    wide: bool = False
    falling: bool = False
    near: bool = False

    @property
    def class_(self) -> str | None:
        """Its class, and that of its cells."""
        return "n" if self.numeric else "w" if self.wide else None


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell; `sort` is what it is sorted by where its text will not do.

    `evidence` is the address of what a figure is believed for.
    """

    content: Content
    sort: float | str | None = None
    evidence: str | None = None


@dataclass(frozen=True)
class Beside:
    """What belongs to a row and is none of its cells: a sign by its name, and texts for copies."""

    sign: Content
    findings: str
    source: str


@dataclass(frozen=True)
class Table:
    """A table; the first cell of each row names the row. `label` tells readers what it holds.

    `ids` names each row for links to it, `notes` are the footnotes of each row, `beside` is what
    else belongs to it, `offer` are its results; a table without results has none of them. `said` is
    what a line above it says of every row.
    """

    label: str
    heads: Sequence[Head]
    rows: Sequence[Sequence[Cell]]
    sortable: bool = True
    ids: Sequence[str] = ()
    notes: Sequence[Sequence[str]] = ()
    beside: Sequence[Beside] = ()
    offer: Offer | None = None
    said: Sequence[str] = ()


_NOTHING: Final = Beside("", "", "")
_COMMIT: Final = re.compile("[0-9a-f]{40,}")
_APART: Final = {
    "dd", "desc", "div", "dt", "h2", "h3", "h4", "li", "p", "section", "summary", "td", "text",
    "th", "title",
}  # fmt: skip
"""Elements that end a line: the search shows the text of a page without its tags."""


def html(content: Content) -> str:
    """Content as HTML; a text is escaped, quotes and all."""
    return escape(content) if isinstance(content, str) else content.text


def tag(name: str, content: Content | Sequence[Content], **attributes: str | None) -> Html:
    """An element. `class_` is class, `data_x` is data-x; an attribute that is None is left out."""
    if isinstance(content, str):
        inner = Html(escape(content))
    else:
        inner = content if isinstance(content, Html) else joined(content)
    named = [
        f' {_attribute(key)}="{escape(value)}"'
        for key, value in attributes.items()
        if value is not None
    ]
    end = "\n" if name in _APART else ""
    return Html(f"<{name}{''.join(named)}>{inner.text}</{name}>{end}", inner.offers)


@cache
def _attribute(key: str) -> str:
    return key.rstrip("_").replace("_", "-")


def link(text: Content, address: str) -> Html:
    """A link. `address` is one of ours, never one out of the store."""
    return Html(f'<a href="{escape(address)}">{html(text)}</a>')


def shortened(text: str) -> Html:
    """Text in which the hash of a commit shows its start; copies and the filter have the whole."""
    return Html(_COMMIT.sub(r'<span class="perf-hash" title="\g<0>">\g<0></span>', escape(text)))


def joined(parts: Iterable[Content], separator: str = "") -> Html:
    """Parts one after the other."""
    given = tuple(parts)
    offers = [offer for part in given if isinstance(part, Html) for offer in part.offers]
    return Html(separator.join(map(html, given)), tuple(offers))


def table(given: Table) -> Html:
    """The table, in a box that scrolls by itself and can be reached with the keyboard.

    What every row says stands above it, and the footnotes of its rows below it, each once.
    """
    head = tag("thead", tag("tr", [_head(one) for one in given.heads]))
    sortable = "true" if given.sortable and len(given.rows) > 1 else None
    body = Html(f"\n<tbody>{_body(given)}</tbody>")
    inner = tag("table", (head, body), class_="perf", data_sortable=sortable)
    box = tag("div", inner, class_="perf-wrap", role="region", tabindex="0", aria_label=given.label)
    above = (tag("p", text) for text in given.said)
    made = joined((*above, box, _footnotes(given)))
    return Html(made.text, (given.offer,) if given.offer else ())


def facts(label: str, given: Iterable[tuple[str, Content]]) -> Html:
    """Names and what is known of them: a table of two columns without a head."""
    rows = [tag("tr", (tag("th", name, scope="row"), tag("td", known))) for name, known in given]
    body = tag("table", tag("tbody", rows), class_="perf-facts", aria_label=label)
    return tag("div", body, class_="perf-facts-wrap")


def terms(given: Iterable[tuple[str, Content]]) -> Html:
    """Names and what is said of each, as a list of terms."""
    return tag("dl", [joined((tag("dt", name), tag("dd", known))) for name, known in given])


def _head(head: Head) -> Html:
    said = shortened(head.title)
    title = tag("abbr", said, title=head.hint) if head.hint else said
    one_word = None if " " in head.title else "s"
    classes = " ".join(filter(None, (head.class_, one_word)))
    falling, near = ("true" if it else None for it in (head.falling, head.near))
    return tag("th", title, scope="col", class_=classes, data_falling=falling, data_near=near)


def _body(given: Table) -> str:
    """The rows. Written out, not made of tags: a site has a hundred thousand cells."""
    classes = [f' class="{head.class_}"' if head.class_ else "" for head in given.heads]
    ids = given.ids or [""] * len(given.rows)
    marks = _marks(given) or [""] * len(given.rows)
    asides = given.beside or [_NOTHING] * len(given.rows)
    rows = []
    for row, anchor, marked, aside in zip(given.rows, ids, marks, asides, strict=True):
        first, *others = row
        own = f"\u00a0{_permalink(anchor, first)}" if anchor else ""
        after = "".join([f" {part}" for part in (html(aside.sign), marked) if part])
        named = f'<th scope="row"{_cell(first, classes[0])}{after}{own}</th>'
        cells = "\n".join(
            [
                f"<td{_cell(cell, class_)}</td>"
                for cell, class_ in zip(others, classes[1:], strict=True)
            ]
        )
        known = f' id="{escape(anchor)}"' if anchor else ""
        rows.append(f"<tr{known}{_copied(aside)}>{named}\n{cells}</tr>\n")
    return "".join(rows)


def _copied(aside: Beside) -> str:
    """The texts that stand in columns of their own where a row is copied."""
    if not aside.source:
        return ""
    return f' data-findings="{escape(aside.findings)}" data-source="{escape(aside.source)}"'


def _cell(cell: Cell, class_: str) -> str:
    """What stands of a cell between the name of its element and the end of it."""
    said = html(cell.content)
    if cell.evidence is not None:
        said = f'<a class="e" href="{escape(cell.evidence)}">{said}</a>'
    order = "" if cell.sort is None else f' data-sort="{escape(str(cell.sort))}"'
    return f"{class_}{order}>{said}"


def _permalink(anchor: str, named: Cell) -> str:
    """A link to the row. Its sign is in the style sheet: the row's name is that of what was run."""
    name = named.content if isinstance(named.content, str) else named.sort or "this row"
    said = escape(f"Link to {name}")
    return f'<a class="perf-link" href="#{escape(anchor)}" aria-label="{said}"></a>'


def of_all(notes: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """The footnotes that every one of several rows has: they need no mark."""
    if len(notes) < 2:
        return ()
    first, *others = notes
    return tuple(text for text in dict.fromkeys(first) if all(text in texts for texts in others))


def _numbered(given: Table) -> dict[str, int]:
    """Each footnote of some rows with its number, in the order in which rows refer to them."""
    shared = of_all(given.notes)
    every = dict.fromkeys(text for texts in given.notes for text in texts)
    of_some = [text for text in every if text not in shared]
    return {text: number for number, text in enumerate(of_some, start=1)}


def _marks(given: Table) -> list[str]:
    """What stands behind the name of each row: the numbers of its footnotes, '1, 2'."""
    numbers = _numbered(given)
    made = [
        ", ".join([_mark(given, numbers[text], text) for text in texts if text in numbers])
        for texts in given.notes
    ]
    return [f'<sup class="perf-mark">{marks}</sup>' if marks else "" for marks in made]


def _mark(given: Table, number: int, text: str) -> str:
    anchor = _note_id(given, number)
    return tag(
        "a", str(number), href=f"#{anchor}", title=text, role="doc-noteref", aria_describedby=anchor
    ).text


def _note_id(given: Table, number: int) -> str:
    return f"{given.ids[0]}-note-{number}"


def _footnotes(given: Table) -> Html:
    """What is said of all rows, and below it the footnotes that rows refer to."""
    shared = [tag("p", f"All rows: {text}", class_="perf-notes") for text in of_all(given.notes)]
    items = [
        tag("li", text, id=_note_id(given, number)) for text, number in _numbered(given).items()
    ]
    label = f"Notes to {given.label}"
    of_some = [tag("ol", items, class_="perf-notes", aria_label=label)] if items else []
    return joined((*shared, *of_some))
