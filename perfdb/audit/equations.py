"""The equations between the numbers of a row, each within the rounding of what is printed.

Each says whether it holds; None where the row does not give all that is in it.
"""

from perfdb import stated
from perfdb.audit import flop_counts, layout, rates
from perfdb.audit.interval import Interval
from perfdb.audit.printed import figure
from perfdb.audit.subject import TOTAL, Subject


def splits(row: Subject) -> bool | None:
    """GPUs = TP × PP × CP × DP, and the experts fit into a stage of the pipeline."""
    if not layout.known(row):
        return None
    ranks = layout.data_parallel(row)
    experts = layout.size(row, "expert_parallel") * layout.size(row, "expert_tensor_parallel")
    stage = row.num_gpus // layout.size(row, "pipeline_parallel")
    return bool(ranks) and row.data_parallel in (None, ranks) and stage % experts == 0


def batches(row: Subject) -> bool | None:
    """GBS = MBS × DP × GA, of LBS where there is one."""
    batch, ranks = layout.batch(row), layout.data_parallel(row)
    if not batch or not ranks:
        return None
    steps, rest = divmod(row.global_batch_size, batch * ranks)
    return not rest and row.gradient_accumulation in (None, steps)


def throughput(row: Subject) -> bool | None:
    """Tokens/s/GPU × GPUs × step time = GBS × sequence length; None of uneven steps."""
    given, step_time = figure(row, "tokens_per_sec_per_gpu"), figure(row, "step_time_s")
    if not given or not step_time or stated.is_uneven(row.notes):
        return None
    return given.or_cut().agrees(rates.tokens_in(row, step_time.or_cut()))


def total_throughput(row: Subject) -> bool | None:
    """The tokens/s of all GPUs are those that the figures of one and the step time give."""
    total, ways = figure(row, TOTAL), rates.totals(row).values()
    return all(total.or_cut().agrees(way) for way in ways) if total and ways else None


def mfu(row: Subject) -> bool | None:
    """MFU × peak = model TFLOP/s."""
    given, achieved = figure(row, "mfu"), figure(row, "model_tflops_per_sec_per_gpu")
    peak = rates.peak_tflops(row)
    if not given or not achieved or not peak:
        return None
    return given.or_cut().agrees(achieved.over(peak).or_cut())


def flops_per_token(
    row: Subject, tokens: Interval | None, expected: Interval | None
) -> bool | None:
    """TFLOP/s ÷ tokens/s are the GFLOP per token that are expected, ÷ 1000."""
    work = rates.tflops(row)
    if not work or not tokens or not expected:
        return None
    return work.times(1000).over(tokens).with_cut().agrees(expected)


def peak(row: Subject, tokens: Interval | None) -> bool:
    """No rate is above the dense peak, nor what tokens/s come to by the least that counts."""
    limit, work = rates.limit_tflops(row), rates.tflops(row)
    computed = [one for one in (work, flop_counts.implied(row, tokens)) if one and limit]
    return (row.mfu or 0) <= 1 and all(one.low <= (limit or 0) for one in computed)
