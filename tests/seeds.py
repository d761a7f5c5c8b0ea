"""The seeds, read line by line without perfdb: every row with its cells and what it must become."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT.parent / "shared" / "seeds"

Value = str | int | float | None

MODELS = {
    "GPT3-175B": "gpt3-175b", "LLAMA3-8B": "llama3-8b", "LLAMA3-70B": "llama3-70b",
    "LLAMA3-405B": "llama3.1-405b", "Nemotron-15B": "nemotron4-15b",
    "Nemotron-340B": "nemotron4-340b", "Mixtral-8x7B": "mixtral-8x7b",
    "Mixtral-8x22B": "mixtral-8x22b", "Nemotron V3 Super 120B": "nemotron-v3-super-120b",
    "Nemotron V3 Nano 30B": "nemotron-v3-nano-30b", "DeepSeek V3 671B": "deepseek-v3-671b",
    "Kimi K2": "kimi-k2", "Qwen3 MoE 30B": "qwen3-30b-a3b", "GPT-OSS 20B": "gpt-oss-20b",
    "GPT-OSS 120B": "gpt-oss-120b", "Llama3 70B": "llama3-70b", "Llama3 8B": "llama3-8b",
    "Qwen2.5 7B": "qwen2.5-7b", "Qwen2.5 32B": "qwen2.5-32b", "WAN 2.1 14B": "wan2.1-14b",
    "Nemotron4 15b": "nemotron4-15b", "Nemotron4 340b": "nemotron4-340b",
}  # fmt: skip
"""perfdb's name of each model that a seed prints."""


@dataclass(frozen=True)
class SeedRow:
    """A row: the cells as printed, by title, and what the page says of it elsewhere."""

    line: int
    cells: Mapping[str, str]
    said: Mapping[str, Value]

    def fields(self) -> dict[str, Value]:
        """The columns of the store that the row fills; all others are empty."""
        read = dict(self.said)
        for title, text in self.cells.items():
            if title in COLUMNS:
                name, convert = COLUMNS[title]
                read[name] = convert(text)
        return {name: value for name, value in read.items() if value not in (None, "")} | _fsdp(
            self
        )


def number(text: str) -> float | None:
    """'1,022.26' is 1022.26; a dash or nothing is None."""
    return None if text in ("", "-", "NA") else float(text.replace(",", ""))


def whole(text: str) -> int | None:
    """A count; 0 is a size that is not used."""
    return int(number(text) or 0) or None


def interleaved(text: str) -> int | None:
    """VP of 1, as of 0, is no virtual pipeline."""
    return None if text in ("0", "1") else whole(text)


def share(text: str) -> float:
    return float(Decimal(text.rstrip("%")) / 100)


def model(text: str) -> str:
    return MODELS[re.sub(r" \(26\.02\)| 2-node", "", text)]


COLUMNS: Mapping[str, tuple[str, Callable[[str], Value]]] = {
    "Model": ("model", model),
    "Task": ("task", {"SFT": "sft", "LoRA": "lora"}.__getitem__),
    "#-GPUs": ("num_gpus", whole), "#GPUs": ("num_gpus", whole),
    "GBS": ("global_batch_size", whole), "MBS": ("micro_batch_size", whole),
    "LBS": ("local_batch_size", whole), "GA": ("gradient_accumulation", whole),
    "Sequence Length": ("sequence_length", whole), "Seq Length": ("sequence_length", whole),
    "Packed Sequence Length": ("sequence_length", whole), "SeqLen": ("sequence_length", whole),
    "TP": ("tensor_parallel", whole), "PP": ("pipeline_parallel", whole),
    "CP": ("context_parallel", whole), "EP": ("expert_parallel", whole),
    "VP": ("virtual_pipeline", interleaved), "DP": ("data_parallel", whole),
    "SP": ("sequence_parallel", int),
    "Kernel Optimizations": ("kernels", lambda text: text.replace(" + ", ", ")),
    "Time per Global Step (s)": ("step_time_s", number),
    "Tokens / sec / GPU": ("tokens_per_sec_per_gpu", number),
    "Tokens/sec/GPU": ("tokens_per_sec_per_gpu", number),
    "Model TFLOP / sec / GPU": ("model_tflops_per_sec_per_gpu", number),
    "Model TFLOPs/sec/GPU": ("model_tflops_per_sec_per_gpu", number),
    "Training step time (seconds per step)": ("step_time_s", number),
    "Throughput in tokens per second": ("tokens_per_sec", number),
    "Model flops utilization": ("mfu", share),
}  # fmt: skip


def _fsdp(row: SeedRow) -> dict[str, Value]:
    """FSDP is the size of a group on AutoModel's page and a switch on the others."""
    printed = row.cells.get("FSDP")
    if printed is None:
        return {}
    by_size = row.said["framework"] == "automodel"
    return {"fsdp_size": int(printed)} if by_size else {"fsdp_enabled": int(printed)}


def nemo() -> list[SeedRow]:
    """NeMo 25.04: a cell a line, a table after each `System: …`, its header up to `---|---`."""
    text = (FOLDER / "nemo-25.04-performance-summary.txt").read_text()
    rows: list[SeedRow] = []
    lines = text.splitlines()
    tuning = lines.index("Fine-Tuning#")
    for start in [at for at, line in enumerate(lines) if line.startswith("System: ")]:
        rule = next(at for at in range(start, len(lines)) if lines[at].startswith("---|"))
        titles = [cell(line) for line in lines[start + 1 : rule]]
        said = {
            "framework": "nemo", "release": "25.04", "container": "NeMo 25.04",
            "system": lines[start].removeprefix("System: ").lower(), "precision": "fp8",
        } | ({} if start > tuning else {"task": "pretrain"})  # fmt: skip
        at = rule + 1
        while at < len(lines) and lines[at].rstrip().endswith("|"):
            cells = [cell(line) for line in lines[at : at + len(titles)]]
            rows.append(SeedRow(at + 1, dict(zip(titles, cells, strict=True)), said))
            at += len(titles)
    return rows


def cell(line: str) -> str:
    """The text of a line that is one cell."""
    return line.strip().removesuffix("|").strip()


def automodel() -> list[SeedRow]:
    """NeMo AutoModel: two pipe tables, pre-training and LoRA, in BF16 on DGX-H100."""
    text = (FOLDER / "automodel-performance-summary.txt").read_text()
    lora = text[: text.index("Fine-Tuning (LoRA) Performance")].count("\n")
    said = {
        "framework": "automodel", "release": "main", "system": "dgx-h100", "precision": "bf16",
    }  # fmt: skip
    rows = []
    for line, cells in pipe_rows(text):
        task = {"task": "lora" if line > lora else "pretrain"}
        rows.append(SeedRow(line, cells, said | qualifiers(cells) | task))
    return rows


def qualifiers(cells: Mapping[str, str]) -> dict[str, Value]:
    """What stands beside a model's name: a version in brackets, or two nodes."""
    found = re.search(r"\((26\.02)\)|(2-node)", cells["Model"])
    return {"qualifiers": found[1] or found[2]} if found else {}


def dfm() -> list[SeedRow]:
    """NeMo DFM: a pipe table under each tab, then one under a heading; a backend each."""
    text = (FOLDER / "dfm-performance-benchmarks.md").read_text()
    rows = []
    for line, cells in pipe_rows(text):
        above = "\n".join(text.splitlines()[:line])
        system = re.findall(r"(?:tab-item\}|System:) (DGX-\w+)", above)[-1].lower()
        backend = "automodel" if "NeMo AutoModel Pre-Training" in above else "megatron-core"
        said = {"framework": "dfm", "release": "main", "system": system, "variant": backend}
        rows.append(SeedRow(line, cells, said | {"task": "pretrain"}))
    return rows


def pipe_rows(text: str) -> Iterator[tuple[int, dict[str, str]]]:
    """The rows of every pipe table in a text, with their lines; a header starts with Model."""
    header: list[str] = []
    for number_, line in enumerate(text.splitlines(), start=1):
        cells = [one.strip() for one in line.strip().strip("|").split("|")]
        if not line.startswith("|") or set(line) <= set("|-: "):
            continue
        if cells[0] == "Model":
            header = cells
        else:
            yield number_, dict(zip(header, cells, strict=True))


def nemotron4() -> list[SeedRow]:
    """The Nemotron-4 recipe: a row for each metric, a column for each number of GPUs.

    What was run stands in tables of its own, a row for each size and number of GPUs.
    """
    lines = (FOLDER / "nemotron4-dgxc-recipe.txt").read_text().splitlines()
    split = [[one.strip() for one in line.rstrip(" |").split("|")] for line in lines]
    titles = next(cells for cells in split if cells[0] == "Size")
    of_sizes = {
        (cells[0], cells[2]): dict(zip(titles, cells, strict=True))
        for cells in split
        if re.fullmatch(r"\d+b", cells[0]) and len(cells) == len(titles)
    }
    rows = []
    for at, cells in enumerate(split):
        if title := re.fullmatch(r"(Nemotron4 (\w+)) (BF16|FP8)", cells[0]):
            for place, gpus in enumerate((one.split("x")[0] for one in cells[1:]), start=1):
                said = {
                    "framework": "nemo", "release": "dgxc-benchmarking", "system": "dgx-h100",
                    "task": "pretrain", "model": MODELS[title[1]], "precision": title[3].lower(),
                    "num_gpus": int(gpus),
                }  # fmt: skip
                figures = {one[0]: one[place] for one in split[at + 2 : at + 6]}
                config = dict(of_sizes[title[2], gpus])
                # Said of the column itself: the model, and one of the two precisions.
                del config["Size"], config["Precision"], config["GPUs"]
                rows.append(SeedRow(at + 3, figures | config, said))
    return rows
