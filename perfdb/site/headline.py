"""The headline of a release: its highest TFLOP/s, of pre-training where it has any."""

from collections.abc import Sequence
from typing import Final

from perfdb.catalog import titles
from perfdb.site import bests
from perfdb.site.bests import FLOPS
from perfdb.site.data import Result
from perfdb.site.figures import figure
from perfdb.site.words import gpus

TITLE: Final = "Highest TFLOP/s"

RULE: Final = "of pre-training where there is any"

PRETRAINING: Final = "pretrain"


def of_systems(results: Sequence[Result]) -> tuple[Result, ...]:
    """The headline of each system, in the order of the catalogue."""
    first = [one for one in results if one.task == PRETRAINING]
    return tuple((bests.highest(results, FLOPS) | bests.highest(first, FLOPS)).values())


def of_all(results: Sequence[Result]) -> Result | None:
    """The headline of all systems together; None where no row without an error states TFLOP/s."""
    return max(of_systems(results), key=_rank, default=None)


def _rank(result: Result) -> tuple[bool, float]:
    return result.task == PRETRAINING, figure(result, FLOPS) or 0.0


def work(result: Result) -> str:
    """'Llama 3 8B, Pre-training, 8 GPUs, BF16': what was trained, and on how much."""
    model = titles.qualified(result.model_title, result.qualifiers)
    precision = bests.precision_of(result) or "precision not stated"
    size = gpus(result.num_gpus, result.system)
    return ", ".join((model, titles.task(result.task), size, precision))
