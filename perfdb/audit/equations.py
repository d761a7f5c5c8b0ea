"""The equations between the numbers of a row, each within the rounding of what is printed.

Each says whether it holds; None where the row does not give all that is in it.
"""

from typing import Final

from perfdb import catalog, stated
from perfdb.audit import flop_counts, layout, rates
from perfdb.audit.interval import Interval
from perfdb.audit.printed import figure
from perfdb.audit.subject import TOTAL, Subject

EXTRA_LAYERS: Final = 2
"""Megatron-Core can count the embedding and the loss as layers of their own."""


def splits(row: Subject) -> bool | None:
    """GPUs = TP × PP × CP × DP; the experts fit into a stage of the pipeline, FSDP into DP × CP."""
    if not layout.known(row):
        return None
    ranks = layout.data_parallel(row)
    experts = layout.size(row, "expert_parallel") * layout.size(row, "expert_tensor_parallel")
    stage = row.num_gpus // layout.size(row, "pipeline_parallel")
    if not ranks or stage % experts or row.data_parallel not in (None, ranks):
        return False
    return ranks * layout.size(row, "context_parallel") % (row.fsdp_size or 1) == 0


def virtual_pipeline(row: Subject) -> bool:
    """VP above 1 has PP above 1 and layers for its stages; those of an unknown model are enough."""
    parts, stages = layout.size(row, "virtual_pipeline"), layout.size(row, "pipeline_parallel")
    model = catalog.models().get(row.model)
    enough = not model or stages * parts <= model.num_layers + EXTRA_LAYERS
    return parts == 1 or (stages > 1 and enough)


def batches(row: Subject) -> bool | None:
    """GBS = MBS × DP × GA; of LBS where there is one, which MBS divides."""
    batch, ranks = layout.batch(row), layout.data_parallel(row)
    if not batch or not ranks:
        return None
    steps, rest = divmod(row.global_batch_size, batch * ranks)
    rest = rest or batch % (row.micro_batch_size or 1)
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
