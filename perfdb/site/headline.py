"""The headline of a release: its highest TFLOP/s, of pre-training where it has any."""

from collections.abc import Callable, Sequence
from typing import Final

from perfdb.catalog import titles
from perfdb.record import Frozen
from perfdb.site import addresses, bests
from perfdb.site.addresses import Address
from perfdb.site.bests import FLOPS
from perfdb.site.data import Result
from perfdb.site.figures import figure
from perfdb.site.markup import Cell, joined, link
from perfdb.site.rows import row_id
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
    """The headline of all systems together: '389.00', of which work, and the row it stands in."""

    figure: str
    work: str
    tflops: float
    framework: str
    release: str | None
    row: str


def highest(results: Sequence[Result], where: Callable[[Result], str]) -> Highest | None:
    """The headline of all systems together; None where no row without an error states TFLOP/s.

    `where` says what stands behind the work.
    """
    top = max(of_systems(results), key=_rank, default=None)
    if top is None:
        return None
    return Highest(
        figure=bests.said(top, FLOPS),
        work=f"TFLOP/s/GPU: {work(top)}{where(top)}",
        tflops=figure(top, FLOPS) or 0.0,
        framework=top.framework,
        release=top.release,
        row=row_id(top),
    )


def cell(given: Highest | None, address: Address) -> Cell:
    """The headline in a list, sorted by its number, which leads to its row."""
    if given is None:
        return Cell(UNKNOWN)
    row = addresses.of_row(given.framework, given.release, given.row, address)
    return Cell(joined((link(given.figure, row), given.work), " "), sort=given.tflops)


def _rank(result: Result) -> tuple[bool, float]:
    return result.task == PRETRAINING, figure(result, FLOPS) or 0.0


def work(result: Result) -> str:
    """'Llama 3 8B, Pre-training, 8 GPUs, BF16': what was trained, and on how much."""
    model = titles.qualified(result.model_title, result.qualifiers)
    precision = bests.precision_of(result) or "precision unknown"
    size = gpus(result.num_gpus, result.system)
    return ", ".join((model, titles.task(result.task), size, precision))
