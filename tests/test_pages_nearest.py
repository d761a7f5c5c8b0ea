"""What stands nearest to a table holds, however it is written; what leaves doubt rejects its rows.

Each page says DGX-H100, BF16 and NeMo 25.09 of all its tables, and something else right above one.
"""

from collections.abc import Sequence

import pytest

from perfdb.pages import reader
from perfdb.pages.base import PageContext, PageRead

HEAD = "# NeMo 25.09\n\n## {}\n\nSystem: DGX-H100, Precision: BF16\n\n"
TITLES = "| Model | GPUs | GBS | Sequence Length | Tokens / sec / GPU |\n|---|---|---|---|---|\n"
ROW = "| Llama3 8B | 8 | 128 | 8192 | 13812 |\n"
LARGE = "| Llama3 70B | 64 | 128 | 8192 | 1606 |\n"


def read(above: str, table: str = TITLES + ROW, section: str = "Pre-training") -> PageRead:
    return reader.read("page.md", f"{HEAD.format(section)}{above}\n\n{table}", PageContext())


def systems(found: PageRead) -> list[str]:
    return [one.case.system for one in found.results]


def tasks(found: PageRead) -> list[str]:
    return [one.case.task for one in found.results]


def precisions(found: PageRead) -> list[str | None]:
    return [one.case.precision for one in found.results]


def releases(found: PageRead) -> list[str | None]:
    return [one.release.version for one in found.results]


def refused(found: PageRead) -> str:
    """Why no row is read."""
    assert () == found.results
    return "\n".join(map(str, found.problems))


@pytest.mark.parametrize(
    "above",
    [
        "### Pre-training on DGX H200",
        "### Pre-training (DGX-H200)",
        "### Pre-training: DGX-H200",
        "### Pre-training - DGX-H200",
        "### Pre-training with DGX-H200",
        "### H200 results",
        "### 64x H200 SXM 141GB",
        "### 8xH200",
        "### H200 (DGX-H200)",
        "- **System:** DGX-H200",
        "- GPU: H200",
        "GPU: H200",
        "Hardware: 8x H200",
        "**H200**",
        "**DGX-H200 results:**",
        "```{rubric} H200\n```",
    ],
)
def test_a_system_that_is_named_nearest_is_that_of_the_rows(above: str) -> None:
    assert ["dgx-h200"] == systems(read(above))


@pytest.mark.parametrize(
    "above",
    [
        "### NVIDIA H100 results",
        "### H100 baseline",
        "### Pre-training on up to 1,024 GPUs",
        "### More than 64 H100 GPUs",
        "### With CPU offloading",
        "### Qwen3 30B-A3B",
        "GPUs: 64",
        "Hardware: 8 GPUs per node, 400 Gb/s",
        "Platform: Kubernetes",
        "- **System**: what it was run on",
        "**See the page of the H200 for more.**",
    ],
)
def test_what_names_no_other_system_leaves_the_one_above(above: str) -> None:
    found = read(above)
    assert ["dgx-h100"] == systems(found)
    assert () == found.notes


@pytest.mark.parametrize(
    ("above", "why"),
    [
        ("### B200 results", "'B200' is not of 'DGX-H100'"),
        ("### A900 80GB", "no system 'A900' in the catalogue"),
        ("### AMD MI901X", "no system 'MI901X' in the catalogue"),
        ("### DGX-H100, DGX-H200", "names DGX-H100 and DGX-H200"),
        ("### H100 and H200", "names H100 and H200"),
        ("### H200 vs H100", "names H200 and H100"),
        ("### Faster than A900", "names A900"),
        ("Accelerator: A900", "no system 'A900' in the catalogue"),
        ("GPU: H100 or H200", "names H100 and H200"),
        ("- System: DGX-A900", "no system 'DGX-A900' in the catalogue"),
    ],
)
def test_a_nearest_system_that_leaves_doubt_rejects_the_rows(above: str, why: str) -> None:
    assert why in refused(read(above))


def test_rows_that_name_their_systems_need_no_heading_that_does() -> None:
    rows = ROW.replace("| Ll", "| DGX-H100 | Ll") + LARGE.replace("| Ll", "| DGX-H200 | Ll")
    table = TITLES.replace("| Model", "| System | Model").replace("|-", "|---|-", 1) + rows
    assert ["dgx-h100", "dgx-h200"] == systems(read("### H100 and H200", table))


def test_a_system_stated_below_a_heading_of_several_holds() -> None:
    assert ["dgx-h200"] == systems(read("### H100 and H200\n\nSystem: DGX-H200"))


@pytest.mark.parametrize("given", ["dgx-h100", "dgx-h200"])
def test_no_option_moves_the_rows_of_a_heading(given: str) -> None:
    text = f"# NeMo 25.09\n\n## Pre-training\n\n### H200 results\n\n{TITLES}{ROW}"
    assert ["dgx-h200"] == systems(reader.read("page.md", text, PageContext(system=given)))
    several = text.replace("H200 results", "H100 and H200")
    assert "names H100 and H200" in refused(
        reader.read("page.md", several, PageContext(system=given))
    )


def test_items_of_a_list_state_what_lines_do() -> None:
    found = read("- **System:** DGX-B200\n- **Precision:** FP8\n- **Container:** NeMo 25.07")
    assert (["dgx-b200"], ["fp8"], ["25.07"]) == (
        systems(found),
        precisions(found),
        releases(found),
    )
    glossary = "- Precision: the format of the numbers\n- Task: what is trained\n- LoRA\n- FP8"
    assert (["bf16"], ["pretrain"]) == (precisions(read(glossary)), tasks(read(glossary)))


@pytest.mark.parametrize(
    ("above", "wanted"),
    [
        ("**LoRA:**", "lora"),
        ("**LoRA**", "lora"),
        ("**LoRA fine-tuning**", "lora"),
        ("__Full fine-tuning__", "sft"),
        ("```{rubric} LoRA\n```", "lora"),
        ("### Fine-tuning without LoRA", "sft"),
        ("### Fine-tuning (no LoRA)", "sft"),
        ("### Parameter-efficient fine-tuning (LoRA)", "lora"),
        ("### Post-training (LoRA)", "lora"),
        ("### Post-training: SFT", "sft"),
        ("- LoRA", "sft"),
    ],
)
def test_a_task_that_is_named_nearest_is_that_of_the_rows(above: str, wanted: str) -> None:
    """What is stated above a title within the section holds for it, too."""
    found = read(above, section="Fine-tuning")
    assert ([wanted], ["dgx-h100"], ["bf16"]) == (tasks(found), systems(found), precisions(found))


def test_a_title_in_bold_ends_the_one_before_and_what_was_said_below_that() -> None:
    both = f"**LoRA**\n\nPrecision: FP8\n\n{TITLES}{ROW}\n**SFT**"
    found = read(both, section="Fine-tuning")
    assert [("lora", "fp8"), ("sft", "bf16")] == list(
        zip(tasks(found), precisions(found), strict=True)
    )


@pytest.mark.parametrize(
    ("first", "then", "why"),
    [
        ("**Llama3 8B**", "**Falcon 40B**", "Model: is missing"),
        ("Model: Llama3 8B", "**Falcon 40B (FP8)**", "Model: is missing"),
        ("**DGX-H200**", "**p5en.48xlarge**", "'p5en.48xlarge', which is no system"),
        ("**DGX-H200**", "**RTX PRO 6000**", "'RTX PRO 6000', which is no system"),
        ("System: DGX-H200", "Instance: p5en.48xlarge", "which is no system"),
        ("GPU: H200", "GPU: RTX PRO 6000", "which is no system"),
        # These say something else of the same model and system, or of that right above.
        ("**Llama3 8B, DGX-H200**", "**Trained on 15T tokens**", None),
        ("**Llama3 8B, DGX-H200**", "**Sequence length 8192**", None),
        ("**Llama3 8B**", "**p5en.48xlarge**\n\nGPU: H200", None),
        ("**Llama3 8B**", "GPU: H200\n\nInstance: p5en.48xlarge", None),
        ("**Llama3 8B**", "**H200**\n\n**p5en.48xlarge**", None),
        ("**Llama3 8B**", "Node: 8x H200", None),
        ("**Llama3 8B**", "Cluster: EOS\n\nSystem: DGX-H200", None),
    ],
)
def test_a_title_that_names_another_model_or_machine_ends_the_one_before(
    first: str, then: str, why: str | None
) -> None:
    titles, rows = (it.replace(" Model |", "", 1) for it in (TITLES, ROW))
    table = titles.replace("|---|", "|", 1) + rows.replace(" Llama3 8B |", "", 1)
    above = f"{first}\n\n{TITLES + ROW}\n{then}"
    found = read(above, table if "Llama3" in first else TITLES + ROW)
    if why:
        assert why in "\n".join(map(str, found.problems))
        assert 1 == len(found.results)
    else:
        assert ["llama3-8b"] * 2 == [one.case.model for one in found.results]
        assert "dgx-h200" == systems(found)[1]


@pytest.mark.parametrize(
    ("said", "word"),
    [
        ("PEFT fine-tuning", "PEFT"),
        ("QLoRA fine-tuning", "QLoRA"),
        ("P-tuning fine-tuning", "P-tuning"),
        ("Merged LoRA inference", "inference"),
        ("LoRA (DPO)", "DPO"),
    ],
)
def test_a_task_beside_what_is_none_is_none(said: str, word: str) -> None:
    for above in (f"### {said}", f"**{said}**"):
        assert f"the heading says '{word}', which is no task" in refused(read(above))
    titles = TITLES.replace("| Model", "| Task | Model").replace("|-", "|---|-", 1)
    rows = ROW.replace("| Ll", f"| {said} | Ll")
    assert f"'{said}' is no task" in refused(read("", titles + rows))


def test_the_words_above_all_sections_name_a_task_that_is_none() -> None:
    page = "# NeMo 25.09\n\n{}\n\nSystem: DGX-H100\n\n" + TITLES + ROW
    peft = reader.read("page.md", page.format("All of it is PEFT fine-tuning."), PageContext())
    assert "the text says 'PEFT', which is no task" in refused(peft)
    full = page.format("Fine-tuning is below. For inference see elsewhere.")
    assert ["sft"] == tasks(reader.read("page.md", full, PageContext()))


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ("NeMo is a library to train and fine-tune LLMs and VLMs.", None),
        ("No LoRA is used; every parameter is trained. For LoRA see the other page.", None),
        ("The checkpoints can be fine-tuned with one command.", None),
        ("We measure training from scratch (see the SFT guide for the data).", None),
        ("The table shows pre-training. The result can be fine-tuned with LoRA.", "pretrain"),
        ("Llama 3 8B fine-tuning on 8 H100 GPUs, sequence length 4096.", "sft"),
        ("Throughput of full fine-tuning.", "sft"),
        ("Models are fine-tuned with LoRA.", "lora"),
        ("LoRA, rank 16.", "lora"),
    ],
)
def test_a_task_that_opening_words_name_in_passing_is_not_that_of_the_rows(
    said: str, wanted: str | None
) -> None:
    page = f"# NeMo 25.09\n\n{said}\n\nSystem: DGX-H100\n\n" + TITLES + ROW
    found = reader.read("page.md", page, PageContext())
    assert [wanted or "pretrain"] == tasks(found)
    assert (wanted is None) == ("does not say the task" in "".join(map(str, found.notes)))


@pytest.mark.parametrize(
    "above",
    [
        "**Projected**",
        "```{rubric} Projected\n```",
        "Numbers below are estimated, not measured.",
        "All results in this table are projected from 8 GPUs.",
        "The figures are not measured yet.",
        "### Target for 25.11",
        "### Expected performance of 25.11",
        "### Expected throughput",
        "### Throughput targets",
        "### Theoretical performance",
        "### Speed-of-light numbers",
        "Numbers below are predicted.",
    ],
)
def test_figures_that_nobody_measured_are_refused_however_it_is_said(above: str) -> None:
    assert "the figures are no measured ones" in refused(read(above))


@pytest.mark.parametrize(
    "above",
    [
        "The figures are measured, not projected.",
        "Values in italics are estimated.",
        "The peak is estimated.",
        "### Target hardware: H100",
        "### Expected Performance",
        "### MFU of the theoretical peak",
        "Theoretical performance is twice that.",
    ],
)
def test_what_is_not_said_of_the_figures_refuses_none(above: str) -> None:
    assert ["dgx-h100"] == systems(read(above))


@pytest.mark.parametrize(
    ("model", "status", "tokens", "below"),
    [
        ("", "", "[^1]", "[^1]: projected, not measured"),
        ("*", "", "", "\\* These figures are estimated."),
        ("", "projected from 8 nodes", "", ""),
        ("", "Target", "", ""),
        ("", "Projection", "", ""),
        ("", "", "*", "\\* This row is a projection."),
        ("", "", "*", "\\* Result is projected."),
        ("", "", "*", "\\* The 64-GPU number is extrapolated from 32 GPUs."),
        (" (projected)", "", "", ""),
    ],
)
def test_a_row_that_says_of_itself_that_nobody_measured_it_is_refused(
    model: str, status: str, tokens: str, below: str
) -> None:
    titles = TITLES.replace("---|\n", "---|---|\n").replace("Model |", "Model | Status |")
    row = f"| Llama3 8B{model} | {status} | 8 | 128 | 8192 | 13812{tokens} |\n"
    large = LARGE.replace("70B |", "70B | measured, not projected |")
    found = read("", f"{titles}{row}{large}\n{below}\n")
    assert ["llama3-70b"] == [one.case.model for one in found.results]
    assert ["no measured ones"] == [one.message[-16:] for one in found.problems]


def test_a_footnote_on_an_extra_says_nothing_of_the_figures() -> None:
    est = "Est. time to train in days (10T tokens, 1K GPUs)[^1]"
    titles = TITLES.replace("---|\n", "---|---|\n").replace("GPU |\n", f"GPU | {est} |\n")
    found = read("", f"{titles}{ROW[:-1]} 5[^1] |\n\n[^1]: extrapolated\n")
    assert ["dgx-h100"] == systems(found)


@pytest.mark.parametrize(
    ("note", "told"),
    [
        ("measured with FP8", "FP8; the row counts as bf16"),
        ("measured with NeMo 25.07", "25.07; the row counts as 25.09"),
        ("measured in BF16 with NeMo 25.09", None),
        ("measured with NeMo 25.09.00", None),
        ("measured with NeMo 25.09.01", "25.09.01; the row counts as 25.09"),
        ("measured with NeMo 25.07 in FP8", "FP8 and 25.07; the row counts as bf16, 25.09"),
        ("up to 10% faster than NeMo 25.07", None),
        ("measured on DGX-B200.", "DGX-B200; the row counts as dgx-h100"),
        ("on 8x A900 GPUs", "A900; the row counts as dgx-h100"),
        ("measured on H100", None),
        ("on DGX-H100 and DGX-H200", None),
        ("twice as fast as on A900, not on H200", None),
        ("LoRA, with sequence length 4096.", "lora and sequence length 4096; the row counts as "
         "pretrain, 8,192"),
        ("SFT and pre-training", None),
        ("QLoRA", "QLoRA; the row counts as pretrain"),
        ("sequence length of 4K", "sequence length 4K; the row counts as 8,192"),
        ("seq_len=4,096", "sequence length 4,096; the row counts as 8,192"),
        ("at 4k sequence length", "sequence length 4k; the row counts as 8,192"),
        ("with sequence length 8K", None),
        ("an average sequence length of 500", None),
    ],
)  # fmt: skip
def test_a_footnote_that_says_another_thing_than_its_row_is_told(
    note: str, told: str | None
) -> None:
    found = read("", f"{TITLES}{ROW.replace('13812', '13812[^1]')}\n[^1]: {note}\n")
    wanted = f"a footnote speaks of {told}"
    assert ([wanted] if told else []) == [one.message for one in found.notes]


@pytest.mark.parametrize(
    ("rows", "wanted"),
    [
        ((ROW, "| **DGX-H200** | | | | |\n", LARGE), ["dgx-h100", "dgx-h200"]),
        ((ROW, "| | | DGX-H200 | | |\n", LARGE), ["dgx-h100", "dgx-h200"]),
        ((ROW, "| DGX-H200 | - | - | - | - |\n", LARGE), ["dgx-h100", "dgx-h200"]),
        ((ROW, "| DGX-H200 |\n", LARGE), ["dgx-h100", "dgx-h200"]),
        (("| DGX-H200 | | | | |\n", ROW, "| FP8 | | | | |\n", LARGE), ["dgx-h200", "dgx-h200"]),
        ((ROW, "| Dense models | | | | |\n", LARGE), ["dgx-h100", "dgx-h100"]),
    ],
)
def test_a_row_of_one_cell_is_a_title_of_the_rows_below(
    rows: Sequence[str], wanted: list[str]
) -> None:
    found = read("", TITLES + "".join(rows))
    assert (wanted, ()) == (systems(found), found.problems)


def test_a_title_among_rows_ends_an_earlier_one_of_its_kind_with_what_stood_below_it() -> None:
    titles = ("| DGX-H200 | | | | |\n", "| FP8 | | | | |\n", "| DGX-B200 | | | | |\n")
    found = read("", TITLES + "".join(f"{title}{LARGE}" for title in titles))
    assert [("dgx-h200", "bf16"), ("dgx-h200", "fp8"), ("dgx-b200", "bf16")] == list(
        zip(systems(found), precisions(found), strict=True)
    )


def test_a_cell_across_a_table_holds_until_another_of_its_kind_but_for_no_other_table() -> None:
    """The whole page stands in one line."""
    cells = "".join(f"<td>{cell}</td>" for cell in LARGE.strip("|\n ").split("|"))
    titles = TITLES.partition("\n")[0].strip("| ").split("|")
    head = "".join(f"<th>{title}</th>" for title in titles)
    said = ("DGX-H200", "FP8", "DGX-B200")
    rows = "".join(f"<tr><td colspan=5>{one}</td></tr><tr>{cells}</tr>" for one in said)
    table = f"<table><tr>{head}</tr>{{}}</table>"
    above = "<html><h1>NeMo 25.09</h1><h2>Pre-training</h2><p>System: DGX-H100</p>"
    page = above + table.format(rows) + "<h3>FP8</h3>" + table.format(f"<tr>{cells}</tr>")
    found = reader.read("page.html", page, PageContext())
    wanted = [("dgx-h200", None), ("dgx-h200", "fp8"), ("dgx-b200", None), ("dgx-h100", "fp8")]
    assert wanted == list(zip(systems(found), precisions(found), strict=True))


@pytest.mark.parametrize(
    ("title", "why"),
    [
        ("*Projected*", "the heading says 'Projected'"),
        ("B200", "'B200' is not of 'DGX-H100'"),
        ("A900", "no system 'A900' in the catalogue"),
        ("NeMo 25.04 and 25.07", "names several releases"),
    ],
)
def test_a_title_among_rows_that_leaves_doubt_rejects_those_below_it(title: str, why: str) -> None:
    found = read("", f"{TITLES}{ROW}| {title} | | | | |\n{LARGE}")
    assert ["llama3-8b"] == [one.case.model for one in found.results]
    assert [13] == [one.line for one in found.problems]
    assert why in str(found.problems[0])


@pytest.mark.parametrize("row", ["| Llama3 70B | | | | |\n", "| Mistral 9B | - | - | - | - |\n"])
def test_a_model_without_values_is_no_title(row: str) -> None:
    found = read("", TITLES + row + ROW)
    assert ([11], [12]) == ([o.line for o in found.problems], [o.line for o in found.results])


@pytest.mark.parametrize(
    ("above", "wanted"),
    [
        ("### Pre-training 24.12", "24.12"),
        ("### Older results (24.12)", "24.12"),
        ("### Results for 24.12", "24.12"),
        ("### 25.11 Preview", "25.11"),
        ("### NeMo 25.07 Pre-training", "25.07"),
        ("### NeMo 25.07-Pre-training", "25.07"),
        ("### 25.07 (Pre-training)", "25.07"),
        ("### NeMo 25.07 pre training", "25.07"),
        ("### 25.07 dev-box", "25.07"),
        ("### NeMo 25.11 RC1 Pre-training", "25.11-rc1"),
        ("### NeMo 25.11 pre-release", "25.11-pre-release"),
        ("### NeMo 25.11 nightly-build", "25.11-nightly-build"),
        ("Container: nvcr.io/nvidia/nemo:25.11-dev-abc123", "25.11-dev-abc123"),
        ("### Pre-training, nvcr.io/nvidia/nemo:24.12", "24.12"),
        ("### Results for 25.07 (baseline 25.04)", "25.07"),
        ("**24.12**", "24.12"),
        ("Container: nvcr.io/nvidia/nemo:25.09.nemotron-nano-v2", "25.09.nemotron-nano-v2"),
        ("Container: 25.07", "25.07"),
        # None of these is a release.
        ("### Ubuntu 24.04", "25.09"),
        ("### PyTorch 24.12", "25.09"),
        ("### In 24.12 s", "25.09"),
        ("### Updated 24.12.2025", "25.09"),
        ("### Llama 3.1 405B", "25.09"),
    ],
)
def test_a_release_that_is_named_nearest_is_that_of_the_rows(above: str, wanted: str) -> None:
    assert [wanted] == releases(read(above))


@pytest.mark.parametrize(
    ("above", "why"),
    [
        ("### Legacy 24.09 and 24.12", "names several releases"),
        ("### NeMo 25.04 and 25.07", "names several releases"),
        ("### Faster than 25.07", "names 25.07, not that of the rows"),
        ("### New since 25.07", "names 25.07, not that of the rows"),
        ("Container: NeMo 25.04 and NeMo 25.02", "names several releases"),
    ],
)
def test_a_nearest_release_that_leaves_doubt_rejects_the_rows(above: str, why: str) -> None:
    assert why in refused(read(above))


@pytest.mark.parametrize(
    ("cell", "wanted"), [("25.07", "25.07"), ("NeMo 25.07", "25.07"), ("-", "25.09")]
)
def test_a_column_of_containers_says_the_release(cell: str, wanted: str) -> None:
    titles = TITLES.replace("| Model", "| Container | Model").replace("|-", "|---|-", 1)
    assert [wanted] == releases(read("", titles + ROW.replace("| Ll", f"| {cell} | Ll")))
    two = read("", titles + ROW.replace("| Ll", "| 25.04, 25.02 | Ll"))
    assert "names several releases" in refused(two)


@pytest.mark.parametrize(
    ("title", "cell", "wanted"),
    [
        ("NeMo version", "25.07", "25.07"),
        ("NeMo Framework release", "v25.07", "25.07"),
        ("Software version", "25.07", "25.07"),
        ("Software", "NeMo 25.07", "25.07"),
        ("Container image", "nvcr.io/nvidia/nemo:25.07", "25.07"),
        ("NGC Container", "NeMo 25.07", "25.07"),
        ("Image", "nvcr.io/nvidia/nemo:25.07", "25.07"),
        ("Image", "NeMo 25.07", "25.07"),
        ("Stack", "nvcr.io/nvidia/nemo:25.07", "25.07"),
        # None of these is a release of the rows.
        ("Driver version", "25.07", "25.09"),
        ("PyTorch container", "25.07", "25.09"),
        ("Megatron-Core version", "0.13.0", "25.09"),
        ("Image", "512x512", "25.09"),
        ("Previous release", "25.07", "25.09"),
        ("NeMo version", "-", "25.09"),
    ],
)
def test_a_column_of_another_title_says_the_release(title: str, cell: str, wanted: str) -> None:
    titles = TITLES.replace("| Model", f"| {title} | Model").replace("|-", "|---|-", 1)
    assert [wanted] == releases(read("", titles + ROW.replace("| Ll", f"| {cell} | Ll")))


UNITS = ["k", "(thousands)", "in thousands", "per node", "total", "tokens/s/GPU (x1000)", "kTok/s"]
OF_ALL = "Throughput (tokens per second)"


@pytest.mark.parametrize("unit", UNITS)
def test_a_row_of_units_below_the_titles_rejects_the_rows(unit: str) -> None:
    """Also those below a later title of the table."""
    rows = f"| | | | | {unit} |\n{ROW}| DGX-B200 | | | | |\n{LARGE}"
    found = read("", TITLES + rows)
    assert () == found.results
    assert 2 == len(found.problems)
    assert repr(unit) in str(found.problems[0])


@pytest.mark.parametrize(
    "above",
    [
        "### Throughput per node", "### In thousands", "### Tokens/s/GPU (x1000)",
        "All throughput numbers are per node (8 GPUs).", "The values are given in thousands.",
        "All numbers are totals.", "Values are in ktok/s.", "Normalized throughput.",
        "Numbers in kilo-tokens per second per GPU.", "All values are relative to H100 = 1.0.",
        "Figures are for 8 GPUs together.", "Tokens per second of the whole system.",
        "Aggregate throughput over all GPUs.", "### Aggregate throughput",
        "### Throughput relative to A100", "### Relative performance",
    ],
)  # fmt: skip
def test_another_unit_above_a_table_rejects_its_rows(above: str) -> None:
    assert "above, is another unit" in refused(read(above))


@pytest.mark.parametrize("below", ["All numbers are in thousands.", "Note: values in ktok/s."])
def test_another_unit_right_below_a_table_rejects_its_rows(below: str) -> None:
    """Unless it is said of what comes next, or in a footnote's text."""
    assert "below, is another unit" in refused(read("", f"{TITLES}{ROW}\n{below}\n"))
    for other in (f"The next table: {below}", f"[^1]: {below}"):
        assert 1 == len(read("", f"{TITLES}{ROW}\n{other}\n").results)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("### Pre-training (forward pass only)", "forward pass only"),
        ("Only the forward pass is timed.", "Only the forward"),
        ("We pre-train. Forward pass only.", "Forward pass only"),
        ("Step times are without the optimizer step.", "without the optimizer step"),
    ],
)
def test_figures_of_a_part_of_a_step_are_rejected(text: str, words: str) -> None:
    assert f"says {words!r}: that is no whole step" in refused(read(text))
    if not text.startswith("#"):
        assert f"below, says {words!r}" in refused(read("", f"{TITLES}{ROW}\n{text}\n"))


@pytest.mark.parametrize(
    "above", ["### Per-GPU throughput", "### Per GPU", "All numbers are per GPU."]
)
def test_figures_per_gpu_are_no_total(above: str) -> None:
    titles = TITLES.replace("Tokens / sec / GPU", OF_ALL)
    assert "another unit" in refused(read("", f"{above}\n\n{titles}{ROW}"))
    found = read("", titles + f"| | | | | per GPU |\n{ROW}")
    assert "another unit" in refused(found)


@pytest.mark.parametrize(
    "above",
    [
        "### Per-GPU throughput", "### 8 GPUs per node", "### Training on thousands of GPUs",
        "### Total: 64 GPUs", "### 8k tokens", "Results are on nodes with 8 GPUs per node.",
        "Speedup values are relative to A100.", "We see 13.8 ktok/s here.", "### Total results",
        "Throughput is normalized by the number of GPUs.", "Results for a full rack (72 GPUs).",
        "TP overlap is on in the forward pass only.", "Throughput is averaged over all GPUs.",
    ],
)  # fmt: skip
def test_words_of_nodes_and_totals_that_are_no_unit_of_the_figures(above: str) -> None:
    assert 1 == len(read(above).results)


@pytest.mark.parametrize(
    ("cell", "wanted"),
    [
        ("FP8 (MX)", "fp8_mx"), ("FP8 (blockwise)", "fp8_sc"), ("BF16 (n/a)", "bf16"),
        ("FP8", "fp8"), ("FP8 (current scaling)", "fp8_cs"), ("FP8 (delayed scaling)", "fp8_ds"),
        ("FP8 (block scaling)", "fp8_sc"), ("FP8 (MX scaling)", "fp8_mx"),
    ],
)  # fmt: skip
def test_brackets_say_which_precision_it_is(cell: str, wanted: str) -> None:
    titles = TITLES.replace("| Model", "| Precision | Model").replace("|-", "|---|-", 1)
    assert [wanted] == precisions(read("", titles + ROW.replace("| Ll", f"| {cell} | Ll")))
    if "(" in cell and "n/a" not in cell:
        assert [wanted] == precisions(read(f"### {cell}"))


PRECISE = "| Model | Precision | GPUs | GBS | Sequence Length | Tokens / sec / GPU |\n" + "|---" * 6
PRECISE_ROW = "\n| Llama3 8B | {} | {} | 128 | 8192 | 13812 |"
OTHER = TITLES + ROW.replace("| 8 |", "| 16 |")


@pytest.mark.parametrize(
    ("above", "table", "wanted"),
    [
        ("### FP8-CS", PRECISE + PRECISE_ROW.format("FP8", 8), ["fp8_cs"]),
        ("### FP8-CS", TITLES.replace("GPU |\n", "GPU (FP8) |\n") + ROW, ["fp8_cs"]),
        ("### FP8-CS\n\n#### FP8 results", TITLES + ROW, ["fp8_cs"]),
        ("### FP8-CS\n\n**FP8 results**", TITLES + ROW, ["fp8_cs"]),
        ("### FP8-CS\n\n#### FP8\n\nAll rows use FP8-CS.", TITLES + ROW, ["fp8_cs"]),
        ("### FP8-CS\n\nAll rows use FP8.", TITLES + ROW, ["fp8_cs"]),
        ("### FP8-CS\n\nAll rows are in FP8.", TITLES + ROW, ["fp8_cs"]),
        ("### FP8-CS", TITLES + ROW + "\n**FP8**\n\n" + OTHER, ["fp8_cs", "fp8_cs"]),
        ("### FP8-MX\n\n#### FP8-CS", TITLES + ROW, ["fp8_cs"]),
        ("### FP8, strong scaling to 8x128 GPUs, time per token", TITLES + ROW, ["fp8"]),
        ("### FP8-CS\n\n### FP8", TITLES + ROW, ["fp8"]),
        ("### FP8-CS", TITLES + ROW + "\n### FP8\n\n" + OTHER, ["fp8_cs", "fp8"]),
        # What the recipe is said of is what the row is of.
        ("### DGX-B200, FP8-MX", PRECISE + PRECISE_ROW.format("FP8", 8), ["fp8_mx"]),
        ("### DGX-B200, FP8-MX\n\n**FP8**", TITLES + ROW, ["fp8_mx"]),
        ("**Llama3 8B, FP8-CS**\n\n#### FP8", TITLES + ROW, ["fp8_cs"]),
        ("Model: Llama3 8B, GPU: H200, Precision: FP8-CS\n\n**FP8**", TITLES + ROW, ["fp8_cs"]),
        ("### FP8-CS", TITLES + ROW.replace("8B", "8B (FP8)"), ["fp8_cs"]),
    ],
)
def test_a_plain_family_takes_no_recipe_back(above: str, table: str, wanted: list[str]) -> None:
    found = read(above, table)
    assert (wanted, ()) == (precisions(found), found.notes)


@pytest.mark.parametrize(
    ("above", "table", "wanted", "told"),
    [
        (
            "**FP8-MX**",
            TITLES + ROW + "\n**FP8**\n\n" + OTHER,
            ["fp8_mx", "fp8"],
            "page.md:7: the text speaks of FP8-MX; the rows count as fp8",
        ),
        (
            "Precision: FP8-MX",
            TITLES + ROW + "\n#### FP8\n\n" + OTHER,
            ["fp8_mx", "fp8"],
            "page.md:7: the text speaks of FP8-MX; the rows count as fp8",
        ),
        (
            "Precision: FP8-CS (FP8-MX)",
            PRECISE + PRECISE_ROW.format("FP8", 8),
            ["fp8"],
            "page.md:7: the text speaks of FP8-CS and FP8-MX; the rows count as fp8",
        ),
        (
            "#### FP8 rowwise",
            TITLES + ROW,
            ["fp8"],
            "page.md:7: the text speaks of 'rowwise'; the rows count as fp8",
        ),
        (
            "#### FP8 (1x32)",
            TITLES + ROW,
            ["fp8"],
            "page.md:7: the text speaks of 'FP8 (1x32)'; the rows count as fp8",
        ),
        (
            '#### FP8\n\n=== "Block scaling"\n',
            "".join(f"    {line}\n" for line in (TITLES + ROW).splitlines()),
            ["fp8"],
            "page.md:9: the text speaks of 'Block scaling'; the rows count as fp8",
        ),
        (
            "**FP8 is per-tensor current scaling (FP8-CS)**\n\nPrecision: FP8",
            TITLES + ROW,
            ["fp8"],
            "page.md:7: the text speaks of FP8-CS; the rows count as fp8",
        ),
        # The recipe is said of another system, model or task, or may be of some rows alone.
        (
            "H100 results are in FP8-CS.\n\n### DGX-B200",
            PRECISE + PRECISE_ROW.format("FP8", 8),
            ["fp8"],
            "page.md:7: the text speaks of FP8-CS; the rows count as fp8",
        ),
        (
            "### FP8-CS\n\n#### DGX-B200",
            PRECISE + PRECISE_ROW.format("FP8", 8),
            ["fp8"],
            "page.md:7: the text speaks of FP8-CS; the rows count as fp8",
        ),
        (
            "System: DGX-H100, Precision: FP8-CS\n\nSystem: DGX-B200, Precision: FP8",
            TITLES + ROW,
            ["fp8"],
            "page.md:7: the text speaks of FP8-CS; the rows count as fp8",
        ),
        (
            "Precision: FP8-CS\n\nSystem: DGX-B200\n\nPrecision: FP8",
            TITLES + ROW,
            ["fp8"],
            "page.md:7: the text speaks of FP8-CS; the rows count as fp8",
        ),
        (
            "Numbers for Llama3 70B are in FP8-CS.",
            PRECISE + PRECISE_ROW.format("FP8", 8),
            ["fp8"],
            "page.md:7: the text speaks of FP8-CS; the rows count as fp8",
        ),
        (
            "**Llama3 70B, FP8-CS**\n\n**Llama3 8B, FP8**",
            TITLES + ROW,
            ["fp8"],
            "page.md:7: the text speaks of FP8-CS; the rows count as fp8",
        ),
        (
            "**Falcon 40B, FP8-CS**\n\n**Llama3 8B, FP8**",
            TITLES + ROW,
            ["fp8"],
            "page.md:7: the text speaks of FP8-CS; the rows count as fp8",
        ),
        (
            "**p5en.48xlarge, FP8-CS**\n\n**DGX-H100, FP8**",
            TITLES + ROW,
            ["fp8"],
            "page.md:7: the text speaks of FP8-CS; the rows count as fp8",
        ),
        (
            "### H200 and B200, FP8-CS\n\n#### DGX-B200",
            PRECISE + PRECISE_ROW.format("FP8", 8),
            ["fp8"],
            "page.md:7: the text speaks of FP8-CS; the rows count as fp8",
        ),
        (
            "### Blackwell, FP8-CS",
            PRECISE + PRECISE_ROW.format("FP8", 8),
            ["fp8"],
            "page.md:7: the text speaks of FP8-CS; the rows count as fp8",
        ),
        (
            "**LoRA: FP8-CS**\n\n**Pre-training: FP8**",
            TITLES + ROW,
            ["fp8"],
            "page.md:7: the text speaks of FP8-CS; the rows count as fp8",
        ),
        (
            "### FP8-CS\n\n#### DGX-B200",
            TITLES + ROW.replace("8B", "8B (FP8)"),
            ["fp8"],
            "page.md:7: the text speaks of FP8-CS; the rows count as fp8",
        ),
        # An H100 has no units for it.
        (
            "### FP8-MX",
            PRECISE + PRECISE_ROW.format("FP8", 8),
            ["fp8"],
            "page.md:7: the text speaks of FP8-MX; the rows count as fp8",
        ),
        (
            "### FP8-MX\n\n#### FP8",
            TITLES + ROW,
            ["fp8"],
            "page.md:7: the text speaks of FP8-MX; the rows count as fp8",
        ),
        (
            "### FP8-CS",
            PRECISE + PRECISE_ROW.format("FP8", 8) + PRECISE_ROW.format("FP8-CS", 16),
            ["fp8_cs", "fp8_cs"],
            "page.md:9: rows say FP8 and FP8-CS; FP8 counts as fp8_cs, as said above",
        ),
    ],
)
def test_a_recipe_that_a_plain_family_may_be_is_told(
    above: str, table: str, wanted: list[str], told: str
) -> None:
    found = read(above, table)
    assert wanted == precisions(found)
    assert [told] == [str(note).rpartition("; ")[0] for note in found.notes]


def test_a_plain_family_is_no_recipe_that_a_system_has_no_units_for() -> None:
    titles = "| System " + PRECISE.replace("\n|", "\n|---|", 1)
    rows = (f"\n| {on} " + PRECISE_ROW[1:].format("FP8", 8) for on in ("DGX-B200", "DGX-H100"))
    page = f"# NeMo 25.09\n\n## Pre-training, FP8-MX\n\n{titles}{''.join(rows)}"
    found = reader.read("page.md", page, PageContext())
    assert ["fp8_mx", "fp8"] == precisions(found)
    assert ["the text speaks of FP8-MX; the rows count as fp8 and fp8_mx"] == [
        one.message for one in found.notes
    ]


@pytest.mark.parametrize("cell", ["FP8 (rowwise)", "BF16 (projected)", "FP8 (H200)", "FP8 (MXFP8)"])
def test_brackets_that_say_what_is_not_known_are_not_dropped(cell: str) -> None:
    titles = TITLES.replace("| Model", "| Precision | Model").replace("|-", "|---|-", 1)
    found = read("", titles + ROW.replace("| Ll", f"| {cell} | Ll"))
    assert f"no precision '{cell}' in the catalogue" in refused(found)


@pytest.mark.parametrize(
    ("above", "words"),
    [
        ("All runs use FP8.", "FP8"),
        ("#### FP8 and BF16", "FP8 and BF16"),
        ("The states are kept as INT8 values.", "INT8"),
        ("Gradients are reduced in FP32.", "FP32"),
        ("Master weights are kept in float32.", "float32"),
        ("The optimizer states are in float8.", "float8"),
        ("KV cache is in Float8.", "Float8"),
        ("FlashAttention runs in FP8.", "FP8"),
        ("RoPE is computed in Float64.", "Float64"),
        ("The logits are in FP32 precision.", "FP32"),
        ("The forward pass runs at FP8 precision.", "FP8"),
        ("The block scales are in E4M3.", "E4M3"),
        ("The scale is stored in E8M0.", "E8M0"),
        ("The elements are in E2M1.", "E2M1"),
        ("**Master weights in FP32**", "FP32"),
        ("#### BF16 with FP8 attention", "BF16 and FP8"),
        ("#### FP8 attention", "FP8"),
    ],
)
def test_another_precision_nearer_than_the_one_that_holds_is_told(above: str, words: str) -> None:
    found = read(above)
    assert ["bf16"] == precisions(found)
    assert [f"page.md:7: the text speaks of {words}; the rows count as BF16"] == [
        str(note).partition("; put")[0] for note in found.notes
    ]
    assert () == read("All runs use BF16.").notes


@pytest.mark.parametrize(
    "said",
    [
        "Llama3 8B was trained from scratch in FP8.",
        "Medians over 50 steps of the model with 8B parameters, in FP8.",
        "We trained at scale, with activation recomputation and a mixture of experts in FP8.",
        "All of it is in FP8. The optimizer states are sharded.",
        "#### FP8, flash attention",
        "#### FP8 with a distributed optimizer",
    ],
)
def test_a_part_that_is_named_beside_the_rows_precision_takes_it_from_none(said: str) -> None:
    found = read(said)
    assert (["fp8"], ()) == (precisions(found), found.notes)


def test_a_precision_that_nobody_knows_rejects_the_rows_below_it() -> None:
    assert "no precision 'MXFP4' in the catalogue" in refused(read("#### MXFP4"))


@pytest.mark.parametrize(
    ("between", "told"),
    [
        ("And on DGX-B200:", "DGX-B200; the rows count as dgx-h100"),
        ("All numbers below are on DGX-B200.", "DGX-B200; the rows count as dgx-h100"),
        ("DGX-B200:", "DGX-B200; the rows count as dgx-h100"),
        ("*H200*", "H200; the rows count as dgx-h100"),
        ("For LoRA fine-tuning we get:", "lora; the rows count as pretrain"),
        ("Inference throughput:", "Inference; the rows count as pretrain"),
        ("With NeMo 25.07 we had:", "25.07; the rows count as 25.09"),
        # What the rows are of, are held against or have nothing to do with is no other thing.
        ("And on 16 H100 GPUs with NeMo 25.09:", ""),
        ("These numbers are twice those of DGX-A900 in our baseline.", ""),
        ("A later guide may show LoRA on a DGX-B200, with more about NeMo 25.07.", ""),
        ("System: DGX-B200", ""),
    ],
)
def test_a_sentence_between_tables_that_names_another_thing_than_its_rows_are_of_is_told(
    between: str, told: str
) -> None:
    found = read(f"{TITLES}{ROW}\n{between}", TITLES + LARGE)
    assert ([told] if told else []) == [
        one.message.removeprefix("the text speaks of ") for one in found.notes
    ]
    assert not told or [f"page.md:{HEAD.count(chr(10)) + 5}:"] == [
        str(one).partition(" ")[0] for one in found.notes
    ]


def test_a_sentence_of_what_some_row_says_itself_is_told_of_no_table() -> None:
    titles = "| System " + TITLES.replace("\n|", "\n|---|", 1)
    table = f"{titles}| DGX-B200 {ROW}| DGX-H200 {LARGE}"
    found = reader.read(
        "page.md", f"# NeMo 25.09\n\nPre-training on B200:\n\n{table}", PageContext()
    )
    assert ["dgx-b200", "dgx-h200"] == systems(found)
    assert not [one for one in found.notes if "speaks of" in one.message]


@pytest.mark.parametrize(
    "below",
    ["All numbers above are projected.", "Projected; not measured.", "All figures are estimates."],
)
def test_a_text_right_below_a_table_says_that_nobody_measured_its_figures(below: str) -> None:
    found = read("", f"{TITLES}{ROW}\n{below}\n")
    assert "the text below says" in refused(found)
    assert "the figures are no measured ones" in refused(found)
    lines = (TITLES.partition("\n")[0], ROW)
    table = [f"<tr><td>{'<td>'.join(one.strip().split('|')[1:-1])}" for one in lines]
    html = f"<h1>NeMo 25.09 on DGX-H100</h1><table>{''.join(table)}<tfoot><tr><td colspan=5>{below}"
    page = reader.read("page.html", f"{html}</table>", PageContext())
    assert "the figures are no measured ones" in refused(page)


@pytest.mark.parametrize(
    "below",
    [
        "The figures below are projected.",
        "Projected performance:",
        "**Projected figures**",
        "The query, key and value projections are fused, which is not measured here.",
        "\\* The weights are projected to eight dimensions.",
    ],
)
def test_a_text_below_a_table_that_is_not_of_its_figures_leaves_them(below: str) -> None:
    assert ["pretrain"] == tasks(read("", f"{TITLES}{ROW}\n{below}\n"))


def test_a_cell_of_a_task_may_say_that_nobody_measured_it() -> None:
    titles = TITLES.replace("---|\n", "---|---|\n").replace("Model |", "Model | Task |")
    row = ROW.replace("8B |", "8B | Pre-training (projected) |")
    large = LARGE.replace("70B |", "70B | Pre-training |")
    found = read("", titles + row + large)
    assert ["llama3-70b"] == [one.case.model for one in found.results]
    assert ["the column 'Task' says 'projected': the figures are no measured ones"] == [
        one.message for one in found.problems
    ]


@pytest.mark.parametrize(
    ("title", "of_row", "of_large"),
    [
        ("Projected", "yes", "no"),
        ("Projected?", "✓", ""),
        ("Estimated", "✔️", "✗"),
        ("Measured", "no", "yes"),
        ("Measured?", "❌", "✅"),
        ("Projected?", "1", "0"),
        ("Projected (1 = yes)", "1", "0"),
        ("Projected (0: no; 1: yes)", "1", ""),
        ("Projected [0/1]", "1", "0"),
        ("Projected (0/1 = no/yes)", "1", "0"),
        ("Projected row", "1", "0"),
        ("is_projected", "1", "0"),
        ("Is estimated?", "yes", "no"),
        ("Not yet measured (flag)", "1", "0"),
        ("Projected (0 = projected, 1 = measured)", "0", "1"),
        ("Status (M = measured, P = projected)", "P", "M"),
        ("Measured (1 = yes)", "0", "1"),
        ("Measured run (yes/no)", "no", "yes"),
        ("Estimated cost ($)", "yes", "5"),
        ("Status", "projected", "measured"),
    ],
)
def test_a_column_may_tick_what_nobody_measured(title: str, of_row: str, of_large: str) -> None:
    titles = TITLES.replace("---|\n", "---|---|\n").replace("Model |", f"Model | {title} |")
    row = ROW.replace("8B |", f"8B | {of_row} |")
    large = LARGE.replace("70B |", f"70B | {of_large} |")
    found = read("", titles + row + large)
    assert ["llama3-70b"] == [one.case.model for one in found.results]
    said = "projected" if "= projected" in title else of_row
    assert [f"the column {title!r} says {said!r}: the figures are no measured ones"] == [
        one.message for one in found.problems
    ]


@pytest.mark.parametrize(
    ("title", "of_row", "of_large"),
    [
        ("Estimated cost ($)", "5", "1"),
        ("Estimated cost (1 = 1000 $)", "1", "0"),
        ("Simulated failures", "1", "0"),
        ("Simulated runs", "1", "0"),
        ("Projected (h)", "1", "0"),
        ("Projected row", "1", "2"),
        ("Estimate", "1", "2.5"),
    ],
)
def test_a_number_is_no_tick(title: str, of_row: str, of_large: str) -> None:
    titles = TITLES.replace("---|\n", "---|---|\n").replace("Model |", f"Model | {title} |")
    row = ROW.replace("8B |", f"8B | {of_row} |")
    large = LARGE.replace("70B |", f"70B | {of_large} |")
    found = read("", titles + row + large)
    assert () == found.problems
    assert [of_row, of_large] == [one.extras[title] for one in found.results]


BF16, FP8 = "**Table 1: BF16, NeMo 25.07**", "**Table 2: On DGX-H200 in FP8-CS**"


@pytest.mark.parametrize(
    ("parts", "wanted"),
    [
        ((TITLES + ROW, BF16, TITLES + LARGE, FP8), ["bf16", "fp8_cs"]),
        ((TITLES + ROW, BF16, "\\* A note.", TITLES + LARGE, FP8, "More."), ["bf16", "fp8_cs"]),
        ((TITLES + ROW, BF16, "### More", "Precision: FP8-MX", TITLES + LARGE), ["bf16", "fp8_mx"]),
        ((TITLES + ROW, BF16), ["bf16"]),
        ((BF16, TITLES + ROW, FP8, TITLES + LARGE), ["bf16", "fp8_cs"]),
        ((TITLES + ROW, FP8, TITLES + LARGE), ["bf16", "fp8_cs"]),
    ],
)
def test_numbered_captions_are_of_the_tables_above_where_one_has_none_below(
    parts: Sequence[str], wanted: list[str]
) -> None:
    found = read("", "\n\n".join(parts))
    assert wanted == precisions(found)
    on = ["dgx-h200" if one == "fp8_cs" else "dgx-h100" for one in wanted]
    assert on == systems(found)
    first = "25.07" if BF16 in parts else "25.09"
    assert first == releases(found)[0]


def test_a_caption_below_a_table_in_a_directive_is_of_that_table() -> None:
    titles, row = (
        line.strip(" |").split(" | ") for line in (TITLES.partition("\n")[0], ROW.strip())
    )
    items = "".join("   * - " + "\n     - ".join(cells) + "\n" for cells in (titles, row))
    listed = f".. list-table::\n   :header-rows: 1\n\n{items}"
    above = "NeMo 25.09\n==========\n\nDGX-H100\n--------\n"
    text = "\n\n".join((above, listed, BF16, listed.replace("128", "256"), FP8))
    assert ["bf16", "fp8_cs"] == precisions(reader.read("page.rst", text, PageContext()))
