"""The precision that the settings of a log amount to, and settings that contradict one another.

Megatron-Bridge and NeMo 2 name a preset, such as `bf16_with_fp8_current_scaling_mixed`. Sources:
megatron/bridge/training/mixed_precision.py and nemo/collections/llm/recipes/precision/.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from perfdb import catalog

Pair = tuple[str, str]
"""A setting as it is printed: its name and a value."""

NONE: Final = ("none", "null", "false", "")
FP8: Final = "fp8"
"""FP8 without a stated scaling."""

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
"""What the trainer of NeMo and the model of AutoModel say, also of FP8: the type beneath it."""
NAMES: Final = (*_BASES, *_FP8_NAMES, *_RECIPES_NAMES, *_FP4_NAMES, PRESET, *WORDS)
"""The settings of a precision. A dump of arguments has `fp8`, the command line `--fp8-format`."""

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
"""What presets have between `bf16_with_` and `_mixed`."""

_PLAIN: Final = re.compile(r"[\w.\-]{1,64}")
_BF16_WORD: Final = re.compile(r"(?:torch\.)?bf(?:loat)?16(?:-mixed|-true)?")
_FP16_WORD: Final = re.compile(r"16(?:-mixed|-true)?|fp16")


class StatedPrecision(NamedTuple):
    """A precision, if the settings state one, and those that contradict one another."""

    name: str | None = None
    doubt: str = ""


def of(pairs: Sequence[Pair]) -> StatedPrecision:
    """The precision of settings in the order in which they are printed.

    Contradictions about the scaling of FP8 leave `fp8`; any other leaves nothing.
    """
    every = claims(pairs) or _of_words(pairs)
    if not every:
        return StatedPrecision()
    families = {FP8 if one.startswith(FP8) else one for one in every}
    [name] = every if len(every) == 1 else [None]
    if name in catalog.precisions():
        return StatedPrecision(name)
    return StatedPrecision(FP8 if families == {FP8} else None, _printed(pairs))


def claims(pairs: Iterable[Pair]) -> frozenset[str]:
    """The precisions that settings claim: BF16 and FP16 where none claims a lower one.

    A setting that is off claims nothing: a model says `fp8: null` of what is written over it.
    A word such as `precision: bf16-mixed` claims something only next to an FP8 that is off.
    """
    printed = list(pairs)
    on = [(name, value) for name, value in printed if is_on(value)]
    presets = {one for name, value in on if name == PRESET and (one := _of_preset(value))}
    fp4 = {"nvfp4" for name, _ in on if name in _FP4_NAMES}
    bases = {name for name, _ in on if name in _BASES}
    words = _of_words(printed) if any(name in _FP8_NAMES for name, _ in printed) else frozenset()
    low = {one for one in presets if one not in _BASES}
    return frozenset(low | fp4 | _fp8(printed) or presets | bases or words)


def is_on(value: str) -> bool:
    """Whether a setting of this value is in use; a value of several words says nothing."""
    return bool(_PLAIN.fullmatch(value)) and value.lower() not in NONE


def _fp8(printed: Sequence[Pair]) -> set[str]:
    """The FP8 that settings claim: each that is on by the recipe behind it, else by any recipe.

    A recipe has a default, which is printed with `fp8: null`, too.
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
    """The precision of a preset; an unknown preset claims itself, another word nothing."""
    name = value.lower().replace("-", "_")
    if not name.endswith("_mixed"):
        return None
    found = _PRESET_NAME.fullmatch(name)
    if not found:
        return name
    return _SCALINGS.get(found[2], name) if found[2] else found[1]


def _of_words(printed: Iterable[Pair]) -> frozenset[str]:
    """The precisions of words. Layers that are loaded as FP16 may be trained in BF16."""
    return frozenset(one for name, value in printed if (one := _of_word(name, value.lower())))


def _of_word(name: str, word: str) -> str | None:
    if name in WORDS and _BF16_WORD.fullmatch(word):
        return "bf16"
    return "fp16" if name == "precision" and _FP16_WORD.fullmatch(word) else None


def _printed(pairs: Iterable[Pair]) -> str:
    """'fp8 hybrid, fp8_recipe tensorwise': the settings that claim something, each once."""
    on = [
        (name, value)
        for name, value in pairs
        if is_on(value)
        and (name != PRESET or _of_preset(value))
        and (name not in WORDS or _of_word(name, value.lower()))
    ]
    low = [(name, value) for name, value in on if name not in (*_BASES, *WORDS)]
    return ", ".join(dict.fromkeys(f"{name} {value}" for name, value in low or on))
