"""`perfdb bisect --launcher slurm` on a real Slurm; steps take as long as each version says."""

import json
from pathlib import Path

import pytest

from tests.runner.megatron_worker import needs_megatron
from tests.shell import Shell
from tests.slurm.service import TestCluster
from tests.slurm.test_run import program
from tests.test_bisect import ROOT, versions

SITE = """\
[slurm]
system = "cpu"
gpus_per_node = 1
exclusive = false
time_limit = "5"
poll_s = 0.5
sbatch_args = ["--overcommit"]
python = "{worker}"
"""
WORKER = """\
#!/bin/bash
while [ $# -gt 1 ]; do [ "$1" = --steps ] && steps=$2; shift; done
for number in $(seq 25); do
  printf '{"step": %d, "step_time_s": %s%d}\\n' "$number" "$STEP_S" $((number % 5))
done >>"$steps"
"""


@needs_megatron
@pytest.mark.slow
def test_the_version_whose_jobs_are_slower_is_found(
    perfdb: Shell,
    slurm: TestCluster,
    preloaded: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    worker = program(tmp_path / "worker", WORKER)
    (tmp_path / "site.toml").write_text(SITE.format(worker=worker))
    (tmp_path / "versions.yaml").write_text(versions(preloaded))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    done = perfdb(
        "bisect", "1.0", "1.3", "--case", "smoke-single", "--versions", "versions.yaml",
        "--recipes", str(ROOT / "recipes" / "smoke" / "single.yaml"), "--repeat", "1",
        "--max-repeat", "2", "--min-change", "30%", "--launcher", "slurm", "--cluster",
        "site.toml", "--json",
    )  # fmt: skip
    assert 0 == done.code, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert ("slower", "1.2") == (found["sought"], found["first"])
    numbers = [path.read_text().strip() for path in tmp_path.glob("bisect/*/*/job_id.txt")]
    asked = ("squeue", "--states=all", "-h", "-o", "%T", "-j", ",".join(numbers))
    assert (4, {"COMPLETED"}) == (len(numbers), set(slurm.run(*asked).split()))
