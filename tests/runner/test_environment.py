"""What a record remembers of the machine, and what it must not."""

import os
from pathlib import Path

import pytest

from perfdb import hardware
from runner import environment

HF = "hf_" + "aB3" * 11
"""Of the form of a token, and none."""


def test_the_memory_of_the_gpus_is_that_which_nvidia_smi_reports(tmp_path: Path) -> None:
    found = hardware.from_nvidia_smi("NVIDIA H100 80GB HBM3, 580.65.06, 81559\n" * 8)
    known = environment.capture(found, None, tmp_path, {})
    assert (8, 85_520_809_984) == (known.gpu_count, known.gpu_memory_bytes)
    assert known.cpu


def test_secrets_are_left_out_and_the_relevant_is_kept() -> None:
    variables = {
        "NCCL_DEBUG": "INFO",
        "OMP_NUM_THREADS": "1",
        "CUDA_VISIBLE_DEVICES": "0",
        "HOME": "/root",
        "SLURM_JWT": "abc",
        "NVIDIA_API_KEY": "nvapi-1",
        "NEMO_TOKEN": "t",
        "TORCHINDUCTOR_CACHE_DIR": "/cache",
        "MASTER_ADDR": "head",
        "SLURM_JOB_NAME": os.fsdecode(b"mod\xe8le"),
        "TORCH_HUB_PASSWORD": "p",
        "NEMO_HUB": f"https://me:hunter2@hub.example/{HF}",
    }
    expected = {
        "CUDA_VISIBLE_DEVICES": "0",
        "NCCL_DEBUG": "INFO",
        "NEMO_HUB": "https://***@hub.example/***",
        "OMP_NUM_THREADS": "1",
        "SLURM_JOB_NAME": r"mod\xe8le",
        "TORCHINDUCTOR_CACHE_DIR": "/cache",
    }
    assert expected == environment.relevant(variables)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"login {HF}.", "login ***."),
        ("id AKIAIOSFODNN7EXAMPLE", "id ***"),
        ("ghp_" + "a1" * 18, "***"),
        ("key=glpat-aaaa1111bbbb2222cccc", "key=***"),
        ("git clone https://user:p@ss@git.example/x", "git clone https://***@git.example/x"),
        ("Authorization: Bearer eyJhbGciOi.J9_x", "Authorization: Bearer ***"),
    ],
)
def test_a_secret_is_known_by_its_form(text: str, shown: str) -> None:
    assert shown == hardware.without_secrets(text) == hardware.without_secrets(shown)


@pytest.mark.parametrize(
    "text",
    [
        "--hf_model_config_path hf_models/llama", "the bearer of this message", "high_quality_data",
        "tcp://127.0.0.1:29500", "https://example.org:8080/a@b", "glpat-short",
    ],
)  # fmt: skip
def test_what_is_no_secret_is_kept(text: str) -> None:
    assert text == hardware.without_secrets(text)


def test_the_git_state_is_that_of_the_recipes_checkout_and_none_outside(tmp_path: Path) -> None:
    commit, dirty = environment.git_state(Path(__file__))
    assert commit is None or (40 == len(commit) and isinstance(dirty, bool))
    assert (None, None) == environment.git_state(tmp_path)
