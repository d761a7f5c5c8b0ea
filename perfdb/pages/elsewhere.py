"""What the cells of columns that are not known say of their row: `LoRA`, `FP8-CS`, `GB200`."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping

from perfdb.pages import beside, dotted, releases
from perfdb.pages.columns import OF_SYSTEM, Column

_OF_A_PART = re.compile(
    r"\b(?:weights?|grad\w*|optimi[sz]er|param\w*|master|states?|accum\w*|reduce|all-?reduce|comm\w*"
    r"|kv|caches?|attention|attn|activations?|embeddings?|router|checkpoints?|moments?|layers?|head"
    r"|backends?|cores?|compar\w+|versus|vs|against|baseline|reference|relative|speed-?ups?|over"
    r"|from|since|previous|next|also)\b",
    re.IGNORECASE,
)
"""What is in the title of a column whose cells are of a part of the work, or of other rows."""
_FRAMEWORK = re.compile(
    rf"(?:{'|'.join(releases.SPELLINGS.values())})(?:\s+v?{dotted.DOTTED})?", re.IGNORECASE
)
_OF_RELEASE = re.compile(r"\b(?:version|release|software|(container|image))\b", re.IGNORECASE)
"""What is in the title of a column of releases, or of containers."""
_IMAGE = re.compile(r"\S*\bnemo:\S+", re.IGNORECASE)


def said(
    printed: Iterable[tuple[Column, str]], own: Mapping[str, str], framework: str | None
) -> dict[str, str]:
    """The texts of a row by field, also of cells that are, as a whole, a task, a GPU and such.

    What the columns that are known say, `own`, holds against these; `framework` is the page's.
    """
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for column, text in printed:
        if not column.known and (field := _field(column.title, text, framework)):
            found[field][text] = None
    if not own.keys().isdisjoint(OF_SYSTEM):
        found.pop("beside_model", None)
    return {field: ", ".join(texts) for field, texts in found.items()} | dict(own)


def of_a_part(words: str) -> bool:
    """Whether words are of a part of the work, or of other rows: `Master weights`."""
    return _OF_A_PART.search(words) is not None


def _field(title: str, text: str, framework: str | None) -> str | None:
    if beside.is_task(text):
        return "task"
    if of_a_part(title):
        return None
    if field := beside.field_of(text) or _of_release(title, text, framework):
        return field
    return "framework" if _FRAMEWORK.fullmatch(text) else None


def _of_release(title: str, text: str, framework: str | None) -> str | None:
    """Whether a cell is a release, or a container: `25.07` under `NeMo version` or `Image`."""
    if _IMAGE.fullmatch(text):
        return "container"
    found = _OF_RELEASE.search(title)
    if not found or _FRAMEWORK.fullmatch(text):
        return None
    if found[1]:
        return "container" if releases.dated(f"{title} {text}") else None
    named = [name for name in releases.SPELLINGS if releases.names_framework(name, title)]
    if named:
        return "release" if framework in named and re.search("[0-9]", text) else None
    return "release" if releases.dated(f"{title} {text}") else None
