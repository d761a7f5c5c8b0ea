"""Secrets of the shell reach the jobs, and are kept and shown nowhere."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from perfdb.rundir import find_runs
from tests.shell import Shell
from tests.slurm.service import TestCluster
from tests.slurm.test_run import ROOT, SITE, program, recipe, tools

SECRETS = {
    "HF_TOKEN": "hf_plantedplantedplanted",
    "WANDB_API_KEY": "0123456789abcdef0123456789abcdef01234567",
    "AWS_ACCESS_KEY_ID": "AKIAPLANTEDPLANTED01",
    "AWS_SECRET_ACCESS_KEY": "pl/antedPlanted+plantedPLANTEDplantedpla",
    "PERFDB_URL": "postgresql://perfdb:plantedpassword@127.0.0.1:1/perfdb",
}
PLANTED = [*list(SECRETS.values())[:-1], "plantedpassword"]
WORKER = """\
#!/bin/bash
# Tells every secret on its console, by its name and alone, and fails if one is missing.
env
for name in NAMES; do echo "${!name:?}"; done
while [ $# -gt 1 ]; do [ "$1" = --steps ] && steps=$2; shift; done
for number in $(seq 25); do echo "{\\"step\\": $number, \\"step_time_s\\": 0.1}"; done >>"$steps"
"""


def leaks(folder: Path) -> list[str]:
    """The files below a folder that hold a secret."""
    files = [file for file in folder.rglob("*") if file.is_file()]
    return [
        str(file)
        for file in files
        if any(secret.encode() in file.read_bytes() for secret in PLANTED)
    ]


@pytest.mark.slow
def test_no_secret_of_the_shell_is_kept_or_shown(
    perfdb: Shell, slurm: TestCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = program(tmp_path / "worker", WORKER.replace("NAMES", " ".join(SECRETS)))
    (tmp_path / "site.toml").write_text(SITE.format(worker=worker))
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    store = f"sqlite:///{tmp_path / 'perfdb.sqlite'}"
    said = [
        perfdb("run", recipe("one"), "--launcher", "slurm", "--cluster", "site.toml", obj=tools()),
        perfdb("logs", "one"),
        perfdb("compare", "a", "b"),  # of a database that does not answer
        perfdb("ingest", "runs", "--db", store),
    ]
    assert [0, 0, 2, 0] == [done.code for done in said], said
    assert "0.1000 s/step, 20 steps" in said[0].stderr
    [run] = find_runs(Path("runs"))
    consoles = "".join(log.read_text() for log in run.logs())
    assert "HF_TOKEN=***\n" in consoles, "the worker had them, and told them"
    assert consoles.count("***") >= 2 * len(SECRETS)
    built = site(tmp_path, store)
    assert [] == leaks(tmp_path)
    shown = "".join(done.stdout + done.stderr for done in said) + built
    assert [] == [secret for secret in PLANTED if secret in shown]


def site(folder: Path, store: str) -> str:
    """Build a site of a store as `make docs` does; what was printed."""
    (folder / "docs").mkdir()
    (folder / "docs" / "conf.py").write_text('extensions = ["perfdb.site"]\n')
    index = "# Site\n\n```{toctree}\n:glob:\nruns/*\n```\n"
    (folder / "docs" / "index.md").write_text(index)
    done = subprocess.run(
        [sys.executable, "-m", "perfdb.site", "-q", "docs", "html"], cwd=folder,
        env={**os.environ, "PERFDB_URL": store, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert 0 == done.returncode, done.stderr
    assert list((folder / "html").rglob("runs/one-*.html"))
    return done.stdout + done.stderr
