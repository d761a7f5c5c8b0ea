"""What pages call things, and how a name from the store becomes a file name or MyST text."""

import hashlib
import re
from collections.abc import Mapping
from typing import Final

FRAMEWORKS: Final[Mapping[str, str]] = {
    "automodel": "NeMo AutoModel",
    "dfm": "NeMo DFM",
    "megatron-bridge": "Megatron-Bridge",
    "megatron-core": "Megatron-Core",
    "nemo": "NeMo Framework",
}
TASKS: Final[Mapping[str, str]] = {
    "pretrain": "Pre-training",
    "sft": "Fine-tuning (SFT)",
    "lora": "Fine-tuning (LoRA)",
}
UNATTRIBUTED: Final = "unattributed"


def framework_title(name: str) -> str:
    """'dfm' is NeMo DFM; a framework that is not known keeps its name."""
    return FRAMEWORKS.get(name, name)


def release_title(framework: str, version: str | None) -> str:
    """'NeMo Framework 25.04'; a release whose version nobody stated is unattributed."""
    return f"{framework_title(framework)} {version or f'({UNATTRIBUTED})'}"


def section_title(task: str, variant: str | None) -> str:
    """'Pre-training', or 'Megatron-Core pre-training' where a release has several variants."""
    title = TASKS.get(task, task)
    return f"{title}: {framework_title(variant)}" if variant else title


def natural(words: str) -> tuple[tuple[int, int, str], ...]:
    """A key that sorts numbers as numbers: 0.9 before 0.16."""
    parts = re.findall(r"[0-9]+|[^0-9]+", words)
    return tuple((1, int(p), "") if p.isdecimal() else (0, 0, p) for p in parts)


def slug(name: str) -> str:
    """A name as a part of an address; one that has to change gets a hash, to stay unique."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-._")
    if plain == name and name != "index":
        return name
    return f"{plain}-{hashlib.sha256(name.encode()).hexdigest()[:8]}".lstrip("-")


def myst(words: str) -> str:
    """Any text as MyST that prints as that text, on one line: every sign is escaped."""
    return re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", " ".join(words.split()))
