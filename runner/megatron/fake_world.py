"""Builds the model of a rank of each pipeline stage of any world, without GPUs; counts weights.

    python -m runner.megatron.fake_world < layouts.jsonl > stages.jsonl

A line of the input is a worker's configuration and its `world_size`. This one process is each rank
in turn: PyTorch's "fake" process group replaces the others, and weights are on the meta device,
where tensors have shapes and no memory. A line of the output has the stages, or the `error` that
Megatron-Core raised.
"""

import json
import os
import re
import sys
from functools import cache

os.environ["CUDA_VISIBLE_DEVICES"] = ""  # the same modules are built on every machine
os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")  # as in train.py

import torch
import torch.distributed as dist
from megatron.core import parallel_state
from torch.testing._internal.distributed.fake_pg import FakeStore

from runner.megatron import cpu, model, weights
from runner.megatron.config import WorkerConfig, parse_config


def main() -> None:
    """Answer each line of the standard input with one on the standard output, at once."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print is no answer
    cpu.install()
    for line in sys.stdin:
        answers.write(json.dumps(answer(line)) + "\n")
        answers.flush()


@cache
def answer(line: str) -> dict[str, object]:
    """What a layout, as JSON, comes to; `error` says why it cannot be built."""
    layout = json.loads(line)
    try:
        return world(parse_config(layout["config"]), layout["world_size"])
    except (AssertionError, RuntimeError, TypeError, ValueError) as error:
        return {"error": f"{type(error).__name__}: {error}"}


def world(config: WorkerConfig, world_size: int) -> dict[str, object]:
    """What the first rank of each pipeline stage holds, and the parameters of the whole model.

    `matrices` are those of `parameters` that are in matrices: not in norms.
    """
    stages, whole, matrices = [], dict[str, int](), set[str]()
    for stage in range(config.pipeline_parallel):
        # The library's order of ranks: a stage is a block of them.
        rank = stage * world_size // config.pipeline_parallel
        dist.init_process_group("fake", store=FakeStore(), rank=rank, world_size=world_size)
        try:
            model.start_groups(config)
            held = rank_weights(config)
        finally:
            parallel_state.destroy_model_parallel()
            dist.destroy_process_group()
        sizes = {it.global_name: it.parameter.numel() for it in held}
        experts = {name for name in sizes if ".experts." in name}
        layers = {name.split(".")[0] for name in sizes if re.match(r"L\d", name)}
        for it in held:
            copies = config.expert_parallel if it.global_name in experts else 1
            whole[it.global_name] = torch.Size(it.whole_shape).numel() * copies
        matrices |= {it.global_name for it in held if it.parameter.dim() > 1}
        stages.append(
            {
                "num_layers": len(layers),
                "parameters": sum(sizes.values()),
                "expert_parameters": sum(sizes[name] for name in experts),
            }
        )
    return {
        "stages": stages,
        "parameters": sum(whole.values()),
        "matrices": sum(whole[name] for name in matrices),
    }


def rank_weights(config: WorkerConfig) -> list[weights.GlobalWeight]:
    """The weights of the rank that this process is; none has a value."""
    megatron = model.transformer_config(config, on_gpu=False)
    megatron.perform_initialization = False
    with torch.device("meta"):
        chunks = model.model_chunks(config, megatron)
    place = model.shard_place(config)
    return [weight for chunk in chunks for weight in weights.weights(chunk, place)]


if __name__ == "__main__":
    main()
