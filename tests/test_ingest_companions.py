"""What lies beside a log and speaks of its run, and what lies there and does not."""

from pathlib import Path

import pytest
from sqlalchemy import URL, select

from perfdb.db.rows import SourceFile
from perfdb.db.tables import cases, runs, systems
from perfdb.formats import llmb, megatron_lm
from perfdb.ingest import LogOptions, Options, ingest
from perfdb.ingest.attribution import attribute
from perfdb.ingest.companions import Companion, Folders
from perfdb.ingest.find import file
from perfdb.ingest.options import checked
from perfdb.pages.base import PageContext
from tests.logs import SET, megatron, nemo, write
from tests.trees import rows_of

LLMB = """\
job_info: {job_id: 7}
workload_info: {framework: nemo2, fw_version: 25.10, workload_type: pretrain}
model_info: {model_name: llama3, model_size: 8b, dtype: bf16, scale: 8, gpu_type: h100}
"""
MODEL_CONFIG = "MODEL_ARGS:\n  --seq-length: 4096\n  --bf16: true\n"
TEXTS = {".yaml": LLMB, ".log": nemo(), ".out": nemo(), ".txt": "", ".md": "", ".json": "{}"}
LENGTH = Options(logs=LogOptions(("sequence_length=8192",)))


def tree(folder: Path, *names: str) -> Path:
    """Files of these names, each with the text that its suffix calls for."""
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = MODEL_CONFIG if path.name == "model_config.yaml" else TEXTS[path.suffix]
        path.write_text(text)
    return folder


@pytest.mark.parametrize(
    ("log", "others", "expected"),
    [
        ("train.log", ["llmb-config_7.yaml", "readme.txt", "notes.md"], "llmb-config_7.yaml"),
        ("train.log", ["llmb-config_7.yaml", "other.log"], None),
        ("train.txt", ["llmb-config_7.yaml", "other.log"], None),
        ("train.log", ["llmb.yaml"], "llmb.yaml"),
        ("train.log", ["llmb-config_7.yaml", "sbatch_x_7.out"], "llmb-config_7.yaml"),
        ("train.log", ["llmb-config_7.yaml", "sbatch_x_8.out"], None),
        ("train.log", ["llmb-config_7.yaml", "llmb-config_8.yaml"], None),
        ("train_7.log", ["llmb-config_7.yaml", "llmb-config_8.yaml", "b.log"],
         "llmb-config_7.yaml"),
        ("train_7_8.log", ["llmb-config_7.yaml", "llmb-config_8.yaml"], None),
        ("exp_7/a.log", ["exp_7/llmb-config_7.yaml", "exp_7/llmb-config_8.yaml", "exp_7/b.log"],
         "llmb-config_7.yaml"),
        ("exp_7/x/a.log", ["exp_7/llmb-config_7.yaml", "exp_7/x/b.log"], "llmb-config_7.yaml"),
        ("exp7/x/a.log", ["exp7/llmb-config_7.yaml"], None),
        ("log-x_7_0.out", ["llmb-config_7.yaml", "log-x_8_0.out"], "llmb-config_7.yaml"),
        ("log-x_8_0.out", ["llmb-config_7.yaml"], None),
    ],
)  # fmt: skip
def test_a_launchers_file_is_of_the_log_of_its_job_or_of_the_only_log(
    tmp_path: Path, log: str, others: list[str], expected: str | None
) -> None:
    """Nobody says which of several logs it is of."""
    folder = tree(tmp_path / "a", log, *others)
    found = Folders().companions(file(folder / log, named=True), "nemo2")
    assert ([expected] if expected else []) == [one.name for one in found]


@pytest.mark.parametrize(
    ("parser", "expected"),
    [
        ("nemo2", ["llmb-config_7.yaml"]),
        ("megatron_bridge", ["llmb-config_7.yaml"]),
        ("megatron_lm", ["llmb-config_7.yaml", "model_config.yaml"]),
        ("megatron_golden", ["model_config.yaml"]),
        ("megatron_bridge_golden", []),
        ("mlperf", []),
        ("torchtitan", []),
        ("automodel_summary", []),
        ("verification_card", []),
    ],
)
def test_a_file_speaks_of_logs_of_its_own_programs_only(
    tmp_path: Path, parser: str, expected: list[str]
) -> None:
    folder = tree(tmp_path / "a", "llmb-config_7.yaml", "model_config.yaml", "train.log")
    found = Folders().companions(file(folder / "train.log", named=True), parser)
    assert expected == [one.name for one in found]


BRIDGE = LLMB.replace("nemo2", "megatron_bridge")
ARGUMENTS = "  tensor_model_parallel_size ..... 2\n"


@pytest.mark.parametrize(
    ("above", "beside", "context", "expected"),
    [
        ("", [], PageContext(), "megatron-lm, taken"),
        (ARGUMENTS, [], PageContext(), "megatron-lm"),
        ("---- arguments ----\n", [], PageContext(), "megatron-lm"),
        ("", [], PageContext(framework="megatron-bridge"), "megatron-bridge"),
        ("", [BRIDGE], PageContext(), "megatron-bridge"),
        # It is of another program than the log, which says so.
        (ARGUMENTS, [BRIDGE], PageContext(), "megatron-lm"),
    ],
)
def test_an_iteration_line_alone_does_not_say_the_program(
    above: str, beside: list[str], context: PageContext, expected: str
) -> None:
    """Megatron-Bridge prints it, too; a note says of what a log is taken that nobody says it of."""
    [log] = megatron_lm.FORMAT.parse("a.log", [(above + megatron()).encode()])
    files = [
        Companion(SourceFile("llmb-config_7.yaml", b"", llmb.FORMAT.name, 1), said)
        for text in beside
        for said in llmb.FORMAT.parse("llmb-config_7.yaml", [text.encode()])
    ]
    options = checked(Options(context, logs=LogOptions((*SET, "release=1"))))
    account = attribute("a.log", log, files, options)
    assert account.release is not None
    note = "a.log: nothing says its framework: megatron-lm is taken"
    taken = [", taken" for told in account.remarks if str(told).startswith(note)]
    assert expected == "".join([account.release.framework, *taken])


def golden() -> str:
    """Golden values of 25 steps of 2 s and more."""
    values = ", ".join(f'"{step}": {2 + step % 3 / 8}' for step in range(1, 26))
    return f'{{"iteration-time": {{"start_step": 1, "step_interval": 1, "values": {{{values}}}}}}}'


def test_golden_values_of_one_test_are_of_the_machines_in_their_names(
    sqlite: URL, tmp_path: Path
) -> None:
    """--system fills in what no name says; a machine that the catalogue lacks is none of it."""
    text = golden()
    names = ("dev_dgx_h100", "dev_dgx_gb200", "lts_dgx_h100", "dev", "dev_dgx_a900")
    for order, name in enumerate(names):
        write(tmp_path, f"{text}\n" + " " * order, f"golden_values_{name}.json")
    said = (*(one for one in SET if "system" not in one), "global_batch_size=64")
    options = Options(PageContext(release="1", system="dgx-h200"), logs=LogOptions(said))

    report = ingest([tmp_path], sqlite, options)

    question = select(systems.c.name, cases.c.variant).join(
        cases, cases.c.system_id == systems.c.id
    )
    assert [
        ("dgx-gb200", "dev_dgx_gb200"), ("dgx-h100", "dev_dgx_h100"), ("dgx-h100", "lts_dgx_h100"),
        ("dgx-h200", "dev"),
    ] == sorted(rows_of(sqlite, question))  # fmt: skip
    assert [("system",)] == [one.missing for one in report.nameless]


def test_a_number_of_nodes_is_gpus_where_the_command_line_names_the_system(
    sqlite: URL, tmp_path: Path
) -> None:
    """2 nodes of 8 H100."""
    path = write(tmp_path / "pretrain_llama3_8b_bf16_2nodes_tp1_pp1_cp1_vp1_1mbs_128gbs")
    words = Options(PageContext(release="25.04", system="dgx-h100"), logs=LENGTH.logs)

    ingest([path], sqlite, words)

    question = select(cases.c.num_gpus).join(runs, runs.c.case_id == cases.c.id)
    assert [(16,)] == rows_of(sqlite, question)


def test_a_proxy_is_not_the_model_that_it_is_named_after(sqlite: URL, tmp_path: Path) -> None:
    """Neither by the launcher's file nor by the name of the experiment."""
    folder = tmp_path / "pretrain_llama3_8b_bf16_gpus8_tp1_pp1_cp1_vpNone_ep1_mbs1_gbs128"
    path = write(folder)
    write(folder, f"{LLMB}job_config: {{proxy: true}}\n", "llmb-config_7.yaml")

    [told] = map(str, ingest([path], sqlite, LENGTH).unattributed)
    named = Options(logs=LogOptions((*LENGTH.logs.settings, "model=llama3-8b-proxy")))
    report = ingest([path], sqlite, named)

    why = "(the launcher ran a proxy or changed the model)"
    assert f"{path}: names no model {why}; pass --set model=…" == told
    assert report.new == 1
    assert [({"proxy": True},)] == rows_of(sqlite, select(cases.c.options))
