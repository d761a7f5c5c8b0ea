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
_WORDS: Final = frozenset(
    {"model", "system", "framework", "release", "container", "task", "variant", "kernels"}
)
"""Fields in which brackets belong to the words, and hold no second value."""


def _number(text: str) -> float | Refusal | None:
    """A number, with or without thousands separators; None where there is none."""
    if absent(text):
        return None
    value = parsed(text)
    return Refusal(f"{_shown(text)} is not a number", _NUMBER_REMEDY) if value is None else value


def _shown(text: str) -> str:
    text = text.replace("\n", " ")
    return repr(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…")


def whole(text: str) -> int | Refusal | None:
    """A whole number of 0 or more; None where there is none."""
    value = _number(text)
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


def _positive(text: str) -> int | Refusal | None:
    if (value := whole(text)) == 0:
        return Refusal("0 is not possible", "write a number above 0, or - if unknown")
    return value


def _required(text: str) -> int | Refusal:
    """A whole number above 0 that identifies the work: a row cannot do without it."""
    remedy = "fill it in: a row cannot be told from others without it"
    value = _positive(text)
    return Refusal("is missing", remedy) if value is None else value


def _fraction(text: str) -> float | Refusal | None:
    """A share of the peak: `43.1%` is 0.431."""
    if (percent := share(text)) is not None:
        return percent
    value = _number(text.removesuffix("%").rstrip())
    if isinstance(value, float) and value > 1:
        return Refusal(f"{text} is above 1", f"write it as {text}%")
    return value


def ticked(text: str) -> bool | None:
    """Whether a cell is a yes; None where it is neither yes nor no."""
    return _TICKS.get(text.casefold())


def _switch(text: str) -> bool | Refusal | None:
    if absent(text):
        return None
    known = ticked(text)
    return Refusal(f"{_shown(text)} is neither 0 nor 1", "write 0 or 1") if known is None else known


def _listed(text: str) -> tuple[str, ...]:
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


def is_pair_of_precisions(text: str) -> bool:
    """Whether a text names two precisions: `FP8-CS (FP8-MX)`."""
    both = pair(text)
    return bool(both and all(map(precision_of, both)))


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
        and not (name == "precision" and isinstance(names.precision(text), str))
    }
    if not pairs.keys() & {*FIGURES}:
        return (texts,)
    first = {name: pairs.get(name, (text, ""))[0] for name, text in texts.items()}
    second = {
        name: pairs[name][1] if name in pairs else "" if name in FIGURES else text
        for name, text in texts.items()
    }
    filled = (
        half for half in (first, second) if any(not absent(half.get(name, "")) for name in FIGURES)
    )
    return tuple(filled) or (first,)


def _or_none(read: Callable[[str], object]) -> Callable[[str], object]:
    """0 is a size that is not used, or a figure that is missing: nothing trains at rate 0."""
    return lambda text: read(text) or None


READERS: Final[Mapping[str, Callable[[str], object]]] = {
    "num_gpus": lambda text: _required(gpus(text)[0]),
    "global_batch_size": _required,
    "sequence_length": _required,
    "micro_batch_size": _positive,
    "local_batch_size": _positive,
    "gradient_accumulation": _positive,
    "tensor_parallel": _or_none(whole),
    "pipeline_parallel": _or_none(whole),
    "context_parallel": _or_none(whole),
    "expert_parallel": _or_none(whole),
    "expert_tensor_parallel": _or_none(whole),
    "virtual_pipeline": _or_none(whole),
    "data_parallel": _or_none(whole),
    "sequence_parallel": _switch,
    "kernels": _listed,
    "step_time_s": _or_none(_number),
    "tokens_per_sec_per_gpu": _or_none(_number),
    "model_tflops_per_sec_per_gpu": _or_none(_number),
    "mfu": _fraction,
    "tokens_per_sec": _or_none(_number),
}
"""How the text of each field is read."""
