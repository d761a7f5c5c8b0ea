"""The precision that the settings of a log amount to, and those that contradict one another.

What Megatron-Bridge and NeMo 2 configure as mixed precision is written over what the model says:
a preset such as `mixed_precision: bf16_with_fp8_current_scaling_mixed`, a group of settings of that
name, or `MegatronMixedPrecision(…)`. Sources: megatron/bridge/training/mixed_precision.py,
nemo/lightning/pytorch/plugins/mixed_precision.py, nemo/collections/llm/recipes/precision/.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from perfdb import catalog

Pair = tuple[str, str]
"""A setting as it is printed: its name and a value."""

NONE: Final = ("none", "null", "false", "")
FP8: Final = "fp8"
"""FP8 of which nobody says how its values are scaled."""

PRESET: Final = "mixed_precision"
_BASES, _FP4_NAMES = ("bf16", "fp16"), ("fp4", "fp4_format")
_FP8_NAMES = ("fp8", "fp8_format", "te_fp8")
RECIPES_OF: Final[Mapping[str, str]] = {
    "recipe_name": r"tensorwise|rowwise\w*",
    "recipe": "current|block",
}
"""AutoModel's names of FP8 recipes, of torchao and of Transformer Engine, with their words."""
_RECIPES_NAMES = ("fp8_recipe", *RECIPES_OF)
WORDS: Final = ("precision", "torch_dtype")
"""What the trainer of NeMo and the model of AutoModel say, of FP8 too: the type beneath it."""
NAMES: Final = (*_BASES, *_FP8_NAMES, *_RECIPES_NAMES, *_FP4_NAMES, PRESET, *WORDS)
"""What says a precision. An argument dump has `fp8`, the command line `--fp8-format`."""

_RECIPES: Final = {
    "tensorwise": "fp8_cs",
    "delayed": "fp8_ds",
    "mxfp8": "fp8_mx",
    "blockwise": "fp8_sc",
    "current": "fp8_cs",
    "block": "fp8_sc",
}
"""Transformer Engine's FP8 recipes, as Megatron and AutoModel name them; torchao has the first."""

_PRESET_NAME: Final = re.compile(r"(?:\w+_)?(bf16|fp16)(?:_with_(\w+))?_mixed")
_SCALINGS: Final = {
    "fp8": FP8,
    "fp8_delayed_scaling": "fp8_ds",
    "fp8_current_scaling": "fp8_cs",
    "fp8_subchannel_scaling": "fp8_sc",
    "mxfp8": "fp8_mx",
    "nvfp4": "nvfp4",
}
"""What the presets of Megatron-Bridge and NeMo 2 have between `bf16_with_` and `_mixed`."""

_GROUP: Final = re.compile(rf"{PRESET}:[ \t]*\n")
_CALL: Final = re.compile(r"MixedPrecision(?:Config)?\(([^()]*)\)")
_PRESET_WORD: Final = re.compile(rf"{PRESET}['\"]?[ \t]*[=:][ \t]*['\"]?[\w\-]*[_\-]mixed\b")
_PLAIN: Final = re.compile(r"[\w.\-]{1,64}")
_BF16_WORD: Final = re.compile(r"(?:torch\.)?bf(?:loat)?16(?:-mixed|-true)?")
_FP16_WORD: Final = re.compile(r"16(?:-mixed|-true)?|fp16")


@dataclass(frozen=True)
class StatedPrecision:
    """A precision, if the settings say one; and those of them that contradict one another."""

    name: str | None = None
    doubt: str = ""


def of(pairs: Sequence[Pair], insisting: Sequence[Pair] = ()) -> StatedPrecision:
    """The precision of settings in the order in which they are printed.

    `insisting`: those of them that are written over the others. Contradictions that leave open
    which FP8 it is leave FP8; any other leaves nothing.
    """
    every, first = claims(pairs) or _of_words(pairs), claims(insisting)
    if not every:
        return StatedPrecision()
    families = {_family(one) for one in every}
    chosen = first if len(first) == 1 else every
    [name] = chosen if len(chosen) == 1 else [None]
    if len(families) == 1 and name in catalog.precisions():
        return StatedPrecision(name)
    return StatedPrecision(FP8 if families == {FP8} else None, _words(pairs))


def claims(pairs: Iterable[Pair]) -> frozenset[str]:
    """The precisions that settings claim: BF16 and FP16 where none claims a lower one.

    A setting that is off claims nothing: a model says `fp8: null` of what is written over it.
    A word such as `precision: bf16-mixed` claims something next to an FP8 that is off, alone.
    """
    printed = list(pairs)
    on = [(name, value) for name, value in printed if is_on(value)]
    presets = {one for name, value in on if name == PRESET and (one := _of_preset(value))}
    fp4 = {"nvfp4" for name, _ in on if name in _FP4_NAMES}
    fp8 = _fp8(printed)
    bases = {name for name, _ in on if name in _BASES}
    words = _of_words(printed) if any(name in _FP8_NAMES for name, _ in printed) else frozenset()
    return frozenset(presets | fp4 | fp8 or bases or words)


def insisting(text: str) -> str:
    """The parts of a text that configure mixed precision: presets, groups and calls."""
    return "\n".join([*_PRESET_WORD.findall(text), *_groups(text), *_CALL.findall(text)])


def is_on(value: str) -> bool:
    """Whether a setting of this value is in use; what is no plain word says nothing."""
    return bool(_PLAIN.fullmatch(value)) and value.lower() not in NONE


def _fp8(printed: Sequence[Pair]) -> set[str]:
    """The FP8 that settings claim: each that is on by the recipe behind it, else by any recipe.

    A recipe has a default, which is printed with `fp8: null` too.
    """
    behind, others = set[str](), set[str]()
    is_used, is_fp8 = False, False
    for name, value in printed:
        if name in _FP8_NAMES:
            is_used = is_on(value)
            is_fp8 |= is_used
        elif name in _RECIPES_NAMES and is_on(value):
            recipe = _RECIPES.get(value.lower(), f"{FP8}_{value}")
            (behind if is_used else others).add(recipe)
    return (behind or others or {FP8}) if is_fp8 else set()


def _of_preset(value: str) -> str | None:
    """The precision of a preset; one that is not known claims itself, and another word nothing."""
    name = value.lower().replace("-", "_")
    if not name.endswith("_mixed"):
        return None
    found = _PRESET_NAME.fullmatch(name)
    if not found:
        return name
    return _SCALINGS.get(found[2], name) if found[2] else found[1]


def _of_words(printed: Iterable[Pair]) -> frozenset[str]:
    """The precisions of words, which hold where nothing else claims one.

    The layers of a model that is loaded as FP16 may be trained in BF16 all the same.
    """
    return frozenset(one for name, value in printed if (one := _of_word(name, value.lower())))


def _of_word(name: str, word: str) -> str | None:
    if name in WORDS and _BF16_WORD.fullmatch(word):
        return "bf16"
    return "fp16" if name == "precision" and _FP16_WORD.fullmatch(word) else None


def _family(claimed: str) -> str:
    return FP8 if claimed.startswith(FP8) else claimed


def _words(pairs: Iterable[Pair]) -> str:
    """'fp8 hybrid, fp8_recipe tensorwise': the settings that claim something, each once."""
    on = [(name, value) for name, value in pairs if is_on(value)]
    printed = [
        (name, value)
        for name, value in on
        if (name != PRESET or _of_preset(value))
        and (name not in WORDS or _of_word(name, value.lower()))
    ]
    low = [(name, value) for name, value in printed if name not in (*_BASES, *WORDS)]
    return ", ".join(dict.fromkeys(f"{name} {value}" for name, value in low or printed))


def _groups(text: str) -> Iterator[str]:
    """The lines below `mixed_precision:` that are deeper; a launcher may prefix all of them."""
    for found in _GROUP.finditer(text):
        width = found.start() - (text.rfind("\n", 0, found.start()) + 1)
        deeper = re.compile(rf"(?:[^\n]{{{width}}}[ \t][^\n]*\n?)*")
        if below := deeper.match(text, found.end()):
            yield below[0]
