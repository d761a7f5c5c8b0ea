"""Where rows are said to be of two releases or recipes, or of none: what holds, a note says."""

import re
from collections.abc import Collection, Iterable, Iterator
from typing import Final

from perfdb import versions
from perfdb.errors import Diagnostic
from perfdb.pages import names, releases, sentences, statements
from perfdb.pages.base import Heading, Page, PageContext
from perfdb.pages.cells import Wrong
from perfdb.pages.context import Setting, framework_in
from perfdb.pages.front import Settings
from perfdb.pages.outline import Said, Table
from perfdb.pages.releases import Whose

_REMEDY = "correct one of them, if it is a mistake"
_EXACT = "write the recipe where FP8 stands, if it is of these rows"
_FAMILY: Final = "fp8"
_UNIT = r"(?:tensor|channel|row|column|block|group|tile|token)"
_SCALING = re.compile(
    rf"(?:\b(?:delayed|current|dynamic|static|blocked|mx|{_UNIT}(?:-?wise)?)|\bmicro)[- ]?scal\w+"
    rf"|\b{_UNIT}-?wise\b|\bper[- ](?:tensor|channel)\b|\bsub-?channel\w*"
    r"|\b(?:fp|float)8\W{1,2}(?:current|dynamic|static|block|[0-9]+[x×][0-9]+)\b(?!\s*gpu)"
    r"(?:[^()]{0,40}\))?",
    re.IGNORECASE,
)
"""Words for how values are scaled, of which a recipe of FP8 may be made."""


def above(where: str, table: Table, setting: Setting) -> Iterator[Diagnostic]:
    """What is said above a table, where the whole page is said to be of another release."""
    if releases.contradict(setting.whose, setting.over):
        near, over = setting.whose.name, setting.over.name
        message = f"the text says {near}, the whole page or an option {over}; the text holds"
        yield Diagnostic(where, message, line=_line(table, setting), remedy=_REMEDY)


def no_release(where: str, table: Table, setting: Setting) -> Iterator[Diagnostic]:
    """Lines above a table that state a release, and name none."""
    of = setting.whose.release
    held = f"the rows count as {of}" if of else "the rows' release stays unknown"
    for one in table.said:
        if printed := statements.no_release(one):
            message = f"the text says {printed!r}, which is no release; {held}"
            yield Diagnostic(where, message, line=one.line, remedy="write its version: 26.02")


def _line(table: Table, setting: Setting) -> int:
    """The line of what is said nearest to a table of whose it is."""
    own = setting.over.framework
    stated = (
        one.line for one in reversed(table.said) if statements.alone(one, own).whose != Whose()
    )
    return next(stated, table.header.line)


def in_rows(
    where: str, table: Table, setting: Setting, own: Iterable[Whose]
) -> Iterator[Diagnostic]:
    """What rows say of themselves, where it is not what holds for their table; each thing once."""
    others = dict.fromkeys(one.name for one in own if releases.contradict(one, setting.whose))
    if others:
        said = ", ".join(others)
        message = f"rows say {said}, and their table is of {setting.whose.name}; the rows hold"
        yield Diagnostic(where, message, line=table.header.line, remedy=_REMEDY)


def on_systems(
    where: str, table: Table, setting: Setting, own: Iterable[str]
) -> Iterator[Diagnostic]:
    """The systems that rows name, where another one is named above their table."""
    above = names.system(setting.said.system or "")
    others = [one for one in dict.fromkeys(own) if one != above]
    if others and isinstance(above, str):
        message = f"rows say {', '.join(others)}, and {above} stands above the table; the rows hold"
        yield Diagnostic(where, message, line=table.header.line, remedy=_REMEDY)


def recipes(
    where: str, table: Table, own: Iterable[tuple[str, str | Wrong | None]]
) -> Iterator[Diagnostic]:
    """Recipes of a precision that leave open whether a plain FP8 is one of them.

    `own` is what each row says of its precision, and what that is taken for.
    """
    rows = [(printed, held) for printed, held in own if isinstance(held, str)]
    held_by_rows = {held for _, held in rows}
    stated = {names.precision(printed) for printed, _ in rows}
    exact = {printed for printed, held in rows if names.precision(printed) == held}
    for printed, held in dict.fromkeys(rows):
        family = names.precision(printed) if printed not in exact and printed else held
        if family != held and (same := [one for one in exact if names.is_recipe_of(family, one)]):
            message = f"rows say {printed} and {same[0]}; {printed} counts as {held}, as said above"
            yield Diagnostic(where, message, line=table.header.line, remedy=_REMEDY)
    for one in table.said:
        words = () if one.listed else sentences.precisions(one.text)
        unsaid = [word for word in words if names.precision(word) not in stated]
        open_ = [it for it in unsaid if any(names.is_recipe_of(held, it) for held in held_by_rows)]
        as_held = [
            held for held in held_by_rows for it in open_ if names.are_precisions([held], it)
        ]
        if not open_ and (scaled := _scaled(one, held_by_rows)):
            open_, as_held = [repr(scaled)], [_FAMILY]
        if open_:
            said, counted = " and ".join(open_), " and ".join(sorted({*as_held}))
            message = f"the text speaks of {said}; the rows count as {counted}"
            yield Diagnostic(where, message, line=one.line, remedy=_EXACT)


def _scaled(one: Said, held: Collection[str]) -> str | None:
    """The words for scaling that stand above rows of a plain FP8, and name no recipe."""
    found = _SCALING.search(one.text) if _FAMILY in held else None
    known = any(names.is_recipe_of(_FAMILY, word) for word in sentences.precisions(one.text))
    return found[0] if found and not one.listed and not known else None


def by_options(
    where: str, page: Page, settings: Settings, given: PageContext
) -> Iterator[Diagnostic]:
    """The options that do not hold because the front matter says another thing.

    Also a framework that only the title names: there the option holds. With a release behind it the
    title is nearer than any option, as each heading is.
    """
    for name in ("framework", "release", "container"):
        stated, option = getattr(settings, name), getattr(given, name)
        same = stated and option and versions.plain(stated) == versions.plain(option)
        if stated and option and not same:
            message = f"the front matter says {name} {stated}, --{name} {option}; the page holds"
            yield Diagnostic(where, message, line=1, remedy=_REMEDY)
    title = next((piece for piece in page.pieces if isinstance(piece, Heading)), None)
    named = framework_in(title.text) if title and not settings.framework else None
    released = title and releases.of_heading(title.text, named).whose.framework
    if title and named and not released and given.framework not in (None, named):
        message = f"the title says {named}, --framework {given.framework}; the option holds"
        yield Diagnostic(where, message, line=title.line, remedy=_REMEDY)
