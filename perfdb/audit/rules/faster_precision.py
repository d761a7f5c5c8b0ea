"""A lower precision, with its higher peak, should not be slower at the same work."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from perfdb.audit import rates, workload
from perfdb.audit.interval import Interval
from perfdb.audit.rules import flops_per_token
from perfdb.audit.subject import Remark, Severity, Subject
from perfdb.catalog import titles
from perfdb.groups import grouped
from perfdb.units import significant

NAME = "faster_precision"
MEANING = "FP8 is not slower than BF16 at the same work, nor FP4 than FP8"


def check(rows: Sequence[Subject]) -> Iterator[Remark]:
    """The best of a precision that is slower than the best of one with a lower peak."""
    tokens = rates.reader(rows)
    # Of a row whose two rates do not go together nobody knows how fast it is.
    doubtful = {id(remark.row) for remark in flops_per_token.check(rows)}
    rows = [row for row in rows if id(row) not in doubtful]
    for group in grouped(rows, _work).values():
        measured = [(row, one) for row in group if (one := _speed(row, tokens))]
        best = _best_by_peak(measured)
        for (slow, above), (fast, below) in pairwise(best):
            if below.high < above.low:
                yield _remark(fast, below, slow, above)


def _work(row: Subject) -> tuple[object, ...]:
    return (*workload.job(row), row.num_gpus, row.global_batch_size)


def _speed(row: Subject, tokens: rates.Tokens) -> Interval | None:
    """Tokens/s; model TFLOP/s say the same where the work is the same."""
    return tokens(row) or rates.tflops(row)


def _best_by_peak(
    measured: Sequence[tuple[Subject, Interval]],
) -> list[tuple[Subject, Interval]]:
    """The fastest row at each peak, the lowest peak first."""
    known = [one for one in measured if rates.peak_tflops(one[0])]
    groups = grouped(sorted(known, key=_peak), _peak).values()
    return [max(group, key=lambda one: one[1].value) for group in groups]


def _peak(one: tuple[Subject, Interval]) -> float:
    return rates.peak_tflops(one[0]) or 0.0


def _remark(fast: Subject, below: Interval, slow: Subject, above: Interval) -> Remark:
    lower, higher = titles.precision(fast.precision), titles.precision(slow.precision)
    return Remark(
        fast,
        Severity.WARNING,
        ("tokens_per_sec_per_gpu", "precision"),
        f"{significant(above.value)} or more, as with {higher}",
        significant(below.value),
        f"{workload.name(fast)} is slower in {lower} than in {higher}: "
        f"{significant(below.value)} against {significant(above.value)} on {fast.num_gpus:,} GPUs",
    )
