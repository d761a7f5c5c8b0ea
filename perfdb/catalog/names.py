"""From the names that people write to perfdb's own: model, system, precision, task, framework.

Each lookup returns a name, or a `Refusal` with what is wrong and what to write instead.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from perfdb import catalog, units
from perfdb.errors import suggestion
from perfdb.record import Task
from perfdb.text import absent

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
_LIKENESS: Final = 0.88
"""How close a misspelled name is to the right one, by difflib: no `Llava` is a `Llama`."""


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


def nearest_model(name: str) -> str | None:
    """The catalog's model that a name may be a misspelling of; None where there is none.

    Only letters may differ: another number is another size or generation (`Llama3 80B`), another
    word another variant (`Nemotron 8B`).
    """
    if catalog.named_model(name):
        return None
    shape = _numbers_and_words(name)
    same_shape = [known for known in catalog.models() if _numbers_and_words(known) == shape]
    return next(iter(get_close_matches(units.slug(name), same_shape, n=1, cutoff=_LIKENESS)), None)


def _numbers_and_words(name: str) -> tuple[list[str], int]:
    return re.findall(r"[0-9]+(?:\.[0-9]+)?", name), len(re.findall("[a-z]+", name.casefold()))


def system(printed: str) -> str | Refusal:
    """The system of a printed name, by its name, title or aliases in the catalog."""
    if known := catalog.named_system(printed):
        return known
    return Refusal(f"no system {printed!r} in the catalogue", catalog.other_systems(printed))


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
