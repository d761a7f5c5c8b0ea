"""What pages call things, and how a name from the store becomes a file name or MyST text."""

import hashlib
import re
from functools import lru_cache
from typing import Final

from perfdb.catalog import titles

FRAMEWORKS: Final = titles.FRAMEWORKS
TUNED: Final = ("sft", "lora")
"""Tasks that are kinds of fine-tuning."""
FINE_TUNING: Final = "fine-tuning"
"""The section of several fine-tuning tasks that stand in one table."""
UNATTRIBUTED: Final = "unattributed"
TRIAL: Final = "a trial without a GPU"
"""What is said of a release that has no result on a GPU."""


def framework_title(name: str) -> str:
    """'dfm' is NeMo DFM; a framework that is not known keeps its name."""
    return FRAMEWORKS.get(name, name)


def release_title(framework: str, version: str | None) -> str:
    """'NeMo Framework 25.04'; a release whose version nobody stated is unattributed."""
    return f"{framework_title(framework)} {version or f'({UNATTRIBUTED})'}"


def section_title(task: str, variant: str | None) -> str:
    """'Pre-training', or 'Megatron-Core pre-training' where a release has several variants."""
    title = "Fine-tuning" if task == FINE_TUNING else titles.task(task)
    title = f"Fine-tuning ({title})" if task in TUNED else title
    return f"{title}: {framework_title(variant)}" if variant else title


def gpus(count: int) -> str:
    """'1 GPU', '2,048 GPUs'."""
    return f"{count:,} GPU{'' if count == 1 else 's'}"


@lru_cache(maxsize=10_000)
def slug(name: str) -> str:
    """A name as a part of an address; one that has to change gets a hash, to stay unique."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-._")
    if plain == name and name != "index":
        return name
    return f"{plain}-{hashlib.sha256(name.encode()).hexdigest()[:8]}".lstrip("-")


def myst(words: str) -> str:
    """Any text as MyST that prints as that text, on one line: every sign is escaped."""
    return re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", " ".join(words.split()))
