"""What holds for a table: framework, release, task, system, model, precision, variant.

It is said by the command line, the front matter, the title, headings, the labels of tabs and lines
such as `System: DGX-H100, Precision: BF16`. Where two say it, the nearest to the table holds, and
the command line over all.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Final

from perfdb import catalog
from perfdb.pages import names
from perfdb.pages.base import Grid, Heading, Line, Page, PageContext
from perfdb.pages.cells import Wrong
from perfdb.pages.front import Settings
from perfdb.pages.outline import Said
from perfdb.record import Release, Task

_FRAMEWORKS: Final = (
    # DFM's and Megatron-Bridge's pages name the NeMo Framework too, as what they are part of.
    ("dfm", re.compile(r"\bDFM\b")),
    ("automodel", re.compile(r"\bAuto-?Model\b", re.IGNORECASE)),
    ("megatron-bridge", re.compile(r"\bMegatron[- ]Bridge\b", re.IGNORECASE)),
    ("nemo", re.compile(r"\bNeMo\b", re.IGNORECASE)),
)
_BACKENDS: Final = (
    ("automodel", re.compile(r"\bAuto-?Model\b", re.IGNORECASE)),
    ("megatron-core", re.compile(r"\bMegatron[- ]Core\b", re.IGNORECASE)),
)
_WITH_BACKENDS: Final = frozenset({"dfm"})
"""Frameworks that train with more than one backend, and publish them on one page."""

_KEYS: Final = "System|Precision|Container|Model|Task|Release"
_STATEMENT = re.compile(rf"({_KEYS})\s*:\s*(.+)", re.IGNORECASE)
_BETWEEN = re.compile(rf"\s*[,;|]\s*(?=(?:{_KEYS})\s*:)", re.IGNORECASE)
_BARE_TASK = re.compile(
    r"(pre-?training|fine-?tuning|sft|lora)\s*(\([^()]*\))?\s*(performance)?", re.IGNORECASE
)
_AT_PRECISION = re.compile(r"\b(?:with|at|in)\s+(?:the\s+)?(\w+(?:-\w+)?)\s+precision\b", re.I)
_RELEASE_HEADING = re.compile(
    r"v?([0-9]+\.[0-9][\w.]*)\s+(?:NeMo\s+)?(Container|Release)|Release\s+v?([0-9]+\.[0-9][\w.]*)",
    re.IGNORECASE,
)
_IN_CONTAINER = re.compile(r"\bnemo[\s:-]*([0-9]{2}\.[0-9]{2}[\w.]*)", re.IGNORECASE)
_PAGE_VERSION = re.compile(
    r"^(?:NeMo )?(?:AutoModel|DFM|Framework|Megatron[- ]Bridge) Version\s*:\s*"
    r"(main|v?[0-9]+\.[0-9][\w.]*)",
    re.IGNORECASE | re.MULTILINE,
)


@dataclass(frozen=True)
class Statement:
    """What a text says, in the page's own words."""

    system: str | None = None
    precision: str | None = None
    container: str | None = None
    model: str | None = None
    task: Task | None = None
    release: str | None = None
    backend: str | None = None

    def then(self, nearer: "Statement") -> "Statement":
        """Both: where the nearer one says something, that holds."""
        said = {f.name: getattr(nearer, f.name) for f in fields(nearer)}
        return replace(self, **{name: value for name, value in said.items() if value})


@dataclass(frozen=True)
class Setting:
    """What holds for the rows of a table; `insisted` is what holds over the row itself."""

    framework: str | None
    version: str | None
    container: str | None
    variant: str | None
    said: Statement
    insisted: PageContext

    @property
    def release(self) -> Release:
        """The release of the rows, where the framework is known."""
        return Release(
            framework=self.framework or "", version=self.version, container=self.container
        )
