"""Stands in for CUDA where there is none, so that Megatron-Core trains on CPU; counts its uses.

Megatron-Core takes a GPU for granted in some thirty places. Each remedy below says what breaks
without it (found by leaving it out, megatron-core 0.14.0 to 0.16.1). None touches arithmetic,
layout, schedule or communication: those are the library's own, over gloo. Never imported on a
machine with a GPU. For the life of the process.
"""

import contextlib
from collections import Counter
from collections.abc import Callable, Mapping
from typing import ParamSpec, TypeVar

import torch
import torch.distributed as dist
from megatron.core.tensor_parallel import random as megatron_random
from megatron.core.transformer.moe import moe_utils, token_dispatcher
from torch import Tensor
from torch.overrides import TorchFunctionMode

P = ParamSpec("P")
R = TypeVar("R")

CPU = torch.device("cpu")


def install() -> Counter[str]:
    """Put every remedy in place; returns the live count of how often each is used."""
    if torch.cuda.is_available():
        raise RuntimeError("the CPU shim must not be installed where there is a GPU")
    hits: Counter[str] = Counter()
    _current_device(hits)
    _generator(hits)
    _side_stream(hits)
    _split_sizes(hits)
    _uneven_collectives(hits)
    DeviceNames(hits).__enter__()
    return hits


def _counted(hits: Counter[str], name: str, function: Callable[P, R]) -> Callable[P, R]:
    def counting(*args: P.args, **kwargs: P.kwargs) -> R:
        hits[name] += 1
        return function(*args, **kwargs)

    return counting


def _current_device(hits: Counter[str]) -> None:
    """`device=torch.cuda.current_device()`: gradient buffers, pipeline receives, rotary tables.

    Without: "Torch not compiled with CUDA enabled" when the model is wrapped for data parallelism.
    """
    torch.cuda.current_device = _counted(hits, "current_device", lambda: CPU)


def _generator(hits: Counter[str]) -> None:
    """Megatron's named random states, kept of the CPU generator instead of the GPU's.

    Without: "Torch not compiled with CUDA enabled" in model_parallel_cuda_manual_seed. The
    library's tracker, its states and its forks (recomputation needs them) work unchanged.
    """
    get = _counted(hits, "generator_state", lambda *_args, **_kwargs: torch.get_rng_state())
    put = _counted(hits, "generator_state", lambda s, *_args, **_kwargs: torch.set_rng_state(s))
    torch.cuda.manual_seed = _counted(hits, "generator_state", torch.manual_seed)
    torch.cuda.get_rng_state = get
    megatron_random._get_cuda_rng_state = get
    megatron_random._set_cuda_rng_state = put


class _Stream:
    """The one order in which a CPU does things."""

    def wait_stream(self, _other: object) -> None: ...

    def record_event(self) -> "_Stream":
        return self

    def synchronize(self) -> None: ...


def _side_stream(hits: Counter[str]) -> None:
    """The all-to-all dispatcher copies its split sizes to the host on a stream of its own.

    Without: "torch.cuda.Stream requires CUDA support" when an MoE layer is built.
    """
    stream = _Stream()
    token_dispatcher.MoEAlltoAllTokenDispatcher.cuda_dtoh_stream = stream
    torch.cuda.current_stream = _counted(hits, "side_stream", lambda: stream)
    torch.cuda.stream = _counted(hits, "side_stream", contextlib.nullcontext)


def _split_sizes(hits: Counter[str]) -> None:
    """The dispatcher turns split sizes into numpy as it copies them from the GPU.

    Without: they stay tensors, which all_to_all_single does not take for sizes.
    """
    original = moe_utils.maybe_move_tensor_to_cpu

    def move(tensor: object, as_numpy: bool = False, record_stream: bool = False) -> object:
        if as_numpy and isinstance(tensor, Tensor):
            return tensor.numpy()
        return original(tensor, as_numpy, record_stream)

    token_dispatcher.maybe_move_tensor_to_cpu = _counted(hits, "split_sizes", move)


def _uneven_collectives(hits: Counter[str]) -> None:
    """Experts cut by tensor parallelism gather and scatter as many tokens as each rank has.

    Without: "ProcessGroupGloo::allgather: invalid tensor size": gloo's parts must be equal,
    NCCL's need not be. Expert parallelism with ETP > 1 and the all-to-all dispatcher needs it.
    """
    even_gather, even_scatter = dist.all_gather, dist.reduce_scatter

    def gather(parts: list[Tensor], mine: Tensor, group: dist.ProcessGroup) -> object:
        if _even(parts):
            return even_gather(parts, mine, group=group)
        hits["uneven_collective"] += 1
        parts[group.rank()].copy_(mine)
        for rank, part in enumerate(parts):
            dist.broadcast(part, src=dist.get_global_rank(group, rank), group=group)
        return None

    def scatter(mine: Tensor, parts: list[Tensor], group: dist.ProcessGroup) -> object:
        if _even(parts):
            return even_scatter(mine, parts, group=group)
        hits["uneven_collective"] += 1
        whole = torch.cat(parts)
        dist.all_reduce(whole, group=group)
        return mine.copy_(whole.split([len(part) for part in parts])[group.rank()])

    dist.all_gather, dist.reduce_scatter = gather, scatter


def _even(parts: list[Tensor]) -> bool:
    return len({len(part) for part in parts}) == 1


class DeviceNames(TorchFunctionMode):
    """Reads "cuda" as "cpu" in every call to torch.

    - the literal `device="cuda"` (schedules, optimizer, gradient clipping, MoE losses), `.cuda()`,
      `pin_memory=True` (rotary tables under context parallelism).
      Without: "Torch not compiled with CUDA enabled" in the first step.
    - `Tensor.type()` answers "torch.cuda.FloatTensor": the optimizers compare type names.
      Without: "Wrapped parameters must be one of torch.cuda.FloatTensor".
    """

    def __init__(self, hits: Counter[str]) -> None:
        super().__init__()
        self._hits = hits

    def __torch_function__(
        self,
        func: Callable[..., object],
        types: object,
        args: tuple[object, ...] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        named = dict(kwargs or {})
        if func is Tensor.cuda:
            return self._hit("tensor_cuda", args[0])
        if func is Tensor.type and len(args) == 1 and not named:
            name = str(func(*args)).replace("torch.", "torch.cuda.", 1)
            return self._hit("tensor_type", name)
        if _is_cuda(named.get("device")):
            named["device"] = self._hit("device_literal", CPU)
        if named.get("pin_memory"):
            named["pin_memory"] = self._hit("pin_memory", False)
        return func(*args, **named)

    def _hit(self, name: str, answer: R) -> R:
        self._hits[name] += 1
        return answer


def _is_cuda(device: object) -> bool:
    """Of a name ("cuda", "cuda:0") or a torch.device; None is neither."""
    return str(device).startswith("cuda")
