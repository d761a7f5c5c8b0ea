"""The file of a cluster: what is wrong in it, in one message with its line."""

from pathlib import Path

import pytest

from perfdb.errors import ConfigError
from perfdb.recipe import slurm

GOOD = """\
[slurm]
system = "dgx-h100"
account = "perf"
time_limit = "04:00:00"
sbatch_args = ["--constraint=h100"]
container_mounts = ["/lustre:/lustre"]
pass_environment = ["HF_TOKEN"]
setup = ["module load cuda"]
environment = {NCCL_IB_HCA = "mlx5"}
images = {"nvcr.io/nvidia/nemo:25.04" = "/lustre/nemo.sqsh"}
"""
FAULTS = {
    "[slurm]\nsystem = 'dgx-h100'\npartiton = 'a'\n":
        ":3: partiton: no such field; did you mean partition?",
    "slurm = 3\n": ":1: slurm: is no table; write [slurm]",
    "[slurm]\naccount = 'perf'\n": ": no slurm.system; give the system of the nodes in [slurm]",
    "[slurm]\nsystem = 'cpu'\n": ": no slurm.gpus_per_node; say how many processes a node takes",
    GOOD.replace("dgx-h100", "dgx-h10"): ":2: system: no such system; did you mean dgx-h100?",
    GOOD.replace("04:00:00", "4h"): ":4: time_limit: is no time limit of Slurm: write minutes, ",
    GOOD.replace("--constraint=h100", "--job-name=x"):
        ":5: sbatch_args.0: perfdb sets --job-name itself: leave it out",
    GOOD.replace("--constraint=h100", "-N4"): "sbatch_args.0: perfdb sets --nodes itself",
    GOOD.replace("--constraint=h100", "h100"): "sbatch_args.0: is no option: write --option=value",
    GOOD.replace("/lustre:/lustre", "/lustre"): "container_mounts.0: is no mount: write /path/out",
    GOOD.replace('"HF_TOKEN"', '"HF_TOKEN=x"'): ":7: pass_environment.0: is no name of a variable",
    GOOD.replace("NCCL_IB_HCA", "HF_TOKEN"):
        "HF_TOKEN is a secret, which scripts would show: name it in pass_environment",
    GOOD.replace("module load cuda", "curl https://me:pw12@host/x"):
        "'curl https://***@host/x' holds a secret: pass it by a variable",
    GOOD.replace('"perf"', '"per f"'): ":3: account: must be one word, found 'per f'",
    GOOD.replace('"dgx-h100"', '"dgx-h100"\nexclusive = "often"'): ":3: exclusive: Input should be",
    GOOD.replace("[slurm]", "[slrum]"): ":1: slrum: no such table; did you mean slurm?",
}  # fmt: skip


@pytest.mark.parametrize("text", FAULTS)
def test_a_wrong_file_of_a_cluster_is_refused_with_one_message(tmp_path: Path, text: str) -> None:
    file = tmp_path / "cluster.toml"
    file.write_text(text)
    with pytest.raises(ConfigError) as refused:
        slurm.load(file, ())
    assert FAULTS[text] in str(refused.value)
    assert 1 == len(refused.value.problems)


def test_the_command_line_and_a_recipe_change_what_the_site_wrote(tmp_path: Path) -> None:
    file = tmp_path / "cluster.toml"
    file.write_text(GOOD)
    words = ("account=mine", "environment.NCCL_DEBUG=INFO", "setup=a,b", "setup=c", "requeue=true")
    made = slurm.load(file, words).changed(slurm.SlurmSettings(partition="big"))
    assert ("mine", "big", 8, True) == (
        made.account, made.partition, made.gpus_per_node, made.requeue
    )  # fmt: skip
    assert {"NCCL_IB_HCA": "mlx5", "NCCL_DEBUG": "INFO"} == made.environment
    assert ("a,b", "c") == made.setup
    for word, message in {
        "acount=x": "--slurm: acount: no such field; did you mean account?",
        "account": "--slurm: 'account' is not KEY=VALUE",
        "time_limit=soon": "--slurm: time_limit: is no time limit",
    }.items():
        with pytest.raises(ConfigError, match=message):
            slurm.load(file, [word])


def test_a_job_may_take_what_its_case_and_the_site_allow() -> None:
    """In all six notations of Slurm's --time."""
    times = ["90", "90:30", "1:30:30", "1-2", "1-2:30", "1-2:30:30"]
    seconds = [5400, 5430, 5430, 93600, 95400, 95430]
    made = [slurm.SlurmSettings(time_limit=one).seconds(10**6) for one in times]
    assert seconds == made
    assert (600, 60) == tuple(slurm.SlurmSettings(time_limit="90").seconds(s) for s in (600, 1))
