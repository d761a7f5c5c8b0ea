"""Checks the training process on one CUDA GPU: that it trains rightly there, and how fast.

    python -m benchmarks.gpu_check OUTPUT_FOLDER

Needs perfdb with megatron-core, and torch with CUDA. In one call of less than ten minutes it
1. trains a tiny model in FP32 and compares its losses with those of a CPU,
2. trains as many layers of Llama 3 8B as `perfdb run --fit` finds to fit, in BF16 and FP8, over
   samples of 4,096 and 8,192 tokens, and compares our clock with CUDA events,
3. tries each of Transformer Engine's attentions and the fused kernels: each is kept if it pays,
4. times a large BF16 matrix product before and after, to say what this GPU can do at that time.
Leaves report.json and each training's own files in the folder; exits with 1 if a check fails.

--dry-run prints what would be trained, anywhere; --cpu does all of it on a CPU with a model cut to
seconds, which shows that this script works. It has not run on a GPU yet.
"""

import argparse
import json
import os
import platform
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median, quantiles

from perfdb import catalog, flops, hardware, recipe
from perfdb.recipe import RunSpec
from runner.backends import megatron_core
from runner.fit import Hardware, Proxy, proxy

ROOT = Path(__file__).resolve().parents[1]
RECIPE = ROOT / "recipes" / "megatron-core" / "llama3-8b.yaml"

SHAPE = (
    "hidden_size", "ffn_hidden_size", "num_attention_heads", "num_query_groups", "head_dim",
    "vocab_size", "rotary_base",
)  # fmt: skip
# The model of tests/runner/test_layout_invariance.py, and its losses on a CPU.
TINY = (64, 128, 4, 4, 16, 512, 10000.0)
TINY_LOSSES = (6.248015, 6.178706, 6.167975, 6.121106)
LENGTHS = (4096, 8192)
TOKENS_PER_STEP = 32768
WARMUP_STEPS, FEW_STEPS = 5, 15
PAYS = 0.99
"""What takes less than this share of the time without it is worth to be kept."""
BUDGET_S = 540
"""No training starts later, so that one call stays below ten minutes."""
LEAST_S = 60
"""A training is not begun with less time left."""


@dataclass(frozen=True)
class Check:
    name: str
    passed: bool
    found: str


@dataclass(frozen=True)
class Asked:
    """One training: its name, precision, sequence length, options and measured steps."""

    name: str
    precision: str
    sequence_length: int
    measured_steps: int
    options: Mapping[str, bool | float | str]


@dataclass(frozen=True)
class Trained:
    """What a run of the worker left; empty if it failed."""

    returncode: int
    seconds: float
    steps: list[dict[str, float]]
    summary: dict[str, object]
    out_of_memory: bool = False

    @property
    def measured(self) -> list[dict[str, float]]:
        return self.steps[WARMUP_STEPS:]


def main(arguments: Sequence[str] | None = None) -> int:
    asked = parse_arguments(arguments)
    place = _hardware(asked)
    if isinstance(place, str):
        print(f"gpu_check: {place}", file=sys.stderr)
        return 2
    trainings = list(planned(place, asked.measured_steps))
    if asked.dry_run:
        for one in trainings:
            print(json.dumps(asdict(one) | {"worker": settings(one, place, asked.layers)}))
        return 0
    out: Path = asked.output
    out.mkdir(parents=True, exist_ok=True)
    report = checked(out, trainings, place, asked)
    (out / "report.json").write_text(json.dumps(report, indent=1) + "\n")
    print(*lines(report), sep="\n")
    return 0 if report["passed"] else 1


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("output", type=Path, help="folder for the report and the runs' files")
    parser.add_argument("--layers", type=int, help="of Llama 3 8B's 32 (default: what fits)")
    parser.add_argument("--measured-steps", type=int, default=50, help="after 5 of warm-up")
    parser.add_argument("--system", help="the GPU's (default: as nvidia-smi says)")
    parser.add_argument("--dry-run", action="store_true", help="print the trainings, run nothing")
    parser.add_argument("--cpu", action="store_true", help="try this script on a CPU")
    return parser.parse_args(arguments)


def _hardware(asked: argparse.Namespace) -> Hardware | str:
    """The GPU to train on; or why there is none."""
    machine = hardware.detect()
    name = "cpu" if asked.cpu else asked.system or machine.system
    if name not in catalog.systems():
        return f"{name or machine.reason}: no system of the catalogue; name one like it: --system"
    system = catalog.system(name)
    if asked.cpu:
        return Hardware(name, 1, None)
    if not asked.dry_run and not machine.gpu_count:
        return f"no GPU: {machine.reason}"
    known = system.gpu_memory_mib and system.gpu_memory_mib * 2**20
    memory = machine.gpu_memory_bytes or known or round((system.memory_gb or 0) * 1e9)
    return Hardware(name, 1, memory) if memory else f"the memory of a GPU of {name} is not known"


def planned(place: Hardware, steps: int) -> Iterator[Asked]:
    """The trainings, the most important first: the last ones may find no time left."""
    few = min(steps, FEW_STEPS)
    precisions = ["bf16"]
    if not place.on_cpu:
        fp8 = catalog.precisions()["fp8_cs"]
        precisions += ["fp8_cs"] if fp8.is_of(catalog.system(place.system).peaks) else []
    yield Asked("bf16-4096", "bf16", LENGTHS[0], steps, {})
    for precision in precisions:
        for length in LENGTHS:
            if (precision, length) != ("bf16", LENGTHS[0]):
                yield Asked(f"{precision}-{length}", precision, length, few, {})
    for backend in () if place.on_cpu else ("flash", "fused", "unfused"):
        name = f"attention-{backend}"
        yield Asked(name, "bf16", LENGTHS[0], few, {"attention_backend": backend})
    yield Asked("unfused-kernels", "bf16", LENGTHS[0], few, {"fused_kernels": False})


# ------------------------------------------------------------------------------------ the trainings


def settings(asked: Asked, place: Hardware, layers: int | None) -> dict[str, object]:
    """The worker's configuration, of as many layers as fit both sequence lengths in BF16."""
    cut = proxy(_spec(max(LENGTHS)), place)
    if not isinstance(cut, Proxy):
        raise SystemExit(f"gpu_check: {cut}")
    length = min(cut.spec.case.sequence_length, asked.sequence_length)
    made: dict[str, object] = megatron_core.settings(cut.spec)
    # Small enough to stay finite without a schedule of the learning rate.
    options = {"distributed_optimizer": True, "optimizer_lr": 1e-5, **asked.options}
    if layers and isinstance(model := made["model"], dict):
        made["model"] = model | {"num_layers": layers}
    return made | {
        "precision": asked.precision,
        "sequence_length": length,
        "global_batch_size": 2 if place.on_cpu else TOKENS_PER_STEP // length,
        "warmup_steps": WARMUP_STEPS,
        "measured_steps": asked.measured_steps,
        "options": options,
    }


def _spec(length: int) -> RunSpec:
    """Llama 3 8B on one GPU, from the recipe."""
    [file] = recipe.load([RECIPE])
    sizes = {"context_parallel": 1, "num_gpus": 1, "data_parallel": 1}
    batch = {"sequence_length": length, "global_batch_size": TOKENS_PER_STEP // length}
    spec = file.points[0]
    return replace(spec, case=spec.case.model_copy(update=sizes | batch))


def tiny_run() -> dict[str, object]:
    """The fields are those of runner/megatron/config.py."""
    parallel = ("tensor", "pipeline", "context", "expert")
    experts = ("top_k", "ffn_hidden_size", "shared_expert_ffn_hidden_size")
    model: dict[str, object] = {"num_layers": 4, "num_experts": None, "gated_mlp": True}
    model |= {"activation": "silu", "normalization": "RMSNorm", "tied_embeddings": False}
    model |= zip(SHAPE, TINY, strict=True)
    model |= {f"moe_{name}": None for name in experts}
    run: dict[str, object] = {"schema_version": 1, "model": model, "seed": 1234}
    run |= {"global_batch_size": 8, "micro_batch_size": 1, "precision": "fp32"}
    run |= {f"{name}_parallel": 1 for name in parallel}
    run |= {"virtual_pipeline": None, "expert_tensor_parallel": None, "sequence_parallel": False}
    run |= {"sequence_length": 64, "warmup_steps": 1, "measured_steps": 3}
    return run | {"options": {"init": "layout_invariant"}}


def trained_all(
    out: Path, trainings: Sequence[Asked], place: Hardware, layers: int | None
) -> tuple[dict[str, tuple[dict[str, object], Trained]], dict[str, str]]:
    """Each training and its configuration, and why others were not run.

    Where the first runs out of memory it is tried again, twice, with a fifth fewer layers.
    """
    done: dict[str, tuple[dict[str, object], Trained]] = {}
    skipped: dict[str, str] = {}
    has_engine = megatron_core.transformer_engine() is not None
    started, tries = time.perf_counter(), 2
    for one in trainings:
        left = BUDGET_S - (time.perf_counter() - started)
        needs_engine = one.precision != "bf16" or "attention_backend" in one.options
        if needs_engine and not has_engine:
            skipped[one.name] = "Transformer Engine is not installed"
            continue
        if left < LEAST_S:
            skipped[one.name] = f"less than {LEAST_S} s of {BUDGET_S} s were left"
            continue
        config = settings(one, place, layers)
        result = train(out / one.name, config, left)
        while result.out_of_memory and not done and tries:
            tries -= 1
            layers = max(1, int(num_layers(config) * 0.8))
            config = settings(one, place, layers)
            result = train(out / one.name, config, left)
        if one.options and result.returncode:  # unfused attention may need more memory
            skipped[one.name] = f"its worker ended with {result.returncode}: see console.log"
        else:
            done[one.name] = (config, result)
    return done, skipped


def num_layers(config: Mapping[str, object]) -> int:
    model = config["model"]
    assert isinstance(model, dict)
    return int(model["num_layers"])


def train(folder: Path, config: dict[str, object], timeout_s: float) -> Trained:
    """Run the worker by torchrun; its console goes to a file, and to ours if it fails."""
    folder.mkdir(parents=True, exist_ok=True)
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
        "out of memory" in console.read_text(errors="replace"),
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


def went_well(name: str, full: Trained, *, on_cpu: bool) -> Iterator[Check]:
    summary, code = full.summary, full.returncode
    yield Check(f"{name}: the worker ended well", code == 0, f"exit code {code}")
    shim, over = summary.get("cpu_shim"), summary.get("backend")
    if not on_cpu:
        yield Check(f"{name}: the CPU shim was not imported", shim is False, f"cpu_shim {shim}")
        yield Check(f"{name}: over NCCL", over == "nccl", f"{over}")
    # What is not finite is written as text.
    losses = [step["loss"] for step in full.steps if isinstance(step["loss"], float)]
    falls = 0 < len(losses) == len(full.steps) and losses[-1] < losses[0]
    ends = f"{losses[0]} to {losses[-1]}" if losses else "no finite loss"
    yield Check(f"{name}: the loss is finite and falls", falls, ends)


def clocks_agree(name: str, steps: list[dict[str, float]]) -> Iterator[Check]:
    pairs = [(step["step_time_s"], step["cuda_event_time_s"]) for step in steps]
    apart = [abs(event / host - 1) for host, event in pairs] or [1.0]
    found = f"median {median(apart):.3%}, greatest {max(apart):.3%} of {len(pairs)} steps"
    yield Check(f"{name}: our clock and CUDA events agree to 1 %", median(apart) < 0.01, found)


# ------------------------------------------------------------------------------------ the measures


def checked(
    out: Path, trainings: Sequence[Asked], place: Hardware, asked: argparse.Namespace
) -> dict[str, object]:
    """Everything that is found, as it is written."""
    before = matmul_tflops(place)
    tiny = train(out / "tiny", tiny_run(), timeout_s=120)
    done, skipped = trained_all(out, trainings, place, asked.layers)
    checks = [*right_losses(tiny)]
    for name, (_, full) in done.items():
        checks += went_well(name, full, on_cpu=place.on_cpu)
        checks += [] if place.on_cpu else clocks_agree(name, full.measured)
    product = median((before, matmul_tflops(place)))
    speeds = {
        name: speed(config, full.measured, place, product)
        for name, (config, full) in done.items()
        if full.measured
    }
    return {
        "passed": all(check.passed for check in checks),
        "checks": [asdict(check) for check in checks],
        "environment": environment(place),
        "matmul_tflops": product,
        "trainings": speeds,
        "pays": paying(speeds),
        "skipped": skipped,
        "runs": {name: asdict(full) for name, (_, full) in done.items()},
    }


def speed(
    config: Mapping[str, object], steps: list[dict[str, float]], place: Hardware, product: float
) -> dict[str, object]:
    """From the median of the measured steps; FLOPs by perfdb's default convention."""
    times, precision = [step["step_time_s"] for step in steps], str(config["precision"])
    rate = steps[0]["tokens"] / median(times)
    base = catalog.model("llama3-8b")
    shape = base.model_copy(update=dict(config["model"]))  # type: ignore[call-overload]
    per_token = flops.flops_per_token(shape, int(str(config["sequence_length"]))) or 0.0
    tflops = rate * per_token / 1e12
    peak = catalog.peak(place.system, precision)
    spread = quantiles(times, n=10) if len(times) > 1 else times
    return {
        "layers": num_layers(config),
        "precision": precision,
        "sequence_length": config["sequence_length"],
        "step_time_s": median(times),
        "step_time_p10_s": spread[0],
        "step_time_p90_s": spread[-1],
        "tokens_per_sec_per_gpu": rate,
        "flops_convention": flops.DEFAULT.name,
        "model_tflops_per_sec_per_gpu": tflops,
        "mfu": tflops / peak.tflops if peak else None,
        "of_bf16_matmul": tflops / product,
        "peak_memory_bytes": steps[-1]["peak_memory_bytes"],
    }


def paying(speeds: Mapping[str, Mapping[str, object]]) -> dict[str, str]:
    """Whether each choice is faster than its base: FP8 than BF16, an attention than auto."""
    found = {}
    for name, one in speeds.items():
        base = speeds.get(f"bf16-{one['sequence_length']}", speeds.get("bf16-4096"))
        if base is None or base is one:
            continue
        share = float(str(one["step_time_s"])) / float(str(base["step_time_s"]))
        found[name] = f"{'pays' if share < PAYS else 'does not pay'}: {share:.3f} of BF16's time"
    return found


def matmul_tflops(place: Hardware, repeats: int = 20) -> float:
    """BF16 TFLOP/s of a square product of random numbers (zeros would run faster)."""
    import torch

    size, device = (512, "cpu") if place.on_cpu else (8192, "cuda")
    left, right = (torch.randn(size, size, device=device, dtype=torch.bfloat16) for _ in range(2))
    finish: Callable[[], None] = (lambda: None) if place.on_cpu else torch.cuda.synchronize
    for _ in range(5):
        left @ right
    finish()
    begun = time.perf_counter()
    for _ in range(repeats):
        left @ right
    finish()
    return 2.0 * size**3 * repeats / (time.perf_counter() - begun) / 1e12


def environment(place: Hardware) -> dict[str, object]:
    import torch

    query = "--query-gpu=name,driver_version,power.limit,clocks.max.sm,temperature.gpu"
    there = shutil.which("nvidia-smi")
    return {
        "system": place.system,
        "gpu": None if place.on_cpu else torch.cuda.get_device_name(0),
        "gpu_memory_bytes": place.gpu_memory_bytes,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "nvidia_smi": subprocess.getoutput(shlex.join(["nvidia-smi", query, "--format=csv"]))
        if there
        else None,
        "torch_compile": "TORCHDYNAMO_DISABLE" not in worker_environment(),
    }


def lines(report: Mapping[str, object]) -> Iterator[str]:
    checks, trainings, pays, skipped = (
        report[name] for name in ("checks", "trainings", "pays", "skipped")
    )
    assert isinstance(checks, list)
    assert isinstance(trainings, dict)
    assert isinstance(pays, dict)
    assert isinstance(skipped, dict)
    for check in checks:
        yield f"{'ok  ' if check['passed'] else 'FAIL'} {check['name']}: {check['found']}"
    yield f"BF16 matrix product: {report['matmul_tflops']:.4g} TFLOP/s"
    for name, one in trainings.items():
        mfu = "–" if one["mfu"] is None else f"{one['mfu']:.1%}"
        yield (
            f"{name}: {one['layers']} layers, {one['step_time_s']:.4g} s/step, "
            f"{one['model_tflops_per_sec_per_gpu']:.4g} TFLOP/s/GPU, MFU {mfu}, "
            f"{one['of_bf16_matmul']:.0%} of the matrix product{'; ' * (name in pays)}"
            f"{pays.get(name, '')}"
        )
    yield from (f"{name}: not run: {why}" for name, why in skipped.items())


if __name__ == "__main__":
    sys.exit(main())
