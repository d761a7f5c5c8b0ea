"""From the names that people write to perfdb's own: model, system, precision, task, framework.

Each lookup returns a name, or a `Refusal` that says what is wrong and what to write instead.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, lru_cache
from typing import Final

from perfdb import catalog, units
from perfdb.errors import suggestion
from perfdb.page_text import absent
from perfdb.record import Task

FRAMEWORKS: Final[Mapping[str, str]] = {
    "dfm": r"(?:NeMo\s+)?DFM",
    "automodel": r"(?:NeMo\s+)?Auto-?Model",
    "megatron-bridge": r"(?:NeMo\s+)?Megatron[- ]Bridge",
    "megatron-lm": r"Megatron[- ]LM",
    "megatron-core": r"Megatron[- ]Core",
    "torchtitan": r"torchtitan",
    "nemo": r"NeMo(?:\s+(?:Framework|FW))?",
}
"""How frameworks are spelled, the most particular ones first."""

_TASKS: Final[tuple[tuple[Task, re.Pattern[str]], ...]] = (
    ("lora", re.compile(r"\blora\b", re.IGNORECASE)),
    ("sft", re.compile(r"\bsft\b|\bfine-?tun", re.IGNORECASE)),
    ("pretrain", re.compile(r"\bpre-?train", re.IGNORECASE)),
)
_OTHER_TASK: Final = re.compile(
    r"\b(?:inference|serving|generation|evaluation|dpo|ppo|grpo|rlhf|rl|reinforcement learning"
    r"|distillation|reward model\w*|prefill|decod\w+|q-?lora|dora|peft)\b",
    re.IGNORECASE,
)
"""Work that perfdb does not record."""

_QUALIFIER = re.compile(r"\(([^()]*)\)|\b([0-9]+-nodes?)\b", re.IGNORECASE)
_FEWEST_LETTERS: Final = 4
_LIKENESS: Final = 0.81
"""How close a mistyped word is to the right one, by difflib: `Llava` is no mistyped `Llama`."""


@dataclass(frozen=True)
class Refusal:
    """Why a text is no value, and what to do."""

    message: str
    remedy: str


@dataclass(frozen=True)
class ModelName:
    """A model, and what a page prints next to its name: `tokendrop`, `2-node`."""

    name: str
    qualifiers: tuple[str, ...] = ()


def model(printed: str) -> ModelName | Refusal:
    """The model of a printed name; one that the catalog lacks keeps its name as a slug."""
    if known := catalog.named_model(printed):
        return ModelName(known)
    base = unqualified(printed)
    name = catalog.named_model(base) or units.slug(base)
    if not name or absent(printed):
        return Refusal("is missing", "name the model")
    found = (" ".join((a or b).split()) for a, b in _QUALIFIER.findall(printed))
    return ModelName(name, tuple(filter(None, found)))


def unqualified(printed: str) -> str:
    """The name of a model without what follows it: `Llama3 70B 2-node` is Llama3 70B."""
    return " ".join(_QUALIFIER.sub(" ", printed).split())


@lru_cache(maxsize=1024)
def nearest_model(name: str) -> str | None:
    """The catalog's model that a name may be a misspelling of; None where there is none.

    Only words of letters may differ: another number is another size or generation (`Llama3 80B`),
    one word more or less another variant (`Nemotron-H 8B`).
    """
    words = _words(name)
    near = (known for spelling, known in _spellings() if _is_close(words, spelling))
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


def _is_close(words: tuple[str, ...], known: tuple[str, ...]) -> bool:
    differ = [pair for pair in zip(words, known, strict=False) if pair[0] != pair[1]]
    return len(words) == len(known) and all(_is_misspelled(*pair) for pair in differ)


def _is_misspelled(word: str, known: str) -> bool:
    letters = word.isalpha() and known.isalpha() and len(known) >= _FEWEST_LETTERS
    return letters and bool(get_close_matches(word, [known], cutoff=_LIKENESS))


def system(printed: str) -> str | Refusal:
    """The system of a printed name, by its name, title or aliases in the catalog."""
    if known := catalog.named_system(printed):
        return known
    return Refusal(f"no system {printed!r} in the catalogue", catalog.other_systems())


def system_of_gpu(gpu: str) -> str | Refusal:
    """The system of a kind of GPU, where a page names no more: `H100` is of dgx-h100."""
    if entry := catalog.system_of_gpu(gpu):
        return entry.name
    return Refusal(f"no system with GPUs {gpu!r} in the catalogue", "name the system in a column")


def precision(printed: str) -> str | Refusal | None:
    """The precision recipe of a printed word; None where the text says that there is none."""
    if absent(printed):
        return None
    # `FP8 (MX)`: the word in brackets may be a part of the name.
    if known := catalog.precision_of(re.sub(r"[()]", " ", printed)):
        return known
    remedy = suggestion(printed.casefold(), catalog.precisions())
    return Refusal(f"no precision {printed!r} in the catalogue", remedy)


def task(printed: str) -> Task | Refusal:
    """The task that words name; refused where they name none, several, or other work."""
    found = tasks(printed)
    if other := other_task(printed):
        return Refusal(f"{other!r} is no task", "write Pre-training, SFT or LoRA")
    if len(found) == 1:
        return found[0]
    fault = "names several tasks" if found else "is no task"
    return Refusal(f"{printed!r} {fault}", "write Pre-training, SFT or LoRA")


def tasks(printed: str) -> tuple[Task, ...]:
    """The tasks that words name. `Fine-Tuning (LoRA)` names one: which fine-tuning it is."""
    found = tuple(name for name, pattern in _TASKS if pattern.search(printed))
    has_sft = re.search(r"\bsft\b", printed, re.IGNORECASE)
    return tuple(name for name in found if name != "sft" or has_sft or "lora" not in found)


def other_task(printed: str) -> str | None:
    """The word for work that perfdb does not record: inference, DPO; None where there is none."""
    found = _OTHER_TASK.search(printed)
    return found[0] if found else None


def framework(printed: str) -> str | None:
    """The framework that a text as a whole names: `NVIDIA NeMo` is nemo; None where it is none."""
    named = (
        name
        for name, pattern in FRAMEWORKS.items()
        if re.fullmatch(rf"(?:NVIDIA\s+)?{pattern}", printed, re.IGNORECASE)
    )
    return next(named, None)


def frameworks_in(text: str, among: Iterable[str] = FRAMEWORKS) -> tuple[str, ...]:
    """The frameworks that a text names, the most particular ones first."""
    return tuple(
        name for name in among if re.search(rf"\b{FRAMEWORKS[name]}\b", text, re.IGNORECASE)
    )
