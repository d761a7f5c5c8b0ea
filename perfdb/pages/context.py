"""What holds for a table: framework, release, variant, and what is said above it.

It is said by the command line, the front matter, the title, headings, the labels of tabs and lines
of text. Where two say it, the nearest to the table holds. The command line says what the page
does not: a page that names its system is not moved to another.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from perfdb.pages import dotted, names, releases, sized, statements
from perfdb.pages.base import Grid, Heading, Line, Page, PageContext
from perfdb.pages.cells import Wrong
from perfdb.pages.front import Settings
from perfdb.pages.held import Statement
from perfdb.pages.outline import Said, Table
from perfdb.pages.releases import Whose
from perfdb.record import Method

_FRAMEWORKS: Final = ("dfm", "automodel", "megatron-bridge", "nemo")
"""DFM's and Megatron-Bridge's pages name the NeMo Framework too, as what they are part of."""
_WITH_BACKENDS: Final = frozenset({"dfm"})
"""Frameworks that train with more than one backend, and publish them on one page."""

_VERSION = re.compile(
    rf"^(?:{'|'.join(releases.SPELLINGS[name] for name in _FRAMEWORKS)}|Framework) Version\s*:\s*"
    rf"(main|v?{dotted.DOTTED})",
    re.IGNORECASE | re.MULTILINE,
)


@dataclass(frozen=True)
class Setting:
    """What holds for the rows of a table; `fallback` where neither they nor the page say it.

    `over` is what is said further away, in the front matter or by the command line; `sized`: see
    `sized.of`.
    """

    whose: Whose
    over: Whose
    method: Method
    said: Statement
    fallback: PageContext
    sized: frozenset[str] = frozenset()

    @property
    def framework(self) -> str | None:
        """The framework that the rows are of."""
        return self.whose.framework

    @property
    def system(self) -> str | Wrong | None:
        """The system that is named above the rows, or why nobody can tell which it is."""
        remedy = "put `System: NAME` above the table, or name it in a column System"
        return Wrong(self.said.no_system, remedy) if self.said.no_system else self.said.system

    @property
    def variant(self) -> str | None:
        """The backend, of a framework that has several."""
        return self.said.backend if self.framework in _WITH_BACKENDS else None

    def of(self, nearer: Whose) -> "Setting":
        """What holds for a row that says of its own what it is of."""
        return replace(self, whose=self.whose.then(nearer))

    def below(self, title: str) -> "Setting":
        """What holds for a result below a title of its own."""
        nearer = statements.in_force([Said(title, 0, True)], self.framework)
        return replace(self.of(nearer.whose), said=self.said.then(nearer))


@dataclass(frozen=True)
class PageSetting:
    """What holds for every table of a page; `said`: where nothing nearer to a table does."""

    whose: Whose
    method: Method
    said: Statement
    fallback: PageContext

    def of(self, table: Table) -> Setting:
        """What holds for the rows of one table."""
        own = self.whose.framework
        said = self.said.then(statements.in_force(table.said, own))
        releasing = (one for one in reversed(table.said) if statements.alone(one, own).release)
        nearest = next((one.text for one in releasing), "")
        whose = self.whose.then(_in_full(said.whose, self.whose.release, nearest))
        return Setting(whose, self.whose, self.method, said, self.fallback, sized.of(table))


def _in_full(said: Whose, of_page: str | None, heading: str) -> Whose:
    """What a heading says, with the release of the page where that stands in it as a whole.

    Of `25.09-py3` and `25.09 hotfix` the words tell no more than 25.09.
    """
    release = of_page or ""
    whole = re.search(rf"(?<![\w.]){re.escape(release)}(?![\w+-]|\.\w)", heading)
    cut = said.release and dotted.joined(release).startswith(said.release)
    return replace(said, release=release) if cut and whole else said


def of_page(page: Page, settings: Settings, fallback: PageContext) -> PageSetting:
    """What a page says of all its tables: in its front matter, its title and what opens it."""
    whose = Whose(
        settings.framework or fallback.framework or _framework(page),
        settings.release or _version(page) or fallback.release,
        settings.container or fallback.container,
    )
    return PageSetting(
        whose=whose,
        method=settings.method,
        said=statements.of_opening("\n".join(_opening(page))),
        fallback=fallback,
    )


def _framework(page: Page) -> str | None:
    """The framework that the title names, else the front matter, else the opening words.

    Else the only one that the text below names. Not the headings of sections: a page of DFM has a
    section on its AutoModel backend. None where the title holds one against another, or names
    several that no NeMo is among.
    """
    title = next((piece.text for piece in page.pieces if isinstance(piece, Heading)), "")
    if names.compares(title):
        return None
    if titled := releases.frameworks_in(title):
        return framework_in(title) or (titled[0] if len(titled) == 1 else None)
    for text in (page.front or "", "\n".join(_opening(page))):
        if name := framework_in(text):
            return name
    lines = [piece.text for piece in page.pieces if isinstance(piece, Line)]
    named = {
        name for name in _FRAMEWORKS if any(releases.names_framework(name, line) for line in lines)
    }
    return named.pop() if len(named) == 1 else None


def framework_in(text: str) -> str | None:
    """The framework that a text names, the most particular one first."""
    return next((name for name in _FRAMEWORKS if releases.names_framework(name, text)), None)


def _opening(page: Page) -> Iterator[str]:
    """The lines above the first section and the first table."""
    headings = 0
    for piece in page.pieces:
        headings += isinstance(piece, Heading)
        if headings > 1 or isinstance(piece, Grid):
            return
        if isinstance(piece, Line):
            yield piece.text


def _version(page: Page) -> str | None:
    """The version that a page states for all of itself, wherever it does."""
    lines: Sequence[str] = [piece.text for piece in page.pieces if isinstance(piece, Line)]
    found = _VERSION.search(dotted.joined("\n".join(lines)))
    return found[1] if found else None
