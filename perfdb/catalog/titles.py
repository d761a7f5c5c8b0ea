"""Titles: what people read in place of the names in the store, recipes and files."""

import re
from collections.abc import Mapping
from typing import Final

from perfdb import catalog
from perfdb.catalog.entries import Named

TASKS: Final[Mapping[str, str]] = {"pretrain": "Pre-training", "sft": "SFT", "lora": "LoRA"}

FRAMEWORKS: Final[Mapping[str, str]] = {
    "automodel": "NeMo AutoModel",
    "dfm": "NeMo DFM",
    "megatron-bridge": "Megatron-Bridge",
    "megatron-core": "Megatron-Core",
    "megatron-lm": "Megatron-LM",
    "nemo": "NeMo Framework",
    "torchtitan": "torchtitan",
}


def model(name: str) -> str:
    """'Llama 3 8B'; of a model that the catalog lacks as its name spells it: 'Llama 2 13B'."""
    if name in catalog.models() or not _NAME.fullmatch(name):
        return _title(catalog.models(), name)
    return " ".join(map(_word, _ACTIVE.sub(r"\1_\2", name).split("-"))).replace("_", "-")


def _word(word: str) -> str:
    """A part of a model's name: 'llama2' is Llama 2, '8x22b' is 8x22B, '30b_a3b' is 30B_A3B."""
    if word in _SPELLED:
        return _SPELLED[word]
    if found := _FAMILY.fullmatch(word):
        return f"{_FAMILIES[found[1]]}{found[2]}"
    return word.upper().replace("X", "x") if word[0].isdigit() else word.capitalize()


_NAME: Final = re.compile(r"[a-z0-9.]+(-[a-z0-9.]+)*")
_ACTIVE: Final = re.compile(r"(?<=-)([0-9.]+b)-(a[0-9.]+b)(?=-|$)")
"""Parameters and active parameters: 30b-a3b."""
_FAMILIES: Final[Mapping[str, str]] = {"llama": "Llama ", "gpt": "GPT-"}
_FAMILY: Final = re.compile(r"(llama|gpt)([0-9][0-9.]*)")
_SPELLED: Final[Mapping[str, str]] = {
    "bert": "BERT", "deepseek": "DeepSeek", "dit": "DiT", "gpt": "GPT", "moe": "MoE", "oss": "OSS",
    "t5": "T5", "vl": "VL",
}  # fmt: skip


def system(name: str) -> str:
    """'DGX-H100'; a system that the catalog lacks keeps its name."""
    return _title(catalog.systems(), name)


def precision(name: str | None) -> str:
    """'FP8-CS'; empty where no precision is stated."""
    return _title(catalog.precisions(), name or "")


def _title(table: Mapping[str, Named], name: str) -> str:
    return table[name].title if name in table else name


def task(name: str) -> str:
    """'Pre-training', as tables print it; a task that is not known keeps its name."""
    return TASKS.get(name, name)


def qualified(title: str, qualifiers: str) -> str:
    """'Llama 3 70B (dropout)': a model and what its page puts behind its name."""
    return f"{title} ({qualifiers})" if qualifiers else title


def framework(name: str) -> str:
    """'NeMo DFM'; a framework that is not known keeps its name."""
    return FRAMEWORKS.get(name, name)


def release(name: str) -> str:
    """'NeMo Framework 25.04' for the 'nemo 25.04' that commands take."""
    of, _, version = name.partition(" ")
    return f"{framework(of)} {version}".strip()
