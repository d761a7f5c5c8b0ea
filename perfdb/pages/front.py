"""What a page's own front matter says to perfdb: the mapping `perfdb:` in its YAML."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, ValidationInfo, field_validator

from perfdb import aggregation, catalog, flops, yamlfile
from perfdb.catalog import names
from perfdb.errors import Diagnostic, InputError
from perfdb.pages.peaks import Peaks
from perfdb.record import Count, Frozen, Method, Original

_ADDRESS = re.compile(r"https?://\w[!-~]*", re.ASCII)
_REMEDY: Final = 'write a text, in quotes where it looks like a number: "25.10"'
_REMEDIES: Final[Mapping[str, str]] = {
    "source_url": "write it in full: https://example.org/performance.html",
    "published_on": "write a day, without quotes: 2025-10-02",
    "steps": "write how many steps the figures are taken over: 40",
    "window": f"known: {', '.join(one.written(name) for name, one in aggregation.RULES.items())}",
    "peak_tflops": "write TFLOP/s by system and precision: {dgx-gb200: {bf16: 2450, fp8: 4900}}",
    "flops_convention": f"known: {', '.join(flops.CONVENTIONS)}",
}
"""What to do about a field that is not simply a text."""


class PageSettings(Frozen):
    """The mapping `perfdb:`. None: the page does not say."""

    framework: str | None = None
    release: str | None = None
    container: str | None = None
    source_url: str | None = None
    published_on: Annotated[date, Field(strict=True)] | None = None
    window: str | None = None
    steps: Annotated[Count, Field(strict=True)] | None = None
    flops_convention: str | None = None
    peak_tflops: Mapping[str, Mapping[str, PositiveFloat]] = Field(default_factory=dict)
    """The dense peaks of the page's MFU in TFLOP/s, by system and precision."""

    @property
    def peaks(self) -> Peaks:
        """The dense peaks by the catalog's names."""
        every = catalog.precisions()
        return {
            (
                catalog.named_system(system) or "",
                every[catalog.precision_of(name) or ""].peak or "",
            ): tflops
            for system, peaks in self.peak_tflops.items()
            for name, tflops in peaks.items()
        }

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

    @field_validator("framework", "source_url", "window", "flops_convention")
    @classmethod
    def _known(cls, text: str | None, info: ValidationInfo) -> str | None:
        if text is None:
            return None
        match info.field_name:
            case "framework":
                return names.framework(text) or text
            case "window":
                try:
                    return aggregation.named(text).name
                except InputError as error:
                    raise ValueError("no such window") from error
            case "source_url" if not _ADDRESS.fullmatch(text):
                raise ValueError("not the address of a page")
            case "flops_convention" if text not in flops.CONVENTIONS:
                raise ValueError("no such FLOPs convention")
        return text

    @field_validator("peak_tflops")
    @classmethod
    def _of_the_catalog(
        cls, stated: Mapping[str, Mapping[str, float]]
    ) -> Mapping[str, Mapping[str, float]]:
        for system, peaks in stated.items():
            if not catalog.named_system(system):
                raise ValueError(f"no system {system!r} in the catalogue")
            for name in peaks:
                if not catalog.precision_of(name):
                    raise ValueError(f"no precision {name!r} in the catalogue")
        return stated

    @field_validator("steps")
    @classmethod
    def _held(cls, steps: int | None, info: ValidationInfo) -> int | None:
        window = info.data.get("window")
        if steps and window and not aggregation.named(window).may_hold(steps):
            raise ValueError(f"{window} never holds so many steps")
        return steps


class _Front(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    perfdb: PageSettings | None = None


@dataclass(frozen=True)
class Front:
    """The settings, what is wrong with them, and what is wrong next to them."""

    settings: PageSettings = field(default_factory=PageSettings)
    problems: tuple[Diagnostic, ...] = ()
    notes: tuple[Diagnostic, ...] = ()


def read(where: str, front: str | None) -> Front:
    """The settings in the text of a front matter, which starts on line 2 of its page."""
    if not front or not front.strip():
        return Front()
    document = yamlfile.parse(where, f"\n{front}")
    ours = re.search(r"^perfdb\s*:", front, re.MULTILINE)
    if isinstance(document, yamlfile.Unreadable):
        return Front(problems=document.problems) if ours else Front(notes=document.problems)
    if not ours:
        return Front()
    checked = yamlfile.validate(document, _Front)
    if isinstance(checked, list):
        return Front(problems=tuple(replace(p, remedy=p.remedy or _remedy(p)) for p in checked))
    return Front(checked.perfdb or PageSettings())


def _remedy(problem: Diagnostic) -> str:
    return _REMEDIES.get((problem.field or "").removeprefix("perfdb."), _REMEDY)
