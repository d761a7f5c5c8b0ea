"""The GPUs must divide into whole copies of the model: TP × PP × CP divides their number."""

from collections.abc import Iterator, Sequence

from perfdb.audit import layout, mended
from perfdb.audit.release import Release
from perfdb.audit.subject import SHORT, Remark, Severity, Subject

NAME = "world_size"
MEANING = "TP × PP × CP divides the number of GPUs"


def check(rows: Sequence[Subject]) -> Iterator[Remark]:
    """Rows whose layout leaves GPUs over."""
    release = Release(rows)
    for row in rows:
        product = layout.model_parallel(row)
        if row.num_gpus % product:
            yield _remark(row, product, release)


def _remark(row: Subject, product: int, release: Release) -> Remark:
    sizes = " × ".join(f"{SHORT[field]} {layout.size(row, field)}" for field in layout.SPLITS)
    return Remark(
        row,
        Severity.ERROR,
        ("num_gpus", *layout.SPLITS),
        f"a multiple of {product:,} GPUs",
        f"{row.num_gpus:,} GPUs",
        f"{sizes} is {product:,} GPUs for one copy of the model, which does not divide "
        f"{row.num_gpus:,}",
        mended.suggestion(row, "data_parallel", release),
    )
