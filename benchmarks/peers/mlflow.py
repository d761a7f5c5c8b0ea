"""Log results into MLflow on SQLite; run by MLflow's own interpreter. Prints the seconds.

`python mlflow.py RESULTS.jsonl SCRATCH`; each result is a run: the case its parameters, each step
a value of a metric.
"""

import json
import logging
import os
import sys
import time
from pathlib import Path

sys.path.pop(0)  # this file is called like the package
os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"

import mlflow
from mlflow.entities import Metric, Param


def main(results: Path, scratch: Path) -> None:
    logging.getLogger("mlflow").setLevel(logging.ERROR)
    client = mlflow.MlflowClient(tracking_uri=f"sqlite:///{scratch}/mlflow.db")
    experiment = client.create_experiment("perf", artifact_location=str(scratch / "artifacts"))
    given = [json.loads(line) for line in results.read_text().splitlines()]
    start = time.perf_counter()
    for one in given:
        run = client.create_run(experiment, run_name=one["name"])
        case = one["case"] | {"release": one["release"]}
        steps = [
            Metric("step_time_s", seconds, 0, step)
            for step, seconds in enumerate(one["step_times_s"], start=1)
        ]
        rate = Metric("tokens_per_sec_per_gpu", one["tokens_per_sec_per_gpu"], 0, 0)
        parameters = [Param(name, str(value)) for name, value in case.items()]
        client.log_batch(run.info.run_id, metrics=[*steps, rate], params=parameters)
        client.set_terminated(run.info.run_id)
    print(time.perf_counter() - start)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
