"""Logs for tests, and what the command line must say of them."""

from collections.abc import Sequence
from pathlib import Path

from perfdb.ingest import LogOptions, Options
from perfdb.pages.base import PageContext

SET = (
    "model=llama3-8b", "system=dgx-h100", "num_gpus=8", "sequence_length=8192", "task=pretrain",
    "precision=bf16",
)  # fmt: skip
GIVEN = Options(PageContext(release="2.0"), logs=LogOptions(SET))
TIMES = (20.0, *[2.5] * 9, *[2.0, 2.2] * 5)
"""Twenty steps; over the last ten the median is 2.1 s."""


def step_line(step: int, of: int, seconds: float, loss: object = 9.5) -> str:
    """A step as NeMo's progress printer writes it."""
    return (
        f"Training epoch 0, iteration {step}/{of - 1} | lr: 1e-07 | global_batch_size: 128 | "
        f"global_step: {step} | reduced_train_loss: {loss} | train_step_timing in s: {seconds}\n"
    )


def nemo(times: Sequence[float] = TIMES) -> str:
    """A NeMo log that says its global batch size, and not what it trained on what."""
    return "".join(step_line(step, len(times), time) for step, time in enumerate(times))


def megatron(skipped: int = 0) -> str:
    """Twenty steps of 2 s and 400 TFLOP/s/GPU as Megatron-LM prints them, one of them skipped."""
    line = (
        " iteration {}/20 | consumed samples: {} | elapsed time per iteration (ms): {} | "
        "throughput per GPU (TFLOP/s/GPU): 400.0 | global batch size: 128 |{} "
        "number of skipped iterations: {:d} | number of nan iterations: 0 |\n"
    )
    taken = (2000.0, " lm loss: 2.5 |", 0)
    return "".join(
        line.format(step, 128 * step, *((1500.0, "", 1) if step == skipped else taken))
        for step in range(1, 21)
    )


def titan(sequence: int, steps: int, seconds: float) -> str:
    """A log of torchtitan: so many of 50 steps on one GPU, of 64 samples of that length."""
    rate = f"loss:  8.0000  memory:  1.50GiB(3.16%)  tps: {64 * sequence / seconds:.0f}  mfu: 1.00%"
    lines = (f"[titan] root - INFO - step: {step:2}  {rate}\n" for step in range(1, steps + 1))
    start = (
        "[titan] Building 0-D device mesh with [], []\n[titan] Training starts at step 1, with "
        f"local batch size 8, global batch size 64, sequence length {sequence}, total steps 50 \n"
    )
    return start + "".join(lines)


def write(folder: Path, text: str | None = None, name: str = "train.log") -> Path:
    """A log in a folder of its own."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(nemo() if text is None else text)
    return path


SUMMARY = """\
{"world_size": 8, "warmup_steps": 2, "avg_iter_time_seconds": 1.25, "avg_mfu_percent": 40.0,
 "tflops_per_gpu": 4000.0, "global_batch_size": 64, "local_batch_size": 2, "seq_len": 4096}
"""

CARD = """\
title: qwen3_30b_a3b
verification_environment: {base_container: nvcr.io/nvidia/nemo:26.06, bridge_commit: aabb29d0}
items:
  pretrain_performance:
    GB300:
      precision: fp8_mx
      num_gpus: 8
      command: train.sh --seq_length 4096 --global_batch_size 512
      points:
        - metrics: {last_10_steps_step_time_ms_avg: 5889.42}
        - metrics: {last_10_steps_step_time_ms_avg: 5814.29}
"""
"""A verification card: two results of one case."""

LLMB = """\
job_info: {job_id: 1}
workload_info: {framework: nemo2, fw_version: 25.07.01, workload_type: pretrain}
model_info: {model_name: llama3, model_size: 8b, dtype: bf16, scale: 8, gpu_type: h100}
container_info: {images: [nvcr.io/nvidia/nemo:25.07.01]}
"""
"""What the launcher of dgxc-benchmarking notes beside a log."""

OUT_OF_MEMORY = (
    "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
    "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 3; 79.11 GiB total)",
    "torch.cuda.OutOfMemoryError",
    "RuntimeError: CUDA error: out of memory",
    "RuntimeError: CUDA driver error: out of memory",
    "node01:1:2 [0] include/alloc.h:228 NCCL WARN Cuda failure 2 'out of memory'",
    "node01:1:2 [0] include/alloc.h:185 NCCL WARN Cuda failure 'out of memory'",
    "cudaErrorMemoryAllocation: out of memory",
    "jaxlib.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate",
    "RuntimeError: [enforce fail] DefaultCPUAllocator: can't allocate memory: you tried",
    "OSError: [Errno 12] Cannot allocate memory",
    "MemoryError",
    "numpy.core._exceptions._ArrayMemoryError: Unable to allocate 9.00 GiB",
    "slurmstepd: error: Detected 1 oom_kill event in StepId=123.0.",
    "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=123.0 cgroup.",
    "srun: error: node042: task 3: Out Of Memory",
)
"""What programs, the kernel and Slurm print where memory ran out."""
