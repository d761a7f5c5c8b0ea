"""What headings and sentences above a table say of its rows, and what they leave open."""

from pathlib import Path

import pytest

from perfdb.ingest.find import Source
from perfdb.ingest.page import read_page
from perfdb.ingest.read import Rejected
from perfdb.pages import reader
from perfdb.pages.base import PageContext, PageRead

TABLE = """
| Model | GPUs | GBS | Sequence Length | Tokens / sec / GPU |
|---|---|---|---|---|
| Llama3 8B | 8 | 128 | 8192 | 13812 |
"""


def read(*above: str, title: str = "# NeMo Performance", table: str = TABLE) -> PageRead:
    text = "\n\n".join((title, "Container: NeMo 25.04", "System: DGX-H100", *above))
    return reader.read("page.md", f"{text}\n{table}", PageContext())


def precision(*above: str) -> str | None:
    found = read("## Pre-training", *above)
    assert () == found.problems
    return found.results[0].case.precision


@pytest.mark.parametrize(
    "said",
    [
        "## Pre-training (FP8)",
        "## FP8 Pre-training Performance",
        "## Pre-training in FP8",
        "## FP8",
        "## With Float8",
        "**Float8**",
        "Precision: float8",
        "## FP8 (E4M3)",
        "## E4M3",
        "## 8-bit floating point",
        "### DGX-H100 (FP8)",
        "### DGX-H100, FP8",
        "### Llama3 8B FP8",
        "- The table below shows the performance at FP8 precision.\n  - Container: NeMo 25.04",
        "- The results in the table below show the performance at FP8 precision.",
        "{/* MDX */}\n\n### Llama <Badge>FP8</Badge>",
        "{/* MDX */}\n\n### <Badge>FP8</Badge>",
        "{/* MDX */}\n\nAll numbers are in <Tooltip tip='8 bits'>FP8</Tooltip>.",
        "{/* MDX */}\n\nPrecision: <Chip>FP8</Chip>",
        "All numbers are in FP8.",
        "The rows were run with FP8 precision.",
        "The rows were run with FP8 precision. Compared with last time they are faster.",
        "Precision: FP8",
    ],
)
def test_a_heading_and_a_sentence_say_the_precision(said: str) -> None:
    assert "fp8" == precision(said)
    assert not [note for note in read("## Pre-training", said).notes if "precision" in str(note)]


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ("## Float8 tensorwise", "fp8_cs"),
        ("**FP8 tensorwise, 64 nodes**", "fp8_cs"),
        ("### Results in FP8 MX", "fp8_mx"),
        ("### FP8-MX (E4M3)", "fp8_mx"),
        ("### Llama3 8B Float8 tensorwise", "fp8_cs"),
        ("### FP8 with per-tensor current scaling", "fp8_cs"),
        ("### DGX-B200, FP8 with delayed scaling", "fp8_ds"),
        ("### FP8 with MX scaling", "fp8_mx"),
        ("### FP8 microscaling", "fp8_mx"),
        ("### Llama3 8B FP8 block scaling", "fp8_sc"),
        ("Model: Llama3 8B Float8 tensorwise", "fp8_cs"),
    ],
)
def test_the_words_behind_a_precision_say_which_one_it_is(said: str, wanted: str) -> None:
    assert wanted == precision("Precision: BF16", said)


def test_a_precision_by_the_name_of_its_format_alone_is_not_passed_over() -> None:
    found = read("## Pre-training", "Precision: BF16", "### Float6")
    assert "no precision 'Float6' in the catalogue" in str(found.problems)


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ("### Results for the second half of 2025", "fp8_cs"),
        ("We cut the global batch in half.", "fp8_cs"),
        ("All rows are at half the batch.", "fp8_cs"),
        ("### Half precision", "fp16"),
        ("### DGX-H100, half-precision", "fp16"),
        ("All rows were run in half precision.", "fp16"),
        ("Precision: half", "fp16"),
    ],
)
def test_half_is_a_precision_only_where_it_says_so(said: str, wanted: str) -> None:
    found = read("## Pre-training", "Precision: FP8-CS", said)
    assert [wanted] == [one.case.precision for one in found.results]
    assert not [note for note in found.notes if "half" in str(note)]


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("All rows use per-tensor FP8; a run in BF16 precision had the same loss.", "FP8 and BF16"),
        ("Speed-up relative to a baseline at BF16 precision.", "BF16"),
        ("These were not run in BF16 precision.", "BF16"),
        ("## FP8 vs BF16", "FP8 and BF16"),
        ("## Compared with BF16", "BF16"),
        (
            "- Gradients are reduced at BF16 precision.\n  - Model: Llama3 8B",
            "BF16",
        ),
    ],
)
def test_a_precision_that_rows_are_held_against_is_not_theirs(said: str, words: str) -> None:
    assert precision(said) is None
    assert f"page.md:9: the text speaks of {words}; the rows' precision stays unknown" in "\n".join(
        map(str, read("## Pre-training", said).notes)
    )


def test_a_system_in_a_heading_is_known_beside_its_precision() -> None:
    found = read("## Pre-training", "### DGX-B200 (FP8)")
    assert [("dgx-b200", "fp8")] == [(one.case.system, one.case.precision) for one in found.results]


@pytest.mark.parametrize(
    ("heading", "wanted"),
    [
        ("Llama3 8B on DGX-B200", "dgx-b200"),
        ("Llama3 8B on H200", "dgx-h200"),
        ("Llama3 8B (FP8, LoRA) on DGX-H200", "dgx-h200"),
        # A DGX-GB200 has a B200 too.
        ("Llama3 8B on B200", "dgx-gb200"),
        ("Llama3 8B on B200\n\n##### DGX-B200", "dgx-b200"),
    ],
)
def test_a_system_behind_a_model_in_a_heading_holds_below_it(heading: str, wanted: str) -> None:
    found = read("## Pre-training", "### DGX-GB200", f"#### {heading}")
    assert [wanted] == [one.case.system for one in found.results]


@pytest.mark.parametrize(
    ("heading", "wanted"),
    [
        ("H200", "dgx-h200"),
        ("NVIDIA H200", "dgx-h200"),
        ("8x H200 GPUs", "dgx-h200"),
        ("H200, BF16", "dgx-h200"),
        ("GB200", "dgx-gb200"),
        ("DGX-B200\n\n#### B200", "dgx-b200"),
        ("B200\n\n#### H200", "dgx-h200"),
        ("B200\n\n#### DGX-H200", "dgx-h200"),
        ("What an H200 is", "dgx-h200"),
        ("Results on <Chip>DGX-B200</Chip>\n\n{/* MDX */}", "dgx-b200"),
    ],
)
def test_a_heading_that_is_a_gpu_says_the_system(heading: str, wanted: str) -> None:
    """It is nearer than what stands above all sections, a DGX-H100."""
    found = read("## Pre-training", f"### {heading}")
    assert [wanted] == [one.case.system for one in found.results]


@pytest.mark.parametrize(
    "said", ["### Llama3 8B on B200", "Model: Llama3 8B on B200", "### B200", "### 8x B200, BF16"]
)
@pytest.mark.parametrize("given", ["dgx-b200", "dgx-gb200", "dgx-h100", None])
def test_a_gpu_of_several_systems_behind_a_model_is_of_the_one_that_an_option_names(
    said: str, given: str | None
) -> None:
    """Of another one the option cannot make it."""
    text = f"# NeMo 25.04\n\n## Pre-training\n\n{said}\n\n{TABLE}"
    found = reader.read("page.md", text, PageContext(system=given))
    if given in ("dgx-b200", "dgx-gb200"):
        assert [given] == [one.case.system for one in found.results]
    else:
        assert () == found.results
        assert "'B200' may be of dgx-b200 or dgx-gb200" in str(found.problems[0])


def test_a_gpu_behind_a_model_is_not_of_another_system_that_is_said_above() -> None:
    found = read("## Pre-training", "System: DGX-H100", "### Llama3 8B on B200")
    assert () == found.results
    assert "'B200' is not of 'DGX-H100', which the page says above" in str(found.problems[0])


def test_a_gpu_behind_a_model_says_no_more_than_that_of_a_row_and_nothing_else() -> None:
    rows = (
        TABLE
        + "| Llama3 8B | 8x B200 | 128 | 8192 | 23812 |\n| Llama3 8B | 8x H100 | 1 | 8 | 9 |\n"
    )
    text = f"# NeMo 25.04\n\n## Pre-training\n\n### Llama3 8B on B200\n{rows}"
    found = reader.read("page.md", text, PageContext())
    assert [("dgx-b200", 10)] == [(one.case.system, one.line) for one in found.results]
    assert [9, 11] == [one.line for one in found.problems]
    assert "'B200' and 'H100' are not of one system" in str(found.problems[1])


def test_a_gpu_behind_a_model_that_no_system_has_rejects_the_rows() -> None:
    found = read("## Pre-training", "System: DGX-H100", "### Llama3 8B on A900")
    assert "no system 'A900' in the catalogue" in str(found.problems[0])
    assert () == found.results


def test_a_pair_of_precisions_above_a_table_tells_the_two_values_of_its_cells_apart() -> None:
    found = read(
        "## Pre-training",
        "System: DGX-B200, Precision: FP8-CS (FP8-MX)",
        table=TABLE.replace("13812", "13812 (13000)"),
    )
    assert () == found.problems
    assert [("fp8_cs", 13812.0), ("fp8_mx", 13000.0)] == [
        (one.case.precision, one.figures.tokens_per_sec_per_gpu) for one in found.results
    ]
    assert not [note for note in found.notes if "brackets" in str(note)]


@pytest.mark.parametrize(
    ("heading", "word"),
    [
        ("## Inference", "Inference"),
        ("## DPO training", "DPO"),
        ("## LLM Serving", "Serving"),
        ("## Evaluation throughput", "Evaluation"),
        ("## Prefill", "Prefill"),
        ("## Decode", "Decode"),
        ("## Post-training", "Post-training"),
        ("## Reinforcement learning (RLVR)", "Reinforcement learning"),
        ("## RLVR", "RLVR"),
        ("## RL training", "RL"),
        ("## Rollout throughput", "Rollout"),
        ("## Text generation throughput", "Text generation"),
        ("## vLLM throughput", "vLLM"),
        ("## Reward model training", "Reward model"),
        ("## Preference optimization", "Preference optimization"),
    ],
)
def test_what_is_no_training_is_not_stored_as_pre_training(heading: str, word: str) -> None:
    found = read(heading)
    assert () == found.results
    assert f"the heading says '{word}', which is no task" in str(found.problems[0])
    assert ["pretrain"] == [one.case.task for one in read(heading, "### Pre-training").results]


@pytest.mark.parametrize(
    "heading",
    [
        "## Projected (not measured)",
        "## Simulated",
        "## Estimated throughput",
        "## Projections",
        "## Upcoming: 25.11 targets",
    ],
)
def test_what_is_not_measured_is_refused_whatever_its_task(heading: str) -> None:
    found = read(heading, "### Pre-training")
    assert () == found.results
    assert "page.md:13: the heading says" in str(found.problems[0])
    assert "the figures are no measured ones" in str(found.problems[0])


def test_fine_tuning_with_a_library_for_rl_is_one() -> None:
    assert ["sft"] == [one.case.task for one in read("## NeMo RL: SFT").results]


def test_a_heading_of_two_tasks_leaves_it_to_a_tab_or_a_column_to_say_which() -> None:
    found = read("## SFT and LoRA")
    assert () == found.results
    assert "the heading 'SFT and LoRA' names several tasks" in str(found.problems[0])
    assert ["lora"] == [one.case.task for one in read("## SFT and LoRA", "### LoRA").results]
    table = TABLE.replace("| Model ", "| Task | Model ").replace("|---|", "|---|---|", 1)
    named = read("## SFT and LoRA", table=table.replace("| Llama3", "| SFT | Llama3"))
    assert ["sft"] == [one.case.task for one in named.results]
    assert ["lora"] == [one.case.task for one in read("## Fine-tuning (LoRA)").results]


@pytest.mark.parametrize("title", ["Type", "Mode"])
def test_a_cell_that_is_a_task_says_it_whatever_its_title(title: str) -> None:
    table = TABLE.replace("| Model ", f"| {title} | Model ").replace("|---|", "|---|---|", 1)
    lora = read("## Pre-training", table=table.replace("| Llama3", "| LoRA | Llama3"))
    assert ["lora"] == [one.case.task for one in lora.results]
    served = read("## Pre-training", table=table.replace("| Llama3", "| inference | Llama3"))
    assert () == served.results
    assert "'inference' is no task" in str(served.problems[0])


@pytest.mark.parametrize(
    ("title", "cell", "field", "wanted"),
    [
        ("Config", "FP8-CS", "precision", "fp8_cs"),
        ("Config", "GB200", "system", None),
        ("Variant", "DGX-B200", "system", "dgx-b200"),
        ("Stack", "Megatron-Bridge", "framework", "megatron-bridge"),
        ("Datatype", "FP8", "precision", "fp8"),
        ("Data type", "FP8", "precision", "fp8"),
        ("Library", "DeepSpeed", "framework", "deepspeed"),
        ("Config", "B200", "system", None),
        ("Device", "B200", "system", None),
        # These are of a part of the work, or of another row.
        ("Master weights", "FP32", "precision", "bf16"),
        ("Grad reduce dtype", "FP32", "precision", "bf16"),
        ("Logits", "FP32", "precision", "bf16"),
        ("Compared with", "GB200", "system", "dgx-h100"),
        ("Backend", "Megatron-Core", "framework", "nemo"),
    ],
)
def test_a_cell_that_is_a_precision_a_system_or_a_framework_says_it(
    title: str, cell: str, field: str, wanted: str | None
) -> None:
    table = TABLE.replace("| Model ", f"| {title} | Model ").replace("|---|", "|---|---|", 1)
    rows = table.replace("| Llama3", f"| {cell} | Llama3")
    found = read("## Pre-training", "Precision: BF16", table=rows)
    assert [wanted] * (wanted is not None) == [getattr(one.case, field) for one in found.results]
    if wanted:
        both = rows.replace(f"| {title} |", f"| {title} | {field} |").replace(
            "|---|", "|---|---|", 1
        )
        said = {"precision": "NVFP4", "system": "DGX-H200", "framework": "AutoModel"}[field]
        found = read("## Pre-training", table=both.replace(f"| {cell} |", f"| {cell} | {said} |"))
        assert [said.casefold()] == [str(getattr(one.case, field)) for one in found.results]
    else:
        assert f"{cell!r} is not of 'DGX-H100'" in str(found.problems[0])


BOXES = (
    ":::{{note}}\n{}\n:::", "```{{warning}}\n{}\n```", ":::note\n\n{}\n\n:::",
    "```{{eval-rst}}\n.. note::\n\n   {}\n```", "> {}", '!!! note\n\n    {}',
)  # fmt: skip


@pytest.mark.parametrize("box", BOXES)
def test_a_statement_in_a_box_right_above_a_table_is_one(box: str) -> None:
    assert "fp8_cs" == precision(box.format("Precision: FP8-CS"))


@pytest.mark.parametrize("box", BOXES[:3])
def test_of_a_box_above_a_table_only_statements_count_and_only_right_above(box: str) -> None:
    assert precision(box.format("Precision: FP8-CS"), "These are figures.") is None
    assert precision(box.format("As fast as runs in FP8-CS.")) is None
    below = read("## Pre-training", table=f"{TABLE}\n{box.format('All rows use FP8.')}\n{TABLE}")
    assert [None, None] == [one.case.precision for one in below.results]


def test_a_release_stands_in_a_heading_after_the_name_of_the_framework() -> None:
    text = f"# NeMo 25.04\n\n## Pre-training\n\nSystem: DGX-H100, Precision: BF16\n{TABLE}"
    found = reader.read("page.md", text, PageContext())
    assert [("nemo", "25.04")] == [(o.release.framework, o.release.version) for o in found.results]
    generation = reader.read("page.md", text.replace("25.04", "2.0"), PageContext())
    assert [None] == [one.release.version for one in generation.results]


def test_a_title_that_holds_two_frameworks_against_each_other_names_neither() -> None:
    found = read("## Pre-training", title="# NeMo vs AutoModel")
    assert () == found.results
    assert "does not say which framework" in str(found.problems[0])


@pytest.mark.parametrize(
    ("title", "wanted"),
    [
        ("torchtitan training performance", "torchtitan"),
        ("Megatron-LM performance", "megatron-lm"),
        ("MaxText performance", "maxtext"),
        ("NeMo performance with Megatron-Core", "nemo"),
        ("torchtitan and MaxText performance", None),
    ],
)
def test_a_text_that_names_nemo_does_not_overrule_the_title(title: str, wanted: str | None) -> None:
    said = "Run inside the NeMo container for convenience."
    found = read("## Pre-training", title=f"# {title}\n\n{said}\n\nRelease: 0.2.0")
    assert ([wanted] if wanted else []) == [one.case.framework for one in found.results]
    refused = [one for one in found.problems if "does not say which framework" in str(one)]
    assert (wanted is None) == bool(refused)


@pytest.mark.parametrize("empty", ["", "  "])
@pytest.mark.parametrize(
    ("title", "cell", "field", "said"),
    [("System", "DGX-GB200", "system", "dgx-h100"), ("Task", "LoRA", "task", "pretrain")],
)
def test_an_empty_cell_among_names_is_not_what_the_heading_says(
    empty: str, title: str, cell: str, field: str, said: str
) -> None:
    table = (
        f"| Model | {title} | GPUs | GBS | Sequence Length | Tokens / sec / GPU |\n"
        "|---|---|---|---|---|---|\n"
        f"| Llama3 8B | {cell} | 8 | 128 | 8192 | 13812 |\n"
        f"| Llama3 70B | {empty} | 64 | 128 | 8192 | 1606 |\n"
    )
    found = read("## Pre-training", table=table)
    assert [cell.casefold()] == [getattr(one.case, field) for one in found.results]
    assert [(11, title)] == [(one.line, one.field) for one in found.problems]
    alone = read("## Pre-training", table=table.replace(cell, ""))
    assert [said, said] == [getattr(one.case, field) for one in alone.results]


@pytest.mark.parametrize(
    ("above", "wanted"), [("## SFT", ["sft", "lora"]), ("## Performance", ["lora"])]
)
def test_a_row_above_all_tasks_is_of_the_heading_s(above: str, wanted: list[str]) -> None:
    """It repeats no row; below the first task, or where nobody says one, an empty cell is none."""
    table = (
        "| Model | Task | GPUs | GBS | Sequence Length | Tokens / sec / GPU |\n"
        "|---|---|---|---|---|---|\n"
        "| Llama3 8B | | 8 | 128 | 8192 | 13812 |\n"
        "| Llama3 8B | LoRA | 8 | 128 | 8192 | 23812 |\n"
        "| Llama3 70B | | 64 | 128 | 8192 | 1606 |\n"
    )
    found = read(above, table=table)
    assert wanted == [one.case.task for one in found.results]
    assert 3 - len(wanted) == len(found.problems)


@pytest.mark.parametrize("named", [True, False])
def test_a_page_that_is_not_utf_8_is_told_with_the_line_of_the_byte(named: bool) -> None:
    page = f"# NeMo 25.04\n\nCafé\n\nSystem: DGX-H100, Precision: BF16\n{TABLE}".encode("cp1252")
    source = Source(Path("page.md"), "page", named=named)
    found = read_page(source, [page], PageContext())
    assert isinstance(found, Rejected)
    assert ["page.md:3: byte 0xe9 is no UTF-8; save the page as UTF-8"] == list(
        map(str, found.problems)
    )
    letter = read_page(source, ["Café, no table".encode("cp1252")], PageContext())
    assert isinstance(letter, Rejected)
    assert named == bool(letter.problems)
