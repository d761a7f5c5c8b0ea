"""The columns of a table: which field each one is, and how the text of its cells is read."""

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from perfdb import fields
from perfdb.catalog import precision_of
from perfdb.catalog.names import Refusal
from perfdb.pages.base import without_marks
from perfdb.record import PartialCase
from perfdb.text import absent, parsed, seconds, share, ungrouped

MILLISECONDS: Final = (
    "Step Time (ms)", "Time per Global Step (ms)", "Time per Step (ms)", "Iteration Time (ms)",
    "Time per Iteration (ms)",
    "Elapsed Time per Iteration (ms)", "Training step time (milliseconds per step)",
)  # fmt: skip
"""Titles of a step time in milliseconds."""

EXTRAS: Final = (
    "Est. time to train in days (10T tokens, 1K GPUs)",
    "Est. time to finetune in mins (10M tokens)",
    "Time to train 1T tokens in days",
    "Layers",
    "Size",
)
"""Columns that are understood but have no field: they follow from others, or add nothing."""

FEWEST: Final = 3
"""Fields that a table of results has at the least; a glossary of the figures has fewer."""

LARGEST: Final = 2**31 - 1
"""No size on a page is larger; the store's integer columns end here."""

_REQUIRED: Final = ("num_gpus", "global_batch_size", "sequence_length")
"""What a row cannot do without: it identifies the work."""
_POSITIVE: Final = (*_REQUIRED, "micro_batch_size", "local_batch_size", "gradient_accumulation")
SIZES: Final = (
    *_POSITIVE, "tensor_parallel", "pipeline_parallel", "context_parallel", "expert_parallel",
    "expert_tensor_parallel", "virtual_pipeline", "data_parallel",
)  # fmt: skip
"""The fields that are whole numbers."""
GIVEN: Final = (*SIZES, "sequence_parallel", "variant")
"""The fields that --set fills in, next to what a heading may state."""
_LONGEST: Final = 30
_PAIR = re.compile(r"([^()]*[^()\s])\s*\(([^()]+)\)")
_GPUS = re.compile(
    r"(?:Throughput\s+on\s+)?(\d[\d,]*)\s*[x×]?\s*(?:([A-Z]{1,3}\d{2,4}[\w-]*)(?:\s*GPUs?)?|GPUs?)",
    re.IGNORECASE,
)
_STATED = re.compile(r"\s*\((\s*\w+\s*=\s*[\w/]+\s*(?:,\s*\w+\s*=\s*[\w/]+\s*)*)\)")
_WORDS: Final = frozenset(
    {"model", "system", "framework", "release", "container", "task", "variant", "kernels"}
)
"""Fields in which brackets belong to the words, and hold no second value."""


@lru_cache(maxsize=4096)
def squeezed(title: str) -> str:
    """What sets a title apart from others: letters, digits, and signs of another quantity."""
    kept = (
        sign
        for sign in title.casefold()
        if sign in "%‰" or unicodedata.category(sign)[0] in "LN"
        or (sign not in "↑↓" and unicodedata.category(sign) in ("Sm", "Sc"))
    )  # fmt: skip
    return "".join(kept)


_IN_MS: Final = frozenset(map(squeezed, MILLISECONDS))
_FIELDS: Final = {
    **{squeezed(title): name for title, name in fields.by_title().items()},
    **dict.fromkeys(_IN_MS, "step_time_s"),
}
_KNOWN_EXTRAS: Final = frozenset(map(squeezed, EXTRAS))


@dataclass(frozen=True)
class PageColumn:
    """A column: its title as raw text is kept under, and its field, if any."""

    title: str
    field: str | None

    @property
    def is_known(self) -> bool:
        """Whether the title is understood, be it without a field."""
        return self.field is not None or squeezed(self.title) in _KNOWN_EXTRAS

    def text(self, printed: str) -> str:
        """The text of a cell in the unit of the field, with the same digits."""
        if squeezed(self.title) in _IN_MS:
            both = pair(printed)
            return f"{seconds(both[0])} ({seconds(both[1])})" if both else seconds(printed)
        if self.field == "mfu" and "%" in self.title:
            return re.sub(r"(?<=[0-9])(?=\s*\(|\)?\Z)", "%", printed)
        return printed


def field_of(title: str) -> str | None:
    """The field that a title means; None where it is not known."""
    return _FIELDS.get(squeezed(title))


def of(header: Sequence[str]) -> tuple[PageColumn, ...]:
    """The columns of the titles of a table.

    A title that is there twice gets a number; next to a step time in seconds one in milliseconds
    has no field.
    """
    titles = [without_marks(text) for text in header]
    times = {squeezed(one) for one in titles if field_of(one) == "step_time_s"}
    seen: Counter[str] = Counter()
    found = []
    for title in titles:
        seen[title] += 1
        numbered = title if seen[title] == 1 else f"{title} ({seen[title]})"
        repeats = squeezed(title) in _IN_MS and bool(times - _IN_MS)
        found.append(PageColumn(numbered, None if repeats else field_of(title)))
    return tuple(found)


@lru_cache(maxsize=1024)
def title_by_field(titles: tuple[str, ...]) -> Mapping[str, str]:
    """The title of the column that each field of a table is read from."""
    return {field: title for title in titles if (field := field_of(title))}


def are_results(header: Sequence[PageColumn]) -> bool:
    """Whether a table holds results: a figure, and what was run."""
    found = {one.field for one in header if one.field} - {"framework", "release", "container"}
    return bool(found & {*fields.FIGURES}) and len(found) >= FEWEST


def are_configurations(header: Sequence[PageColumn]) -> bool:
    """Whether a table states how so many GPUs were used, or are to be, and no figure."""
    found = [one.field for one in header if one.field]
    sizes = {*SIZES}.intersection(found)
    has_gpus = not sizes.isdisjoint(("num_gpus", "data_parallel"))
    is_plain = len({*found}) == len(found) and not {*fields.FIGURES} & {*found}
    return has_gpus and is_plain and len(sizes) >= FEWEST


def title_of(field: str, header: Sequence[PageColumn]) -> str:
    """What the page calls a field; its usual title where the page has no column for it."""
    usual = fields.BY_NAME[field].titles[:1] if field in fields.BY_NAME else ()
    return next((one.title for one in header if one.field == field), next(iter(usual), field))


def values(texts: Mapping[str, str]) -> dict[str, object]:
    """The sizes and figures of a row by field, from the text of each; or why one is no value."""
    kernels = "" if absent(texts.get("kernels", "")) else texts["kernels"]
    parts = (" ".join(part.split()) for part in kernels.split("+"))
    return {
        **{name: size(name, texts.get(name, "")) for name in SIZES},
        **{name: _figure(name, texts.get(name, "")) for name in fields.FIGURES},
        "sequence_parallel": _switch(texts.get("sequence_parallel", "")),
        "kernels": tuple(filter(None, parts)),
    }


def size(name: str, text: str) -> int | Refusal | None:
    """A whole number; None where there is none, or where a parallel size is not used (0)."""
    if absent(text):
        missing = f"fill it in, or pass --set {name}=…"
        return Refusal("is missing", missing) if name in _REQUIRED else None
    text = gpus(text)[0] if name == "num_gpus" else text
    remedy = "write a whole number, such as 8 or 1,024, or - where there is none"
    value = parsed(text)
    if value is None:
        return Refusal(f"{_shown(text)} is not a number", remedy)
    if "." in text:
        return Refusal(f"{_shown(text)} is not a whole number", remedy)
    if value > LARGEST:
        message = f"{_shown(text)} is not a whole number of that size"
        return Refusal(message, f"write a whole number up to {LARGEST:,}")
    if value == 0 and name in _POSITIVE:
        return Refusal("0 is not possible", "write a number above 0, or - if unknown")
    return int(value) or None


def _figure(name: str, text: str) -> float | Refusal | None:
    """A figure, with or without thousands separators; None where there is none, or 0."""
    if absent(text):
        return None
    fraction = share(text) if name == "mfu" else None
    value = parsed(text) if fraction is None else fraction
    if value is None:
        remedy = "write it as 1022.26 or 1,022.26, or - where there is none"
        return Refusal(f"{_shown(text)} is not a number", remedy)
    if name == "mfu" and fraction is None and value > 1:
        return Refusal(f"{text} is above 1", f"write it as {text}%")
    return value or None


def _switch(text: str) -> bool | Refusal | None:
    if absent(text):
        return None
    known = {"0": False, "1": True}.get(text)
    return Refusal(f"{_shown(text)} is neither 0 nor 1", "write 0 or 1") if known is None else known


def _shown(text: str) -> str:
    text = text.replace("\n", " ")
    return repr(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…")


def gpus(text: str) -> tuple[str, str | None]:
    """The number of GPUs as printed, and their kind where the cell names it: `16x H100 GPUs`."""
    found = _GPUS.fullmatch(text)
    return (ungrouped(found[1]), found[2]) if found else (text, None)


def texts_of(case: PartialCase) -> dict[str, str]:
    """The fields of a case that a page's cells may hold, as their texts."""
    stated = ((name, getattr(case, name)) for name in GIVEN)
    return {
        name: str(int(value) if isinstance(value, bool) else value)
        for name, value in stated
        if value is not None
    }


def stated_sizes(text: str) -> tuple[str, Mapping[str, str]]:
    """A text without the sizes in its brackets, and these: `64x H100 GPUs (GBS=128)`."""
    found = _STATED.search(text)
    pairs = (one.split("=") for one in found[1].split(",")) if found else ()
    return _STATED.sub("", text, count=1), {name.strip(): size.strip() for name, size in pairs}


def pair(text: str) -> tuple[str, str] | None:
    """The two values of a cell such as `661 (624)`; None where it holds one."""
    found = _PAIR.fullmatch(text)
    return (found[1], found[2].strip()) if found else None


def halves(texts: Mapping[str, str]) -> tuple[Mapping[str, str], ...]:
    """The texts of a row by field: once, or twice where its figures are pairs.

    The Megatron-Bridge performance summary prints `37556 (36108)` next to `FP8-CS (FP8-MX)`. A
    size without brackets holds for both; a figure without brackets is the first one's alone.
    """
    pairs = {
        name: both
        for name, text in texts.items()
        if name not in _WORDS
        and (both := pair(text))
        # `FP8 (MX)` is one precision
        and not (name == "precision" and precision_of(f"{both[0]} {both[1]}"))
    }
    if not pairs.keys() & {*fields.FIGURES}:
        return (texts,)
    first = {name: pairs.get(name, (text, ""))[0] for name, text in texts.items()}
    second = {
        name: pairs[name][1] if name in pairs else "" if name in fields.FIGURES else text
        for name, text in texts.items()
    }
    filled = [
        half
        for half in (first, second)
        if any(not absent(half.get(name, "")) for name in fields.FIGURES)
    ]
    return tuple(filled) or (first,)
