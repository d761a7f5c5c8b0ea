"""What a page's own front matter says to perfdb: the mapping `perfdb:` in its YAML."""

import re
from dataclasses import dataclass, field, replace

from pydantic import BaseModel, ConfigDict

from perfdb import yamlfile
from perfdb.errors import Problem
from perfdb.record import Frozen

_REMEDY = 'write a text, in quotes where it looks like a number: "25.10"'


class Settings(Frozen):
    """The mapping `perfdb:`. None: the page does not say."""

    framework: str | None = None
    release: str | None = None
    container: str | None = None


class _Front(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    perfdb: Settings | None = None


@dataclass(frozen=True)
class Front:
    """The settings, what is wrong with them, and what is wrong beside them."""

    settings: Settings = field(default_factory=Settings)
    problems: tuple[Problem, ...] = ()
    notes: tuple[Problem, ...] = ()


def read(where: str, front: str | None) -> Front:
    """The settings in the text of a front matter, which starts on line 2 of its page."""
    if not front or not front.strip():
        return Front()
    document = yamlfile.parse(where, f"\n{front}")
    ours = re.search(r"^perfdb\s*:", front, re.MULTILINE)
    if isinstance(document, yamlfile.Unreadable):
        found = document.problems
        return Front(problems=found) if ours else Front(notes=found)
    if not ours:
        return Front()
    checked = yamlfile.validate(document, _Front)
    if isinstance(checked, list):
        return Front(problems=tuple(replace(p, remedy=p.remedy or _REMEDY) for p in checked))
    return Front(checked.perfdb or Settings())
