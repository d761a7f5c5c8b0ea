"""Every spelling of every column that published tables use, and the field each one means."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Final

from perfdb.pages import cells, names, titles, worded

if TYPE_CHECKING:  # a site needs what titles mean, and no outline
    from perfdb.pages.outline import Table

ALIASES: Final[Mapping[str, tuple[str, ...]]] = {
    "model": ("Model", "Model Name"),
    "system": ("System", "DGX System"),
    "hardware": ("Hardware", "Platform", "Machine"),
    "gpu": ("GPU", "GPU Type", "Accelerator"),
    "framework": ("Framework", "Library"),
    "release": ("Release", "Version"),
    "container": ("Container", "Container Image", "NGC Container", "Docker Image"),
    "task": ("Task",),
    "variant": ("Task Variant",),
    "precision": ("Precision", "Dtype", "Datatype"),
    "num_gpus": ("#-GPUs", "#GPUs", "GPUs", "Num GPUs", "Number of GPUs"),
    "global_batch_size": ("GBS", "Global Batch Size"),
    "micro_batch_size": ("MBS", "Micro Batch Size"),
    "local_batch_size": ("LBS", "Local Batch Size"),
    "gradient_accumulation": ("GA", "Gradient Accumulation", "Gradient Accumulations"),
    "sequence_length": (
        "Sequence Length", "Seq Length", "SeqLen", "Seq Len", "Packed Sequence Length",
        *worded.LENGTHS,
    ),
    **worded.PARALLEL,
    "data_parallel": ("DP",),
    "fsdp": ("FSDP",),
    "sequence_parallel": ("SP",),
    "kernels": ("Kernel Optimizations", "Kernels"),
    "step_time_s": (
        "Time per Global Step (s)", "Step Time (s)", "Training step time (seconds per step)",
    ),
    "tokens_per_sec_per_gpu": ("Tokens / sec / GPU", "Tokens/s/GPU", "Tokens per second per GPU"),
    "model_tflops_per_sec_per_gpu": (
        "Model TFLOP / sec / GPU", "Model TFLOPs/sec/GPU", "Model TFLOP/s/GPU", "TFLOP/s/GPU",
        "Model TFLOPs/s/GPU", "TFLOPS (per GPU, model)",
    ),
    "mfu": ("MFU", "MFU (%)", "% MFU", "Model flops utilization", "Model flops utilization (%)"),
    "tokens_per_sec": ("Throughput in tokens per second", "Throughput (tokens per second)"),
}  # fmt: skip

MILLISECONDS: Final = (
    "Step Time (ms)", "Step Time in ms", "Time per Global Step (ms)", "Time per Step (ms)",
    "Training step time (milliseconds per step)", "Iteration Time (ms)",
    "Elapsed Time per Iteration (ms)", "Time per Iteration (ms)", "Time/iter (ms)", "ms/step",
    "ms/iter",
)  # fmt: skip
"""Titles of a step time in milliseconds; beside one in seconds it is an extra."""

EXTRAS: Final = (
    "Est. time to train in days (10T tokens, 1K GPUs)",
    "Est. time to finetune in mins (10M tokens)",
    "Time to train 1T tokens in days",
    "Layers",
    "Size",
)
"""Columns that are understood but have no field: they follow from others, or say nothing new."""
OF_MODEL: Final[Mapping[str, str]] = {"size": "Size", "layers": "Layers"}
"""Of these what says something of the model, and must fit its name."""

FIGURES: Final = frozenset(
    {"step_time_s", "tokens_per_sec_per_gpu", "model_tflops_per_sec_per_gpu", "mfu",
     "tokens_per_sec"}
)  # fmt: skip
OF_RELEASE: Final = frozenset({"framework", "release", "container"})
OF_SYSTEM: Final = ("system", "hardware", "gpu")
"""Fields that name a system; the first one says no less than that."""
SIZES: Final = ALIASES.keys() - {
    *FIGURES, *OF_RELEASE, *OF_SYSTEM, "model", "task", "variant", "precision", "kernels"
}  # fmt: skip
"""Fields of a configuration that are numbers."""

SETTINGS: Final = (
    "Nodes", "#Nodes", "Num Nodes", "Number of Nodes", "GPUs per Node", "Steps", "Max Steps",
    "Epochs", "Seed", "LR", "Learning Rate", "Min LR", "Warmup", "Warmup Steps", "Weight Decay",
    "Hidden Size", "Heads", "Attention Heads", "Parameters", "Params", "Params (B)", "Vocab Size",
    "Warmup (%)", "Experts", "Top-K", "LoRA Rank", "Rank", "Dropout", "Dropout (%)", "Date",
)  # fmt: skip
"""Columns without a field that are no figures: a table of these is a recipe."""

FEWEST = 3
"""Fields a table of results has at the least; a glossary of the figures has fewer."""

_BETWEEN = re.compile(r"[/,]")
_TIME: Final = "step_time_s"

_OTHER_UNIT = re.compile(r"\bms\b|milli|\bmin|hour|[(\[][a-rt-z][)\]]", re.IGNORECASE)
"""A title in another unit than ours is not mistyped."""


@dataclass(frozen=True)
class Column:
    """A column: its title, and the fields it means; `known`: nothing needs to be said of it.

    It has one field, several where it is a `TP/PP/CP` with values such as `8/1/4`, or none.
    `in_ms`: its cells are in milliseconds, their texts in seconds.
    """

    title: str
    fields: tuple[str, ...]
    known: bool
    in_ms: bool = False

    @cached_property
    def precision(self) -> str:
        """What the title says of the precision of its values, as a cell would; empty if nothing."""
        first, *second = (self.fields and _qualified(self.title).precisions) or ("",)
        return f"{first} ({second[0]})" if second else first

    def texts(self, text: str) -> Mapping[str, str] | None:
        """The text of each field in a cell's; None where there are not as many as fields."""
        if len(self.fields) < 2:
            return dict.fromkeys(self.fields, cells.seconds(text) if self.in_ms else text)
        values = cells.parts(text, len(self.fields))
        return None if values is None else dict(zip(self.fields, values, strict=True))


_FIELDS = {titles.squeezed(title): field for field, known in ALIASES.items() for title in known}
_IN_MS = frozenset(map(titles.squeezed, MILLISECONDS))
_KNOWN_EXTRAS = frozenset(map(titles.squeezed, EXTRAS))
_SETTINGS = frozenset({*map(titles.squeezed, SETTINGS), *worded.UNSURE})
_LESSER = frozenset({"datatype", "library", *worded.UNSURE})


def fields_of(title: str) -> tuple[str, ...]:
    """The fields that a title means: of `TP / PP`, both; none where a part of it is not known.

    One that is struck out means nothing.
    """
    return () if cells.struck(title) else _exactly(title) or _qualified(title).fields


def _exactly(title: str) -> tuple[str, ...]:
    squeezed = titles.squeezed(title)
    whole = _TIME if squeezed in _IN_MS else _FIELDS.get(squeezed) or titles.figure(title)
    if whole:
        return (whole,)
    parts = [_FIELDS.get(titles.squeezed(part)) for part in _BETWEEN.split(title)]
    return tuple(filter(None, parts)) if all(parts) else ()


@dataclass(frozen=True)
class _Qualified:
    """A figure's title with words behind it: what it means without them, and its precisions."""

    title: str = ""
    fields: tuple[str, ...] = ()
    precisions: tuple[str, ...] = ()


@lru_cache(maxsize=1024)
def _qualified(title: str) -> _Qualified:
    """What a title such as `MFU (median)` or `MFU FP8-CS (FP8-MX)` means; nothing if no such."""
    for plain, precisions in titles.without_ends(title):
        fields = _exactly(plain)
        if len(fields) == 1 and fields[0] in FIGURES:
            return _Qualified(plain, fields, precisions)
    return _Qualified()


def says_nothing_new(title: str) -> bool:
    """Whether a title is understood and has no field on purpose."""
    return titles.squeezed(title) in _KNOWN_EXTRAS


def of(table: "Table") -> tuple[Column, ...]:
    """The columns of a table. A title that stands twice gets a number, to tell them apart."""
    titles_ = [cells.title(cell.text) for cell in table.header.cells]
    found: list[Column] = []
    seen: Counter[str] = Counter()
    for place, (title, meant) in enumerate(zip(titles_, _meant(titles_), strict=True)):
        seen[title] += 1
        corner = (table.corner,) if place == 0 and table.corner else ()
        below = (row.cells[place].text for row in table.rows if place < len(row.cells))
        is_meant = worded.is_size(title, map(cells.value, below))
        fields = (meant if is_meant else ()) or corner
        known = bool(fields) or says_nothing_new(title)
        numbered = title if seen[title] == 1 else f"{title} ({seen[title]})"
        found.append(Column(numbered, fields, known, is_in_ms(title)))
    return tuple(found)


def _meant(titles_: Sequence[str]) -> list[tuple[str, ...]]:
    """The fields that each title of a table means.

    What another one says without more words is an extra: milliseconds beside seconds, a mean.
    """
    plain = {field for title in titles_ if not _gives_way(title) for field in _exactly(title)}
    repeats = (
        (_gives_way(title) or not _exactly(title)) and not plain.isdisjoint(fields_of(title))
        for title in titles_
    )
    return [() if again else fields_of(it) for it, again in zip(titles_, repeats, strict=True)]


def _gives_way(title: str) -> bool:
    return is_in_ms(title) or titles.squeezed(title) in _LESSER


@lru_cache(maxsize=1024)
def title_by_field(titles_: tuple[str, ...]) -> Mapping[str, str]:
    """The title of the column that each field of a table is read from."""
    meant = zip(titles_, _meant(titles_), strict=True)
    return {field: title for title, fields in meant for field in fields}


def is_in_ms(title: str) -> bool:
    """Whether the values below a title are step times in milliseconds."""
    return not {titles.squeezed(title), titles.squeezed(_qualified(title).title)}.isdisjoint(_IN_MS)


def precision(header: Iterable[Column]) -> str:
    """What the titles of a table say of the precision of its values; empty if nothing."""
    return max((column.precision for column in header), key=len, default="")


def at_odds(header: Sequence[Column]) -> list[str]:
    """The titles that state precisions, where they are not the same ones."""
    stated = {column.title: names.precisions(column.precision) for column in header}
    every = names.precisions(precision(header))
    if all(one == every[: len(one)] for one in stated.values()):
        return []
    return [title for title, one in stated.items() if one]


def texts(printed: Iterable[tuple[Column, str]]) -> dict[str, str]:
    """The texts of a row by field, from those of its cells; a title may state the precision."""
    every = list(printed)
    found = {name: t for column, text in every for name, t in (column.texts(text) or {}).items()}
    of_model = ((titles.squeezed(column.title), text) for column, text in every)
    found |= {name: t for name, t in of_model if name in OF_MODEL and not cells.pair(t)}
    titled = precision(column for column, _ in every)
    return {**found, "precision": titled} if titled else found


def all_fields(header: Sequence[Column]) -> list[str]:
    """The fields of all columns, a field as often as it has columns."""
    return [field for column in header for field in column.fields]


def are_results(header: Sequence[Column]) -> bool:
    """Whether a table with such a header holds results: a figure, and what was run.

    A figure's title may be mistyped: its rows are then rejected, and not passed over in silence.
    """
    fields = set(all_fields(header))
    if not fields & FIGURES:
        fields |= set(mistyped(header).values())
    return bool(fields & FIGURES) and len(fields - OF_RELEASE) >= FEWEST


def may_be_figure(column: Column) -> bool:
    """Whether a column that is not known may hold a figure: any that is no setting."""
    return not column.known and titles.squeezed(column.title) not in _SETTINGS


def mistyped(header: Sequence[Column]) -> Mapping[str, str]:
    """The titles that come close to that of a field which has no column: of `GSB` it is GBS.

    The same letters in another order do, and one letter more, less or otherwise: `Tokens per GPU`
    is no tokens/s/GPU, nor is `Tokens/s/GPU (%)`.
    """
    lacking = ALIASES.keys() - set(all_fields(header))
    spelled = {title: field for title, field in _FIELDS.items() if field in lacking}
    moved = {"".join(sorted(title)): title for title in spelled}
    found = {}
    for column in header:
        unlike = not may_be_figure(column) or _OTHER_UNIT.search(column.title)
        title = "" if unlike else titles.squeezed(column.title)
        close = (one for one in spelled if titles.is_a_letter_off(title, one))
        if meant := moved.get("".join(sorted(title))) or next(close, None):
            found[column.title] = spelled[meant]
    return found


def title_of(field: str, header: Sequence[Column]) -> str:
    """What the page calls a field; its usual title where the page has no column for it."""
    if field in OF_MODEL:
        return next(it.title for it in header if titles.squeezed(it.title) == field)
    fields = OF_SYSTEM if field == "system" else (field,)
    printed = (column.title for one in fields for column in header if one in column.fields)
    return next(printed, ALIASES[field][0])


def given_twice(header: Sequence[Column]) -> list[str]:
    """The titles of columns that mean the same field as another one."""
    fields = Counter(all_fields(header))
    return [column.title for column in header if any(fields[one] > 1 for one in column.fields)]
