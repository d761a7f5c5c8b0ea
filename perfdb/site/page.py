"""A document that is made from the store, and a kind of such documents.

A kind is a module: which pages there are of it, and the parts that stand on them. To add one write
its module and add its KIND to the table in `perfdb.site.pages`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeVar

from perfdb.record import Frozen
from perfdb.site.addresses import Address
from perfdb.site.contents import Contents
from perfdb.site.files import MARK
from perfdb.site.markup import Html
from perfdb.site.words import myst, quoted

NO_DATA = "```{perfdb-no-data}\n```\n"

LONGEST: Final = 160
"""Characters of what a page says of itself: about what a list of search results shows."""
TAGS: Final = "tags: [performance, benchmarks, throughput, gpu]"
CATEGORIES: Final = "categories: [reference]"
"""As published pages of performance have them."""

Data = TypeVar("Data", bound=Frozen)


class Read(Protocol):
    """What gives a page's data, which is of a kind."""

    def __call__(self, kind: type[Data], /) -> Data:
        """The data."""
        ...


Part = Callable[[Read, int, Address], Html]
"""From a page's data to the HTML of a part; the number says which of several."""


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
    return lambda read, _, address: make(read(kind), address)


def numbered(kind: type[Data], make: Callable[[Data, int, Address], Html]) -> Part:
    """A part of which a page has several: the number says which."""
    return lambda read, number, address: make(read(kind), number, address)


def document(title: str, about: str, *parts: str, label: str = "", contents: bool = False) -> str:
    """The MyST text of a page; `contents` keeps the list of its headings at the right.

    `about` is a sentence that tells what the page holds, as plain text; `label` is what {ref} in
    other pages calls it. It is an orphan: whether it stands in a toctree is for the project that
    uses the pages to say.
    """
    aside = [] if contents else ["html_theme.sidebar_secondary.remove: true"]
    front = "\n".join(["---", MARK, *_about(about), *aside, "orphan: true", "---", ""])
    target = [f"({label})="] if label else []
    return "\n".join([front, *target, f"# {myst(title)}\n", *parts])


def _about(sentence: str) -> list[str]:
    """The lines of the front matter that tell what the page holds; of a long sentence the start."""
    said = " ".join(sentence.split())
    told = said if len(said) <= LONGEST else f"{said[: LONGEST - 1].rstrip()}…"
    return [f"description: {quoted(told)}", TAGS, CATEGORIES]


def listing(
    name: str, about: str, introduction: str, data: Frozen | None, below: Iterable[str] = ()
) -> Page:
    """The page that lists the pages `below`. Its title and its part are called as its folder is.

    `data` is what the part is made of; where it is None there is only the introduction.
    """
    folder, _, _ = name.partition("/")
    title = folder.capitalize()
    if data is None:
        return Page(name, document(title, about, introduction))
    return Page(name, document(title, about, introduction, shown(folder), toctree(below)), data)


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


def toctree(names: Iterable[str]) -> str:
    """The pages below a page; empty for none."""
    entries = "".join(f"/{name}\n" for name in names)
    return f"```{{toctree}}\n:hidden:\n\n{entries}```\n" if entries else ""
