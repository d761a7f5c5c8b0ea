"""From the text of a cell to a value: numbers, switches, lists, and the two values of a pair."""

import re
from collections.abc import Callable, Mapping
from typing import Final

from perfdb.catalog import names, precision_of
from perfdb.catalog.names import Refusal
from perfdb.fields import FIGURES
from perfdb.page_text import absent, parsed, share, ungrouped

LARGEST: Final = 2**31 - 1
"""No size on a page is larger; the store's integer columns end here."""

_NUMBER_REMEDY: Final = "write it as 1022.26 or 1,022.26, or - where there is none"
_WHOLE_REMEDY: Final = "write a whole number, such as 8 or 1,024, or - where there is none"
_PAIR = re.compile(r"([^()]*[^()\s])\s*\(([^()]+)\)")
_GPUS = re.compile(
    r"(\d[\d,]*)\s*[x×]?\s*(?:([A-Z]{1,3}\d{2,4}[\w-]*)(?:\s*GPUs?)?|GPUs?)", re.IGNORECASE
)
_LONGEST: Final = 30
_TICKS: Final = {
    **dict.fromkeys(("1", "yes", "y", "true", "on", "✓", "✔", "✅"), True),
    **dict.fromkeys(("0", "no", "n", "false", "off", "✗", "✘", "❌"), False),
}


def number(text: str) -> float | Refusal | None:
    """A number, with or without thousands separators; None where there is none."""
    if absent(text):
        return None
    value = parsed(text)
    return Refusal(f"{_shown(text)} is not a number", _NUMBER_REMEDY) if value is None else value


def whole(text: str) -> int | Refusal | None:
    """A whole number of 0 or more; None where there is none."""
    value = number(text)
    if isinstance(value, Refusal):
        return Refusal(value.message, _WHOLE_REMEDY)
    if value is None:
        return None
    if "." in text:
        return Refusal(f"{_shown(text)} is not a whole number", _WHOLE_REMEDY)
    if value > LARGEST:
        message = f"{_shown(text)} is not a whole number of that size"
        return Refusal(message, f"write a whole number up to {LARGEST:,}")
    return int(value)


def positive(text: str) -> int | Refusal | None:
    """A whole number above 0."""
    if (value := whole(text)) == 0:
        return Refusal("0 is not possible", "write a number above 0, or - if unknown")
    return value


def required(text: str) -> int | Refusal:
    """A whole number above 0 that identifies the work: a row cannot do without it."""
    remedy = "fill it in: a row cannot be told from others without it"
    value = positive(text)
    return Refusal("is missing", remedy) if value is None else value


def size(text: str) -> int | Refusal | None:
    """A parallel size; 0 says that it is not used."""
    return whole(text) or None


def figure(text: str) -> float | Refusal | None:
    """A rate or a time; 0 is a figure that is missing: nothing trains at rate 0."""
    return number(text) or None


def fraction(text: str) -> float | Refusal | None:
    """A share of the peak: `43.1%` is 0.431."""
    if (percent := share(text)) is not None:
        return percent
    value = number(text.removesuffix("%").rstrip())
    if isinstance(value, float) and value > 1:
        return Refusal(f"{text} is above 1", f"write it as {text}%")
    return value


def switch(text: str) -> bool | Refusal | None:
    """0 or 1, no or yes, a tick or a cross."""
    if absent(text):
        return None
    known = ticked(text)
    return Refusal(f"{_shown(text)} is neither 0 nor 1", "write 0 or 1") if known is None else known


def ticked(text: str) -> bool | None:
    """Whether a cell is a yes; None where it is neither yes nor no."""
    return _TICKS.get(text.casefold())


def listed(text: str) -> tuple[str, ...]:
    """The parts of `TE + DeepEP`."""
    parts = (" ".join(part.split()) for part in text.split("+"))
    return () if absent(text) else tuple(part for part in parts if part)


def gpus(text: str) -> tuple[str, str | None]:
    """The number of GPUs as printed, and their kind where the cell names it: `16x H100 GPUs`."""
    found = _GPUS.fullmatch(text)
    return (ungrouped(found[1]), found[2]) if found else (text, None)


def pair(text: str) -> tuple[str, str] | None:
    """The two values of a cell such as `661 (624)`; None where it holds one."""
    found = _PAIR.fullmatch(text)
    return (found[1], found[2].strip()) if found else None


WORDS: Final = frozenset(
    {"model", "system", "framework", "release", "container", "task", "variant", "kernels"}
)
"""Fields in which brackets belong to the words, and hold no second value."""


def halves(texts: Mapping[str, str]) -> tuple[Mapping[str, str], ...]:
    """The texts of a row by field: once, or twice where its figures are pairs.

    The Megatron-Bridge performance summary prints `37556 (36108)` next to `FP8-CS (FP8-MX)`. A
    size without brackets holds for both; a figure without brackets is the first one's alone.
    """
    pairs = {name: both for name, text in texts.items() if (both := _pair_of(name, text))}
    if not pairs.keys() & {*FIGURES}:
        return (texts,)
    first = {name: pairs.get(name, (text, ""))[0] for name, text in texts.items()}
    second = {
        name: pairs[name][1] if name in pairs else "" if name in FIGURES else text
        for name, text in texts.items()
    }
    return tuple(half for half in (first, second) if _has_figure(half)) or (first,)


def _pair_of(name: str, text: str) -> tuple[str, str] | None:
    both = None if name in WORDS else pair(text)
    if both and name == "precision" and isinstance(names.precision(text), str):
        return None  # `FP8 (MX)` is one precision
    return both


def _has_figure(half: Mapping[str, str]) -> bool:
    return any(not absent(half.get(name, "")) for name in FIGURES)


def is_pair_of_precisions(text: str) -> bool:
    """Whether a text names two precisions: `FP8-CS (FP8-MX)`."""
    both = pair(text)
    return bool(both and all(map(precision_of, both)))


READERS: Final[Mapping[str, Callable[[str], object]]] = {
    "num_gpus": lambda text: required(gpus(text)[0]),
    "global_batch_size": required,
    "sequence_length": required,
    "micro_batch_size": positive,
    "local_batch_size": positive,
    "gradient_accumulation": positive,
    "tensor_parallel": size,
    "pipeline_parallel": size,
    "context_parallel": size,
    "expert_parallel": size,
    "expert_tensor_parallel": size,
    "virtual_pipeline": size,
    "data_parallel": size,
    "sequence_parallel": switch,
    "kernels": listed,
    "step_time_s": figure,
    "tokens_per_sec_per_gpu": figure,
    "model_tflops_per_sec_per_gpu": figure,
    "mfu": fraction,
    "tokens_per_sec": figure,
}
"""How the text of each field is read."""


def _shown(text: str) -> str:
    text = text.replace("\n", " ")
    return repr(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…")
