"""What a record remembers of the machine, and what it must not."""

import os
from pathlib import Path

import pytest

from perfdb import hardware, validity
from perfdb.messages import note_text
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


NODE = """\
hostname n1.cluster
os Linux 5.15.0-1053-nvidia
cpu_count 224
memory_kib 2113519304
cpu Intel(R) Xeon(R) Platinum 8480C
cuda 12.8.1
nccl 2.25.1
nic mlx5_0 400 Gb/sec (4X NDR), 4: ACTIVE
nic mlx5_1 400 Gb/sec (4X NDR), 4: ACTIVE
"""
GPU = "gpu NVIDIA H100 80GB HBM3, 570.124.06, 81559, GPU-{0}, 1980, 700.00\n"
WHOLE = NODE + "".join(GPU.format(number) for number in range(8))


def test_what_a_node_says_of_itself_is_read() -> None:
    found = environment.of_node(WHOLE)
    assert (("n1.cluster",), 224, 2016, "12.8.1", "2.25.1") == (
        found.hostnames, found.cpu_count, found.memory_gib, found.cuda, found.nccl
    )  # fmt: skip
    assert ("NVIDIA H100 80GB HBM3", 8, 1980, 700, "570.124.06") == (
        found.gpu, found.gpu_count, found.gpu_clock_mhz, found.gpu_power_limit_w, found.driver
    )  # fmt: skip
    assert 2 == len(found.nics)
    unknown = environment.of_node("hostname n1\ncuda \ngpu A, 1, [N/A], GPU-1, [N/A], [N/A]\n")
    assert (None, None, None, None) == (
        unknown.cuda, unknown.gpu_clock_mhz, unknown.gpu_power_limit_w, unknown.gpu_memory_bytes
    )  # fmt: skip


def test_nodes_that_differ_are_named_by_what_differs() -> None:
    """One of four has another driver, and one link of it is down; a lost GPU is a difference."""
    odd = WHOLE.replace("570.124.06", "550.54.15").replace("mlx5_1 400", "mlx5_1 10")
    nodes = environment.alike([*[environment.of_node(WHOLE)] * 3, environment.of_node(odd)])
    assert [3, 1] == [group.num_nodes for group in nodes]
    [note] = validity.unlike_nodes(nodes)
    assert note_text(note) == (
        "the nodes of the run differ: driver 570.124.06 (3), 550.54.15 (1); "
        "nics mlx5_0 400 Gb/sec (4X NDR), 4: ACTIVE + mlx5_1 400 Gb/sec (4X NDR), 4: ACTIVE (3), "
        "mlx5_0 400 Gb/sec (4X NDR), 4: ACTIVE + mlx5_1 10 Gb/sec (4X NDR), 4: ACTIVE (1)"
    )
    lost = environment.of_node(NODE + "".join(map(GPU.format, range(7))))
    [note] = validity.unlike_nodes(environment.alike([environment.of_node(WHOLE), lost]))
    assert "the nodes of the run differ: gpu_count 8 (1), 7 (1)" == note_text(note)
    assert () == validity.unlike_nodes(environment.alike([environment.of_node(WHOLE)] * 2))
