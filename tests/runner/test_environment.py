"""What a record remembers of the machine, and what it must not."""

import os
from pathlib import Path

from perfdb import hardware
from runner import environment


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
    }
    expected = {
        "CUDA_VISIBLE_DEVICES": "0",
        "NCCL_DEBUG": "INFO",
        "OMP_NUM_THREADS": "1",
        "SLURM_JOB_NAME": r"mod\xe8le",
        "TORCHINDUCTOR_CACHE_DIR": "/cache",
    }
    assert expected == environment.relevant(variables)


def test_the_git_state_is_that_of_the_recipes_checkout_and_none_outside(tmp_path: Path) -> None:
    commit, dirty = environment.git_state(Path(__file__))
    assert commit is None or (40 == len(commit) and isinstance(dirty, bool))
    assert (None, None) == environment.git_state(tmp_path)
