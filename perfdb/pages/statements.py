"""What headings, labels and lines of text say of the tables below them, in the page's own words."""

import re
from collections.abc import Iterable
from typing import Final

from perfdb import catalog
from perfdb.pages import names
from perfdb.pages.cells import Wrong, cleaned
from perfdb.pages.outline import Said
from perfdb.record import Frozen, Task

_KEYS: Final = "System|Precision|Container|Model|Task|Release"
_STATEMENT = re.compile(rf"({_KEYS})\s*:\s*(.+)", re.IGNORECASE)
_BETWEEN = re.compile(rf"\s*[,;|]\s*(?=(?:{_KEYS})\s*:)", re.IGNORECASE)
_BARE_TASK = re.compile(
    r"(?:(?:pre-?training|fine-?tuning|sft|lora)\s*(?:\([^()]*\))?\s*)(?:performance)?",
    re.IGNORECASE,
)
_AT_PRECISION = re.compile(r"\b(?:with|at|in)\s+(?:the\s+)?(\w+(?:-\w+)?)\s+precision\b", re.I)
_RELEASE = re.compile(
    r"v?([0-9]+\.[0-9][\w.]*)\s+(?:NeMo\s+)?(?:Container|Release)"
    r"|(?:Container|Release)\s+v?([0-9]+\.[0-9][\w.]*)",
    re.IGNORECASE,
)
_IN_CONTAINER = re.compile(r"\bnemo[\s:-]*([0-9]{2}\.[0-9]{2}[\w.]*)", re.IGNORECASE)
_BACKENDS: Final = (
    ("automodel", re.compile(r"\bAuto-?Model\b", re.IGNORECASE)),
    ("megatron-core", re.compile(r"\bMegatron[- ]Core\b", re.IGNORECASE)),
)


class Statement(Frozen):
    """What a text says. None: nothing."""

    system: str | None = None
    precision: str | None = None
    container: str | None = None
    model: str | None = None
    task: Task | None = None
    release: str | None = None
    backend: str | None = None

    def then(self, nearer: "Statement") -> "Statement":
        """Both; where the nearer one says something, that holds."""
        return self.model_copy(update=nearer.model_dump(exclude_none=True))


def in_force(said: Iterable[Said]) -> Statement:
    """All that is said, outermost first.

    A page without marked headings starts a section with a line such as `Fine-Tuning Performance`;
    the system and precision of the section before do not hold for it.
    """
    headings = together = Statement()
    for one in said:
        if one.heading:
            together = together.then(_of_heading(one.text))
            headings = together
        elif _BARE_TASK.fullmatch(one.text.rstrip(" #")):
            kept = Statement(container=together.container, release=together.release)
            together = headings.then(kept).then(Statement(task=names.task(one.text)))
        else:
            together = together.then(_of_line(one.text))
    return together


def _of_heading(text: str) -> Statement:
    words = cleaned(text)
    release = _RELEASE.fullmatch(words)
    version = (release[1] or release[2]) if release else None
    backends = (name for name, pattern in _BACKENDS if pattern.search(words))
    model, precision = names.captioned(words)
    is_model = catalog.named_model(model) is not None
    named = Statement(
        system=words if _is_system(words) else None,
        model=model if is_model else None,
        precision=precision if is_model else words if catalog.precision_of(words) else None,
        task=names.task(words),
        release=version,
        container=f"NeMo {version}" if version and "container" in words.casefold() else None,
        backend=next(backends, None),
    )
    return named.then(_of_line(words))


def _is_system(words: str) -> bool:
    return not isinstance(names.system(words), Wrong) or bool(
        re.match(r"[DH]GX[- ]\w*[0-9]", words)
    )


def _of_line(text: str) -> Statement:
    """`System: DGX-H100, Precision: BF16`, or a sentence that names the precision."""
    stated = [_STATEMENT.fullmatch(part) for part in _BETWEEN.split(cleaned(text))]
    pairs = {match[1].casefold(): match[2] for match in stated if match}
    if len(pairs) < len(stated):
        at = _AT_PRECISION.search(text)
        return Statement(precision=at[1] if at and catalog.precision_of(at[1]) else None)
    return Statement(
        system=pairs.get("system"),
        precision=pairs.get("precision"),
        container=pairs.get("container"),
        model=pairs.get("model"),
        task=names.task(pairs.get("task", "")),
        release=pairs.get("release"),
    )


def release_in(container: str | None) -> str | None:
    """The release that a container's name holds: `NeMo 25.04` is 25.04."""
    found = _IN_CONTAINER.search(container or "") or _RELEASE.fullmatch(container or "")
    return (found[1] or found[found.re.groups]) if found else None
