"""Replaces CUDA where there is none, so that Megatron-Core trains on CPU; counts its uses.

Megatron-Core takes a GPU for granted in some thirty places. Each remedy below says what breaks
without it (found by leaving it out, megatron-core 0.16.1). None touches arithmetic, layout or
schedule: those are the library's own. Never imported on a machine with a GPU; once installed it
stays for the life of the process.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack, nullcontext

import torch
import torch.distributed as dist
from megatron.core.tensor_parallel import random as megatron_random
from megatron.core.transformer.moe import moe_utils, token_dispatcher
from torch import Tensor
from torch.overrides import TorchFunctionMode

CPU = torch.device("cpu")
_TYPE_NAME: object = Tensor.type


def install() -> Counter[str]:
    """Put every remedy in place; returns the live count of how often each stood in."""
    if torch.cuda.is_available():
        raise RuntimeError("the CPU shim must not be installed where there is a GPU")
    hits: Counter[str] = Counter()
    _current_device(hits)
    _generator(hits)
    _side_stream(hits)
    _split_sizes(hits)
    _uneven_collectives(hits)
    ExitStack().enter_context(DeviceNames(hits))
    return hits


def _replace(hits: Counter[str], owner: object, name: str, stand_in: Callable[..., object]) -> None:
    def counting(*args: object, **kwargs: object) -> object:
        hits[name] += 1
        return stand_in(*args, **kwargs)

    setattr(owner, name, counting)


def _current_device(hits: Counter[str]) -> None:
    """`device=torch.cuda.current_device()`: gradient buffers, pipeline receives, gathers.

    Without: "Torch not compiled with CUDA enabled" when the model is wrapped for data parallelism.
    """
    _replace(hits, torch.cuda, "current_device", lambda: CPU)


def _generator(hits: Counter[str]) -> None:
    """Megatron's named random states, kept of the CPU's generator instead of the GPU's.

    Without: "Torch not compiled with CUDA enabled" in model_parallel_cuda_manual_seed. The
    library's tracker, its states and its forks (recomputation needs them) work unchanged.
    """
    _replace(hits, torch.cuda, "manual_seed", torch.manual_seed)
    _replace(hits, torch.cuda, "get_rng_state", torch.get_rng_state)
    for name in ("_get_cuda_rng_state", "_set_cuda_rng_state"):
        function = torch.get_rng_state if "get" in name else torch.set_rng_state
        _replace(hits, megatron_random, name, _without_options(function))


def _without_options(function: Callable[..., object]) -> Callable[..., object]:
    """Leaves out the device and whether a CUDA graph is being recorded."""
    return lambda *args, **_options: function(*args)


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
    _replace(hits, torch.cuda, "current_stream", lambda: stream)
    _replace(hits, torch.cuda, "stream", nullcontext)


def _split_sizes(hits: Counter[str]) -> None:
    """The dispatcher turns split sizes into numpy as it copies them from the GPU.

    Without: they stay tensors, and all_to_all_single says "incompatible function arguments".
    """
    original = moe_utils.maybe_move_tensor_to_cpu

    def move(tensor: object, as_numpy: bool = False, record_stream: bool = False) -> object:
        if as_numpy and isinstance(tensor, Tensor):
            return tensor.numpy()
        return original(tensor, as_numpy, record_stream)

    _replace(hits, token_dispatcher, "maybe_move_tensor_to_cpu", move)


def _uneven_collectives(hits: Counter[str]) -> None:
    """Experts cut by tensor parallelism gather and scatter as many tokens as each rank has.

    Without: "ProcessGroupGloo::allgather: invalid tensor size" with EP > 1, ETP > 1 and the
    all-to-all dispatcher: gloo's parts must be equal, NCCL's need not be.
    """
    even_gather, even_scatter = dist.all_gather, dist.reduce_scatter

    def gather(parts: list[Tensor], mine: Tensor, group: dist.ProcessGroup) -> None:
        if _even(parts):
            even_gather(parts, mine, group=group)
            return
        hits["all_gather"] += 1
        parts[group.rank()].copy_(mine)
        for rank, part in enumerate(parts):
            dist.broadcast(part, src=dist.get_global_rank(group, rank), group=group)

    def scatter(mine: Tensor, parts: list[Tensor], group: dist.ProcessGroup) -> None:
        if _even(parts):
            even_scatter(mine, parts, group=group)
            return
        hits["reduce_scatter"] += 1
        whole = torch.cat(parts)
        dist.all_reduce(whole, group=group)
        start = sum(len(part) for part in parts[: group.rank()])
        mine.copy_(whole[start : start + len(mine)])

    for name, stand_in in {"all_gather": gather, "reduce_scatter": scatter}.items():
        setattr(dist, name, stand_in)


def _even(parts: list[Tensor]) -> bool:
    return len({len(part) for part in parts}) == 1


class DeviceNames(TorchFunctionMode):
    """Reads "cuda" as "cpu" in every call to torch.

    - The literal `device="cuda"`: schedules, optimizer, gradient clipping, MoE losses. Without:
      "Torch not compiled with CUDA enabled" when the optimizer is built.
    - `.cuda()` and `pin_memory=True`: rotary positions under context parallelism, tied embeddings
      over a pipeline. Without: the same, or "pin_memory=True requires a CUDA".
    - `Tensor.type()`, here "torch.cuda.FloatTensor": the optimizers compare type names. Without:
      "Wrapped parameters must be one of torch.cuda.FloatTensor".
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
        options = dict(kwargs or {})
        if func is Tensor.cuda:
            return self._hit("Tensor.cuda", args[0])
        if func is _TYPE_NAME and len(args) == 1 and not options:
            name = str(func(*args)).replace("torch.", "torch.cuda.", 1)
            return self._hit("Tensor.type", name)
        if _is_cuda(options.get("device")):
            options["device"] = self._hit("device=cuda", CPU)
        if options.get("pin_memory"):
            options["pin_memory"] = self._hit("pin_memory", False)
        return func(*args, **options)

    def _hit(self, name: str, answer: object) -> object:
        self._hits[name] += 1
        return answer


def _is_cuda(device: object) -> bool:
    """Of a name ("cuda", "cuda:0") or a torch.device; None is neither."""
    return str(device).startswith("cuda")
