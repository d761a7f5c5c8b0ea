"""Every kind of page that is made from the store: the one table of them."""

from collections.abc import Mapping

from perfdb.site import (
    audits,
    changelog,
    changes,
    evidence,
    models,
    overview,
    recipes,
    releases,
    scaling,
    systems,
    withdrawn,
)
from perfdb.site.contents import Contents
from perfdb.site.page import Page, Part

KINDS = (
    overview.KIND,
    releases.KIND,
    models.KIND,
    systems.KIND,
    scaling.KIND,
    changes.KIND,
    recipes.KIND,
    evidence.KIND,
    audits.KIND,
    changelog.KIND,
    withdrawn.KIND,
)

PARTS: Mapping[str, Part] = {name: made for kind in KINDS for name, made in kind.parts.items()}
"""Every part of a page by the name that directives call it."""


def all_pages(contents: Contents) -> list[Page]:
    """Every page of the site that is made from the store."""
    return [page for kind in KINDS for page in kind.pages(contents)]
