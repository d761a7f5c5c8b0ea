"""What a page's own front matter says to perfdb: the mapping `perfdb:` in its YAML."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from perfdb import aggregation, flops, yamlfile
from perfdb.catalog import names
from perfdb.errors import Diagnostic, InputError
from perfdb.record import Count, Frozen, Method, Original

_ADDRESS = re.compile(r"https?://\w[!-~]*", re.ASCII)
_REMEDY: Final = 'write a text, in quotes where it looks like a number: "25.10"'
_REMEDIES: Final[Mapping[str, str]] = {
    "source_url": "write it in full: https://example.org/performance.html",
    "published_on": "write a day, without quotes: 2025-10-02",
    "steps": "write how many steps the figures are taken over: 40",
    "window": f"known: {', '.join(one.written(name) for name, one in aggregation.RULES.items())}",
    "flops_convention": f"known: {', '.join(flops.CONVENTIONS)}",
}
"""What to do about a field that is not simply a text."""


class Settings(Frozen):
    """The mapping `perfdb:`. None: the page does not say."""

    framework: str | None = None
    release: str | None = None
    container: str | None = None
    source_url: str | None = None
    published_on: Annotated[date, Field(strict=True)] | None = None
    window: str | None = None
    steps: Annotated[Count, Field(strict=True)] | None = None
    flops_convention: str | None = None

    @property
    def original(self) -> Original:
        """Where the original of the page is, and when it was published."""
        return Original(source_url=self.source_url, published_on=self.published_on)

    @property
    def method(self) -> Method:
        """How the figures of all its rows were measured."""
        return Method(
            num_steps=self.steps, window=self.window, flops_convention=self.flops_convention
        )

    @field_validator("framework")
    @classmethod
    def _known_framework(cls, given: str | None) -> str | None:
        return given and (names.framework(given) or given)

    @field_validator("source_url")
    @classmethod
    def _address(cls, given: str | None) -> str | None:
        if given is not None and not _ADDRESS.fullmatch(given):
            raise ValueError("not the address of a page")
        return given

    @field_validator("window")
    @classmethod
    def _known_window(cls, given: str | None) -> str | None:
        try:
            return None if given is None else aggregation.named(given).name
        except InputError as error:
            raise ValueError("no such window") from error

    @field_validator("steps")
    @classmethod
    def _held(cls, given: int | None, said: ValidationInfo) -> int | None:
        window = said.data.get("window")
        if given and window and not aggregation.named(window).may_hold(given):
            raise ValueError(f"{window} never holds so many steps")
        return given

    @field_validator("flops_convention")
    @classmethod
    def _known_convention(cls, given: str | None) -> str | None:
        if given is not None and given not in flops.CONVENTIONS:
            raise ValueError("no such FLOPs convention")
        return given


class _Front(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    perfdb: Settings | None = None


@dataclass(frozen=True)
class Front:
    """The settings, what is wrong with them, and what is wrong beside them."""

    settings: Settings = field(default_factory=Settings)
    problems: tuple[Diagnostic, ...] = ()
    notes: tuple[Diagnostic, ...] = ()


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
        return Front(problems=tuple(replace(p, remedy=p.remedy or _remedy(p)) for p in checked))
    return Front(checked.perfdb or Settings())


def _remedy(problem: Diagnostic) -> str:
    return _REMEDIES.get((problem.field or "").removeprefix("perfdb."), _REMEDY)
