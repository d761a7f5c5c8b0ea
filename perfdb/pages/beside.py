"""What stands beside a model's name: the precision, task and system of `Llama3 8B (FP8, LoRA)`."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from perfdb import catalog
from perfdb.pages import names
from perfdb.pages.cells import Wrong

_BRACKETS = re.compile(r"\s*[(\[]([^()\[\]]*)[)\]]")
_PARTS = re.compile(r"\s*(?:[,;+]|(?<!\bw)/)\s*|\s+(?:and|&)\s+")
_LAST = tuple(
    re.compile(rf"(.*[^\s,;:–—-])(?:[\s,;:]|\s[–—-]\s)+({words})")
    for words in (rf"[^\s,;]+(?: [^\s,;]+){{{more}}}" for more in range(4))
)
"""What ends a name: one word, or some as in `Llama3 8B FP8 with current scaling`."""
_ON = re.compile(r"\s+(?:on|in|at|with|w/|and|&)$", re.IGNORECASE)
_WITH = re.compile(r"\bw/(?!o\b)\s*|\bwith\s+", re.IGNORECASE)
_CLOSE = re.compile(r"\bw/(?=\w{2})", re.IGNORECASE)
_MORE = r"\s[^()\[\],;]+?(?=\s+(?:on|in|w/o?|with)\s|\s*[,;(\[]|\s*\Z)(?![^()\[\]]*[)\]])"
"""What follows such a word outside brackets, up to another one."""
_DENIED = re.compile(rf"\s+((?:w/o|without|no){_MORE})", re.IGNORECASE)
_ADDED = re.compile(rf"\s+(?:w/|with)({_MORE})", re.IGNORECASE)
"""What is no part of a name: `w/ MTP`."""
_JOINED = (re.compile(r"(.+)[-_](\w+-\w{2})"), re.compile(r"(.+)[-_](\w+)"))
"""A word that a hyphen joins to a name: `LLAMA3-8B-FP8-CS`."""
_TASK = re.compile(r"lora|sft|(?:full\s+)?fine-?tun(?:e|ed|ing)|pre-?train(?:ing)?", re.IGNORECASE)
_GPU = re.compile(r"(?:[ABHV]|G[BH]|MI)\d{3}X?|H20|L40S?", re.IGNORECASE)
_LONGEST = 200
"""Characters of a cell that may hold more than a name."""


@dataclass(frozen=True)
class Model:
    """A model's name, and the words beside it by the field that they say something of."""

    name: str
    said: Mapping[str, str]


@lru_cache(maxsize=1024)
def read(printed: str) -> Model | Wrong:
    """A model's name without the words that say what it was trained on, and how.

    A name that the catalogue has is one, whatever words are in it.
    """
    if len(printed) > _LONGEST or catalog.named_model(printed):
        return Model(printed, {})
    spaced = _CLOSE.sub("w/ ", printed)
    name, words = _without_brackets(_DENIED.sub("", spaced))
    while not catalog.named_model(name) and (found := _last(name)):
        name, word = found
        words.append(word)
    said: dict[str, str] = {}
    for word in words:
        field = field_of(word) or ""
        if said.setdefault(field, word).casefold() != word.casefold():
            return Wrong(f"{printed!r} says both {said[field]!r} and {word!r}", "give each a row")
    others = "".join(f" ({one})" for one in _DENIED.findall(spaced))
    return Model(_with_added(name) + others, said)


def _with_added(name: str) -> str:
    """A name that ends with `w/ MTP`: the catalogue's, or with that in brackets."""
    full = _ADDED.sub(r" with\1", name)
    return full if catalog.named_model(full) else _ADDED.sub(r" (w/\1)", name)


def _without_brackets(printed: str) -> tuple[str, list[str]]:
    """A name without the words in its brackets that are known; others stay there."""
    words: list[str] = []

    def left(found: re.Match[str]) -> str:
        parts = _PARTS.split(_WITH.sub("", found[1].strip()))
        words.extend(part for part in parts if field_of(part))
        if not any(map(field_of, parts)):
            return found[0]
        others = ", ".join(part for part in parts if not field_of(part))
        return f" ({others})" if others else ""

    return _BRACKETS.sub(left, printed).strip(), words


def _last(name: str) -> tuple[str, str] | None:
    """A name without its last word, and that word, where it is known."""
    for found in _splits(name):
        if field_of(found[1]):
            return found
    return None


def _splits(name: str) -> Iterator[tuple[str, str]]:
    for found in filter(None, (last.fullmatch(name) for last in _LAST)):
        yield _ON.sub("", found[1]), found[2]
    for found in filter(None, (joined.fullmatch(name) for joined in _JOINED)):
        inner = read(found[1])
        if isinstance(inner, Model) and catalog.named_model(inner.name):
            yield found[1], found[2]


def is_task(word: str) -> bool:
    """Whether a word is the name of a task, or of what is none, and nothing more."""
    return bool(_TASK.fullmatch(word)) or names.no_task(word) == word


def field_of(word: str) -> str | None:
    """What a word says something of; None where it is not known."""
    if catalog.precision_of(word) and re.search("[0-9]", word):
        return "precision"
    if is_task(word):
        return "task"
    return "beside_model" if catalog.named_system(word) or _GPU.fullmatch(word) else None
