"""What each figure means, its unit, which way is better, and the formula that derives it."""

from dataclasses import dataclass
from typing import Literal

from perfdb.units import SECONDS_PER_DAY


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


METRICS = {
    metric.name: metric
    for metric in (
        Metric(
            "step_time_s",
            "Step time (s)",
            "s",
            "lower",
            4,
            "Seconds of one optimizer step: forward, backward, gradient reduction, update.",
            "measured: the median over the window of the slowest rank's synchronised step",
        ),
        Metric(
            "tokens_per_sec_per_gpu",
            "Tokens/sec/GPU",
            "tokens/s",
            "higher",
            0,
            "Tokens of the global batch processed each second, per GPU.",
            "GBS × sequence length ÷ step time ÷ GPUs",
        ),
        Metric(
            "model_tflops_per_sec_per_gpu",
            "Model TFLOP/sec/GPU",
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
    )
}


def tokens_per_sec_per_gpu(
    global_batch_size: int, sequence_length: int, step_time_s: float, num_gpus: int
) -> float:
    """GBS × sequence length ÷ step time ÷ GPUs, in tokens per second (Nemotron-4 recipe)."""
    return global_batch_size * sequence_length / step_time_s / num_gpus


def model_tflops_per_sec_per_gpu(tokens_per_second: float, flops_per_token: float) -> float:
    """Tokens/s/GPU × FLOPs per token, in TFLOP/s."""
    return tokens_per_second * flops_per_token / 1e12


def mfu(tflops_per_sec_per_gpu: float, peak_tflops: float) -> float:
    """Achieved ÷ dense peak, as a fraction (Chowdhery et al. 2022, PaLM, appendix B)."""
    return tflops_per_sec_per_gpu / peak_tflops


def days_to_train(tokens: float, tokens_per_second: float) -> float:
    """Days to train on so many tokens at a global rate (Nemotron-4 recipe)."""
    return tokens / tokens_per_second / SECONDS_PER_DAY


def data_parallel(num_gpus: int, tensor: int, pipeline: int, context: int) -> int:
    """DP = GPUs ÷ (TP × PP × CP)."""
    return num_gpus // (tensor * pipeline * context)


def gradient_accumulation(global_batch_size: int, batch_size: int, data_parallel_size: int) -> int:
    """GA = GBS ÷ (MBS × DP); AutoModel takes the local batch size in place of MBS."""
    return global_batch_size // (batch_size * data_parallel_size)
