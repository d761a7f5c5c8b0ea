"""GA must be GBS ÷ (MBS × DP), a whole number; AutoModel counts the local batch in place of MBS."""

from collections.abc import Iterator, Sequence

from perfdb.audit import layout, mended
from perfdb.audit.release import Release
from perfdb.audit.subject import SHORT, Remark, Severity, Subject

NAME = "gradient_accumulation"
MEANING = "GA is GBS ÷ (MBS × DP), a whole number (LBS in place of MBS for AutoModel)"


def check(rows: Sequence[Subject]) -> Iterator[Remark]:
    """Rows whose batch is no whole number of accumulation steps, or not the printed number.

    Where GBS and MBS are swapped, the row is taken as it must have been meant.
    """
    release = Release(rows)
    for row in rows:
        meant = layout.swapped(row) or row
        batch, ranks = layout.batch(meant), layout.data_parallel(meant)
        if not batch or not ranks or batch * ranks > meant.global_batch_size:
            continue
        steps, rest = divmod(meant.global_batch_size, batch * ranks)
        if rest or meant.gradient_accumulation not in (None, steps):
            yield _remark(row, meant, batch, release)


def _remark(row: Subject, meant: Subject, batch: int, release: Release) -> Remark:
    ranks = layout.data_parallel(meant) or 1
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
        mended.suggestion(meant, NAME, release),
    )
