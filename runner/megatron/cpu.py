"""Replaces CUDA where there is none, so that Megatron-Core trains on CPU; counts its uses.

Megatron-Core takes a GPU for granted in some thirty places. Each remedy below says what breaks
without it (found by leaving it out, megatron-core 0.16.1). None touches arithmetic, layout or
schedule: those are the library's own. Never imported on a machine with a GPU; once installed it
stays for the life of the process.
"""

from collections import Counter
from contextlib import ExitStack, nullcontext

import torch
import torch.distributed as dist
from megatron.core.optimizer.distrib_optimizer import DistributedOptimizer
from megatron.core.tensor_parallel import random as megatron_random
from megatron.core.transformer.moe import moe_utils, token_dispatcher
from torch import Tensor

from runner.cpu import CPU, DeviceNames, StandIn, replace

_LOADER = "_set_main_param_and_optimizer_states"
load_states = getattr(DistributedOptimizer, _LOADER)


def install() -> Counter[str]:
    """Put every remedy in place; returns the live count of how often each stood in."""
    if torch.cuda.is_available():
        raise RuntimeError("the CPU shim must not be installed where there is a GPU")
    hits: Counter[str] = Counter()
    stream = _Stream()
    token_dispatcher.MoEAlltoAllTokenDispatcher.cuda_dtoh_stream = stream
    stand_ins: tuple[StandIn, ...] = (
        # `device=torch.cuda.current_device()`: gradient buffers, pipeline receives, gathers.
        # Without: "Torch not compiled with CUDA enabled" when the model is wrapped for data
        # parallelism.
        (torch.cuda, "current_device", lambda: CPU),
        # Megatron's named random states, kept of the CPU's generator instead of the GPU's; device
        # and whether a CUDA graph is recorded are left out. Without: "Torch not compiled with CUDA
        # enabled" in model_parallel_cuda_manual_seed. The library's tracker, its states and its
        # forks (recomputation needs them) work unchanged.
        (torch.cuda, "manual_seed", torch.manual_seed),
        (torch.cuda, "get_rng_state", torch.get_rng_state),
        (megatron_random, "_get_cuda_rng_state", lambda *args, **_: torch.get_rng_state(*args)),
        (megatron_random, "_set_cuda_rng_state", lambda *args, **_: torch.set_rng_state(*args)),
        # The all-to-all dispatcher copies its split sizes to the host on a stream of its own.
        # Without: "torch.cuda.Stream requires CUDA support" when an MoE layer is built.
        (torch.cuda, "current_stream", lambda: stream),
        (torch.cuda, "stream", nullcontext),
        # A checkpoint waits for the copies to the host. Without: "Torch not compiled with CUDA
        # enabled" when it is saved.
        (torch.cuda, "synchronize", lambda *_: None),
        # The distributed optimizer loads each state of a weight, and forgets that torch's Adam
        # has a step beside them. Without: "KeyError: 'step'" when a checkpoint is loaded.
        (DistributedOptimizer, _LOADER, _load_with_step),
        # It turns them into numpy as it copies them from the GPU. Without: they stay tensors, and
        # all_to_all_single says "incompatible function arguments".
        (token_dispatcher, "maybe_move_tensor_to_cpu", _move_to_cpu),
    )
    replace(stand_ins, hits)
    _uneven_collectives(hits)
    ExitStack().enter_context(DeviceNames(hits))
    return hits


def _load_with_step(
    optimizer: DistributedOptimizer, weight: Tensor, states: dict[str, Tensor]
) -> None:
    group, place = optimizer.model_param_group_index_map[weight]
    own = optimizer.optimizer.state[optimizer.optimizer.param_groups[group]["params"][place]]
    load_states(optimizer, weight, {"step": own["step"], **states})


class _Stream:
    """The one order in which a CPU does things."""

    def wait_stream(self, _other: object) -> None: ...

    def record_event(self) -> "_Stream":
        return self

    def synchronize(self) -> None: ...


def _move_to_cpu(tensor: object, as_numpy: bool = False, record_stream: bool = False) -> object:
    if as_numpy and isinstance(tensor, Tensor):
        return tensor.numpy()
    return moe_utils.maybe_move_tensor_to_cpu(tensor, as_numpy, record_stream)


def _uneven_collectives(hits: Counter[str]) -> None:
    """Experts cut by tensor parallelism gather and scatter as many tokens as each rank has.

    Without: "ProcessGroupGloo::allgather: invalid tensor size" with EP > 1, ETP > 1 and the
    all-to-all dispatcher: gloo's parts must be equal, NCCL's need not be.
    """
    even_gather, even_scatter = dist.all_gather, dist.reduce_scatter

    def is_even(parts: list[Tensor]) -> bool:
        return len({len(part) for part in parts}) == 1

    def gather(parts: list[Tensor], mine: Tensor, group: dist.ProcessGroup) -> None:
        if is_even(parts):
            even_gather(parts, mine, group=group)
            return
        hits["all_gather"] += 1
        parts[group.rank()].copy_(mine)
        for rank, part in enumerate(parts):
            dist.broadcast(part, src=dist.get_global_rank(group, rank), group=group)

    def scatter(mine: Tensor, parts: list[Tensor], group: dist.ProcessGroup) -> None:
        if is_even(parts):
            even_scatter(mine, parts, group=group)
            return
        hits["reduce_scatter"] += 1
        whole = torch.cat(parts)
        dist.all_reduce(whole, group=group)
        start = sum(len(part) for part in parts[: group.rank()])
        mine.copy_(whole[start : start + len(mine)])

    vars(dist).update(all_gather=gather, reduce_scatter=scatter)
