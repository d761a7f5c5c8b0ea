"""Figures that count FLOPs, restated in one convention so that releases compare.

What a page counted is read off its figures, as the audit does: TFLOP/s over tokens/s is the FLOPs
of a token, and those are what some convention gives. What none gives is not restated.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from perfdb import catalog, flops
from perfdb.audit import check, flop_counts
from perfdb.audit.base import releases
from perfdb.audit.equations import reader
from perfdb.audit.interval import Interval
from perfdb.export import results
from perfdb.export.base import Cell, Column, Table
from perfdb.flops.base import Convention
from perfdb.messages import note_text
from perfdb.queries.scope import Scope
from perfdb.record import Result
from perfdb.stated import MFU, FigureInputs, figure
from perfdb.units import significant

COLUMNS = (
    Column("restated_convention", str),
    Column("restated_model_tflops_per_sec_per_gpu", float),
    Column("restated_mfu", float),
    Column("restated_from", str),
    Column("restated_note", str),
)


PACKED = "examples are packed, of lengths that are not stated: attention is not counted"


@dataclass(frozen=True)
class Restated:
    """A row's figures in the convention asked for, which one they followed, and how that is known.

    Without `from_` nothing is restated, and the note says why.
    """

    tflops_per_sec_per_gpu: float | None = None
    mfu: float | None = None
    from_: Convention | None = None
    note: str | None = None


@dataclass(frozen=True)
class ConventionOfRow:
    """What is known of the convention that a row follows, and by what."""

    convention: Convention | None
    note: str | None = None


def table(connection: Connection, convention: Convention, scope: Scope | None = None) -> Table:
    """The current results as `perfdb.export.results` has them, with their restated figures.

    What a page counted is read off all rows of its release, also where the scope has some alone.
    """
    found = results.rows(connection, scope or Scope())
    plain = results.table_of(found)
    added: dict[object, tuple[Cell, ...]] = {
        subject.result_id: _cells(convention, restate(subject, told, convention))
        for subject, told in _conventions(check.stored(connection)[0])
    }
    rows = tuple(
        (*cells, *added[row["result_id"]]) for row, cells in zip(found, plain.rows, strict=True)
    )
    return Table((*plain.columns, *COLUMNS), rows)


def restate(row: Result, told: ConventionOfRow, to: Convention) -> Restated:
    """A row's figures as another convention counts them."""
    if row.model_tflops_per_sec_per_gpu is None and row.mfu is None:
        reason = note_text(row.withheld) if row.withheld else None
        return Restated(note=reason or "states neither model TFLOP/s nor MFU")
    model = catalog.models().get(row.model)
    if model is None or told.convention is None:
        return Restated(note=told.note or f"{row.model!r} is not in the catalogue")
    packed = _packed(row, told.convention)
    work = flops.CountedWork(model, row.sequence_length, row.task, packed)
    factor = flops.restate(1.0, work, told.convention, to)
    if factor is None:
        return Restated(note=f"no formula covers {row.model}")
    return Restated(
        _times(row.model_tflops_per_sec_per_gpu, factor),
        _times(figure(FigureInputs.model_validate(row, from_attributes=True), MFU), factor),
        told.convention,
        "; ".join(filter(None, (told.note, PACKED if packed else None))) or None,
    )


def _packed(row: Result, counted: Convention) -> bool | None:
    """Whether a row's figures leave out attention, as of packed examples; None: not known.

    A page whose figures count attention over the whole sequence, and which does not call it packed,
    has full ones.
    """
    if row.task == "pretrain" or row.is_measured:
        return None
    if counted.packed_fine_tuning:
        return True
    return None if any("packed" in title.lower() for title in row.raw) else False


def _conventions(subjects: Sequence[Result]) -> Iterator[tuple[Result, ConventionOfRow]]:
    """Each row with what it counts: as is stored with it, else as its figures say."""
    identified = {
        row.result_id: told for rows in releases(subjects) for row, told in _identified(rows)
    }
    for row in subjects:
        known = flops.CONVENTIONS.get(row.flops_convention or "")
        yield row, ConventionOfRow(known) if known else identified[row.result_id]


def _identified(rows: Sequence[Result]) -> Iterator[tuple[Result, ConventionOfRow]]:
    counted = flop_counts.counted(rows, reader(rows))
    usual = flop_counts.convention_of(counted)
    given = {row.result_id: count for row, count in counted}
    for row in rows:
        count = given.get(row.result_id)
        none = f"{row.model}: without tokens/s or a step time its convention cannot be told"
        yield row, _identified_by(row, count, usual) if count else ConventionOfRow(None, none)


def _identified_by(row: Result, given: Interval, usual: Convention | None) -> ConventionOfRow:
    """The release's convention where it explains the row, else the plainest one that does."""
    explaining = flop_counts.explaining(row, given)
    count = f"{significant(given.value)} GFLOP per token"
    if flop_counts.formula(row, flops.DEFAULT) is None:
        return ConventionOfRow(None, f"no formula covers {row.model}")
    if not explaining:
        return ConventionOfRow(None, f"counts {count}, which no convention gives")
    chosen = next((one for one in explaining if one == usual), explaining[0])
    return ConventionOfRow(chosen, f"identified by {count}")


def _times(figure: float | None, factor: float) -> float | None:
    return None if figure is None else figure * factor


def _cells(convention: Convention, one: Restated) -> tuple[Cell, ...]:
    if one.from_ is None:
        return (None, None, None, None, one.note)
    return (convention.name, one.tflops_per_sec_per_gpu, one.mfu, one.from_.name, one.note)
