"""The catalogue: systems with sourced peaks, models with the shapes FLOPs need."""

import re
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path

import pytest

from perfdb import catalog, hardware
from perfdb.catalog import Model, Precision, System, colors, names, titles
from perfdb.catalog.load import check_models, check_precisions, check_systems, load
from perfdb.errors import CatalogError
from tests import guides

FOLDER = Path(catalog.__file__).parent
GUIDE = Path(__file__).parents[1] / "docs" / "how-to" / "add.md"
DGX = ("dgx-h100", "dgx-h200", "dgx-b200", "dgx-b300", "dgx-gb200", "dgx-gb300")


def test_systems_have_the_peaks_of_their_sources() -> None:
    """The Nemotron recipe states 989 TFLOP/s in BF16 and 1,979 in FP8 of an H100."""
    assert all({"bf16", "fp8"} <= set(catalog.system(name).peaks) for name in DGX)
    bf16, fp8 = catalog.peak("dgx-h100", "bf16"), catalog.peak("dgx-h100", "fp8")
    assert (989, 1979) == (bf16 and bf16.tflops, fp8 and fp8.tflops)


GPUS = {
    "NVIDIA H100 80GB HBM3": "dgx-h100", "NVIDIA H200": "dgx-h200", "NVIDIA B200": "dgx-b200",
    "NVIDIA GB200": "dgx-gb200", "NVIDIA GB300": "dgx-gb300", "NVIDIA B300 SXM6 AC": "dgx-b300",
    "NVIDIA H100 PCIe": None, "NVIDIA H100 80GB HBM2e": None, "NVIDIA H100 NVL": None,
    "NVIDIA H200 NVL": None, "GRID H100-8C": None, "NVIDIA H100-1-10C": None,
    "NVIDIA H100XM-80C": None, "NVIDIA H100 80GB HBM3 MIG 1g.10gb": None,
    "NVIDIA GH200 480GB": None, "NVIDIA GeForce RTX 4090": None, "NVIDIA A10G": None,
    "NVIDIA A10": "a10", "NVIDIA A100-SXM4-40GB": "dgx-a100-40gb", "NVIDIA H20": "hgx-h20",
    "NVIDIA A100-SXM4-80GB": "dgx-a100", "NVIDIA A100 80GB PCIe": None, "NVIDIA L40": None,
    "NVIDIA L40S": "l40s", "NVIDIA RTX PRO 6000 Blackwell Server Edition": "rtx-pro-6000",
    "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition": None,
    "AMD Instinct MI300X": "mi300x", "AMD Instinct MI325X": "mi325x", "AMD Instinct MI300A": None,
    "TPU v6 lite": "tpu-v6e", "GAUDI2": "gaudi2",
}  # fmt: skip


def test_a_gpu_names_its_system_and_is_never_guessed() -> None:
    for reported, system in GPUS.items():
        found = hardware.from_nvidia_smi(f"{reported}, 580.65.06, 81559\n" * 8)
        assert (system, 8) == (found.system, found.gpu_count), reported
        assert 81_559 * 2**20 == found.gpu_memory_bytes


def test_a_machine_has_the_memory_of_its_smallest_gpu_and_no_system_of_different_ones() -> None:
    """Where each GPU prints its memory."""
    for printed, mib in (("81559", 81_000 * 2**20), ("[N/A]", None)):
        lines = f"NVIDIA H100, 580, {printed}\nNVIDIA H100, 580, 81000\n"
        assert mib == hardware.from_nvidia_smi(lines).gpu_memory_bytes
    found = hardware.from_nvidia_smi("NVIDIA H100, 580, 1\nNVIDIA H200, 580, 1\n")
    assert (None, True) == (found.system, "different GPUs" in found.reason)


PRINTED = {
    "LLAMA3-8B": "llama3-8b", "LLAMA3.1_405B": "llama3.1-405b", "GPT-5": None,
    "WAN 2.1 14B": "wan2.1-14b", "Mixtral 8x 22B": "mixtral-8x22b", "Qwen2-57B": None,
    "Qwen2.5-7B": "qwen2.5-7b", "qwen25_7b": "qwen2.5-7b", "Llama 318B": None, "Llama-3 18B": None,
    "Llama 3.1 8B": "llama3-8b", "Llama 27B": None, "Nemotron 415B": None,
    "Qwen3 30B A 3B": "qwen3-30b-a3b", "DeepSeek V 3": "deepseek-v3-671b",
}  # fmt: skip


def test_a_model_is_known_by_the_names_that_pages_print() -> None:
    """Where a version ends and a size begins counts; other spaces and points do not."""
    assert PRINTED == {printed: catalog.named_model(printed) for printed in PRINTED}


def test_a_misspelled_model_is_suggested_and_another_size_is_not() -> None:
    near = {"lama3-8b": "llama3-8b", "Mixtrall 8x7B": "mixtral-8x7b"}
    expected = near | dict.fromkeys(("Llama3 80B", "LLaVA 3 8B", "Llama3-8B"))
    assert expected == {printed: names.nearest_model(printed) for printed in expected}


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
    "nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-BF16": "nemotron-v3-super-120b",
    "meta-llama/Llama-3.2-3B": None,
}
"""A repository means the model without multi-token prediction, as AutoModel's pages name it."""


def test_a_model_is_known_by_its_repository_with_and_without_its_owner() -> None:
    """Llama 3.1 has the shape of Llama 3: its rotary base and vocabulary did not change."""
    for repository, model in REPOSITORIES.items():
        assert model == catalog.named_model(repository)
        assert model == catalog.named_model(repository.rpartition("/")[2])


def test_an_unknown_model_or_system_is_answered_with_those_near() -> None:
    """Whoever took the nearest system would have the figures of one GPU under another."""
    with pytest.raises(CatalogError, match="did you mean llama3-8b, "):
        catalog.model("llama3-8")
    for name in ("dgx-a900", "dgx-h20x", "dgx-h1000"):
        with pytest.raises(CatalogError, match=r"nearest: .*; docs/how-to/add\.md"):
            catalog.system(name)


def test_a_system_is_known_by_the_names_pages_print() -> None:
    """Its name, its title and its aliases, in whatever case and with whatever spaces."""
    for printed in ("GB200 NVL72", "gb200-nvl72", "DGX GB200", "dgx_gb200"):
        assert "dgx-gb200" == catalog.named_system(printed) == names.system(printed)


H100 = (FOLDER / "systems.yaml").read_text().split("\n\n")[1] + "\n"
OTHER = H100.replace("h100", "x900").replace("DGX-H100", "DGX-X900").replace("[H100]", "[X900]")
LLAMA = (FOLDER / "models" / "llama3-8b.yaml").read_text()
MIXTRAL = (FOLDER / "models" / "mixtral-8x7b.yaml").read_text()
FP8 = "- {name: fp8, title: FP8, peak: fp8, words: [fp8]}\n"


def changed(text: str, old: str, new: str) -> str:
    """A text with one thing changed that stands in it."""
    assert old in text
    return text.replace(old, new, 1)


SYSTEM_FAULTS = [
    (changed(H100, "[H100]", "[H100"), "5: not YAML: "),
    (H100 + OTHER + H100, "25: name: 'dgx-h100' is dgx-h100 in systems.yaml:1 already; it must"),
    (H100 + changed(OTHER, "[X900]", "[X900, H100]"), "16: detect.1: 'H100' is dgx-h100 in system"),
    (H100 + changed(OTHER, "  gpu:", "  aliases:\n  - X\n  - DGX H100\n  gpu:"),
     "17: aliases.1: 'DGX H100' is dgx-h100 in systems.yaml:1 already"),
    (changed(H100, "tflops: 989", "tflops: .nan"), "11: peaks.bf16.tflops: Input should be less"),
    (changed(H100, "tflops: 1979", "tflops: 979"),
     "12: peaks.fp8: 979 TFLOP/s are fewer than the 989 in bf16, whose numbers are wider"),
    (changed(H100, "mib: 81559", "mib: 80"),
     "1: gpu_memory_mib 80 and memory_gb 80 are of different GPUs"),
    (changed(H100, "name: dgx-h100", "name: ../h100"), "1: name: String should match pattern"),
    (changed(H100, "title: DGX-H100", 'title: " "'), "2: title: says nothing, found ' '"),
    (changed(H100, "[H100]", "[]"), "1: a system with GPUs needs detect"),
    (changed(H100, "gpu: H100 SXM", "gpu: null"), "1: a system without GPUs has no detect, "),
    (changed(H100, "domain: 8", "domain: 3"),
     "1: nvlink_domain 3 is neither nodes of gpus_per_node 8 nor a part of one"),
    (changed(H100, "fp8:", "fp9:"), "12: peaks.fp9: no precision is measured against this peak; "),
    (changed(H100, "memory_gb", "memory_mb"), "7: memory_mb: no such field; did you mean memory_g"),
]  # fmt: skip
"""Files of systems, and what is said of them: the line, the field, what is wrong, what to do."""

MODEL_FAULTS = [
    (LLAMA, "other.yaml", "1: name: 'llama3-8b' is not the name of the file; call the file llama"),
    (changed(LLAMA, "groups: 8", "groups: 7"), "llama3-8b.yaml", "32 is no multiple of num_query_"),
    (LLAMA + "num_experts: 8\nmoe_top_k: 2\nmoe_ffn_hidden_size: 64\n", "llama3-8b.yaml",
     "1: a gpt model has no num_experts"),
    (LLAMA + "sliding_window: {num_layers: 4, size: 128}\n", "llama3-8b.yaml",
     "1: a gpt model has no sliding_window"),
    (LLAMA + "moe_ffn_hidden_size: 64\nmoe_latent_size: 3\nnum_dense_layers: 3\n",
     "llama3-8b.yaml", "1: moe_ffn_hidden_size, moe_latent_size, num_dense_layers without num_ex"),
    (changed(LLAMA, "gpt", "gtp"), "llama3-8b.yaml", "3: family: none of gpt, moe, mla"),
    (LLAMA + "mtp_depth: 9999\n", "llama3-8b.yaml", "1: mtp_depth 9999 is above num_layers 32"),
    (changed(MIXTRAL, "top_k: 2", "top_k: 9"), "mixtral-8x7b.yaml", "moe_top_k 9 is above num_exp"),
    (MIXTRAL + "num_dense_layers: 33\n", "mixtral-8x7b.yaml", "33 layers of a kind are more than"),
]  # fmt: skip

PRECISION_FAULTS = [
    (FP8 + "- {name: fp8_ds, title: FP8-DS, peak: fp8, words: [FP-8]}\n", "2: words.0: 'FP-8' is"),
    (FP8 + "- {name: fp8_ds, title: FP8-DS, words: [fp8ds]}\n", "2: peak: is required and missi"),
    (FP8 + "- {name: fp8_mx, title: FP8-MX, peak: fp8, needs: fp9, words: [mxfp8]}\n",
     "2: needs.fp9: no precision is measured against this peak; did you mean fp8?"),
]  # fmt: skip


def systems(*files: Path) -> Collection[str]:
    """The names in files of systems."""
    return load(files, System, partial(check_systems, peaks=("bf16", "fp8", "fp4"))).keys()


def models(*files: Path) -> Collection[str]:
    """The names in files of models."""
    return load(files, Model, check_models).keys()


def precisions(*files: Path) -> Collection[str]:
    """The names in files of precisions."""
    return load(files, Precision, check_precisions).keys()


def complaint(read: Callable[[Path], object], file: Path, text: str) -> str:
    """What is said of a file with this text."""
    file.write_text(text)
    with pytest.raises(CatalogError) as raised:
        read(file)
    return str(raised.value)


def test_a_wrong_file_gives_its_message(tmp_path: Path) -> None:
    for text, message in SYSTEM_FAULTS:
        assert f".yaml:{message}" in complaint(systems, tmp_path / "systems.yaml", text)
    for text, name, message in MODEL_FAULTS:
        assert message in complaint(models, tmp_path / name, text)
    for text, message in PRECISION_FAULTS:
        assert f".yaml:{message}" in complaint(precisions, tmp_path / "precisions.yaml", text)


def test_all_that_is_wrong_with_a_file_is_said_at_once(tmp_path: Path) -> None:
    text = changed(H100, "title", "titel") + changed(OTHER, "fp8:", "fp9:")
    said = complaint(systems, tmp_path / "systems.yaml", text)
    assert ["1: title", "2: titel", "24: peaks"] == re.findall(r"systems\.yaml:(\d+: \w+)", said)


def test_two_models_of_one_name_are_refused(tmp_path: Path) -> None:
    """Also where it is a repository's own name without its owner."""
    (tmp_path / "llama3-8b.yaml").write_text(LLAMA)
    alias = "aliases: [someone/Meta-Llama-3-8B]"
    other = changed(MIXTRAL, "aliases: [mistralai/Mixtral-8x7B-v0.1]", alias)
    (tmp_path / "mixtral-8x7b.yaml").write_text(other)
    with pytest.raises(CatalogError, match=r"'Meta-Llama-3-8B' is llama3-8b in llama3-8b\.yaml:1"):
        models(*sorted(tmp_path.iterdir()))


def test_files_are_kept_as_json_until_they_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is kept is taken as it is; what is damaged or of another state is not."""
    monkeypatch.setattr("sys.dont_write_bytecode", False)
    file, kept = tmp_path / "systems.yaml", tmp_path / "kept.json"
    check = partial(check_systems, peaks=("bf16", "fp8", "fp4"))

    def titles_of(text: str) -> list[str]:
        if not file.exists() or file.read_text() != text:
            file.write_text(text)
        return [one.title for one in load([file], System, check, kept=kept).values()]

    with pytest.raises(CatalogError):
        titles_of(changed(H100, "[H100]", "[]"))
    assert not kept.exists()
    assert ["DGX-H100"] == titles_of(H100)
    kept.write_text(changed(kept.read_text(), "DGX-H100", "Kept"))
    assert ["Kept"] == titles_of(H100)
    assert ["DGX-H100", "DGX-X900"] == titles_of(H100 + OTHER)
    kept.write_text(kept.read_text()[:-9])
    assert ["DGX-H100", "DGX-X900"] == titles_of(H100 + OTHER)


def test_the_catalogs_own_files_have_nothing_wrong() -> None:
    """Read as YAML, and checked."""
    assert catalog.systems().keys() == systems(FOLDER / "systems.yaml")
    assert catalog.precisions().keys() == precisions(FOLDER / "precisions.yaml")
    assert {*catalog.models()} == {*models(*(FOLDER / "models").glob("*.yaml"))}


def test_the_guides_examples_can_be_added(tmp_path: Path) -> None:
    """Beside all the others that are in the catalogue."""
    files = [step for step in guides.steps(GUIDE.read_text()) if isinstance(step, guides.File)]
    text = {Path(file.name).name: file.text for file in files}
    machines, model = tmp_path / "systems.yaml", tmp_path / "olmo2-7b.yaml"
    there = (FOLDER / "systems.yaml").read_text()
    machines.write_text(f"{there}\n{text[machines.name]}")
    model.write_text(text[model.name])

    assert "hgx-h800" in systems(machines)
    there_too = [it for it in (FOLDER / "models").glob("*.yaml") if it.name != model.name]
    assert "olmo2-7b" in models(*there_too, model)


def contrast(color: str, background: str) -> float:
    """The contrast ratio of two colors, as WCAG 2.2 defines it."""

    def luminance(code: str) -> float:
        parts = (int(code[start : start + 2], 16) / 255 for start in (1, 3, 5))
        linear = [it / 12.92 if it <= 0.04045 else ((it + 0.055) / 1.055) ** 2.4 for it in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(color), luminance(background)))
    return (high + 0.05) / (low + 0.05)


def test_every_precision_and_system_has_a_color_that_can_be_seen() -> None:
    """Each precision one of its own; 3:1 or more against the page, as WCAG 1.4.11 asks."""
    assert set(catalog.precisions()) == set(colors.PRECISIONS)
    for own in (colors.PRECISIONS, colors.SYSTEMS):
        assert len(own) == len(set(own.values()))
    assert colors.NEUTRAL not in map(colors.of_system, catalog.systems())
    shades = [*colors.PRECISIONS.values(), *map(colors.of_system, catalog.systems())]
    for light, dark in shades:
        assert 3 <= contrast(light, "#ffffff"), light
        assert 3 <= contrast(dark, "#14181e"), dark


@pytest.mark.parametrize(
    ("name", "title"),
    [("llama2-13b", "Llama 2 13B"), ("gpt3-5b", "GPT-3 5B"),
     ("qwen3-vl-30b-a3b", "Qwen3 VL 30B-A3B"),
     ("llama3-8b", "Llama 3 8B"), ("My Model", "My Model")],
)  # fmt: skip
def test_a_model_that_the_catalog_lacks_is_titled_as_its_name_spells_it(
    name: str, title: str
) -> None:
    assert title == titles.model(name)
