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


def test_an_unknown_name_is_answered_with_a_suggestion() -> None:
    with pytest.raises(CatalogError, match=r"did you mean dgx-gb200\?"):
        catalog.system("dgx-gb20")
