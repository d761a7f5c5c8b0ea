"""GA must be GBS ÷ (MBS × DP), a whole number; AutoModel counts the local batch in place of MBS."""

from collections.abc import Iterator, Sequence

from perfdb.audit import layout
from perfdb.audit.printed import figure
from perfdb.audit.subject import SHORT, Remark, Severity, Subject

NAME = "gradient_accumulation"
MEANING = "GA is GBS ÷ (MBS × DP), a whole number (LBS in place of MBS for AutoModel)"


def check(rows: Sequence[Subject]) -> Iterator[Remark]:
    """Rows whose batch is no whole number of accumulation steps, or not the printed number.

    Where GBS and MBS are swapped, the row is taken as it must have been meant.
    """
    for row in rows:
        meant = layout.swapped(row) or row
        batch, ranks = layout.batch(meant), layout.data_parallel(meant)
        if not batch or not ranks or batch * ranks > meant.global_batch_size:
            continue
        steps, rest = divmod(meant.global_batch_size, batch * ranks)
        if rest or meant.gradient_accumulation not in (None, steps):
            yield _remark(row, meant, batch, ranks)


def _remark(row: Subject, meant: Subject, batch: int, ranks: int) -> Remark:
    field, steps = layout.batch_field(meant), meant.global_batch_size / (batch * ranks)
    printed = row.gradient_accumulation
    swapped = "" if meant is row else " (GBS and MBS taken as swapped)"
    given = "no whole number" if printed is None else f"the row says {printed:,}"
    return Remark(
        row,
        Severity.ERROR,
        ("gradient_accumulation", "global_batch_size", field, "data_parallel"),
        f"GA {steps:g}",
        f"GA {printed:,}" if printed else None,
        f"GBS {meant.global_batch_size:,} ÷ ({SHORT[field]} {batch:,} × DP {ranks:,}) is "
        f"{steps:g} accumulation steps; {given}{swapped}",
        _suggestion(meant, batch, ranks),
    )


def _suggestion(row: Subject, batch: int, ranks: int) -> str | None:
    """The changes of one field that make the row consistent, as far as they come whole.

    A row whose rate and step time agree has its GBS and GPUs right.
    """
    gbs, steps = row.global_batch_size, row.gradient_accumulation
    changes = [f"GA {gbs // (batch * ranks):,}"] if gbs % (batch * ranks) == 0 else []
    if steps:
        changes += [f"{SHORT[layout.batch_field(row)]} {n:,}" for n in _whole(gbs, ranks * steps)]
    if steps and not figure(row, "step_time_s"):
        changes.append(f"GBS {batch * ranks * steps:,}")
        gpus = (n * layout.model_parallel(row) for n in _whole(gbs, batch * steps))
        changes += [f"GPUs {n:,}" for n in gpus if layout.known(row)]
    return "one of: " + ", ".join(changes) if changes else None


def _whole(dividend: int, divisor: int) -> list[int]:
    """The quotient where it is whole."""
    return [] if dividend % divisor else [dividend // divisor]
