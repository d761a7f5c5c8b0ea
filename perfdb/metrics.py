"""What each figure means, its unit, which way is better, and the formula that derives it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from perfdb.units import SECONDS_PER_DAY

SECONDS_PER_HOUR = 3600
TRILLION = 1e12
"""The tokens that times to train are stated for."""
CONVENTION_BOUND = ("model_tflops_per_sec_per_gpu", "mfu")
"""Figures that count FLOPs: two conventions make them two different quantities."""
EMITTED = ("tokens_per_sec_per_gpu", "model_tflops_per_sec_per_gpu", "mfu")
"""The metrics that programs may print themselves, kept next to the computed ones."""
OF_ANY_SIZE = ("tokens_per_sec_per_gpu", "model_tflops_per_sec_per_gpu", "mfu")
"""Figures per GPU, which say something across numbers of GPUs and batch sizes."""
PREFERRED = ("tokens_per_sec_per_gpu", "step_time_s", "model_tflops_per_sec_per_gpu")
"""The first that both sides have is judged by: FLOPs come last, as releases count them otherwise.
"""


@dataclass(frozen=True)
class Metric:
    """A figure of a result: `name` is its field and column everywhere."""

    name: str
    title: str
    unit: str
    better: Literal["higher", "lower"]
    digits: int
    meaning: str
    formula: str
    tolerance: float | None = None
    """By how much of it two measured figures may differ and be the same; None: as runs spread."""
    words: tuple[str, str] = ("faster", "slower")
    """The word for a figure that is better than another, and for one that is worse."""


METRICS: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(
            "step_time_s",
            "Step time (s)",
            "s",
            "lower",
            4,
            "Seconds of one optimizer step: forward, backward, gradient reduction, update.",
            "measured: the median over the window; a step of a run directory is that of the "
            "slowest rank, synchronised, a step of a log what its program says, which may be a "
            "mean of several",
        ),
        Metric(
            "tokens_per_sec_per_gpu",
            "Tokens/s/GPU",
            "tokens/s",
            "higher",
            0,
            "Tokens of the global batch processed each second, per GPU.",
            "GBS × sequence length ÷ step time ÷ GPUs",
        ),
        Metric(
            "model_tflops_per_sec_per_gpu",
            "TFLOP/s/GPU",
            "TFLOP/s",
            "higher",
            2,
            "Floating-point operations the model's arithmetic needs (recomputation not counted), "
            "per second and GPU.",
            "tokens/s/GPU × model FLOPs per token ÷ 10¹²",
        ),
        Metric(
            "mfu",
            "MFU",
            "fraction",
            "higher",
            3,
            "Model FLOPs utilisation: the share of the GPU's dense peak that its FLOPs use.",
            "model TFLOP/s/GPU ÷ dense peak TFLOP/s of the system at the precision",
        ),
        Metric(
            "peak_memory_bytes",
            "Peak memory (bytes)",
            "bytes",
            "lower",
            0,
            "Peak memory of the GPU that used most: allocated memory (torchtitan: reserved).",
            "measured: the most of all steps of the run, warm-up included",
            tolerance=0.01,  # the same work allocates the same, but for what the allocator rounds
            words=("better", "worse"),
        ),
    )
}
"""The figures that the store keeps a column of; comparisons, trends and charts take each of them.

What follows from them is in `FOLLOWING` of `perfdb/stated.py`.
"""


def tokens_per_sec_per_gpu(
    global_batch_size: int, sequence_length: int, step_time_s: float, num_gpus: int
) -> float:
    """GBS × sequence length ÷ step time ÷ GPUs, in tokens per second (Nemotron-4 recipe)."""
    return global_batch_size * sequence_length / step_time_s / num_gpus


def model_tflops_per_sec_per_gpu(tokens_per_second: float, flops_per_token: float) -> float:
    """Tokens/s/GPU × FLOPs per token, in TFLOP/s."""
    return tokens_per_second * flops_per_token / 1e12


def mfu(tflops_per_sec_per_gpu: float, peak_tflops: float) -> float:
    """Achieved ÷ dense peak, as a fraction (Chowdhery et al. 2022, PaLM, appendix B).

    Both in TFLOP/s per GPU. Recomputed activations are not achieved; structured sparsity is not
    in the peak. The FLOPs convention and the precision of the peak must be stored with the result.
    """
    return tflops_per_sec_per_gpu / peak_tflops


def global_tokens_per_sec(tokens_per_sec_per_gpu: float, num_gpus: int) -> float:
    """Tokens/s/GPU × GPUs, in tokens per second of the whole job (Nemotron-4 recipe)."""
    return tokens_per_sec_per_gpu * num_gpus


def gpu_hours(tokens: float, tokens_per_sec_per_gpu: float) -> float:
    """Tokens ÷ tokens/s/GPU ÷ 3,600: hours of one GPU, or of many together, without a pause."""
    return tokens / tokens_per_sec_per_gpu / SECONDS_PER_HOUR


def days_to_train(tokens: float, tokens_per_second: float) -> float:
    """Tokens ÷ tokens/s ÷ 86,400: days at a global rate without a pause (Nemotron-4 recipe)."""
    return tokens / tokens_per_second / SECONDS_PER_DAY


def scaling_efficiency(tokens_per_sec_per_gpu: Mapping[int, float]) -> dict[int, float]:
    """The rate of each GPU as a fraction of that at the smallest scale, by number of GPUs.

    T(n)/n ÷ T(n₀)/n₀: of weak scaling where the batch grows with the GPUs (Gustafson 1988), of
    strong scaling where it stays the same (Amdahl 1967). Empty for no rates.
    """
    if not tokens_per_sec_per_gpu:
        return {}
    smallest = tokens_per_sec_per_gpu[min(tokens_per_sec_per_gpu)]
    return {gpus: rate / smallest for gpus, rate in sorted(tokens_per_sec_per_gpu.items())}


def cost_per_million_tokens(tokens_per_sec_per_gpu: float, price_per_gpu_hour: float) -> float:
    """Price of a GPU-hour ÷ tokens of a GPU-hour × 10⁶, in the currency of the price.

    The GPUs alone: no storage, network or idle time.
    """
    return price_per_gpu_hour / (tokens_per_sec_per_gpu * SECONDS_PER_HOUR) * 1e6


def memory_headroom(peak_memory_bytes: float, gpu_memory_bytes: float) -> float | None:
    """The fraction of a GPU's memory that is free at the peak, that of the fullest GPU.

    The memory is what the GPU itself reports: the gigabytes of its specification are a few per
    cent more or less. None for a peak above it, which it cannot be the memory of.
    """
    free = 1 - peak_memory_bytes / gpu_memory_bytes
    return free if free >= 0 else None


def data_parallel(num_gpus: int, tensor: int, pipeline: int, context: int) -> int:
    """DP = GPUs ÷ (TP × PP × CP)."""
    return num_gpus // (tensor * pipeline * context)


def gradient_accumulation(global_batch_size: int, batch_size: int, data_parallel_size: int) -> int:
    """GA = GBS ÷ (MBS × DP); AutoModel takes the local batch size in place of MBS."""
    return global_batch_size // (batch_size * data_parallel_size)


def first_counted_step(steps: Sequence[int], warmup_steps: int) -> int:
    """The number of the first step after the warm-up, of a run with steps of these numbers.

    A log with a single line does not show what was before it: its number is the count of steps.
    """
    return (steps[0] if len(steps) > 1 else 1) + warmup_steps
