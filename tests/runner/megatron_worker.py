"""Launches the training process as the runner does, for the tests of it."""

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

needs_megatron = pytest.mark.skipif(
    find_spec("torch") is None or find_spec("megatron") is None,
    reason="needs torch and megatron-core (the extra mcore)",
)

SHAPE: dict[str, object] = {
    "num_layers": 4, "hidden_size": 64, "ffn_hidden_size": 128, "num_attention_heads": 4,
    "num_query_groups": 4, "head_dim": 16, "vocab_size": 512, "gated_mlp": True,
    "activation": "silu", "normalization": "RMSNorm", "tied_embeddings": False,
    "rotary_base": 10000.0, "num_experts": None, "moe_top_k": None, "moe_ffn_hidden_size": None,
    "moe_shared_expert_ffn_hidden_size": None,
}  # fmt: skip
RUN: dict[str, object] = {
    "schema_version": 1, "precision": "fp32", "sequence_length": 64, "global_batch_size": 8,
    "micro_batch_size": 1, "tensor_parallel": 1, "pipeline_parallel": 1, "virtual_pipeline": None,
    "context_parallel": 1, "expert_parallel": 1, "expert_tensor_parallel": None,
    "sequence_parallel": False, "warmup_steps": 1, "measured_steps": 3, "seed": 1234,
}  # fmt: skip
EXPERTS: dict[str, object] = {"num_experts": 4, "moe_top_k": 2, "moe_ffn_hidden_size": 128}


def config(**changes: object) -> dict[str, object]:
    """A tiny dense model for four steps, changed by the fields given, wherever they belong."""
    shape = SHAPE | {name: changes.pop(name) for name in SHAPE if name in changes}
    run = RUN | {name: changes.pop(name) for name in RUN if name in changes}
    return run | {"model": shape, "options": {"init": "layout_invariant"} | changes}


@dataclass(frozen=True)
class Job:
    """A launched training run: the files it was given, and its command."""

    folder: Path
    command: Sequence[str]

    @property
    def steps(self) -> list[dict[str, float]]:
        lines = (self.folder / "steps.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]

    @property
    def summary(self) -> dict[str, object]:
        loaded: dict[str, object] = json.loads((self.folder / "summary.json").read_text())
        return loaded

    def start(self) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            self.command,
            cwd=ROOT,
            env=os.environ | {"OMP_NUM_THREADS": "1", "TORCHDYNAMO_DISABLE": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self) -> str:
        """What it printed; fails the test if the run failed."""
        with self.start() as process:
            output, _ = process.communicate()
        assert process.returncode == 0, output
        return output


def job(python: Path, folder: Path, settings: dict[str, object], processes: int = 1) -> Job:
    """Torchrun on this machine, by a Python that has it loaded, its files in a folder."""
    (folder / "worker.json").write_text(json.dumps(settings))
    files = ("--config", "worker.json"), ("--steps", "steps.jsonl"), ("--summary", "summary.json")
    arguments = [word for flag, name in files for word in (flag, str(folder / name))]
    torchrun = [str(python), "-m", "torch.distributed.run", "--standalone"]
    torchrun += ["--nproc-per-node", str(processes), "--log-dir", str(folder / "logs")]
    return Job(folder, [*torchrun, "-m", "runner.megatron.train", *arguments])
