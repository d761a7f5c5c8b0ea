"""What the cells of columns that are not known say of their row: `LoRA`, `FP8-CS`, `GB200`."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping

from perfdb.pages import beside, dotted, releases
from perfdb.pages.columns import OF_SYSTEM, Column

_PARTS = (
    r"weights?|\w*grads?|gradients?|optimi[sz]ers?|master|states?|accum\w*|all-?(?:reduce|gather)s?"
    r"|reduce-?scatters?|reductions?|comms?|communications?|dispatch|kv|caches?|\w*attention|attn"
    r"|activations?(?! (?:re|check|off))|embeddings?|routers?|mlps?|(?<!of[- ])experts|checkpoints?"
    r"|moments|momentum|layers?|heads?|scales|(?<!at )scale is|scal(?:e|ing) factors?"
    r"|rope|rotary|logits?|softmax|loss(?:es)?|\w*norms?|residuals?|buffers?|forward|backward"
)
_OF_A_PART = re.compile(
    rf"\b(?:{_PARTS}|grad\w*|param\w*|reduce|comm\w*|moment|backends?|cores?|compar\w+|versus|vs"
    r"|against|baseline|reference|relative|speed-?ups?|over|from|since|previous|next|also)\b",
    re.IGNORECASE,
)
"""What is in the title of a column whose cells are of a part of the work, or of other rows."""
_SAID_OF_A_PART = re.compile(
    rf"\b(?:{_PARTS}|(?<![0-9][BMT] )(?<!illion )param(?:eter)?s)\b", re.IGNORECASE
)
"""What is in a sentence that is of a part; no `from`, nor the `8B parameters` of a model."""
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


def is_said_of_a_part(sentence: str) -> bool:
    """Whether a sentence is of a part of the work: `Gradients are reduced in FP32.`"""
    return _SAID_OF_A_PART.search(sentence) is not None


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
