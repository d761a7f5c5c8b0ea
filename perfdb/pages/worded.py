"""Titles of sizes below which words, switches or the numbers of rows may stand as well."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from perfdb.pages import cells, titles


def _of_parallel(short: str, words: str) -> tuple[str, ...]:
    """The titles of a parallel size, the shortest first: `TP`, `Tensor Parallel Size`."""
    sizes = ("", " Size", " Degree")
    parallel = ("Parallel", "Parallelism", "Model Parallel")
    long = (f"{words} {one}{size}" for one in parallel for size in sizes)
    return (*(f"{short}{size}" for size in sizes), *long)


PARALLEL: Final[Mapping[str, tuple[str, ...]]] = {
    "tensor_parallel": _of_parallel("TP", "Tensor"),
    "pipeline_parallel": _of_parallel("PP", "Pipeline"),
    "context_parallel": _of_parallel("CP", "Context"),
    "expert_parallel": _of_parallel("EP", "Expert"),
    "expert_tensor_parallel": _of_parallel("ETP", "Expert Tensor"),
    "virtual_pipeline": (*_of_parallel("VP", "Virtual Pipeline"), "VPP", "Virtual Pipeline"),
}
"""The titles of parallel sizes by field; those in full may be of words."""
LENGTHS: Final = ("Seq", "SL")
"""Titles of a sequence length that may be of another number."""

_IN_FULL: Final = frozenset(
    titles.squeezed(one) for known in PARALLEL.values() for one in known if " " in one
)
_LENGTHS: Final = frozenset(map(titles.squeezed, LENGTHS))
UNSURE: Final = _IN_FULL | _LENGTHS
"""What sets such titles apart."""

_NUMBER: Final = re.compile(r"\b[0-9]+\b")
"""A number by itself: in `1F1B` is none."""
_SHORTEST: Final = 64
"""No model is trained on shorter sequences: less is the number of a row, or in thousands."""


def is_size(title: str, texts: Iterable[str]) -> bool:
    """Whether the cells of a column may be what its title says of sizes."""
    squeezed = titles.squeezed(title)
    if squeezed in _LENGTHS:
        return _are_lengths(texts)
    return squeezed not in _IN_FULL or _are_parallel(texts)


def _are_parallel(texts: Iterable[str]) -> bool:
    """Whether one of the cells is a size, and not all are ticks, as 0 and 1 together are."""
    filled = {text for text in texts if not cells.absent(text)}
    if len(filled) > 1 and all(cells.ticked(text) is not None for text in filled):
        return False
    return not filled or any(map(_NUMBER.search, filled))


def _are_lengths(texts: Iterable[str]) -> bool:
    numbers = map(cells.decimal, texts)
    return not any(isinstance(one, float) and 0 < one < _SHORTEST for one in numbers)
