"""What of a result's configuration is not that of another: why the same work may be faster."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from perfdb import units
from perfdb.site.cells import formatted, known
from perfdb.site.columns import (
    CP,
    EP,
    ETP,
    FSDP,
    GA,
    LBS,
    MBS,
    PP,
    SP,
    TP,
    VP,
    ShownColumn,
    ours,
)
from perfdb.site.data import SiteResult

MOST_OPTIONS: Final = 4
"""Options of a framework that are named with their values; the others are counted."""

_LAYOUT: Final = ours(MBS, LBS, TP, SP, PP, CP, VP, EP, ETP, FSDP)
_NAMED: Final = (*_LAYOUT, *ours(GA))
_OTHERS: Final = ("kernels", "container")
"""What is too long to be printed twice."""


def differences(its: SiteResult, that: SiteResult) -> Iterator[str]:
    """'TP 2 against 1', 'other kernels', 'recompute full against none': – where none is stated."""
    yield from of_columns(_LAYOUT, its, that)
    for field in _OTHERS:
        if getattr(its, field) != getattr(that, field):
            yield f"other {field}"
    options = list(_options(its.options, that.options))
    for name in options[:MOST_OPTIONS]:
        mine, other = (units.text(it.options.get(name)) for it in (its, that))
        yield f"{name} {mine} against {other}"
    if more := len(options[MOST_OPTIONS:]):
        yield units.counted(more, "other option")


def of_columns(columns: Iterable[ShownColumn], its: SiteResult, that: SiteResult) -> Iterator[str]:
    """'TP 2 against 1': the columns in which two results are printed otherwise."""
    for column in columns:
        mine, other = (formatted(column, known(column, it)) for it in (its, that))
        if mine != other:
            yield f"{column.title} {mine} against {other}"


def note(its: SiteResult, that: SiteResult, named: Callable[[SiteResult], str]) -> Iterator[str]:
    """The differences in a sentence; nothing where there are none."""
    if different := ", ".join(differences(its, that)):
        yield f"{named(its)} is configured differently from {named(that)}: {different}."


def names(results: Iterable[SiteResult], that: SiteResult) -> list[str]:
    """What any of some results has otherwise: 'TP', 'kernels', 'recompute'."""
    found: dict[str, None] = {}
    for it in results:
        differing = [one for one in _NAMED if known(one, it) != known(one, that)]
        found |= dict.fromkeys(column.title for column in differing)
        found |= dict.fromkeys(one for one in _OTHERS if getattr(it, one) != getattr(that, one))
        found |= dict.fromkeys(_options(it.options, that.options))
    return list(found)


def _options(its: Mapping[str, object], that: Mapping[str, object]) -> Iterator[str]:
    return (name for name in sorted({*its, *that}) if its.get(name) != that.get(name))
