"""The catalogue: systems with sourced peaks, models with the shapes FLOPs need."""

import json
from pathlib import Path

import pytest

from perfdb import catalog, flops, machine
from perfdb.errors import CatalogError
from perfdb.flops.conventions import CAUSAL, FULL

ORACLE = Path(__file__).parents[2] / "shared" / "feasibility" / "flops_oracle.json"


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


@pytest.mark.skipif(not ORACLE.is_file(), reason="the FLOPs oracle is not beside the project")
def test_flops_equal_those_of_automodel_and_megatron_lm() -> None:
    """Both programs' figures, for every model that the oracle and the catalogue share."""
    oracle = json.loads(ORACLE.read_text())["models"]
    shared = sorted(oracle.keys() & catalog.models().keys())
    assert len(shared) >= 9
    for name in shared:
        for setting, expected in oracle[name]["flops"].items():
            length, batch = (int("".join(filter(str.isdigit, part))) for part in setting.split("_"))
            per_token = flops.flops_per_token(catalog.model(name), length, CAUSAL)
            assert per_token
            assert expected == pytest.approx(per_token * length * batch, rel=1e-12)


@pytest.mark.parametrize(
    ("model", "sequence_length", "gflops_per_token"),
    [("llama3-8b", 8192, 57.9), ("llama3-70b", 8192, 481.5), ("nemotron4-15b", 4096, 94.0),
     ("mixtral-8x7b", 4096, 82.9)],
)  # fmt: skip
def test_flops_with_full_attention_are_those_behind_the_nemo_25_04_page(
    model: str, sequence_length: int, gflops_per_token: float
) -> None:
    """The page's TFLOP/s/GPU ÷ tokens/s/GPU, to the digits that two rounded figures leave."""
    found = flops.flops_per_token(catalog.model(model), sequence_length, FULL)
    assert found
    assert gflops_per_token == pytest.approx(found / 1e9, rel=1e-3)


def test_a_family_without_a_formula_has_unknown_flops() -> None:
    assert flops.flops_per_token(catalog.model("wan2.1-14b"), 37440) is None
