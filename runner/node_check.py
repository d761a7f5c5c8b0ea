"""What nodes can do before a sweep: each process times a matrix product and all-reduces.

Started by torchrun: `python -m runner.node_check FOLDER`. Standard library and PyTorch only.
"""

import os
import statistics
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

from runner.worker import write_summary

TIMEOUT = timedelta(seconds=90)
"""How long the others are waited for."""
NUM_TIMES = 20
WARM_UP = 3
ON_GPU = (8192, torch.bfloat16, 2**28)
ON_CPU = (1024, torch.float32, 2**22)
"""The side of the matrices, their type, and how many 4-byte numbers are reduced: 1 GiB, 16 MiB."""


def median_s(work: Callable[[], object], device: torch.device) -> float:
    """The median of the seconds that something takes, the device synchronised around each time."""

    def once() -> float:
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        start = time.perf_counter()
        work()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        return time.perf_counter() - start

    return statistics.median([once() for _ in range(WARM_UP + NUM_TIMES)][WARM_UP:])


def matmul_tflops(device: torch.device) -> float:
    """TFLOP/s of this process: a product of square matrices is 2n³ FLOPs."""
    side, dtype, _ = ON_GPU if device.type == "cuda" else ON_CPU
    a, b = (torch.randn(side, side, device=device, dtype=dtype) for _ in range(2))
    return 2 * side**3 / median_s(lambda: a @ b, device) / 1e12


def allreduce_gb_per_s(group: dist.ProcessGroup, device: torch.device) -> float:
    """The bus bandwidth of an all-reduce: 2(n-1)/n of its bytes over its time.

    https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md
    """
    count = (ON_GPU if device.type == "cuda" else ON_CPU)[2]
    data, size = torch.ones(count, device=device), dist.get_world_size(group)
    seconds = median_s(lambda: dist.all_reduce(data.fill_(1.0), group=group), device)
    return 2 * (size - 1) / size * count * 4 / seconds / 1e9


def pairs(num_nodes: int) -> list[list[tuple[int, int]]]:
    """Each node with the next one, in rounds in which no node is twice."""
    line = [(node, node + 1) for node in range(num_nodes - 1)]
    ring = [(0, num_nodes - 1)] if num_nodes > 2 else []  # two are a pair already
    return [line[::2], line[1::2], ring]


def main(folder: Path) -> None:
    """Measure, and leave a file of this rank, also of what was done before a failure."""
    rank, per_node = int(os.environ["RANK"]), int(os.environ["LOCAL_WORLD_SIZE"])
    node, num_nodes = rank // per_node, int(os.environ["WORLD_SIZE"]) // per_node
    on_gpu = torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if on_gpu else torch.device("cpu")
    if on_gpu:
        torch.cuda.set_device(device)
    known: dict[str, object] = {"node": os.environ.get("SLURMD_NODENAME") or str(node)}
    file = folder / f"{rank}.json"
    known["matmul_tflops"] = matmul_tflops(device)
    write_summary(file, known)
    dist.init_process_group("nccl" if on_gpu else "gloo", timeout=TIMEOUT)
    ranks = [list(range(it * per_node, (it + 1) * per_node)) for it in range(num_nodes)]
    nodes = [dist.new_group(some) for some in ranks]
    if per_node > 1:
        known["node_gb_per_s"] = allreduce_gb_per_s(nodes[node], device)
    found = []
    for together in pairs(num_nodes):
        groups = [(pair, dist.new_group(ranks[pair[0]] + ranks[pair[1]])) for pair in together]
        dist.barrier()
        found += [allreduce_gb_per_s(group, device) for pair, group in groups if node in pair]
    known["pairs_gb_per_s"] = found
    write_summary(file, known)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
