"""The catalogue: systems with sourced peaks, models with the shapes FLOPs need."""

import pytest

from perfdb import catalog, machine
from perfdb.errors import CatalogError


def test_every_dgx_system_is_known_with_its_gpus_and_peaks() -> None:
    expected = {"dgx-h100", "dgx-h200", "dgx-b200", "dgx-b300", "dgx-gb200", "dgx-gb300", "cpu"}
    assert expected == set(catalog.systems())
    for system in catalog.systems().values():
        if system.name != "cpu":
            assert {"bf16", "fp8"} <= set(system.peaks)
            assert system.gpus_per_node
            assert all(peak.source for peak in system.peaks.values())


def test_the_cpu_has_no_peak() -> None:
    assert catalog.peak("cpu", "bf16") is None


def test_the_h100_peaks_are_those_the_nemotron_recipe_states() -> None:
    """989 TFLOP/s in BF16 and 1,979 in FP8."""
    bf16, fp8 = catalog.peak("dgx-h100", "bf16"), catalog.peak("dgx-h100", "fp8")
    assert bf16
    assert fp8
    assert (989, 1979) == (bf16.tflops, fp8.tflops)


@pytest.mark.parametrize(
    ("reported", "system"),
    [
        ("NVIDIA H100 80GB HBM3", "dgx-h100"),
        ("NVIDIA H200", "dgx-h200"),
        ("NVIDIA B200", "dgx-b200"),
        ("NVIDIA GB200", "dgx-gb200"),
        ("NVIDIA GB300", "dgx-gb300"),
        ("NVIDIA B300 SXM6 AC", "dgx-b300"),
        ("NVIDIA GH200 480GB", None),
        ("NVIDIA A100-SXM4-80GB", None),
        ("NVIDIA H20", None),
        ("NVIDIA GeForce RTX 4090", None),
    ],
)
def test_a_gpu_names_its_system_and_is_never_guessed(reported: str, system: str | None) -> None:
    found = machine.from_nvidia_smi(f"{reported}, 580.65.06, 81559\n" * 8)
    assert (system, 8) == (found.system, found.gpu_count)


def test_different_gpus_in_one_machine_are_no_system() -> None:
    found = machine.from_nvidia_smi("NVIDIA H100, 580, 1\nNVIDIA H200, 580, 1\n")
    assert found.system is None
    assert "different GPUs" in found.reason


def test_no_line_is_no_gpu() -> None:
    assert "cpu" == machine.from_nvidia_smi("\n").system


@pytest.mark.parametrize(
    ("printed", "model"),
    [("LLAMA3-8B", "llama3-8b"), ("LLAMA3.1_405B", "llama3.1-405b"), ("Llama 3 70B", "llama3-70b"),
     ("WAN 2.1 14B", "wan2.1-14b"), ("Mixtral-8x22B", "mixtral-8x22b"), ("GPT-5", None)],
)  # fmt: skip
def test_a_model_is_known_by_the_names_pages_print(printed: str, model: str | None) -> None:
    assert model == catalog.named_model(printed)


REPOSITORIES = {
    "meta-llama/Meta-Llama-3-8B": "llama3-8b",
    "meta-llama/Llama-3.1-8B": "llama3-8b",
    "meta-llama/Llama-3.1-70B": "llama3-70b",
    "meta-llama/Llama-3.1-405B": "llama3.1-405b",
    "meta-llama/Llama-2-7b-hf": "llama2-7b",
    "deepseek-ai/DeepSeek-V3": "deepseek-v3-671b",
    "openai/gpt-oss-20b": "gpt-oss-20b",
    "moonshotai/Kimi-K2-Base": "kimi-k2",
    "mistralai/Mixtral-8x7B-v0.1": "mixtral-8x7b",
    "nvidia/Nemotron-4-340B-Base": "nemotron4-340b",
    "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": "nemotron-v3-nano-30b",
    "Qwen/Qwen2.5-7B": "qwen2.5-7b",
    "Qwen/Qwen3-30B-A3B": "qwen3-30b-a3b",
    "Qwen/Qwen3-Next-80B-A3B-Instruct": "qwen3-next-80b-a3b",
    "nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-BF16": None,
    "meta-llama/Llama-3.2-3B": None,
}
"""Of the model that predicts more tokens and the one that does not, neither is meant."""


@pytest.mark.parametrize(("repository", "model"), REPOSITORIES.items())
def test_a_model_is_known_by_its_repository_with_and_without_its_owner(
    repository: str, model: str | None
) -> None:
    """Llama 3.1 has the shape of Llama 3: its rotary base and vocabulary did not change."""
    assert model == catalog.named_model(repository)
    assert model == catalog.named_model(repository.rpartition("/")[2])


def test_no_two_models_have_a_spelling_in_common() -> None:
    spelled = [
        (catalog.squeezed(spelling), entry.name)
        for entry in catalog.models().values()
        for spelling in {entry.name, entry.title, *entry.aliases}
    ]
    assert len({spelling for spelling, _ in set(spelled)}) == len(set(spelled))


def test_a_part_of_a_title_that_holds_a_slash_is_no_model() -> None:
    """'DeepSeekV3 (w/ MTP)' is no repository."""
    assert catalog.named_model(" MTP)") is None


def test_an_unknown_name_is_answered_with_a_suggestion() -> None:
    with pytest.raises(CatalogError, match=r"did you mean dgx-gb200\?"):
        catalog.system("dgx-gb20")
