"""Every spelling of every column that published tables use, and the field each one means."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from perfdb.pages import cells
from perfdb.pages.outline import Table

ALIASES: Final[Mapping[str, tuple[str, ...]]] = {
    "model": ("Model", "Model Name"),
    "system": ("System", "DGX System"),
    "task": ("Task",),
    "precision": ("Precision", "Dtype"),
    "num_gpus": ("#-GPUs", "#GPUs", "GPUs", "Num GPUs", "Number of GPUs"),
    "global_batch_size": ("GBS", "Global Batch Size"),
    "micro_batch_size": ("MBS", "Micro Batch Size"),
    "local_batch_size": ("LBS", "Local Batch Size"),
    "gradient_accumulation": ("GA", "Gradient Accumulation", "Gradient Accumulations"),
    "sequence_length": (
        "Sequence Length", "Seq Length", "SeqLen", "Seq Len", "Packed Sequence Length",
    ),
    "tensor_parallel": ("TP",),
    "pipeline_parallel": ("PP",),
    "context_parallel": ("CP",),
    "expert_parallel": ("EP",),
    "expert_tensor_parallel": ("ETP",),
    "virtual_pipeline": ("VP", "VPP"),
    "data_parallel": ("DP",),
    "fsdp": ("FSDP",),
    "sequence_parallel": ("SP",),
    "kernels": ("Kernel Optimizations", "Kernels"),
    "step_time_s": (
        "Time per Global Step (s)", "Step Time (s)", "Training step time (seconds per step)",
    ),
    "tokens_per_sec_per_gpu": (
        "Tokens / sec / GPU", "Tokens/s/GPU", "Tokens per second per GPU",
    ),
    "model_tflops_per_sec_per_gpu": (
        "Model TFLOP / sec / GPU", "Model TFLOPs/sec/GPU", "Model TFLOP/s/GPU",
        "Model TFLOPs/s/GPU",
    ),
    "mfu": ("MFU", "MFU (%)", "Model flops utilization"),
}  # fmt: skip

EXTRAS: Final = (
    "Est. time to train in days (10T tokens, 1K GPUs)",
    "Est. time to finetune in mins (10M tokens)",
    "Time to train 1T tokens in days",
    "Throughput in tokens per second",
    "Layers",
    "Size",
)
"""Columns that are understood but have no field: they follow from others, or say nothing new."""

FIGURES: Final = frozenset(
    {"step_time_s", "tokens_per_sec_per_gpu", "model_tflops_per_sec_per_gpu", "mfu"}
)
_FEWEST = 3
"""Fields a table of results has at the least; a glossary of the figures has fewer."""


@dataclass(frozen=True)
class Column:
    """A column: its title, and the field it means; `known`: nothing needs to be said of it."""

    title: str
    field: str | None
    known: bool


def _squeezed(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "", re.sub(r"<[^>]*>", " ", title).casefold())


_FIELDS = {_squeezed(title): field for field, titles in ALIASES.items() for title in titles}
_KNOWN_EXTRAS = frozenset(map(_squeezed, EXTRAS))


def of(table: Table) -> tuple[Column, ...]:
    """The columns of a table. A title that stands twice gets a number, to tell them apart."""
    titles = [cells.cleaned(cell.text) for cell in table.header.cells]
    found: list[Column] = []
    seen: Counter[str] = Counter()
    for title in titles:
        seen[title] += 1
        times = seen[title]
        key = _squeezed(title)
        known = key in _FIELDS or key in _KNOWN_EXTRAS
        found.append(Column(title if times == 1 else f"{title} ({times})", _FIELDS.get(key), known))
    return tuple(found)


def are_results(header: Sequence[Column]) -> bool:
    """Whether a table with such a header holds results: a figure, and what was run."""
    fields = {column.field for column in header if column.field}
    return bool(fields & FIGURES) and len(fields) >= _FEWEST


def title_of(field: str, header: Sequence[Column]) -> str:
    """What the page calls a field; its usual title where the page has no column for it."""
    printed = (column.title for column in header if column.field == field)
    return next(printed, ALIASES[field][0])


def given_twice(header: Sequence[Column]) -> list[str]:
    """The titles of columns that mean the same field as another one."""
    fields = Counter(column.field for column in header if column.field)
    return [column.title for column in header if fields[column.field or ""] > 1]
