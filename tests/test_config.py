"""perfdb.toml: a user's own systems and models, without a fork."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from perfdb import config

OWN = """\
[systems.my-h800]
title = "My H800"
gpu = "H800"
detect = ["H800"]
gpus_per_node = 8
source = "NVIDIA H800 datasheet"
peaks = {bf16 = {tflops = 989, source = "1,979 TFLOPS BF16 with sparsity, halved"}}

[models."my-1b"]
title = "My 1B"
aliases = ["Mine 1B"]
family = "gpt"
source = "own"
num_layers = 16
hidden_size = 2048
ffn_hidden_size = 8192
num_attention_heads = 32
num_query_groups = 8
head_dim = 64
vocab_size = 128256
"""
PAGE = """\
# NeMo 25.04

System: My H800

| Model | Precision | #-GPUs | GBS | Sequence Length | Tokens / sec / GPU | MFU |
|---|---|---|---|---|---|---|
| Mine 1B | BF16 | 8 | 128 | 4096 | 50000 | 45% |
"""


Perfdb: TypeAlias = "Callable[..., subprocess.CompletedProcess[str]]"


@pytest.fixture
def perfdb(preloaded: Path, tmp_path: Path) -> Perfdb:
    """A command in a folder, in a process of its own: the catalogue is read once in each."""

    def run(*words: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        variables = os.environ | {"PERFDB_URL": "sqlite:///store.sqlite"} | environment
        command = [preloaded / "bin" / "perfdb", *words]
        return subprocess.run(
            command, cwd=tmp_path, env=variables, capture_output=True,
            text=True, check=False,
        )  # fmt: skip

    return run


def test_own_systems_and_models_are_known_and_results_stay_without_the_file(
    perfdb: Perfdb, tmp_path: Path
) -> None:
    """Of 16 layers with a gated MLP the FLOPs are known, so that the audit checks its tokens/s."""
    own, page = tmp_path / "perfdb.toml", tmp_path / "page.md"
    own.write_text(OWN)
    page.write_text(PAGE)
    assert "my-h800" == json.loads(perfdb("systems", "--json").stdout)[-1]["name"]
    assert 1 == json.loads(perfdb("ingest", "page.md", "--json").stdout)["new"]
    before = perfdb("export", "results", "--format", "json").stdout
    rules = {one["rule"] for one in json.loads(perfdb("audit", "--json").stdout)}
    assert "unknown_model" not in rules
    own.rename(tmp_path / "elsewhere.toml")
    assert before == perfdb("export", "results", "--format", "json").stdout
    assert 0 == perfdb("verify").returncode
    found = perfdb("systems", "--json", PERFDB_CONFIG="elsewhere.toml").stdout
    assert "my-h800" in found


FAULTS = {
    OWN.replace("head_dim", "head_dm"): "perfdb.toml:19: head_dm: no such field; did you mean head",
    OWN + "[sytems.x]\n": "perfdb.toml:21: sytems: no such table; did you mean systems?",
    OWN + "[cluster]\n": "perfdb.toml:21: cluster: no such table; known: models, prices, "
    "publish, slurm, systems",
    OWN + "[\n": "perfdb.toml:21: not TOML: ",
    OWN.replace("my-h800", "dgx-h100"): "'dgx-h100' is dgx-h100 in systems.yaml:8 already",
    OWN.replace("Mine 1B", "Llama3 8B"): "aliases.0: 'Llama3 8B' is llama3-8b in llama3-8b.yaml:1",
    "models = 3\n": "perfdb.toml:1: models: is no table; write [models.NAME]",
}


def test_a_wrong_file_is_refused_with_its_line(perfdb: Perfdb, tmp_path: Path) -> None:
    """By both commands together: the tables are read when they are needed."""
    for text, message in FAULTS.items():
        (tmp_path / "perfdb.toml").write_text(text)
        said = [perfdb(command) for command in ("systems", "models")]
        assert message in "".join(one.stderr for one in said), message
        assert {2} <= {one.returncode for one in said} <= {0, 2}
    missing = perfdb("systems", PERFDB_CONFIG="nowhere.toml")
    assert (2, True) == (missing.returncode, "no file nowhere.toml" in missing.stderr)


def test_another_file_at_the_same_relative_path_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(config.VARIABLE, raising=False)
    for account in ("one", "other"):
        folder = tmp_path / account
        folder.mkdir()
        (folder / config.FILE).write_text(f'[slurm]\naccount = "{account}"\n')
        monkeypatch.chdir(folder)
        document = config.table("slurm")
        assert document is not None
        assert {"account": account} == document.content
