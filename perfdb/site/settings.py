"""What perfdb.toml says of pages: [publish.NAME], the order of tables; [prices], of a GPU-hour."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from pydantic import field_validator

from perfdb import catalog, config
from perfdb.errors import ConfigError, Diagnostic, suggestion
from perfdb.record import Frozen
from perfdb.site import columns
from perfdb.yamlfile import Document, validate


class PublishProfile(Frozen):
    """The order of the systems and columns of a team's tables; others follow as they come."""

    systems: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()

    @field_validator("systems")
    @classmethod
    def _are_systems(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        return _known(names, catalog.systems())

    @field_validator("columns")
    @classmethod
    def _are_columns(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        return _known(names, columns.ORDERED)


UNCHANGED: Final = PublishProfile()
"""The profile that changes no order."""


def _known(names: tuple[str, ...], known: Iterable[str]) -> tuple[str, ...]:
    for name in names:
        if name not in known:
            raise ValueError(f"there is no {name!r}; {suggestion(name, known)}")
    return names


def profile(name: str | None) -> PublishProfile:
    """The profile [publish.NAME] of perfdb.toml; without a name that which changes no order.

    Raises ConfigError.
    """
    if name is None:
        return UNCHANGED
    found = {str(_content(it)["name"]): it for it in config.entries("publish")}
    if name not in found:
        remedy = f"write [publish.{name}]; there are: {', '.join(found) or 'none'}"
        message = f"no profile {name!r} in {config.path() or config.FILE}"
        raise ConfigError(Diagnostic("--profile", message, remedy=remedy))
    content = {key: value for key, value in _content(found[name]).items() if key != "name"}
    read = validate(replace(found[name], content=content), PublishProfile)
    if isinstance(read, PublishProfile):
        return read
    raise ConfigError(read)


def _content(document: Document) -> Mapping[str, object]:
    assert isinstance(document.content, Mapping), "entries are tables"
    return document.content


def place_in(names: Sequence[object], name: object) -> int:
    """The place of a name among those that are put first; behind them all for any other."""
    return names.index(name) if name in names else len(names)


def prices() -> dict[str, float]:
    """US dollars per GPU-hour by system, as [prices] of perfdb.toml states them.

    Raises ConfigError.
    """
    document = config.table("prices")
    found: dict[str, float] = {}
    problems = []
    for name, price in (_content(document) if document else {}).items():
        assert document is not None, "no table has no prices"
        if name not in catalog.systems():
            remedy = suggestion(name, catalog.systems())
            problems.append(document.problem((name,), "there is no such system", remedy))
        elif isinstance(price, bool) or not isinstance(price, int | float) or not 0 < price < 1e6:
            message = f"{price!r} is no price"
            problems.append(document.problem((name,), message, "write US dollars per GPU-hour"))
        else:
            found[name] = float(price)
    if problems:
        raise ConfigError(problems)
    return found
