"""Numbers of one row that must agree: its sizes, its rates, and the equations between them.

A size that is not stated counts as 1. Rates have the rounding of the figures that give them. Each
equation reports whether it holds; None where the row does not state all of its numbers.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Final

from perfdb import catalog
from perfdb.audit.interval import Interval, exactly, figure, within
from perfdb.catalog import Peak
from perfdb.record import NoteCode, Result

FIGURES: Final = (
    "step_time_s", "tokens_per_sec_per_gpu", "model_tflops_per_sec_per_gpu", "mfu",
)  # fmt: skip
RATES: Final = ("tokens_per_sec_per_gpu", "model_tflops_per_sec_per_gpu")
"""Columns that are next to one another, and may be exchanged."""
TOTAL: Final = "tokens_per_sec"
"""The tokens/s of all GPUs together, which follow from the other figures."""
SPLITS: Final = ("tensor_parallel", "pipeline_parallel", "context_parallel")
EXTRA_LAYERS: Final = 2
"""Megatron-Core can count the embedding and the loss as layers of their own."""
FEWEST_WHOLE: Final = 5
_COINCIDENCE: Final = 1e-4
"""The chance below which whole samples per second in every row are no coincidence."""

Tokens = Callable[[Result], Interval | None]


def size(row: Result, field: str) -> int:
    """A parallel size; a page leaves out the column of one that is 1 in every row."""
    value: int | None = getattr(row, field)
    return value or 1


def has_layout(row: Result) -> bool:
    """Whether the row states how its GPUs are split."""
    return any(row.value(field) is not None for field in SPLITS)


def model_parallel(row: Result) -> int:
    """GPUs that hold one copy of the model: TP × PP × CP."""
    return prod(size(row, field) for field in SPLITS)


def data_parallel(row: Result) -> int | None:
    """DP by the layout; as printed where the layout is unknown; None where it is not whole."""
    if not has_layout(row):
        return row.data_parallel
    ranks, rest = divmod(row.num_gpus, model_parallel(row))
    return None if rest else ranks


def stage_gpus(row: Result) -> int:
    """GPUs of a pipeline stage."""
    return row.num_gpus // size(row, "pipeline_parallel")


def batch_field(row: Result) -> str:
    """Which batch size a gradient accumulation counts: the local one where there is one."""
    return "micro_batch_size" if row.local_batch_size is None else "local_batch_size"


def batch(row: Result) -> int | None:
    """The samples of one gradient-accumulation step on one data-parallel rank."""
    return row.local_batch_size or row.micro_batch_size


def swapped(row: Result) -> Result | None:
    """The row with GBS and MBS exchanged, where MBS is above GBS; None where it is not."""
    micro = row.micro_batch_size
    if micro is None or micro <= row.global_batch_size:
        return None
    return replace(row, global_batch_size=micro, micro_batch_size=row.global_batch_size)


def tokens(row: Result) -> Interval | None:
    """Tokens/s/GPU as printed, else by the step time or the total of all GPUs.

    Where these two agree, by the one that is printed more exactly; else by the step time.
    """
    printed, by_step_time, by_total = _rates(row)
    if by_step_time and by_total and by_step_time.with_cut().agrees(by_total.with_cut()):
        return printed or min(by_step_time, by_total, key=lambda one: one.uncertainty)
    return printed or by_step_time or by_total


def speeds(row: Result) -> list[Interval]:
    """Tokens/s/GPU by each of the figures that give them."""
    return [one for one in _rates(row) if one]


def _rates(row: Result) -> tuple[Interval | None, Interval | None, Interval | None]:
    """Tokens/s/GPU as printed, by the step time, and by the total of all GPUs."""
    total = figure(row, TOTAL)
    by_total = total.over(row.num_gpus) if total else None
    return figure(row, "tokens_per_sec_per_gpu"), tokens_by_step_time(row), by_total


def totals(row: Result) -> dict[str, Interval]:
    """Tokens/s of all GPUs by the fields that give them, with room for digits that were cut off."""
    rate, step_time = figure(row, "tokens_per_sec_per_gpu"), figure(row, "step_time_s")
    work = row.global_batch_size * row.sequence_length
    by_rate = {"tokens_per_sec_per_gpu": rate.or_cut().times(row.num_gpus)} if rate else {}
    return by_rate | ({"step_time_s": step_time.or_cut().under(work)} if step_time else {})


def tokens_by_step_time(row: Result) -> Interval | None:
    """GBS × sequence length ÷ step time ÷ GPUs, in tokens per second.

    None where the steps had other tokens.
    """
    step_time = None if row.has_note(NoteCode.VARIABLE_LENGTH_STEPS) else figure(row, "step_time_s")
    return step_time.under(tokens_per_gpu(row)) if step_time else None


def tokens_per_gpu(row: Result) -> float:
    """The tokens of a step on one GPU."""
    return row.global_batch_size * row.sequence_length / row.num_gpus


def tflops(row: Result) -> Interval | None:
    """Model TFLOP/s/GPU as printed, else MFU × peak."""
    mfu, peak = figure(row, "mfu"), peak_tflops(row)
    printed = figure(row, "model_tflops_per_sec_per_gpu")
    return printed or (mfu.times(peak) if mfu and peak else None)


def peak_tflops(row: Result) -> float | None:
    """The dense peak that the row's MFU is of: the stated one, else that of its precision.

    None where it is not known.
    """
    return row.peak_tflops or dense_peak(row)


def dense_peak(row: Result) -> float | None:
    """The dense peak of a GPU at the row's precision, whatever its MFU is of; None: not known."""
    known = catalog.peak(row.system, row.precision)
    return known.tflops if known else row.peak_tflops


def limit_tflops(row: Result) -> float | None:
    """The dense peak of a GPU; its highest where the row's precision is not known."""
    known = dense_peak(row)
    if known or row.precision:
        return known
    return max((peak.tflops for peak in peaks(row).values()), default=None)


def peaks(row: Result) -> Mapping[str, Peak]:
    """The dense peaks of a row's system by precision; none where the system is not known."""
    system = catalog.systems().get(row.system)
    return system.peaks if system else {}


def reader(rows: Sequence[Result]) -> Tokens:
    """How exactly the rows of a release give tokens/s: by their digits, or by whole samples/s."""

    def coarse(row: Result) -> Interval | None:
        if (known := tokens(row)) is None:
            return None
        half_sample = row.sequence_length / row.num_gpus / 2
        return within(known.value, max(half_sample, known.high - known.value))

    return coarse if whole_samples(rows) else tokens


def whole_samples(rows: Sequence[Result]) -> bool:
    """Whether every tokens/s of a release is a whole number of samples per second.

    Each may be so by chance, the likelier the more GPUs share the sample.
    """
    known = [(row, figure(row, "tokens_per_sec_per_gpu")) for row in rows]
    printed = [(row, one) for row, one in known if one and one.high > one.low]
    chances = [(one.high - one.low) * row.num_gpus / row.sequence_length for row, one in printed]
    if len(printed) < FEWEST_WHOLE or prod(min(chance, 1) for chance in chances) > _COINCIDENCE:
        return False
    samples = [(row.sequence_length / row.num_gpus, one) for row, one in printed]
    return all(one.agrees(exactly(round(one.value / part) * part)) for part, one in samples)


def layout_fits(row: Result) -> bool | None:
    """GPUs = TP × PP × CP × DP; the experts fit into a stage of the pipeline, FSDP into DP × CP."""
    if not has_layout(row):
        return None
    ranks = data_parallel(row)
    experts = size(row, "expert_parallel") * size(row, "expert_tensor_parallel")
    if not ranks or stage_gpus(row) % experts or row.data_parallel not in (None, ranks):
        return False
    return ranks * size(row, "context_parallel") % (row.fsdp_size or 1) == 0


def virtual_pipeline_fits(row: Result) -> bool:
    """VP above 1 needs PP above 1, and a layer for each part of a model that is known."""
    parts, stages = size(row, "virtual_pipeline"), size(row, "pipeline_parallel")
    model = catalog.models().get(row.model)
    enough = not model or stages * parts <= model.num_layers + EXTRA_LAYERS
    return parts == 1 or (stages > 1 and enough)


def batches_fit(row: Result) -> bool | None:
    """GBS = MBS × DP × GA; LBS, where there is one, in place of MBS, which divides it."""
    samples, ranks = batch(row), data_parallel(row)
    if not samples or not ranks:
        return None
    steps, rest = divmod(row.global_batch_size, samples * ranks)
    rest = rest or samples % (row.micro_batch_size or 1)
    return not rest and row.gradient_accumulation in (None, steps)


def throughput_fits(row: Result) -> bool | None:
    """Tokens/s/GPU × GPUs × step time = GBS × sequence length; None for steps of other tokens."""
    rate, step_time = figure(row, "tokens_per_sec_per_gpu"), figure(row, "step_time_s")
    if not rate or not step_time or row.has_note(NoteCode.VARIABLE_LENGTH_STEPS):
        return None
    return rate.or_cut().agrees(step_time.or_cut().under(tokens_per_gpu(row)))


def total_fits(row: Result) -> bool | None:
    """The tokens/s of all GPUs are those that the figures of one GPU and the step time give."""
    total, ways = figure(row, TOTAL), totals(row).values()
    return all(total.or_cut().agrees(way) for way in ways) if total and ways else None


def mfu_fits(row: Result) -> bool | None:
    """MFU × peak = model TFLOP/s."""
    mfu, achieved = figure(row, "mfu"), figure(row, "model_tflops_per_sec_per_gpu")
    peak = peak_tflops(row)
    if not mfu or not achieved or not peak:
        return None
    return mfu.or_cut().agrees(achieved.over(peak).or_cut())
