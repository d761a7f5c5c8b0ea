"""Trains for a number of steps and times each: the process that runs on every GPU.

    torchrun --nproc-per-node 8 -m runner.megatron.train \
        --config worker.json --steps steps.jsonl --summary summary.json

Rank 0 writes one line per step as it happens, and the summary only when all went well. Without a
GPU the same code runs on gloo, behind the device shim of cpu.py; set OMP_NUM_THREADS=1 there.
"""

import argparse
import json
import math
import os
import platform
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import TextIO

import torch

if not torch.cuda.is_available():
    # Megatron-Core wraps functions in torch.compile as it is imported: minutes of compiling on CPU.
    os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")

import megatron.core
import torch.distributed as dist
from megatron.core import parallel_state as ps
from megatron.core.pipeline_parallel import get_forward_backward_func
from torch import Tensor
from torch.distributed.elastic.multiprocessing.errors import record

from runner.megatron import layout, model
from runner.megatron.config import WorkerConfig, read_config
from runner.megatron.data import MicroBatch, MockData, Part

SUMMARY_VERSION = 1


@record  # leaves the traceback of a failing rank in torchrun's error.json
def main() -> None:
    started = time.perf_counter()
    arguments = parse_arguments()
    config = read_config(arguments.config)
    layout.check(config, world_size=int(os.environ.get("WORLD_SIZE", "1")))
    device, shim_hits = start_device()
    start_processes(config, device)
    training = model.build(config, device)
    data = mock_data(config, device)
    setup_time_s = time.perf_counter() - started

    with StepLog(arguments.steps, config) as log:
        for number in range(1, config.total_steps + 1):
            batches = data.step(number - 1)
            log.write(timed_step(number, training, batches, config))

    summary = summarise(training, device) | {
        "setup_time_s": setup_time_s,
        "cpu_shim_hits": dict(shim_hits),
    }
    stop_processes()
    if is_first():
        write_atomically(arguments.summary, json.dumps(summary, indent=2) + "\n")
