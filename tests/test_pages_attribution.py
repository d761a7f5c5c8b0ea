"""Whose a row is: its release, framework and system, as what stands nearest to it says."""

from collections.abc import Sequence

import pytest

from perfdb.pages import reader
from perfdb.pages.base import PageContext, PageRead

ACME = '---\nperfdb: {framework: acme, release: "2.3"}\n---\n# Pre-training\n'
"""Four lines: what stands behind a blank one is on line 6."""
WORK = "| Model | #GPUs | GBS | Seq Length | Tokens/s/GPU |\n|---|---|---|---|---|\n"
ROW = "| Llama3 70B | 64 | 128 | 8192 | 1,502 |\n"


def read(*above: str, table: str = WORK + ROW, head: str = ACME, **given: str) -> PageRead:
    text = "\n\n".join((head.rstrip(), "System: DGX-H100, Precision: BF16", *above))
    return reader.read("page.md", f"{text}\n\n{table}", PageContext(**given))


def releases(found: PageRead) -> list[tuple[str, str | None, str | None]]:
    of = (one.release for one in found.results)
    return [(one.framework, one.version, one.container) for one in of]


def notes(found: PageRead) -> str:
    return "\n".join(map(str, found.notes))


def table(titles: Sequence[str], *rows: Sequence[str]) -> str:
    """A table with columns before those of the work."""
    above = "".join(f"| {title} " for title in titles) + WORK.partition("\n")[0]
    lines = ["".join(f"| {cell} " for cell in row) + ROW.strip() for row in rows]
    return "\n".join((above, "|---" * (len(titles) + 5) + "|", *lines)) + "\n"


@pytest.mark.parametrize(
    ("heading", "wanted"),
    [
        ("## v2.3", ("acme", "2.3", None)),
        ("## v2.2", ("acme", "2.2", None)),
        ("## 2.1", ("acme", "2.1", None)),
        ("## 2.1 (withdrawn)", ("acme", "2.1", None)),
        ("## acme 2.0", ("acme", "2.0", None)),
        ("## Previous release (2.2), DGX-H100", ("acme", "2.2", None)),
        ("## Baseline: NeMo 25.04", ("nemo", "25.04", None)),
        ("## NeMo 25.04", ("nemo", "25.04", None)),
        (
            "## For comparison, Megatron-Bridge 26.02 (NeMo 26.02 container)",
            ("megatron-bridge", "26.02", "NeMo 26.02"),
        ),
        ("## Baseline (Megatron-Bridge 26.02)", ("megatron-bridge", "26.02", None)),
        ("## torchtitan 0.3", ("torchtitan", "0.3", None)),
        # What is not final is no final release, however it is spelled.
        ("## 2.4 RC1", ("acme", "2.4-rc1", None)),
        ("## acme 2.4 (alpha)", ("acme", "2.4-alpha", None)),
        ("## acme 2.4 Pre-Training", ("acme", "2.4", None)),
        ("## acme 2.4 (Pre-training)", ("acme", "2.4", None)),
        ("## Release 2.4+abc", ("acme", "2.4+abc", None)),
        ("## NeMo 25.11-nightly", ("nemo", "25.11-nightly", None)),
        ("## NeMo 25.11 release candidate 2", ("nemo", "25.11-rc2", None)),
        ("## Baseline: NeMo 25.11+abc", ("nemo", "25.11+abc", None)),
        # A generation, sizes and what is no version say nothing of a release.
        ("## NeMo 2.0", ("acme", "2.3", None)),
        ("## Llama 3.1 models", ("acme", "2.3", None)),
        ("## With Megatron-Core", ("acme", "2.3", None)),
        # Nor does the version of other software, or the number of a section.
        ("## GPT-3, 1.3B", ("acme", "2.3", None)),
        ("## Qwen2.5 – 0.5B – dense", ("acme", "2.3", None)),
        ("## Megatron-LM 8.3B", ("acme", "2.3", None)),
        ("## 3.1 – Pre-training", ("acme", "2.3", None)),
        ("## 0.14 | DGX-H100", ("acme", "0.14", None)),
        ("## Pre-training with MOFED 24.10", ("acme", "2.3", None)),
        ("## In the PyTorch NGC container 25.06", ("acme", "2.3", None)),
        # What a heading is, and is no part of the page's framework, is another one.
        ("## DeepSpeed 0.16", ("deepspeed", "0.16", None)),
        ("## Hugging Face Trainer", ("hugging-face-trainer", None, None)),
        ("## DeepSpeed ZeRO-3", ("acme", "2.3", None)),
        # A container says a release of what is in it alone.
        ("## 25.07 NeMo Container", ("acme", "2.3", "NeMo 25.07")),
    ],
)
def test_a_heading_of_a_version_says_whose_the_rows_below_it_are(
    heading: str, wanted: tuple[str, str | None, str | None]
) -> None:
    """What is said of another framework's release does not hold for it, and a note says so."""
    found = read(heading)
    assert [wanted] == releases(found)
    assert [wanted[0]] == [one.case.framework for one in found.results]
    told = f"page.md:8: the text says {' '.join(filter(None, wanted[:2]))}"
    assert (wanted[:2] != ("acme", "2.3")) == (told in notes(found))


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ("## 25.11-rc1", "25.11-rc1"),
        ("## Pre-training with 25.11 RC1 on DGX-H100", "25.11-rc1"),
        ("Container: nvcr.io/nvidia/nemo:25.11-rc1", "25.11-rc1"),
        ("Container: nvcr.io/nvidia/nemo:25.11-py3", "25.11"),
        ("## 25.11-alpha NeMo Container", "25.11-alpha"),
        ("Framework Version: 25.11-rc1", "25.11-rc1"),
        ("Release: 25.11 RC1", "25.11-rc1"),
        ("## 25.11 - Pre-training", "25.11"),
    ],
)
def test_a_candidate_of_nemo_s_is_not_its_release(said: str, wanted: str) -> None:
    found = read(said, head="# NeMo: pre-training\n")
    assert [wanted] == [one.release.version for one in found.results]


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ("{{ rel }}", None),
        ("see above", None),
        ("latest", None),
        ("25.07 (latest)", "25.07"),
        ("NeMo Framework 25.07", "25.07"),
        ("r2.0.0", "r2.0.0"),
        ("nightly", "nightly"),
    ],
)
@pytest.mark.parametrize("given", [None, "25.02"])
def test_what_is_no_release_is_none_in_a_line_either(
    said: str, wanted: str | None, given: str | None
) -> None:
    head = "# NeMo: pre-training\n"
    found = read(f"Release: {said}", head=head, **({"release": given} if given else {}))
    assert [wanted or given] == [one.release.version for one in found.results]
    held = f"the rows count as {given}" if given else "the rows' release stays unknown"
    told = f"page.md:5: the text says {said!r}, which is no release; {held}"
    assert (wanted is None) == (told in notes(found))


def test_a_version_holds_for_its_section_and_no_further() -> None:
    found = read("## 2.2", "### Long context", WORK + ROW, "## Others")
    assert ["2.2", "2.3"] == [one.release.version for one in found.results]


def test_a_title_with_a_release_holds_against_options_and_one_note_says_so() -> None:
    options = {"framework": "megatron-bridge", "release": "26.02"}
    found = read(head="# Pre-training with NeMo 25.09", **options)
    assert [("nemo", "25.09", None)] == releases(found)
    assert "the text holds" in notes(found)
    assert "the option holds" not in notes(found)
    bare = read(head="# Pre-training with NeMo", **options)
    assert [("megatron-bridge", "26.02", None)] == releases(bare)
    assert "the title says nemo, --framework megatron-bridge; the option holds" in notes(bare)


def test_an_option_fills_what_the_page_leaves_open_and_no_more() -> None:
    head = "# Megatron-Bridge: pre-training\n"
    found = read("## 26.10", WORK + ROW, "## 26.09", head=head, release="26.10")
    assert ["26.10", "26.09"] == [one.release.version for one in found.results]
    assert "page.md:12: the text says megatron-bridge 26.09" in notes(found)
    assert ["26.10"] == [one.release.version for one in read(head=head, release="26.10").results]
    held = read(release="2.2", framework="nemo")
    assert [("acme", "2.3", None)] == releases(held)
    assert "the front matter says release 2.3, --release 2.2; the page holds" in notes(held)
    assert "the front matter says framework acme, --framework nemo; the page" in notes(held)


@pytest.mark.parametrize(
    ("head", "option"),
    [(ACME.replace('"2.3"', "v2.3"), None), ("# acme pre-training\n", "v2.3"), (ACME, "v2.3")],
)
def test_a_version_with_a_v_is_the_one_without(head: str, option: str | None) -> None:
    found = reader.read(
        "page.md", f"{head}\n## DGX-H100\n\n{WORK}{ROW}", PageContext("acme", option)
    )
    assert [("acme", "2.3", None)] == releases(found)
    assert () == found.notes


@pytest.mark.parametrize(
    ("heading", "told"),
    [
        ("## Comparison with Megatron-LM", "speaks of Megatron-LM, without its release"),
        ("## NeMo 25.04 and Megatron-Bridge 26.02", "names several releases"),
        ("## 26.09 versus 26.10", "names several releases"),
        ("Release: 25.07 and 25.09", "names several releases"),
        ("Release: 25.07, 25.09", "names several releases"),
        ("## New since 25.07\n\nRelease: see above", "names 25.07, not that of the rows"),
    ],
)
def test_a_heading_of_several_releases_says_none_unless_a_column_does(
    heading: str, told: str
) -> None:
    found = read(heading)
    assert () == found.results
    assert told in str(found.problems[0])
    assert found.problems[0].remedy
    named = read(heading, table=table(["Framework", "Release"], ["NeMo", "25.04"]))
    assert [("nemo", "25.04", None)] == releases(named)


def test_columns_say_whose_each_row_is() -> None:
    found = read(
        table=table(
            ["Framework", "Version", "Container"],
            ["-", "2.2", "-"],
            ["NeMo", "-", "nemo:25.04"],
            ["Megatron-Bridge 26.02", "-", "-"],
            ["acme", "v2.3", "-"],
            ["-", "-", "-"],
        )
    )
    assert [
        ("acme", "2.2", None),
        ("nemo", "25.04", "nemo:25.04"),
        ("megatron-bridge", "26.02", None),
        ("acme", "2.3", None),
        ("acme", "2.3", None),
    ] == releases(found)
    assert (
        "page.md:8: rows say acme 2.2, nemo 25.04 (nemo:25.04), megatron-bridge 26.02, "
        "and their table is of acme 2.3; the rows hold"
    ) in notes(found)


@pytest.mark.parametrize(
    ("cells", "told"),
    [
        (["NeMo", "Megatron-Bridge 26.02"], "Framework: the row says megatron-bridge and nemo"),
        (["acme", "soon"], "Release: 'soon' is no release"),
        (["", "2.2"], "Framework: the cell is empty, and those of other rows are not"),
    ],
)
def test_a_row_whose_columns_contradict_or_say_nothing_is_rejected(
    cells: list[str], told: str
) -> None:
    found = read(table=table(["Framework", "Release"], ["acme", "2.2"], cells))
    assert ["2.2"] == [one.release.version for one in found.results]
    assert [11] == [one.line for one in found.problems]
    assert told in str(found.problems[0])


@pytest.mark.parametrize("heading", ["## 3.1 – Pre-training", "## 1.2 | DGX-H100"])
def test_the_number_of_a_section_is_no_release_of_nemo(heading: str) -> None:
    found = read(heading, head=ACME.replace("acme", "nemo").replace("2.3", "25.04"))
    assert [("nemo", "25.04", None)] == releases(found)


@pytest.mark.parametrize(
    ("cell", "told"),
    [
        ("H100 PCIe", "'H100 PCIe'"),
        ("H100 NVL 94GB", "'H100 NVL 94GB'"),
        ("NVIDIA H200 NVL", "'NVIDIA H200 NVL'"),
        ("H100 (FP8)", "'H100 (FP8)' says 'FP8' of a GPU, which is not known"),
        ("128x H100", "'128x H100' is not of 64 GPUs"),
        ("8x NVIDIA H100 80GB SXM5 with NVLink", None),
        ("GB200 NVL72", None),
        ("8x H100-SXM5-80GB GPUs per node", None),
        ("64 x H100s", None),
        ("DGX H100 (8x H100)", None),
    ],
)
def test_what_stands_beside_a_gpu_leaves_it_the_same_one_or_the_row_is_rejected(
    cell: str, told: str | None
) -> None:
    text = f"{ACME}\n{table(['GPU'], [cell])}"
    found = reader.read("page.md", text, PageContext())
    assert [told is None] == [bool(found.results)]
    assert told is None or told in str(found.problems[0])


@pytest.mark.parametrize(
    "above",
    [
        "## 8x H100 PCIe GPUs", "GPU: H100 NVL", "## H100 94GB NVL", "## H100 (PCIe)",
        "## 8x H100 (80GB PCIe)", "## H100 (NVL)", "## H100 CNX", "GPU: H100 [PCIe]",
        "## H100, PCIe",
    ],
)  # fmt: skip
def test_a_card_above_a_table_is_no_dgx(above: str) -> None:
    found = reader.read("page.md", f"{ACME}\n{above}\n\n{WORK}{ROW}", PageContext())
    assert () == found.results
    assert "H100" in str(found.problems[0])


@pytest.mark.parametrize("title", ["GPU", "Hardware", "Accelerator", "Platform", "Machine"])
@pytest.mark.parametrize(
    ("above", "cell", "wanted"),
    [
        ("DGX-H100", "H100", "dgx-h100"),
        ("DGX-H100", "NVIDIA H100 80GB HBM3", "dgx-h100"),
        ("DGX-H100", "-", "dgx-h100"),
        ("DGX-B200", "B200", "dgx-b200"),
        ("DGX-GB200", "B200", "dgx-gb200"),
        ("DGX-H100", "DGX-B200", "dgx-b200"),
        ("", "H100", "dgx-h100"),
        ("", "GB200", "dgx-gb200"),
    ],
)
def test_a_column_of_gpus_says_the_system(title: str, above: str, cell: str, wanted: str) -> None:
    system = f"System: {above}" if above else ""
    text = "\n\n".join((ACME, system, table([title], [cell])))
    found = reader.read("page.md", text, PageContext())
    assert [wanted] == [one.case.system for one in found.results]
    moved = above and wanted != f"{above}".casefold()
    assert bool(moved) == (f"rows say {wanted}, and dgx-h100 stands above" in notes(found))


@pytest.mark.parametrize(
    ("above", "cell", "told"),
    [
        ("DGX-H100", "B200", "'B200' is not of 'DGX-H100', which the page says above"),
        ("DGX-H100", "MI901X", "no system or GPU 'MI901X' in the catalogue"),
        ("DGX-H100", "H100/H200", "'H100/H200' names several GPUs"),
        ("", "B200", "'B200' may be of dgx-b200 or dgx-gb200"),
    ],
)
def test_a_gpu_that_is_unknown_or_of_another_system_is_rejected(
    above: str, cell: str, told: str
) -> None:
    """An option does not make it another one."""
    system = f"System: {above}" if above else ""
    text = "\n\n".join((ACME, system, table(["GPU"], [cell])))
    found = reader.read("page.md", text, PageContext(system="dgx-h100"))
    assert () == found.results
    assert f"GPU: {told}" in str(found.problems[0])
    assert found.problems[0].remedy


def test_a_system_and_a_gpu_of_one_row_must_agree() -> None:
    rows = (["DGX-GB200", "B200"], ["DGX-H100", "B200"])
    found = read(table=table(["System", "GPU"], *rows))
    assert ["dgx-gb200"] == [one.case.system for one in found.results]
    assert "'DGX-H100' and 'B200' are not of one system" in str(found.problems[0])


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("Llama3 70B (FP8)", ("llama3-70b", "pretrain", "fp8", "dgx-h100")),
        ("Llama3 70B FP8-CS", ("llama3-70b", "pretrain", "fp8_cs", "dgx-h100")),
        ("LLAMA3_70B_FP8-CS", ("llama3-70b", "pretrain", "fp8_cs", "dgx-h100")),
        ("Llama3 70B (LoRA)", ("llama3-70b", "lora", "bf16", "dgx-h100")),
        ("Llama3 70B LoRA, FP8", ("llama3-70b", "lora", "fp8", "dgx-h100")),
        ("LLAMA3-70B-LoRA", ("llama3-70b", "lora", "bf16", "dgx-h100")),
        ("Llama3 70B - SFT", ("llama3-70b", "sft", "bf16", "dgx-h100")),
        ("Llama3 70B (DGX-B200)", ("llama3-70b", "pretrain", "bf16", "dgx-b200")),
        ("Llama3 70B w/ LoRA", ("llama3-70b", "lora", "bf16", "dgx-h100")),
        ("Llama3 70B w/LoRA and FP8", ("llama3-70b", "lora", "fp8", "dgx-h100")),
        ("Llama3 70B (w/ FP8, LoRA)", ("llama3-70b", "lora", "fp8", "dgx-h100")),
        ("Llama3 70B (with LoRA)", ("llama3-70b", "lora", "bf16", "dgx-h100")),
        ("Llama3 70B FP8 with delayed scaling", ("llama3-70b", "pretrain", "fp8_ds", "dgx-h100")),
        ("DeepSeek V3 with MTP", ("deepseek-v3-671b-mtp", "pretrain", "bf16", "dgx-h100")),
        (
            "DeepSeek V3 671B w/ MTP, FP8",
            ("deepseek-v3-671b-mtp", "pretrain", "fp8", "dgx-h100"),
        ),
        ("Nobody 7B FP8", ("nobody-7b", "pretrain", "fp8", "dgx-h100")),
        # Names that hold such a word.
        ("Nobody-7B-FP8", ("nobody-7b-fp8", "pretrain", "bf16", "dgx-h100")),
        (
            "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
            ("nemotron-v3-nano-30b", "pretrain", "bf16", "dgx-h100"),
        ),
    ],
)
def test_what_stands_beside_a_model_is_said_of_its_row(
    name: str, wanted: tuple[str, str, str, str]
) -> None:
    found = read(table=WORK + ROW.replace("Llama3 70B", name))
    assert () == found.problems
    [case] = [one.case for one in found.results]
    assert wanted == (case.model, case.task, case.precision, case.system)
    assert () == case.qualifiers


@pytest.mark.parametrize(
    ("beside", "wanted"),
    [
        ("(FP8, 2 nodes)", (("2 nodes",), "pretrain", "fp8")),
        ("w/o MTP", (("w/o MTP",), "pretrain", "bf16")),
        ("w/ MTP (2 nodes)", (("w/ MTP", "2 nodes"), "pretrain", "bf16")),
        ("w/o MTP, FP8", (("w/o MTP",), "pretrain", "fp8")),
        ("w/ LoRA w/o MTP", (("w/o MTP",), "lora", "bf16")),
        ("without LoRA", (("without LoRA",), "pretrain", "bf16")),
        ("w/o LoRA on DGX-H100", (("w/o LoRA",), "pretrain", "bf16")),
        ("(SFT, w/o LoRA)", (("w/o LoRA",), "sft", "bf16")),
    ],
)
def test_what_is_not_known_beside_a_model_stays_there(beside: str, wanted: object) -> None:
    [case] = [one.case for one in read(table=WORK + ROW.replace("70B", f"70B {beside}")).results]
    assert ("llama3-70b", wanted) == (case.model, (case.qualifiers, case.task, case.precision))


@pytest.mark.parametrize(
    ("titles", "cells", "name", "told"),
    [
        (["Precision"], ["BF16"], "70B (FP8)", "'BF16' is not 'FP8', which stands beside"),
        (["Task"], ["SFT"], "70B LoRA", "'SFT' is not 'LoRA', which stands beside"),
        (["System"], ["DGX-H100"], "70B (DGX-B200)", "'DGX-H100' and 'DGX-B200' are not of one"),
        ([], [], "70B (FP8/BF16)", "says both 'FP8' and 'BF16'"),
        ([], [], "70B (A900)", "no system or GPU 'A900' in the catalogue"),
        ([], [], "70B (DPO)", "'DPO' is no task"),
    ],
)
def test_what_stands_beside_a_model_and_contradicts_its_row_is_rejected(
    titles: list[str], cells: list[str], name: str, told: str
) -> None:
    found = read(table=table(titles, cells).replace("70B", name))
    assert () == found.results
    assert told in str(found.problems[0])


def test_the_more_exact_word_for_a_precision_holds() -> None:
    """`FP8` beside a model is no other precision than the FP8-CS of a column or a heading."""
    rows = table(["Precision"], ["FP8-CS"]).replace("70B", "70B FP8")
    assert ["fp8_cs"] == [one.case.precision for one in read(table=rows).results]
    below = read("### FP8-CS", table=WORK + ROW.replace("70B", "70B (FP8)"))
    assert ["fp8_cs"] == [one.case.precision for one in below.results]


@pytest.mark.parametrize(
    "name",
    [
        "Average (all)", "Geomean", "Total", "Mean", "Overall", "Speedup vs 25.07",
        "Improvement (%)", "% change", "FP8 speed-up", "Average gain", "vs. 25.07", "Δ",
    ],
)  # fmt: skip
def test_a_row_that_sums_up_others_is_no_result(name: str) -> None:
    found = read(table=WORK + ROW + ROW.replace("Llama3 70B", name))
    assert ["llama3-70b"] == [one.case.model for one in found.results]
    assert "page.md:11: the row sums up others, and is no result; put it into text below" in str(
        found.problems[0]
    )
