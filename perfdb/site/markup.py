"""HTML for people: text escaped, tables that scroll, sort and read well."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape


@dataclass(frozen=True)
class Html:
    """Text that is HTML already. Everything else is escaped where it is printed."""

    text: str


Content = str | Html


@dataclass(frozen=True)
class Head:
    """The head of a column; `hint` explains an abbreviation, `wide` holds sentences."""

    title: str
    hint: str | None = None
    numeric: bool = False
    wide: bool = False

    @property
    def class_(self) -> str | None:
        """Its class, and that of its cells."""
        return "n" if self.numeric else "w" if self.wide else None


@dataclass(frozen=True)
class Cell:
    """A cell; `sort` is what it is sorted by where its text will not do."""

    content: Content
    sort: float | str | None = None


@dataclass(frozen=True)
class Table:
    """A table; the first cell of each row names the row. `label` tells readers what it holds."""

    label: str
    heads: Sequence[Head]
    rows: Sequence[Sequence[Cell]]
    sortable: bool = True


def html(content: Content) -> str:
    """Content as HTML; a text is escaped, quotes and all."""
    return content.text if isinstance(content, Html) else escape(content)


def tag(name: str, content: Content | Sequence[Content], **attributes: str | None) -> Html:
    """An element. `class_` is class, `data_x` is data-x; an attribute that is None is left out."""
    inner = (content,) if isinstance(content, str | Html) else content
    named = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Html(f"<{name}{named}>{''.join(map(html, inner))}</{name}>")


def link(text: Content, address: str) -> Html:
    """A link. `address` is one of ours, never one out of the store."""
    return tag("a", text, href=address)


def joined(parts: Iterable[Content], separator: str = "") -> Html:
    """Parts one after the other."""
    return Html(separator.join(map(html, parts)))


def table(given: Table) -> Html:
    """The table, in a box that scrolls by itself and can be reached with the keyboard."""
    head = tag("thead", tag("tr", [_head(one) for one in given.heads]))
    body = tag("tbody", [_row(given.heads, row) for row in given.rows])
    sortable = "true" if given.sortable and len(given.rows) > 1 else None
    inner = tag("table", (head, Html("\n"), body), class_="perf", data_sortable=sortable)
    return tag(
        "div", inner, class_="perf-wrap", role="region", tabindex="0", aria_label=given.label
    )


def facts(label: str, given: Iterable[tuple[str, Content]]) -> Html:
    """Names and what is known of them: a table of two columns without a head."""
    rows = [tag("tr", (tag("th", name, scope="row"), tag("td", known))) for name, known in given]
    body = tag("table", tag("tbody", rows), class_="perf-facts", aria_label=label)
    return tag("div", body, class_="perf-facts-wrap")


def _head(head: Head) -> Html:
    title = tag("abbr", head.title, title=head.hint) if head.hint else head.title
    one_word = None if " " in head.title else "s"
    return tag("th", title, scope="col", class_=" ".join(filter(None, (head.class_, one_word))))


def _row(heads: Sequence[Head], cells: Sequence[Cell]) -> Html:
    first, *others = cells
    made = [tag("th", first.content, scope="row", class_=heads[0].class_, data_sort=_sort(first))]
    made += [
        tag("td", cell.content, class_=head.class_, data_sort=_sort(cell))
        for head, cell in zip(heads[1:], others, strict=True)
    ]
    return joined((tag("tr", made), Html("\n")))


def _sort(cell: Cell) -> str | None:
    return None if cell.sort is None else str(cell.sort)
