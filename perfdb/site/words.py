"""What pages call things, and how a name from the store becomes MyST text."""

import json
import re
from typing import Final

from perfdb import catalog
from perfdb.catalog import titles
from perfdb.site.addresses import UNATTRIBUTED
from perfdb.units import counted

framework_title: Final = titles.framework
TUNED: Final = ("sft", "lora")
"""Tasks that are kinds of fine-tuning."""
FINE_TUNING: Final = "fine-tuning"
"""The section of several fine-tuning tasks that stand in one table."""
TRIAL: Final = "a trial without a GPU"
"""What is said of a release that has no result on a GPU."""

_NOT_IN_YAML: Final = re.compile("[<\x7f-\x9f\ud800-\udfff\ufeff\ufffe\uffff]")
"""What JSON leaves as it is, and YAML cannot hold; and what begins markup."""


def release_title(framework: str, version: str | None) -> str:
    """'NeMo Framework 25.04'; a release whose version nobody stated is unattributed."""
    return f"{framework_title(framework)} {version or f'({UNATTRIBUTED})'}"


def section_title(task: str, variant: str | None) -> str:
    """'Pre-training', or 'Megatron-Core pre-training' where a release has several variants."""
    title = "Fine-tuning" if task == FINE_TUNING else titles.task(task)
    title = f"Fine-tuning ({title})" if task in TUNED else title
    return f"{title}: {framework_title(variant)}" if variant else title


def gpus(count: int, system: str) -> str:
    """'1 GPU', '2,048 GPUs'; '2 processes' on a system that has no GPUs."""
    if catalog.has_gpus(system):
        return counted(count, "GPU")
    return f"{count:,} process{'' if count == 1 else 'es'}"


def quoted(words: str) -> str:
    """Any text as YAML, on one line; nor does a reader that knows no YAML find markup there."""
    text = json.dumps(words, ensure_ascii=False)
    return _NOT_IN_YAML.sub(lambda sign: f"\\u{ord(sign[0]):04x}", text)


def myst(words: str) -> str:
    """Any text as MyST that prints as that text, on one line: every sign is escaped."""
    return re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", " ".join(words.split()))
