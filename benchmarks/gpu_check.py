"""Checks the training process on one CUDA GPU: that it trains rightly there, and times rightly.

    python benchmarks/gpu_check.py OUTPUT_FOLDER

Needs torch with CUDA and megatron-core, nothing else, and less than eight minutes:
1. trains a tiny model in FP32 and compares its losses with those of a CPU,
2. trains a part of Llama 3 8B in BF16 over NCCL, and compares our clock with CUDA events,
3. times a large matrix product, to say what this GPU can do at the same time.
Leaves report.json and the training run's own files in the folder; exits with 1 if a check fails.
"""

import argparse
import json
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median, quantiles

ROOT = Path(__file__).resolve().parents[1]

SHAPE = (
    "hidden_size", "ffn_hidden_size", "num_attention_heads", "num_query_groups", "head_dim",
    "vocab_size", "rotary_base",
)  # fmt: skip
# https://huggingface.co/meta-llama/Meta-Llama-3-8B, but for the number of layers.
LLAMA = (4096, 14336, 32, 8, 128, 128256, 500000.0)
# The model of tests/runner/test_layout_invariance.py, and its losses on a CPU.
TINY = (64, 128, 4, 4, 16, 512, 10000.0)
TINY_LOSSES = (6.248015, 6.178706, 6.167975, 6.121106)
SEQUENCE_LENGTH = 4096
GLOBAL_BATCH_SIZE = 8
WARMUP_STEPS = 5

# Dense BF16 TFLOP/s by the first name that fits, from NVIDIA's data sheets (which print "with
# sparsity" twice as much).
PEAK_TFLOPS = {
    "A100": 312.0, "H100 PCIe": 756.0, "H100": 989.4, "H200": 989.4, "GB200": 2500.0, "B200": 2250.0
}  # fmt: skip


@dataclass(frozen=True)
class Check:
    name: str
    passed: bool
    found: str


@dataclass(frozen=True)
class Trained:
    """What a run of the worker left; empty if it failed."""

    returncode: int
    seconds: float
    steps: list[dict[str, float]]
    summary: dict[str, object]


def main() -> int:
    arguments = parse_arguments()
    import torch

    if not torch.cuda.is_available():
        print("gpu_check: no CUDA device is visible to torch", file=sys.stderr)
        return 2
    out: Path = arguments.output
    out.mkdir(parents=True, exist_ok=True)
    layers = arguments.layers or layers_that_fit(torch.cuda.get_device_properties(0).total_memory)

    with tempfile.TemporaryDirectory() as scratch:
        tiny = train(Path(scratch), tiny_run(), timeout_s=120)
    full = train(out, llama_run(layers, arguments.measured_steps), timeout_s=300)
    measured = full.steps[WARMUP_STEPS:]
    checks = [*right_losses(tiny), *went_well(full), *clocks_agree(measured)]
    report = {
        "passed": all(check.passed for check in checks),
        "checks": [asdict(check) for check in checks],
        "environment": environment(),
        "matmul_tflops": matmul_tflops(),
        "training": speed(measured, layers, torch.cuda.get_device_name(0)) if measured else None,
        "tiny": asdict(tiny),
        "full": asdict(full),
    }
    (out / "report.json").write_text(json.dumps(report, indent=1) + "\n")
    print(*lines(report, checks), sep="\n")
    return 0 if report["passed"] else 1


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("output", type=Path, help="folder for the report and the run's files")
    parser.add_argument("--layers", type=int, help="of Llama 3 8B's 32 (default: what fits)")
    parser.add_argument("--measured-steps", type=int, default=50, help="after 5 of warm-up")
    return parser.parse_args()


def layers_that_fit(memory_bytes: int) -> int:
    """22 bytes a parameter (BF16, FP32 gradient, Adam, scratch); 0.22 G a layer, 1.05 G beside."""
    return 12 if memory_bytes > 120e9 else 6 if memory_bytes > 70e9 else 2


# ------------------------------------------------------------------------------- the two trainings


def tiny_run() -> dict[str, object]:
    return configuration(4, TINY) | {
        "precision": "fp32",
        "sequence_length": 64,
        "warmup_steps": 1,
        "measured_steps": 3,
        "options": {"init": "layout_invariant"},
    }


def llama_run(layers: int, measured_steps: int) -> dict[str, object]:
    return configuration(layers, LLAMA) | {
        "precision": "bf16",
        "sequence_length": SEQUENCE_LENGTH,
        "warmup_steps": WARMUP_STEPS,
        "measured_steps": measured_steps,
        # Small enough to stay finite without a schedule of the learning rate.
        "options": {"optimizer_lr": 1e-5},
    }


def configuration(layers: int, shape: tuple[float, ...]) -> dict[str, object]:
    """The fields that both runs share; runner/megatron/config.py says what they mean."""
    parallel = ("tensor", "pipeline", "context", "expert")
    experts = ("top_k", "ffn_hidden_size", "shared_expert_ffn_hidden_size")
    model: dict[str, object] = {"num_layers": layers, "num_experts": None, "gated_mlp": True}
    model |= {"activation": "silu", "normalization": "RMSNorm", "tied_embeddings": False}
    model |= zip(SHAPE, shape, strict=True)
    model |= {f"moe_{name}": None for name in experts}
    run: dict[str, object] = {"schema_version": 1, "model": model, "seed": 1234}
    run |= {"global_batch_size": GLOBAL_BATCH_SIZE, "micro_batch_size": 1}
    run |= {f"{name}_parallel": 1 for name in parallel}
    run |= {"virtual_pipeline": None, "expert_tensor_parallel": None, "sequence_parallel": False}
    return run


def train(folder: Path, config: dict[str, object], timeout_s: float) -> Trained:
    """Run the worker by torchrun; its console goes to a file, and to ours if it fails."""
    files = {name: folder / name for name in ("worker.json", "steps.jsonl", "summary.json")}
    files["worker.json"].write_text(json.dumps(config, indent=1))
    options = zip(("--config", "--steps", "--summary"), map(str, files.values()), strict=True)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += ["--nproc-per-node", "1", "-m", "runner.megatron.train"]
    command += [word for option in options for word in option]
    console, started = folder / "console.log", time.perf_counter()
    with console.open("w") as log:
        returncode = run_for(command, log.fileno(), timeout_s)
    if returncode:
        print(console.read_text()[-4000:], file=sys.stderr)
    steps = files["steps.jsonl"].read_text().splitlines() if files["steps.jsonl"].exists() else []
    done = files["summary.json"].exists()
    return Trained(
        returncode,
        time.perf_counter() - started,
        [json.loads(line) for line in steps],
        json.loads(files["summary.json"].read_text()) if done else {},
    )


def run_for(command: list[str], output: int, timeout_s: float) -> int:
    """The exit code; after the timeout torchrun is asked to end, which ends its workers."""
    with subprocess.Popen(
        command, cwd=ROOT, env=worker_environment(), stdout=output, stderr=subprocess.STDOUT
    ) as process:
        try:
            return process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            process.terminate()
            return process.wait(60) or 124


def worker_environment() -> dict[str, str]:
    """Ours; without a C compiler torch cannot compile: Megatron-Core's fusions run unfused."""
    compiler = any(map(shutil.which, ("cc", "gcc", "clang")))
    return os.environ | ({} if compiler else {"TORCHDYNAMO_DISABLE": "1"})


# -------------------------------------------------------------------------------------- the checks


def right_losses(tiny: Trained) -> Iterator[Check]:
    found = [step["loss"] for step in tiny.steps]
    close = len(found) == len(TINY_LOSSES) and all(
        isinstance(loss, float) and abs(loss / right - 1) < 1e-3  # what is not finite is a text
        for loss, right in zip(found, TINY_LOSSES, strict=True)
    )
    yield Check("a tiny FP32 model trains as on a CPU, to 0.1 %", close, f"losses {found}")


def went_well(full: Trained) -> Iterator[Check]:
    summary = full.summary
    yield Check("the worker ended well", full.returncode == 0, f"exit code {full.returncode}")
    shim = summary.get("cpu_shim")
    yield Check("the CPU shim was not imported", shim is False, f"cpu_shim {shim}")
    yield Check("over NCCL", summary.get("backend") == "nccl", f"{summary.get('backend')}")
    # What is not finite is written as text.
    losses = [step["loss"] for step in full.steps if isinstance(step["loss"], float)]
    falls = 0 < len(losses) == len(full.steps) and losses[-1] < losses[0]
    ends = f"{losses[0]} to {losses[-1]}" if losses else "no finite loss"
    yield Check("the loss is finite and falls", falls, ends)


def clocks_agree(steps: list[dict[str, float]]) -> Iterator[Check]:
    pairs = [(step["step_time_s"], step["cuda_event_time_s"]) for step in steps]
    apart = [abs(event / host - 1) for host, event in pairs] or [1.0]
    found = f"median {median(apart):.3%}, greatest {max(apart):.3%} of {len(pairs)} steps"
    yield Check("our clock and CUDA events agree to 1 %", median(apart) < 0.01, found)


# ------------------------------------------------------------------------------------ the measures


def speed(steps: list[dict[str, float]], layers: int, gpu: str) -> dict[str, object]:
    """From the median of the measured steps."""
    times = [step["step_time_s"] for step in steps]
    rate = steps[0]["tokens"] / median(times)
    tflops = rate * flops_per_token(layers) / 1e12
    peak = next((value for name, value in PEAK_TFLOPS.items() if name in gpu), None)
    spread = quantiles(times, n=10) if len(times) > 1 else times
    return {
        "layers": layers,
        "step_time_s": median(times),
        "step_time_p10_s": spread[0],
        "step_time_p90_s": spread[-1],
        "tokens_per_sec_per_gpu": rate,
        "gflop_per_token": flops_per_token(layers) / 1e9,
        "flops_convention": "6 × (matmul weights + logits) + causal attention (half the matrix)",
        "model_tflops_per_sec_per_gpu": tflops,
        "peak_tflops": peak,
        "mfu": tflops / peak if peak else None,
        "peak_memory_bytes": steps[-1]["peak_memory_bytes"],
    }


def flops_per_token(layers: int) -> float:
    """Of training, forward and backward, for the Llama 3 shape above."""
    hidden, ffn, kv_width, vocab = 4096, 14336, 8 * 128, 128256
    per_layer = 2 * hidden * hidden + 2 * hidden * kv_width + 3 * hidden * ffn
    attention = SEQUENCE_LENGTH * hidden  # two products of 2·s·h FLOP each, halved by the mask
    return 6.0 * (layers * (per_layer + attention) + hidden * vocab)


def matmul_tflops(size: int = 8192, repeats: int = 20) -> float:
    """BF16 TFLOP/s of a square product of random numbers (zeros would run faster)."""
    import torch

    left, right = (torch.randn(size, size, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    for _ in range(5):
        left @ right
    timed_event: Callable[..., torch.cuda.Event] = torch.cuda.Event
    begin, end = timed_event(enable_timing=True), timed_event(enable_timing=True)
    begin.record()
    for _ in range(repeats):
        left @ right
    end.record()
    torch.cuda.synchronize()
    seconds: float = begin.elapsed_time(end) / 1e3
    return 2.0 * size**3 * repeats / seconds / 1e12


def environment() -> dict[str, object]:
    import torch

    query = "--query-gpu=name,driver_version,power.limit,clocks.max.sm,temperature.gpu"
    smi = ["nvidia-smi", query, "--format=csv"]
    there = shutil.which("nvidia-smi")
    return {
        "gpu": torch.cuda.get_device_name(0),
        "gpu_memory_bytes": torch.cuda.get_device_properties(0).total_memory,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "nvidia_smi": subprocess.getoutput(shlex.join(smi)) if there else None,
        "torch_compile": "TORCHDYNAMO_DISABLE" not in worker_environment(),
    }


def lines(report: dict[str, object], checks: list[Check]) -> Iterator[str]:
    for check in checks:
        yield f"{'ok  ' if check.passed else 'FAIL'} {check.name}: {check.found}"
    yield f"matrix product: {report['matmul_tflops']:.0f} TFLOP/s"
    training = report["training"]
    if isinstance(training, dict):
        for name, value in training.items():
            yield f"{name}: {value:.6g}" if isinstance(value, float) else f"{name}: {value}"


if __name__ == "__main__":
    sys.exit(main())
