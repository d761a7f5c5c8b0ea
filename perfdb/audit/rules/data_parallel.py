"""DP must be GPUs ÷ (TP × PP × CP)."""

from collections.abc import Iterator, Sequence

from perfdb.audit import layout
from perfdb.audit.subject import Remark, Severity, Subject

NAME = "data_parallel"
MEANING = "DP is GPUs ÷ (TP × PP × CP)"


def check(rows: Sequence[Subject]) -> Iterator[Remark]:
    """Rows that print another DP than their layout leaves."""
    for row in rows:
        ranks = layout.data_parallel(row)
        if ranks and row.data_parallel and ranks != row.data_parallel:
            yield _remark(row, ranks, row.data_parallel)


def _remark(row: Subject, ranks: int, printed: int) -> Remark:
    product = layout.model_parallel(row)
    return Remark(
        row,
        Severity.ERROR,
        ("data_parallel", "num_gpus", *layout.SPLITS),
        f"DP {ranks:,}",
        f"DP {printed:,}",
        f"{row.num_gpus:,} GPUs ÷ {product:,} for one copy of the model is DP {ranks:,}; "
        f"the row says {printed:,}",
        f"one of: DP {ranks:,}, GPUs {printed * product:,}",
    )
