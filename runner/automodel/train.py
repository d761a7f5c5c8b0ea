"""Runs AutoModel's benchmark recipe, and writes its steps as they happen: on every GPU.

    torchrun --nproc-per-node 8 -m runner.automodel.train \
        --steps steps.jsonl --summary worker.json -c automodel.yaml [--a.b c]

Training and timing are AutoModel's own: what `torchrun -m nemo_automodel.recipes.llm.benchmark`
runs with the same arguments, of which this module takes its own. A step is read off what the recipe
logs of it, so that versions 0.2.0 to 0.7.0 are the same to it.
"""

import argparse
import json
import logging
import os
import platform
import re
import sys
from collections import Counter
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any, TextIO

import torch
import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import record

from runner.worker import (
    SUMMARY_VERSION,
    check_device,
    peak_memory_bytes,
    write_line,
    write_summary,
)  # fmt: skip

PACKAGES = (
    "torch", "megatron-core", "transformer-engine", "nemo-automodel", "numpy", "transformers",
    "triton",
)  # fmt: skip
STEP = re.compile(r"\| Iteration (\d+) \| .*\bloss=(\S+)")
TIME = re.compile(r"^Max iter time: ([\d.]+) seconds")


class StepLog(logging.Handler):
    """Writes a line for each step that the recipe logs: its loss, then the longest time of a rank.

    Steps count from 1, tokens are all that were computed: labels are fewer by one a sample.
    """

    def __init__(self, steps: TextIO, tokens: int, device: torch.device) -> None:
        super().__init__()
        self._file, self._tokens, self._device = steps, tokens, device
        self._step, self._loss = 0, "NaN"

    def emit(self, record: logging.LogRecord) -> None:
        """Read one message of the recipe."""
        text = record.getMessage()
        if found := STEP.search(text):
            self._step, self._loss = int(found[1]) + 1, found[2]
        elif found := TIME.search(text):
            loss = float(self._loss)
            step = {
                "step": self._step,
                "step_time_s": float(found[1]),
                # JSON has no NaN and no infinities: they are texts.
                "loss": loss if abs(loss) < float("inf") else str(loss).replace("inf", "Infinity"),
                "tokens": self._tokens,
                "peak_memory_bytes": peak_memory_bytes(self._device),
                "skipped": False,
            }
            write_line(self._file, json.dumps(step))


@record  # a failing rank leaves its traceback in torchrun's error.json
def main() -> None:
    """Run the recipe of the YAML; write a line for each step, and a summary at the end."""
    arguments, rest = parse_arguments()
    first = os.environ.get("RANK", "0") == "0"
    if first:
        arguments.summary.unlink(missing_ok=True)  # it would say that this run went well
    device, shim_hits = start_device(arguments.device)
    sys.argv[1:] = rest
    from nemo_automodel.recipes.llm import benchmark  # noqa: PLC0415  # once CUDA is replaced

    recipe: Any = benchmark.BenchmarkingRecipeForNextTokenPrediction

    class BenchmarkingRecipeForNextTokenPrediction(recipe):  # type: ignore[misc]
        """The recipe, with its steps and its summary written; AutoModel prints its name."""

        def run_benchmark(self) -> None:
            batch, length = self.cfg.step_scheduler.global_batch_size, self.cfg.dataset.seq_len
            with Path(arguments.steps if first else os.devnull).open("w") as steps:
                log = StepLog(steps, batch * length, device)
                benchmark.logger.addHandler(log)
                super().run_benchmark()
                benchmark.logger.removeHandler(log)
            summary = summarise(self, device) | {"cpu_shim_hits": dict(shim_hits)}
            if first:
                write_summary(arguments.summary, summary)

    benchmark.BenchmarkingRecipeForNextTokenPrediction = BenchmarkingRecipeForNextTokenPrediction
    benchmark.main()
    dist.destroy_process_group()


def parse_arguments() -> tuple[argparse.Namespace, list[str]]:
    """The files that the runner names and the device; then what is AutoModel's."""
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").partition("\n")[0], allow_abbrev=False
    )
    parser.add_argument("--steps", type=Path, required=True, help="gets one JSON line per step")
    parser.add_argument("--summary", type=Path, required=True, help="written last, on success")
    parser.add_argument("--device", choices=["cpu", "cuda"], help="fail on the other one")
    return parser.parse_known_args()


def start_device(wanted: str | None) -> tuple[torch.device, Counter[str]]:
    """This rank's device, and the live count of how often the CPU shim stood in for one."""
    check_device(wanted, "cuda" if torch.cuda.is_available() else "cpu", torch.__version__)
    if torch.cuda.is_available():
        return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0"))), Counter()
    from runner.automodel import cpu  # noqa: PLC0415  # never imported where there is a GPU

    return torch.device("cpu"), cpu.install()


def summarise(recipe: Any, device: torch.device) -> dict[str, object]:
    """What the run was; every rank takes part, and every rank gets the answer."""
    sizes = {
        name: (weight.numel(), weight.requires_grad)  # of a sharded weight all of it
        for part in recipe.model_parts
        for name, weight in part.named_parameters()
    }
    mine = (sizes, peak_memory_bytes(device))
    everyones = [mine] * dist.get_world_size()
    dist.all_gather_object(everyones, mine)
    # Of a pipeline each rank has some of the weights.
    weights = {name: size for sizes, _ in everyones for name, size in sizes.items()}.values()
    on_gpu = device.type == "cuda"
    versions: dict[str, str | None] = dict.fromkeys(PACKAGES)
    for name in PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return {
        "schema_version": SUMMARY_VERSION,
        "world_size": dist.get_world_size(),
        "data_parallel": recipe._get_dp_group_size(),
        "num_parameters": sum(size for size, _ in weights),
        "num_trainable_parameters": sum(size for size, is_trained in weights if is_trained),
        "backend": dist.get_backend(),
        "device": torch.cuda.get_device_name(device) if on_gpu else "cpu",
        "cpu_shim": "runner.cpu" in sys.modules,
        "memory_kind": "cuda_allocated" if on_gpu else "process_rss",
        "peak_memory_bytes": [memory for _, memory in everyones],
        "versions": versions
        | {
            "python": platform.python_version(),
            "automodel": versions["nemo-automodel"],  # the framework by its name in recipes
            "cuda": torch.version.cuda,
            "nccl": ".".join(map(str, torch.cuda.nccl.version())) if on_gpu else None,  # type: ignore[no-untyped-call]
        },
    }


if __name__ == "__main__":
    main()
