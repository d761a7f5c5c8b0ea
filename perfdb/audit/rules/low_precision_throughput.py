"""Tokens/s that are all whole samples/s were computed from a rounded number."""

from collections.abc import Iterator, Sequence

from perfdb.audit import rates
from perfdb.audit.printed import figure
from perfdb.audit.subject import Remark, Severity, Subject
from perfdb.record import Origin
from perfdb.units import percent

NAME = "low_precision_throughput"
MEANING = "tokens/s of a release are not all a whole number of samples per second"


def check(rows: Sequence[Subject]) -> Iterator[Remark]:
    """One remark for a release of five rows or more of which this is true."""
    given = [row for row in rows if figure(row, "tokens_per_sec_per_gpu")]
    if not rates.whole_samples(rows) or given[0].origin is Origin.MEASURED:
        return
    worst = max(
        row.sequence_length / row.num_gpus / 2 / (row.tokens_per_sec_per_gpu or 1) for row in given
    )
    yield Remark(
        given[0],
        Severity.INFO,
        ("tokens_per_sec_per_gpu",),
        None,
        f"{len(given)} of {len(given)} rows",
        f"tokens/s/GPU × GPUs ÷ sequence length is a whole number in all {len(given)} rows of the "
        f"release: the rates were computed from rounded samples per second, and may be off by up "
        f"to {percent(worst)}",
    )
