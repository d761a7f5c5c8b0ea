"""What pages call things, and how a name from the store becomes a file name or MyST text."""

import hashlib
import re
from collections.abc import Iterable, Mapping
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
FINE_TUNING: Final = "fine-tuning"
"""The section of several fine-tuning tasks that stand in one table."""
UNATTRIBUTED: Final = "unattributed"


def framework_title(name: str) -> str:
    """'dfm' is NeMo DFM; a framework that is not known keeps its name."""
    return FRAMEWORKS.get(name, name)


def release_title(framework: str, version: str | None) -> str:
    """'NeMo Framework 25.04'; a release whose version nobody stated is unattributed."""
    return f"{framework_title(framework)} {version or f'({UNATTRIBUTED})'}"


def section_title(task: str, variant: str | None) -> str:
    """'Pre-training', or 'Megatron-Core pre-training' where a release has several variants."""
    title = "Fine-tuning" if task == FINE_TUNING else TASKS.get(task, task)
    return f"{title}: {framework_title(variant)}" if variant else title


def natural(words: str) -> tuple[tuple[int, int, str], ...]:
    """A key that sorts numbers as numbers: 0.9 before 0.16."""
    parts = re.findall(r"[0-9]+|[^0-9]+", words)
    return tuple((1, int(p), "") if p.isdecimal() else (0, 0, p) for p in parts)


def is_rolling(version: str | None) -> bool:
    """Whether a version is a branch that moves on: it has no number, as main has none."""
    return version is not None and not re.search(r"[0-9]", version)


def version_order(version: str | None) -> tuple[int, tuple[tuple[int, int, str], ...]]:
    """A key that sorts versions: what nobody stated, releases by number, rolling branches."""
    rank = 0 if version is None else 2 if is_rolling(version) else 1
    return rank, natural(version or "")


def newest_version(versions: Iterable[str | None]) -> str | None:
    """The release of the highest number; a rolling branch only where nothing has a number."""
    given = sorted(versions, key=version_order, reverse=True)
    numbered = [one for one in given if one is not None and not is_rolling(one)]
    return next(iter([*numbered, *given]), None)


def slug(name: str) -> str:
    """A name as a part of an address; one that has to change gets a hash, to stay unique."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-._")
    if plain == name and name != "index":
        return name
    return f"{plain}-{hashlib.sha256(name.encode()).hexdigest()[:8]}".lstrip("-")


def myst(words: str) -> str:
    """Any text as MyST that prints as that text, on one line: every sign is escaped."""
    return re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", " ".join(words.split()))
