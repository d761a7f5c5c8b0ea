"""Tells the pages that perfdb makes from those that people write."""

import re
from typing import Final

_MARKS: Final = re.compile(
    r"^# Made by (?:perfdb\.site from the store|`perfdb publish`); what is changed here is lost\.$"
    r"|<table class=\"perf\"",
    re.MULTILINE,
)
"""What the pages of `perfdb.site` and of `perfdb publish` have in their head, and what every table
of results has that a site of perfdb shows."""


def by_perfdb(text: str) -> bool:
    """Whether the figures of a page were printed by perfdb, so that a store holds them already."""
    return _MARKS.search(text) is not None
