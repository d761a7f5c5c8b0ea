"""What is set of pages: for whom they are, and what perfdb.toml says of them.

[publish.NAME] is the order of published tables, [prices] of perfdb.toml those of a GPU-hour.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from pydantic import field_validator

from perfdb import catalog, config
from perfdb.errors import ConfigError, Diagnostic, InputError, suggestion
from perfdb.record import Frozen
from perfdb.site import columns
from perfdb.site.data import SiteData
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


PROFILES: Final = ("internal", "public")
"""For whom a site is: those who keep the store, or everybody."""


def of_profile(data: SiteData, profile: str) -> SiteData:
    """The data that a site of a profile shows, with the prices that are stated.

    The public one is without rejected rows, and without results and runs whose release nobody
    stated. Raises InputError for an unknown profile, ConfigError for a wrong price.
    """
    if profile not in PROFILES:
        remedy = suggestion(profile, PROFILES)
        raise InputError(Diagnostic("conf.py", f"there is no {profile!r}", "perfdb_profile",
                                    remedy=remedy))  # fmt: skip
    priced = replace(data, prices=prices())
    if profile == "internal":
        return priced
    changelog = tuple(one for one in data.changelog if one.release is not None)
    sources = {sha256 for one in changelog for _, sha256, _ in one.sources}
    return replace(
        priced,
        is_public=True,
        results=tuple(one for one in data.results if one.release is not None),
        current=tuple(one for one in data.current if one.release is not None),
        runs=tuple(one for one in data.runs if one.result.release is not None),
        sources=tuple(one for one in data.sources if one.sha256 in sources),
        audited=tuple(one for one in data.audited if one.result.release is not None),
        changelog=changelog,
        scaling=tuple(one for one in data.scaling if one.release is not None),
        rejections=(),
    )
