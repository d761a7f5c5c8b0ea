"""Figures that count FLOPs, restated in another convention. Pure functions.

What a row counts is the convention that it states, else one whose formula gives what its figures
come to: TFLOP/s over tokens/s is the FLOPs of a token.
"""

from typing import Final, NamedTuple

from perfdb import catalog, flops
from perfdb.audit import flop_counts
from perfdb.audit.interval import Interval
from perfdb.audit.rules import ReleaseRows
from perfdb.flops.base import Convention
from perfdb.messages import note_text
from perfdb.record import Result
from perfdb.stated import MFU, FigureInputs, figure
from perfdb.units import significant

PACKED: Final = "examples are packed, of lengths that are not stated: attention is not counted"


class Restated(NamedTuple):
    """A row's figures in another convention, or only a note on why they are not restated."""

    convention: str | None = None
    tflops_per_sec_per_gpu: float | None = None
    mfu: float | None = None
    restated_from: str | None = None
    note: str | None = None


def counted_by(
    row: Result, count: Interval | None, usual: Convention | None
) -> tuple[Convention | None, str | None]:
    """The convention of a row, and how it is known, or why it is not; None: the row states it.

    `count`: its GFLOP per token; `usual`: the convention of its release. One is identified by the
    row: that of the release if it explains the row, else the plainest one that does.
    """
    if stated := flop_counts.stated(row):
        return stated, None
    if count is None:
        return None, f"{row.model}: without tokens/s or a step time its convention cannot be told"
    if flop_counts.formula(row, flops.DEFAULT) is None:
        return None, f"no formula covers {row.model}"
    explaining = flop_counts.explaining(row, count)
    text = f"{significant(count.value)} GFLOP per token"
    if not explaining:
        return None, f"counts {text}, which no convention gives"
    return next((one for one in explaining if one == usual), explaining[0]), f"identified by {text}"


def counted_alone(row: Result) -> tuple[Convention | None, str | None]:
    """The same of a row without the others of its release."""
    alone = ReleaseRows([row])
    return counted_by(row, next((count for _, count in alone.counted), None), alone.usual)


def restate(
    row: Result, counted: Convention | None, to: Convention, note: str | None = None
) -> Restated:
    """A row's figures, which count by one convention, as another one counts them.

    `note`: how the first convention is known, or why it is not.
    """
    if row.model_tflops_per_sec_per_gpu is None and row.mfu is None:
        reason = note_text(row.withheld) if row.withheld else None
        return Restated(note=reason or "states neither model TFLOP/s nor MFU")
    model = catalog.models().get(row.model)
    if model is None or counted is None:
        return Restated(note=note or f"{row.model!r} is not in the catalogue")
    packed = _packed(row, counted)
    work = flops.CountedWork(model, row.sequence_length, row.task, packed)
    factor = flops.restate(1.0, work, counted, to)
    if factor is None:
        return Restated(note=f"no formula covers {row.model}")
    tflops = row.model_tflops_per_sec_per_gpu
    mfu = figure(FigureInputs.model_validate(row, from_attributes=True), MFU)
    return Restated(
        to.name,
        None if tflops is None else tflops * factor,
        None if mfu is None else mfu * factor,
        counted.name,
        "; ".join(filter(None, (note, PACKED if packed else None))) or None,
    )


def _packed(row: Result, counted: Convention) -> bool | None:
    """Whether a row's figures leave out attention, as of packed examples; None: not known.

    A page has full examples if its figures count attention over the whole sequence, and if it does
    not call them packed.
    """
    if row.task == "pretrain" or row.is_measured:
        return None
    if counted.packed_fine_tuning:
        return True
    return None if any("packed" in title.lower() for title in row.raw) else False
