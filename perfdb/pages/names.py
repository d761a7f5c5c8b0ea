"""From the names that pages print to perfdb's own: systems, models, precisions, tasks."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, lru_cache
from typing import Final

from perfdb import catalog, units
from perfdb.errors import suggestion
from perfdb.pages.cells import Wrong, absent, pair
from perfdb.record import Task

_QUALIFIER = re.compile(r"\(([^()]*)\)|\b([0-9]+-nodes?)\b", re.IGNORECASE)
_GPUS = re.compile(
    r"(\d[\d,]*)\s*[x×]?\s*(?:([A-Z]{1,3}\d{2,4}[\w-]*)(?:\s*GPUs?)?|GPUs?)", re.IGNORECASE
)
_DENIED: Final = r"(?<!\bno )(?<!\bnot )(?<!\bwithout )(?<!\bw/o )(?<!\bnon-)"
"""No word stands before it that takes it back."""
_TASKS: Final[tuple[tuple[Task, re.Pattern[str]], ...]] = (
    ("lora", re.compile(rf"{_DENIED}\blora\b", re.IGNORECASE)),
    ("sft", re.compile(r"\bsft\b|\bfine-?tun", re.IGNORECASE)),
    ("pretrain", re.compile(r"\bpre-?train", re.IGNORECASE)),
)
COMPARING: Final = r"(?:compar\w+|versus|vs|against)"
"""What stands between two things that a text holds against each other."""
_NO_TASK = re.compile(
    rf"{_DENIED}\b(?:inference|serving|dpo|ppo|grpo|rlhf|rlvr|reinforcement learning|distillation"
    r"|vllm|sglang|rollouts?|(?:text|token) generation|generation (?:performance|throughput)"
    r"|reward model(?:s|ing)?|preference (?:optimi[sz]ation|tuning)|orpo|kto"
    r"|pre-?fill|decod(?:e|ing)|q-?lora|dora|ia3|(?:p|prompt|prefix|adapter)[- ]?tuning)\b",
    re.IGNORECASE,
)
"""What is no task, whatever task is named beside it: `LoRA (DPO)`, `QLoRA fine-tuning`."""
_PEFT = re.compile(r"\b(?:peft|parameter[- ]efficient)\b", re.IGNORECASE)
"""A fine-tuning that LoRA may be."""
_EVALUATION = re.compile(
    r"(?<!performance )\b(?:evaluation|eval)\b|\bpost-?training\b|\brl\b", re.IGNORECASE
)
"""What is none where no task of ours is named beside it: `Post-training (SFT)` is one."""
FIGURES: Final = "performance|throughput|figures|numbers|results|values"
_NOT_MEASURED = re.compile(
    r"\b(?:projected|performance projections?|simulat(?:ed|ions?)|estimat(?:ed?|es|ions?)"
    r"|extrapolat(?:ed|ions?)|not (?:yet )?measured|predict(?:ed|ions?)|forecasts?"
    r"|theoretical(?:ly)?(?!\s+(?:peaks?|max\w*|flops?|limits?|bandwidth)\b)|speed[- ]of[- ]light"
    rf"|(?:{FIGURES}) (?:targets?|goals?)|(?:targets?|goals?|expected) (?:for|{FIGURES})"
    r"|\A(?:targets?|goals?|expected|planned)\Z|\Aprojections?(?=\W*\Z|\s+(?:by|for|from|of)\b)"
    r"|(?<=[0-9] )(?:targets?|goals?|projections?)\Z)(?!\w)",
    re.IGNORECASE,
)
_SUMMARY = re.compile(
    r"(?:average|avg\.?|mean|median|geo-?(?:metric )?mean|geo\.? ?mean|total|overall|sum)"
    r"(?:\s+(?:of|over)\b.*)?\s*(?:\([^()]*\)|all)?",
    re.IGNORECASE,
)
_RATE = re.compile(
    r"\b(?:speed-?ups?|improvements?|gains?|ratios?|differences?|deltas?|changes?"
    r"|(?:scaling|parallel) efficiency|relative (?:to|performance|throughput))\b|Δ|^%|%$"
    rf"|^{COMPARING}\b",
    re.IGNORECASE,
)
"""Is in what stands for a model where the row holds others against each other."""
_SIZE: Final = r"[0-9]+(?:\.[0-9]+)?[BMT]\b"
_SEVERAL = re.compile(rf"\b{_SIZE}\s*(?:[,;/&]|\band\b|\bor\b).*\b{_SIZE}", re.IGNORECASE)
"""Models that stand for a single one: `Llama3 8B, 70B`."""
_FEWEST_LETTERS: Final = 4
_LIKENESS: Final = 0.81
"""How alike a mistyped word and the one meant are, by difflib: `Llava` is no mistyped `Llama`."""


@dataclass(frozen=True)
class ModelName:
    """A model, and what a page says beside its name: token-drop, two nodes."""

    name: str
    qualifiers: tuple[str, ...] = ()


def model(printed: str) -> ModelName | Wrong:
    """The model of a printed name; one that the catalogue lacks keeps its name as a slug."""
    if known := catalog.named_model(printed):
        return ModelName(known)
    found = (" ".join((a or b).split()) for a, b in _QUALIFIER.findall(printed))
    base = unqualified(printed)
    name = catalog.named_model(base) or units.slug(base)
    if _SEVERAL.search(base) and not catalog.named_model(base):
        return Wrong(f"{printed!r} names several models", "give each a row of its own")
    if not name or absent(printed):
        return Wrong("is missing", "name the model")
    return ModelName(name, tuple(qualifier for qualifier in found if qualifier))


def unqualified(printed: str) -> str:
    """The name of a model without what a page says beside it: `Phi-4 (14B)` is Phi-4."""
    return " ".join(_QUALIFIER.sub(" ", printed).split())


@lru_cache(maxsize=1024)
def model_meant(name: str) -> str | None:
    """The catalogue's model whose name may be mistyped here; None where none is.

    Only a word of letters may be: another number is another size or generation (`Llama3 80B`), one
    word more or less another variant (`Nemotron-8B`, `Nemotron-H 8B`).
    """
    words = _words(name)
    near = (known for spelling, known in _spellings() if _are_alike(words, spelling))
    return None if catalog.named_model(name) else next(near, None)


@cache
def _spellings() -> tuple[tuple[tuple[str, ...], str], ...]:
    return tuple(
        (_words(spelling), entry.name)
        for entry in catalog.models().values()
        for spelling in (entry.name, entry.title, *(a.rpartition("/")[2] for a in entry.aliases))
    )


def _words(name: str) -> tuple[str, ...]:
    return tuple(re.findall(r"[a-z]+|[0-9]+(?:\.[0-9]+)?", name.casefold()))


def _are_alike(words: tuple[str, ...], known: tuple[str, ...]) -> bool:
    differ = [pair for pair in zip(words, known, strict=False) if pair[0] != pair[1]]
    return len(words) == len(known) and all(_is_mistyped(*pair) for pair in differ)


def _is_mistyped(word: str, known: str) -> bool:
    letters = word.isalpha() and known.isalpha() and len(known) >= _FEWEST_LETTERS
    return letters and bool(get_close_matches(word, [known], cutoff=_LIKENESS))


def system(printed: str) -> str | Wrong:
    """The system of a printed name, by its name, title or aliases in the catalogue."""
    if known := catalog.named_system(printed):
        return known
    return Wrong(f"no system {printed!r} in the catalogue", catalog.other_systems())


@dataclass(frozen=True)
class Gpus:
    """What `16x H100 GPUs` says: how many, as it is printed, and of which kind."""

    count: str
    kind: str | None = None


def gpus(printed: str) -> Gpus:
    """The number of GPUs of a cell, and their kind where it names it; any text is a number."""
    found = _GPUS.fullmatch(printed)
    return Gpus(found[1], found[2]) if found else Gpus(printed)


def captioned(printed: str) -> tuple[str, str | None]:
    """A caption's words, and the precision that it ends with: `Nemotron4 15b BF16`."""
    words, _, last = printed.rpartition(" ")
    return (words, last) if words and catalog.precision_of(last) else (printed, None)


def system_of_gpu(kind: str) -> str | Wrong:
    """The system of a kind of GPU, where a page names no more than that."""
    if entry := catalog.system_of_gpu(kind):
        return entry.name
    return Wrong(f"no system with GPUs {kind!r} in the catalogue", "name the system in a column")


def precision(printed: str) -> str | Wrong | None:
    """The precision recipe of a printed word; None where the page says that there is none."""
    if absent(printed):
        return None
    if known := bracketed(printed):
        return known
    remedy = suggestion(printed.casefold(), catalog.precisions())
    return Wrong(f"no precision {printed!r} in the catalogue", remedy)


def bracketed(printed: str) -> str | None:
    """The precision of a word, also where brackets tell more of it: `FP8 (MX)` is FP8-MX."""
    both = pair(printed)
    return catalog.precision_of(" ".join(both) if both else printed)


def precisions(printed: str) -> tuple[str, ...]:
    """The precisions that a text such as `FP8-CS (FP8-MX)` names, of a word unknown the word."""
    said = (
        () if absent(printed) else (printed,) if bracketed(printed) else pair(printed) or (printed,)
    )
    return tuple(bracketed(word) or word for word in said)


def are_precisions(words: Iterable[str], printed: str) -> bool:
    """Whether what is printed says what all the words do, or more: `FP8-CS` is an FP8."""
    stated = precisions(printed)
    known = [precision(word) for word in words]
    return bool(stated) and all(f"{s}_".startswith(f"{k}_") for s in stated for k in known)


def is_recipe_of(family: object, word: str) -> bool:
    """Whether a word names a recipe of a family, and not just the family: FP8-MX of fp8."""
    name = precision(word)
    return isinstance(name, str) and name.startswith(f"{family}_")


def is_summary(printed: str) -> bool:
    """Whether what stands for a model sums up other rows: `Average (all)`, `Speedup`."""
    found = _SUMMARY.fullmatch(printed) or _RATE.search(printed)
    return found is not None and not catalog.named_model(printed)


def task(printed: str) -> Task | None:
    """The task that words name; None where they name none, more than one, or what is none."""
    found = () if other_task(printed) else tasks(printed)
    return found[0] if len(found) == 1 else None


@lru_cache(maxsize=4096)
def tasks(printed: str) -> tuple[Task, ...]:
    """The tasks that words name.

    'Fine-Tuning (LoRA)' names one: LoRA says which fine-tuning.
    """
    found = tuple(name for name, words in _TASKS if words.search(printed))
    said_sft = re.search(r"\bsft\b", printed, re.IGNORECASE)
    return tuple(name for name in found if name != "sft" or said_sft or "lora" not in found)


def other_task(printed: str) -> str | None:
    """The word for what is no task that is measured here, whatever task stands beside it."""
    found = _NO_TASK.search(printed)
    some_kind = None if "lora" in tasks(printed) else _PEFT.search(printed)
    return found[0] if found else some_kind and some_kind[0]


@lru_cache(maxsize=4096)
def no_task(printed: str) -> str | None:
    """The word for what is no task that is measured here; None where words name none."""
    found = _EVALUATION.search(printed)
    return other_task(printed) or (found[0] if found else None)


def compares(words: str) -> bool:
    """Whether a text holds one thing against another."""
    return re.search(rf"\b{COMPARING}\b", words, re.IGNORECASE) is not None


def not_measured(printed: str) -> str | None:
    """The word that tells that figures are no measured ones; None where no word does."""
    found = _NOT_MEASURED.search(printed)
    return found[0] if found else None
