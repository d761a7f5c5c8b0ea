"""Saves a training with Megatron-Core's dist_checkpointing, loads it back, and trains one step.

The step is done three times: without the round trip, after it, and in the other layout that the
recipe names, if it names one. All must have the same loss.
"""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch
import torch.distributed as dist
from megatron.core import dist_checkpointing, parallel_state
from megatron.core.dist_checkpointing.strategies import filesystem_async
from megatron.core.distributed import DistributedDataParallel

from runner.megatron.config import WorkerConfig
from runner.megatron.model import Training, build, start_groups
from runner.megatron.steps import Clock, reduced

NextLoss = Callable[[WorkerConfig, Training], float]
METADATA = {"distrib_optim_sharding_type": "fully_reshardable"}
"""The one way to keep the distributed optimizer's state that other TP and PP sizes can load."""
TOLERANCE = 1e-5
"""Largest relative difference of the losses of two layouts: they add in different orders."""


class CheckpointError(RuntimeError):
    """What was loaded does not train as what was saved."""


def round_trip(
    folder: Path,
    config: WorkerConfig,
    training: Training,
    next_loss: NextLoss,
) -> dict[str, object]:
    """Save, load and compare; the folder is removed. Raises CheckpointError.

    `next_loss` trains one step and gives its loss. The answer is what `perfdb.run_record` calls a
    Checkpoint.
    """
    first = dist.get_rank() == 0
    if first:
        folder.mkdir()
    # Megatron-Core starts a process once that gathers what writers report: no part of saving.
    getattr(filesystem_async, "_get_write_results_queue", int)()
    clock = Clock(training.device)
    dist_checkpointing.save(_state(training, is_loading=False), str(folder))
    save_s = _slowest(clock, training)
    size = sum(file.stat().st_size for file in folder.iterdir())
    loss = next_loss(config, training)
    load_s, loaded_loss = _loaded(folder, config, training.device, next_loss)
    losses = [loaded_loss]
    found: dict[str, object] = {
        "save_time_s": save_s, "size_bytes": size, "loss": loss, "load_time_s": load_s,
        "loaded_loss": loaded_loss,
    }  # fmt: skip
    if sizes := dict(config.reload_layout):
        other = replace(config, **sizes)
        parallel_state.destroy_model_parallel()
        start_groups(other)
        load_s, loaded_loss = _loaded(folder, other, training.device, next_loss)
        losses.append(loaded_loss)
        found |= {
            "resharded": sizes, "resharded_load_time_s": load_s, "resharded_loss": loaded_loss,
        }  # fmt: skip
    dist.barrier()
    if first:
        shutil.rmtree(folder)
    if not all(abs(other - loss) <= TOLERANCE * abs(loss) for other in losses):
        message = f"the step after the checkpoint has the loss {loss}, and once loaded {losses}"
        raise CheckpointError(message)
    return found


def _chunks(training: Training) -> dict[str, DistributedDataParallel]:
    """The chunks by the names that Megatron-LM saves them under."""
    chunks = training.chunks
    if len(chunks) == 1:
        return {"model": chunks[0]}
    return {f"model{number}": chunk for number, chunk in enumerate(chunks)}


def _state(training: Training, *, is_loading: bool) -> dict[str, object]:
    """Weights and optimizer, each tensor with its place in the whole; chunks by their number."""
    model = {key: it.module.sharded_state_dict() for key, it in _chunks(training).items()}
    optimizer = training.optimizer.sharded_state_dict(
        model, is_loading=is_loading, metadata=METADATA
    )
    return {**model, "optimizer": optimizer}


def _loaded(
    folder: Path, config: WorkerConfig, device: torch.device, next_loss: NextLoss
) -> tuple[float, float]:
    """The time to load into a training that is built anew, in seconds, and its next loss."""
    training = build(config, device)
    next_loss(config, training)  # an Adam of torch has no state to load into before its first step
    clock = Clock(device)
    state = dist_checkpointing.load(_state(training, is_loading=True), str(folder))
    for key, chunk in _chunks(training).items():
        chunk.module.load_state_dict(state[key])
    training.optimizer.load_state_dict(state["optimizer"])
    load_s = _slowest(clock, training)
    return load_s, next_loss(config, training)


def _slowest(clock: Clock, training: Training) -> float:
    own_s, _ = clock.stop()
    [slowest_s] = reduced([own_s], dist.ReduceOp.MAX, training.device)
    return slowest_s
