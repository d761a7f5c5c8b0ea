"""DP must be GPUs ÷ (TP × PP × CP), and the GPUs that share a copy of the state among DP × CP."""

from collections.abc import Iterator, Sequence

from perfdb.audit import layout, mended
from perfdb.audit.release import Release
from perfdb.audit.subject import Remark, Severity, Subject

NAME = "data_parallel"
MEANING = "DP is GPUs ÷ (TP × PP × CP); the GPUs of FSDP divide DP × CP"


def check(rows: Sequence[Subject]) -> Iterator[Remark]:
    """Rows that print another DP than their layout leaves, or FSDP over GPUs that it does not."""
    release = Release(rows)
    for row in rows:
        ranks = layout.data_parallel(row)
        if ranks and row.data_parallel and ranks != row.data_parallel:
            yield _remark(row, ranks, row.data_parallel, release)
        elif ranks and row.fsdp_size and layout.known(row):
            yield from _sharded(row, row.fsdp_size, ranks * layout.size(row, "context_parallel"))


def _remark(row: Subject, ranks: int, printed: int, release: Release) -> Remark:
    product = layout.model_parallel(row)
    return Remark(
        row,
        Severity.ERROR,
        ("data_parallel", "num_gpus", *layout.SPLITS),
        f"DP {ranks:,}",
        f"DP {printed:,}",
        f"{row.num_gpus:,} GPUs ÷ {product:,} for one copy of the model is DP {ranks:,}; "
        f"the row says {printed:,}",
        mended.suggestion(row, NAME, release),
    )


def _sharded(row: Subject, size: int, most: int) -> Iterator[Remark]:
    if most % size:
        yield Remark(
            row,
            Severity.ERROR,
            ("fsdp_size", "num_gpus", *layout.SPLITS),
            f"a divisor of {most:,}",
            f"FSDP {size:,}",
            f"FSDP over {size:,} GPUs does not divide the {most:,} of DP × CP",
        )
