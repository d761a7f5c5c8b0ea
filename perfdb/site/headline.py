"""The headline of a release: its highest TFLOP/s, of pre-training where it has any."""

from collections.abc import Callable, Sequence
from typing import Final

from perfdb.catalog import titles
from perfdb.record import Frozen
from perfdb.site import bests
from perfdb.site.bests import FLOPS
from perfdb.site.data import Result
from perfdb.site.figures import figure
from perfdb.site.markup import Cell
from perfdb.site.words import gpus
from perfdb.units import UNKNOWN

TITLE: Final = "Highest TFLOP/s"

RULE: Final = "of pre-training where there is any"

PRETRAINING: Final = "pretrain"


def of_systems(results: Sequence[Result]) -> tuple[Result, ...]:
    """The headline of each system, in the order of the catalogue."""
    first = [one for one in results if one.task == PRETRAINING]
    return tuple((bests.highest(results, FLOPS) | bests.highest(first, FLOPS)).values())


class Highest(Frozen):
    """The headline of all systems together as lists have it: in words, and as a number."""

    said: str
    tflops: float


def highest(results: Sequence[Result], where: Callable[[Result], str]) -> Highest | None:
    """The headline of all systems together; None where no row without an error states TFLOP/s.

    `where` says what stands behind the work.
    """
    top = max(of_systems(results), key=_rank, default=None)
    if top is None:
        return None
    said = f"{bests.said(top, FLOPS)} TFLOP/s/GPU: {work(top)}{where(top)}"
    return Highest(said=said, tflops=figure(top, FLOPS) or 0.0)


def cell(given: Highest | None) -> Cell:
    """The headline in a list, sorted by its number."""
    return Cell(given.said, sort=given.tflops) if given else Cell(UNKNOWN)


def _rank(result: Result) -> tuple[bool, float]:
    return result.task == PRETRAINING, figure(result, FLOPS) or 0.0


def work(result: Result) -> str:
    """'Llama 3 8B, Pre-training, 8 GPUs, BF16': what was trained, and on how much."""
    model = titles.qualified(result.model_title, result.qualifiers)
    precision = bests.precision_of(result) or "precision unknown"
    size = gpus(result.num_gpus, result.system)
    return ", ".join((model, titles.task(result.task), size, precision))
