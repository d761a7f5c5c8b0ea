"""A document that is made from the store, and a kind of such documents.

A kind is a module: which pages there are of it, and the parts that stand on them. To add one write
its module and add its KIND to the table in `perfdb.site.pages`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeVar

from perfdb.record import Frozen
from perfdb.site.addresses import Address
from perfdb.site.contents import Contents
from perfdb.site.files import MARK
from perfdb.site.markup import Html
from perfdb.site.words import myst

NO_DATA = "```{perfdb-no-data}\n```\n"

Data = TypeVar("Data", bound=Frozen)

Part = Callable[[bytes, int, Address], Html]
"""From the JSON of a page's data to the HTML of a part; the number says which of several."""


@dataclass(frozen=True)
class Page:
    """A document: its name, its MyST text, and the data its directives read.

    `text` is None where data is kept for a page that somebody writes.
    """

    name: str
    text: str | None
    data: Frozen | None = None


@dataclass(frozen=True)
class Kind:
    """A kind of page."""

    pages: Callable[[Contents], Iterable[Page]]
    parts: Mapping[str, Part] = field(default_factory=dict)


def part(kind: type[Data], make: Callable[[Data, Address], Html]) -> Part:
    """A part of pages whose data is of a kind."""
    return lambda content, _, address: make(kind.model_validate_json(content), address)


def numbered(kind: type[Data], make: Callable[[Data, int, Address], Html]) -> Part:
    """A part of which a page has several: the number says which. Its page's data is read once."""
    read = lru_cache(maxsize=1)(kind.model_validate_json)
    return lambda content, number, address: make(read(content), number, address)


def document(title: str, *parts: str, orphan: bool = False, label: str | None = None) -> str:
    """The MyST text of a page; an orphan stands in no list of pages unless somebody lists it.

    `label` is what {ref} in other pages calls it.
    """
    head = ["---", MARK, "html_theme.sidebar_secondary.remove: true"]
    front = "\n".join([*head, *(["orphan: true"] if orphan else []), "---", ""])
    target = [f"({label})="] if label else []
    return "\n".join([front, *target, f"# {myst(title)}\n", *parts])


def directive(name: str, argument: str = "", **options: object) -> str:
    """A directive without content."""
    given = "".join(f":{option}: {value}\n" for option, value in options.items())
    return f"```{{{name}}} {argument}".rstrip() + f"\n{given}```\n"


def shown(name: str, number: int | None = None) -> str:
    """Where a part stands."""
    which = {} if number is None else {"number": number}
    return directive("perfdb-part", name, **which)


def section(title: str, *parts: str) -> str:
    """A heading and what stands below it."""
    return "\n".join([f"## {myst(title)}\n", *parts])


def toctree(names: Iterable[str], *, hidden: bool = True) -> str:
    """The list of the pages below a page."""
    entries = "".join(f"/{name}\n" for name in names)
    option = ":hidden:" if hidden else ":maxdepth: 1"
    return f"```{{toctree}}\n{option}\n\n{entries}```\n"
