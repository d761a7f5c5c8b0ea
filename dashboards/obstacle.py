"""Why the store cannot be shown, and the commands that help."""

from typing import NamedTuple

from sqlalchemy import URL

from dashboards import data
from perfdb.audit.review import accepted
from perfdb.db.session import HEAD, current, is_missing, option, reading, store_url
from perfdb.errors import InputError, StoreError


class Obstacle(NamedTuple):
    """Why there is nothing to show, and the commands that change it."""

    sentence: str
    commands: str


OTHER = "perfdb dashboard --db sqlite:///FILE"
"""The command that shows another store, if this one cannot be read."""


def obstacle() -> Obstacle | None:
    """What keeps the store from being shown; None if nothing does."""
    try:
        url = store_url()
    except InputError as error:
        return Obstacle(str(error), OTHER)
    filling = f"perfdb run recipes/\n{storing(url)}"
    try:
        store = data.store()
        accepted(None)
    except StoreError as error:
        return Obstacle(str(error), _remedy(url, filling))
    except InputError as error:
        return Obstacle(str(error), f"perfdb audit {_named(url)}")
    is_empty = not data.releases(store) and data.runs(store).empty
    return Obstacle("The store is empty.", filling) if is_empty else None


def _remedy(url: URL, filling: str) -> str:
    """The commands to create the store, to upgrade its schema, or to show another one."""
    try:
        if is_missing(url):
            return filling
        with reading(url) as connection:
            version = current(connection)
    except StoreError:
        return OTHER
    return OTHER if version and version > HEAD else f"perfdb db upgrade {_named(url)}"


def storing(url: URL) -> str:
    """The command that stores runs in the store of this address."""
    return f"perfdb ingest runs/ {_named(url)}"


def _named(url: URL) -> str:
    return option(url.render_as_string())
