"""What people read in place of the names that the store, recipes and files keep."""

from collections.abc import Mapping
from typing import Final

from perfdb import catalog

TASKS: Final[Mapping[str, str]] = {"pretrain": "Pre-training", "sft": "SFT", "lora": "LoRA"}


def model(name: str) -> str:
    """'Llama 3 8B'; a model that the catalogue lacks keeps its name."""
    entry = catalog.models().get(name)
    return entry.title if entry else name


def system(name: str) -> str:
    """'DGX-H100'; a system that the catalogue lacks keeps its name."""
    entry = catalog.systems().get(name)
    return entry.title if entry else name


def precision(name: str | None) -> str:
    """'FP8-CS'; empty where no precision is stated."""
    entry = catalog.precisions().get(name or "")
    return entry.title if entry else name or ""


def task(name: str) -> str:
    """'Pre-training', as tables print it; a task that is not known keeps its name."""
    return TASKS.get(name, name)


def qualified(title: str, qualifiers: str) -> str:
    """'Llama 3 70B (dropout)': a model and what its page puts behind its name."""
    return f"{title} ({qualifiers})" if qualifiers else title
