"""The GPUs must divide into whole copies of the model: TP × PP × CP divides their number."""

from collections.abc import Iterator, Sequence

from perfdb.audit import layout
from perfdb.audit.subject import SHORT, Remark, Severity, Subject

NAME = "world_size"
MEANING = "TP × PP × CP divides the number of GPUs"


def check(rows: Sequence[Subject]) -> Iterator[Remark]:
    """Rows whose layout leaves GPUs over."""
    for row in rows:
        product = layout.model_parallel(row)
        if row.num_gpus % product:
            yield _remark(row, product)


def _remark(row: Subject, product: int) -> Remark:
    sizes = " × ".join(f"{SHORT[field]} {layout.size(row, field)}" for field in layout.SPLITS)
    return Remark(
        row,
        Severity.ERROR,
        ("num_gpus", *layout.SPLITS),
        f"a multiple of {product:,} GPUs",
        f"{row.num_gpus:,} GPUs",
        f"{sizes} is {product:,} GPUs for one copy of the model, which does not divide "
        f"{row.num_gpus:,}",
        _suggestion(row),
    )


def _suggestion(row: Subject) -> str | None:
    """The sizes that, doubled or halved alone, make the layout fit."""
    fits = [
        f"{SHORT[field]} {size // 2}"
        for field in layout.SPLITS
        if (size := layout.size(row, field)) % 2 == 0
        and row.num_gpus % layout.model_parallel(row.model_copy(update={field: size // 2})) == 0
    ]
    gpus = row.data_parallel and f"GPUs {row.data_parallel * layout.model_parallel(row):,}"
    changes = [*fits, *([gpus] if gpus else [])]
    return "one of: " + ", ".join(changes) if changes else None
