"""Titles: what people read in place of the names in the store, recipes and files."""

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
    """'Llama 3 8B'; a model that the catalog lacks keeps its name."""
    return _title(catalog.models(), name)


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
