"""Prints what Megatron-Bridge's script prints of its steps, and trains nothing."""

import os
import sys
import time

from argument_parser import parse_cli_args  # lies beside it

args, overrides = parse_cli_args().parse_known_args()
unknown = [one for one in overrides if "=" not in one]
if unknown:
    sys.exit(f"unrecognized arguments: {unknown}")
gbs = int(os.environ.get("BRIDGE_GBS", args.global_batch_size))
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
for step in range(1, args.max_steps + 1):
    time_s = 0.25 if step > 1 else 3.0
    time.sleep(0.05)
    if rank == 0:
        said = f"Step Time : {time_s:.2f}s GPU utilization: 400.5MODEL_TFLOP/s/GPU"
        sys.stdout.write(f"{said}\n")
    if rank == world - 1:
        sys.stdout.write(
            f" [2025-12-22 15:18:{step:02}] iteration {step:8}/{args.max_steps:8} | "
            f"consumed samples: {step * gbs:12} | elapsed time per iteration (ms): "
            f"{time_s * 1000:.1f} | learning rate: 3.000000E-05 | global batch size: {gbs:5} | "
            f"lm loss: {9 - step / 10:.6E} | loss scale: 1.0 | grad norm: 0.042 | "
            "number of skipped iterations:   0 | number of nan iterations:   0 |\n"
        )
    sys.stdout.flush()
