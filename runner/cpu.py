"""What replaces CUDA where there is none, for every framework; counts its uses.

Never imported on a machine with a GPU. What only one framework needs is in runner/NAME/cpu.py.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

CPU = torch.device("cpu")
_TYPE_NAME: object = Tensor.type
_MODULE_TO: object = torch._C._nn._parse_to

StandIn = tuple[object, str, Callable[..., object]]
"""A module or class, the name of its function, and the replacement."""


def replace(stand_ins: Iterable[StandIn], hits: Counter[str]) -> None:
    """Put functions in place of others, each counted by its name."""
    for owner, name, stand_in in stand_ins:
        setattr(owner, name, _counting(hits, name, stand_in))


def _counting(
    hits: Counter[str], name: str, stand_in: Callable[..., object]
) -> Callable[..., object]:
    def counting(*args: object, **kwargs: object) -> object:
        hits[name] += 1
        return stand_in(*args, **kwargs)

    return counting


class DeviceNames(TorchFunctionMode):
    """Reads "cuda" as "cpu" in every call to torch.

    - The literal `device="cuda"`: schedules, optimizer, gradient clipping, MoE losses. Without:
      "Torch not compiled with CUDA enabled" when the optimizer is built.
    - A number, which AutoModel has of its current device: `device=0`, `module.to(0)`. Without: the
      same.
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
            self._hits["Tensor.cuda"] += 1
            return args[0]
        if func is _TYPE_NAME and len(args) == 1 and not options:
            self._hits["Tensor.type"] += 1
            return str(func(*args)).replace("torch.", "torch.cuda.", 1)
        if func is _MODULE_TO and args and _is_cuda(args[0]):
            self._hits["Module.to"] += 1
            return func(CPU, *args[1:], **options)
        if _is_cuda(options.get("device")):
            self._hits["device=cuda"] += 1
            options["device"] = CPU
        if options.get("pin_memory"):
            self._hits["pin_memory"] += 1
            options["pin_memory"] = False
        return func(*args, **options)


def _is_cuda(device: object) -> bool:
    """Whether a device is a GPU: a name, a torch.device, or a GPU's number."""
    return type(device) is int or str(device).startswith("cuda")
