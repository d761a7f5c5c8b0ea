"""A global batch cannot be smaller than the micro-batches that make it up."""

from collections.abc import Iterator, Sequence

from perfdb.audit import equations, layout, mended
from perfdb.audit.release import Release
from perfdb.audit.subject import SHORT, Remark, Severity, Subject

NAME = "micro_batch"
MEANING = (
    "MBS × DP, or LBS × DP, is at most GBS, and MBS divides LBS; GBS below MBS means that the two "
    "are swapped"
)
FIELDS = ("global_batch_size", "micro_batch_size")


def check(rows: Sequence[Subject]) -> Iterator[Remark]:
    """Rows whose micro-batches do not fit into the global or the local batch."""
    release = Release(rows)
    for row in rows:
        exchanged, ranks = layout.swapped(row), layout.data_parallel(row) or 1
        if exchanged:
            yield _swapped(row, exchanged)
            continue
        if (layout.batch(row) or 0) * ranks > row.global_batch_size:
            yield _too_large(row, ranks, release)
        if row.local_batch_size and row.local_batch_size % (row.micro_batch_size or 1):
            yield _uneven(row)


def _swapped(row: Subject, exchanged: Subject) -> Remark:
    return Remark(
        row,
        Severity.ERROR,
        FIELDS,
        f"GBS {exchanged.global_batch_size:,}, MBS {exchanged.micro_batch_size:,}",
        f"GBS {row.global_batch_size:,}, MBS {row.micro_batch_size:,}",
        f"a global batch of {row.global_batch_size:,} cannot hold micro-batches of "
        f"{row.micro_batch_size:,}: GBS and MBS look swapped{_accumulation(row, exchanged)}",
        f"swap them: GBS {exchanged.global_batch_size:,}, MBS {exchanged.micro_batch_size:,}",
    )


def _accumulation(row: Subject, exchanged: Subject) -> str:
    """What the exchange does to the gradient accumulation that the row prints."""
    ranks, batch = layout.data_parallel(row), layout.batch(exchanged)
    if row.gradient_accumulation is None or not ranks or not batch:
        return ""
    steps = exchanged.global_batch_size / (batch * ranks)
    agrees = "as printed" if steps == row.gradient_accumulation else "which is not what is printed"
    return f"; swapped, they give GA {steps:g}, {agrees}"


def _too_large(row: Subject, ranks: int, release: Release) -> Remark:
    field, least = layout.batch_field(row), (layout.batch(row) or 0) * ranks
    batches = "micro-batches" if field == "micro_batch_size" else "local batches"
    return Remark(
        row,
        Severity.ERROR,
        ("global_batch_size", field, "data_parallel"),
        f"GBS of at least {least:,}",
        f"GBS {row.global_batch_size:,}",
        f"{ranks:,} data-parallel ranks with {batches} of {layout.batch(row):,} make "
        f"{least:,} samples; the global batch has {row.global_batch_size:,}",
        mended.suggestion(row, "gradient_accumulation", release) or _bounds(row, field, ranks),
    )


def _bounds(row: Subject, field: str, ranks: int) -> str | None:
    """What the batches can be where no accumulation steps say it; GBS unless the rates vouch."""
    if row.gradient_accumulation:
        return None
    most, least = row.global_batch_size // ranks, (layout.batch(row) or 0) * ranks
    bounds = [f"{SHORT[field]} {most:,} at most"] if most else []
    bounds += [] if equations.throughput(row) else [f"GBS {least:,} at least"]
    return ", or ".join(bounds) or None


def _uneven(row: Subject) -> Remark:
    return Remark(
        row,
        Severity.ERROR,
        ("micro_batch_size", "local_batch_size"),
        f"a divisor of LBS {row.local_batch_size:,}",
        f"MBS {row.micro_batch_size:,}",
        f"local batches of {row.local_batch_size:,} do not divide into micro-batches of "
        f"{row.micro_batch_size:,}",
    )
