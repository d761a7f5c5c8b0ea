"""What headings, labels of tabs and lines such as `System: DGX-H100` state of the tables below."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from perfdb import catalog
from perfdb.catalog import names
from perfdb.catalog.names import Refusal
from perfdb.pages.base import Line, without_marks

CALENDAR: Final = r"[0-9]{2}\.(?:0[1-9]|1[0-2])(?:\.\w+)*(?:-?(?:rc|alpha|beta|dev)[\w.]*)?"
"""A release of NeMo: `25.04`, `24.12-rc0`."""
_DOTTED: Final = r"[0-9]+\.[0-9][\w.]*(?:-?(?:rc|alpha|beta|dev)[\w.]*)?"
_IN_NEMO_CONTAINERS: Final = frozenset(
    {"dfm", "automodel", "megatron-bridge", "megatron-core", "nemo"}
)
"""Frameworks of which a NeMo container holds the release of its own version."""
_CONTAINER = re.compile(
    rf"\b({CALENDAR})\s+NeMo\s+Container|\bNeMo\s+({CALENDAR})\s+Container", re.IGNORECASE
)
_IN_CONTAINER = re.compile(rf"(?:\bnemo[\s:-]*|\A)({CALENDAR})", re.IGNORECASE)
_VERSION = re.compile(
    rf"\(?(?:(?:version|release)\s*:?\s*)?v?({_DOTTED})\)?(?:\s+release)?", re.IGNORECASE
)
_CELL = re.compile(r"v?([0-9][\w.+-]*|main|master|nightly|dev)", re.IGNORECASE)
_DATED = re.compile(r"(?<![\w.-])2[0-9]\.(?:0[1-9]|1[0-2])(?![\w%]|\.[0-9])")
"""What may be a release of NeMo among other words."""
_BRACKETS = re.compile(r"\([^()]*\)")

_KEYS: Final = "System|Hardware|GPU|Precision|Container|Model|Task|Release|Framework"
_PAIR = re.compile(rf"({_KEYS})\s*:\s*(.+)", re.IGNORECASE)
_NEXT_PAIR = re.compile(rf"\s*[,;|]\s*(?=(?:{_KEYS})\s*:)", re.IGNORECASE)
_SYSTEM = re.compile(r"\b[DH]GX[- ]?[A-Z]{1,2}[0-9]+(?:\s+NVL[0-9]+)?\b", re.IGNORECASE)
_PRECISION = re.compile(
    r"\b(?:with|at|in|using)\s+(?:the\s+)?((?:\S+\s+){0,2}?\S+)\s+precision\b", re.IGNORECASE
)
"""One plain sentence: `with the FP8 precision`, of the NeMo 25.04 performance summary."""
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9.-]*(?: ?\([A-Za-z0-9-]+\))?")
_NOT_MEASURED = re.compile(
    r"\b(?:projected|projections?|simulat(?:ed|ions?)|estimated?|theoretical|targets?)\b",
    re.IGNORECASE,
)
_REMEDY: Final = "write its version: 26.02"


@dataclass(frozen=True)
class PageStatement:
    """What holds for rows. None: nothing is stated. `refusal`: why the rows cannot be read."""

    framework: str | None = None
    release: str | None = None
    container: str | None = None
    system: str | None = None
    precision: str | None = None
    model: str | None = None
    task: str | None = None
    variant: str | None = None
    refusal: str | None = None
    task_refusal: str | None = None

    def then(self, nearer: "PageStatement") -> "PageStatement":
        """Both; what is nearer to the rows holds.

        Nothing that was stated of another framework or release goes on.
        """
        stated = {name: value for name, value in vars(nearer).items() if value}
        if self.framework and nearer.framework not in (None, self.framework):
            stated = {"release": None, "container": None} | stated
        if nearer.release and nearer.release != self.release:
            stated = {"container": None} | stated
        if nearer.task or nearer.task_refusal:
            stated = {"task": None, "task_refusal": None} | stated
        return replace(self, **stated)

    def with_container(self) -> "PageStatement":
        """With the release that the container's name holds, where none is stated."""
        inside = None if self.release else _release_in(self.container, self.framework)
        return replace(self, release=inside) if inside else self


@lru_cache(maxsize=4096)
def of_line(line: Line, own: str | None) -> PageStatement:
    """What a heading, a label or a line of text states; `own` is the framework of the page."""
    words = without_marks(line.text)
    pairs = [_PAIR.fullmatch(part) for part in _NEXT_PAIR.split(words)]
    if all(pairs):
        is_glossary = line.listed and not re.search("[0-9]", words)
        stated = {one[1].casefold(): one[2] for one in pairs if one}
        return PageStatement() if is_glossary else _of_pairs(stated, own)
    if line.is_title:
        return of_title(words, own)
    found = {name for one in _PRECISION.findall(words) if (name := catalog.precision_of(one))}
    is_clear = len(found) == 1 and not line.listed
    return PageStatement(precision=found.pop()) if is_clear else PageStatement()


def of_title(words: str, own: str | None) -> PageStatement:
    """What a heading states in its words."""
    precision = _only_precision(words)
    bare = words.replace(precision, " ") if precision else words
    model = re.sub(r"\s+on$", "", _SYSTEM.sub(" ", bare).strip(" ,;|–—"))
    # DFM trains with more than one backend, and publishes them on one page.
    backends = names.frameworks_in(words, ("automodel", "megatron-core")) if own == "dfm" else ()
    other = _NOT_MEASURED.search(words)
    stated = PageStatement(
        system=_system(bare),
        precision=precision,
        model=model if catalog.named_model(model) else None,
        variant=next(iter(backends), None),
        refusal=other and f"the heading is of {other[0]!r} figures, not of measured ones",
    )
    return stated.then(of_task(words)).then(_of_release(words, own))


def _of_pairs(pairs: Mapping[str, str], own: str | None) -> PageStatement:
    printed = pairs.get("release", "")
    version = _CELL.fullmatch(printed)
    release = version[1] if version else _of_release(printed, own).release
    stated = PageStatement(
        framework=_framework(pairs.get("framework", "")),
        release=release,
        container=pairs.get("container"),
        system=pairs.get("system") or pairs.get("hardware") or pairs.get("gpu"),
        precision=pairs.get("precision"),
        model=pairs.get("model"),
        refusal=f"{printed!r} is no release; {_REMEDY}" if printed and not release else None,
    )
    return stated.then(of_task(pairs["task"])) if "task" in pairs else stated


def _framework(printed: str) -> str | None:
    return names.framework(printed) or printed.casefold() or None


def _system(words: str) -> str | None:
    """The system that is named, in its own words; None where none or several are."""
    if catalog.named_system(words):
        return words
    found = {catalog.named_system(one) or one: one for one in _SYSTEM.findall(words)}
    return next(iter(found.values())) if len(found) == 1 else None


def _only_precision(words: str) -> str | None:
    """The word for a precision, or for a pair of them, where words name just one."""
    found = {}
    for word in _WORD.findall(words):
        bare = _BRACKETS.sub("", word).strip()
        known = next((one for one in (word, bare) if isinstance(names.precision(one), str)), None)
        if known and not known.casefold().startswith("half"):
            found[names.precision(known)] = known
    return next(iter(found.values())) if len(found) == 1 else None


def of_task(words: str) -> PageStatement:
    """The task that words name, or why they leave it open."""
    tasks, other = names.tasks(words), names.other_task(words)
    if other and "lora" not in tasks:
        return PageStatement(task_refusal=f"the heading names {other!r}, which is no task")
    if len(tasks) > 1:
        return PageStatement(task_refusal=f"the heading {words!r} names several tasks")
    return PageStatement(task=tasks[0]) if tasks else PageStatement()


def _of_release(words: str, own: str | None) -> PageStatement:
    """The framework, release and container that a heading names."""
    if found := _CONTAINER.search(words):
        container = f"NeMo {found[1] or found[2]}"
        return PageStatement(release=_release_in(container, own), container=container)
    versions = _versions(words)
    if len(versions) == 1:
        return versions[0]
    parts = re.split(r"\s*[,;|–—]\s*", words)
    alone = next(filter(None, map(_VERSION.fullmatch, parts)), None)
    if alone and (own != "nemo" or re.fullmatch(CALENDAR, alone[1])):
        return PageStatement(release=alone[1])
    if versions or _DATED.search(_BRACKETS.sub("", words)):
        return PageStatement(
            refusal=f"the heading {words!r} leaves open which release its rows are of"
        )
    return PageStatement()


def _versions(words: str) -> list[PageStatement]:
    """Each framework with a version behind its name."""
    found: dict[str, PageStatement] = {}
    for name, pattern in names.FRAMEWORKS.items():
        version = CALENDAR if name == "nemo" else _DOTTED
        for one in re.finditer(rf"(?<![\w-]){pattern}\s+v?({version})(?![\w%])", words, re.I):
            found.setdefault(one[1], PageStatement(framework=name, release=one[1]))
    return list(found.values())


def _release_in(container: str | None, framework: str | None) -> str | None:
    """The release that a container's name holds: `nemo:25.04` has 25.04 of what is in it."""
    found = _IN_CONTAINER.search(container or "")
    return found[1] if found and framework in _IN_NEMO_CONTAINERS else None


def of_cells(texts: Mapping[str, str]) -> PageStatement | Refusal:
    """What the cells of a row state of its framework, release and container."""
    release, framework = texts.get("release", ""), texts.get("framework", "")
    if not (release or framework):
        return PageStatement(container=texts.get("container") or None)
    version = _CELL.fullmatch(release)
    named = _versions(framework) or _versions(release)
    if release and not version and not named:
        return Refusal(f"{release!r} is no release", _REMEDY)
    stated = named[0] if named else PageStatement(framework=_framework(framework))
    own = version[1] if version else stated.release
    return replace(stated, release=own, container=texts.get("container") or None)
