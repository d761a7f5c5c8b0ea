"""The names of experiments: each dialect that NVIDIA's recipes have written."""

import pytest

from perfdb.formats import experiment, llmb

BASE = {"task": "pretrain", "precision": "bf16"}
NAMES: dict[str, dict[str, object]] = {
    "pretrain_deepseek_v3_bf16_32nodes_tp2_pp4_cp1_vp1_ep32_1mbs_1024gbs_386556": {
        **BASE, "model": "deepseek-v3-671b", "tensor_parallel": 2, "pipeline_parallel": 4,
        "context_parallel": 1, "virtual_pipeline": None, "expert_parallel": 32,
        "micro_batch_size": 1, "global_batch_size": 1024,
    },
    "pretrain_grok1_314b_bf16_256_388660": {**BASE, "model": "grok1-314b", "num_gpus": 256},
    "pretrain_llama31_405b_bf16_gpus256_tp4_pp8_cp2_vp8_mbs1_gbs128_384748": {
        **BASE, "model": "llama3.1-405b", "num_gpus": 256, "tensor_parallel": 4,
        "pipeline_parallel": 8, "context_parallel": 2, "virtual_pipeline": 8,
        "micro_batch_size": 1, "global_batch_size": 128,
    },
    "pretrain_llama4_e128_bf16_64nodes_tp1_pp12_cp1_vp12_ep64_etp1_1mbs_1024gbs_2784318": {
        **BASE, "model": "llama4-e128", "tensor_parallel": 1, "pipeline_parallel": 12,
        "context_parallel": 1, "virtual_pipeline": 12, "expert_parallel": 64,
        "expert_tensor_parallel": 1, "micro_batch_size": 1, "global_batch_size": 1024,
    },
    "pretrain_nemotronh_56b_fp8_gpus128_tp8_pp1_cp1_vpNone_mbs1_gbs768": {
        **BASE, "precision": "fp8", "model": "nemotron-h-56b", "num_gpus": 128,
        "tensor_parallel": 8, "pipeline_parallel": 1, "context_parallel": 1,
        "virtual_pipeline": None, "micro_batch_size": 1, "global_batch_size": 768,
    },
    "pretrain_llama31_405b_fp8_cs_gpus128_tp2_pp1_cp1_vpNone_ep1_mbs1_gbs64_658572": {
        **BASE, "precision": "fp8_cs", "model": "llama3.1-405b", "num_gpus": 128,
        "tensor_parallel": 2, "pipeline_parallel": 1, "context_parallel": 1,
        "virtual_pipeline": None, "expert_parallel": 1, "micro_batch_size": 1,
        "global_batch_size": 64,
    },
    "lora_llama3_70b_bf16_2nodes_tp1_pp4_cp1_vp20_ep1_etpNone_mbs1_gbs64_933609": {
        "task": "lora", "precision": "bf16", "model": "llama3-70b", "tensor_parallel": 1,
        "pipeline_parallel": 4, "context_parallel": 1, "virtual_pipeline": 20,
        "expert_parallel": 1, "micro_batch_size": 1, "global_batch_size": 64,
    },
    "pretrain_qwen3_30b_a3b_fp8_mx_gpus8_gb200_deepep": {
        **BASE, "precision": "fp8_mx", "model": "qwen3-30b-a3b", "num_gpus": 8,
        "system": "dgx-gb200",
    },
    "pretrain_llama3_70b_fp8_cs_gpus64_h100_v2": {
        **BASE, "precision": "fp8_cs", "model": "llama3-70b", "num_gpus": 64,
        "system": "dgx-h100", "variant": "v2",
    },
    "pretrain_llama3_70b_bf16_gpus64_tp2_pp4_cp2_vp2_mbs1_gbs128_v1_658572": {
        **BASE, "model": "llama3-70b", "num_gpus": 64, "tensor_parallel": 2,
        "pipeline_parallel": 4, "context_parallel": 2, "virtual_pipeline": 2,
        "micro_batch_size": 1, "global_batch_size": 128, "variant": "v1",
    },
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_an_experiments_name_says_what_it_is(name: str) -> None:
    found = experiment.configuration(name)
    assert found
    assert NAMES[name] == found.model_dump(exclude_unset=True)


@pytest.mark.parametrize("name", ["", "code", "pretrain", "pretrain_x_bf16", "llmb-config_1.yaml"])
def test_a_name_of_another_kind_says_nothing(name: str) -> None:
    assert experiment.configuration(name) is None


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("x/pretrain_deepseek_v3_bf16_32nodes_tp2_pp4_cp1_vp1_ep32_1mbs_1024gbs/log.out", 32),
        ("lora_llama3_70b_bf16_2nodes_tp1_pp4/pretrain_grok1_314b_bf16_256_388660/a.log", None),
        ("32nodes/a.log", None),
        ("log-acct.pretrain_deepseek_v3_bf16_32nodes_tp2_386556_0.out", 32),
    ],
)
def test_the_innermost_experiment_says_how_many_nodes(path: str, expected: int | None) -> None:
    """Where it says a number of GPUs, that is what ran."""
    assert expected == experiment.nodes_of_path(path)


@pytest.mark.parametrize(
    ("path", "num_gpus"),
    [
        ("a/log-acct-acct.nemo.pretrain_llama3.1_405b_bf16_gpus64_tp1_mbs2_658572_0.out", 64),
        ("sbatch_pretrain_llama3.1_405b_bf16_gpus64_tp1_mbs2_658572.out.gz", 64),
        ("pretrain_llama3.1_405b_bf16_gpus64_tp1_mbs2_658572.log", 64),
        ("pretrain_llama3.1_405b_bf16_gpus8_tp1_mbs2/log-x_658572_0.out", 8),
        # A job's number, and the name of something else.
        ("log-pretrain_llama3.1_405b_bf16_658572_0.out", None),
        ("as_pretrain_llama3.1_405b_bf16_gpus64.log", None),
        ("pretrain_llama3.1_405b_bf16_gpus64.md", None),
    ],
)
def test_the_name_of_a_log_says_what_a_folder_of_that_name_does(
    path: str, num_gpus: int | None
) -> None:
    found = experiment.of_path(path)
    size = found and (found.model, found.task, found.num_gpus, found.micro_batch_size)
    assert size == (num_gpus and ("llama3.1-405b", "pretrain", num_gpus, 2))


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("llama3_70b_bf16_gbs128_tp4_pp2_h100_64gpus/slurm.out",
         {"global_batch_size": 128, "tensor_parallel": 4, "pipeline_parallel": 2,
          "precision": "bf16"}),
        ("multirun/TP=8,PP=1/0.log", {"tensor_parallel": 8, "pipeline_parallel": 1}),
        ("fp8_cs/tp4pp2/mbs1/ep3/train.log",
         {"tensor_parallel": 4, "pipeline_parallel": 2, "micro_batch_size": 1,
          "expert_parallel": 3, "precision": "fp8_cs"}),
        ("tp2/again_tp4.log", {"tensor_parallel": 4}),
        ("bf16_vs_fp8_tp4/a.log", {"tensor_parallel": 4}),
        ("from_tp4_to_tp8/ep3/a.log", None),
        ("http2/step12/setup2/tp0/app4/a.log", None),
    ],
)  # fmt: skip
def test_a_name_of_no_dialect_may_say_sizes(path: str, expected: dict[str, object] | None) -> None:
    """A word that may be another thing, such as an epoch, counts beside one that may not."""
    found = experiment.sizes_of_path(path)
    assert expected == (found and found.model_dump(exclude_unset=True))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("golden_values_dev_dgx_gb200.json",
         {"variant": "dev_dgx_gb200", "system": "dgx-gb200"}),
        ("golden_values_lts_dgxh100_eos.json.gz",
         {"variant": "lts_dgxh100_eos", "system": "dgx-h100"}),
        ("golden_values_dev_dgx_a900.json", {"variant": "dev_dgx_a900", "system": None}),
        ("golden_values_dev.json", {"variant": "dev"}),
    ],
)  # fmt: skip
def test_golden_values_say_by_their_name_where_they_were_recorded(
    name: str, expected: dict[str, object]
) -> None:
    """A system that the catalogue lacks is said to be unknown: nothing else fills it in."""
    found = experiment.golden_values(f"a/gpt_tp2/{name}")
    assert found
    assert {"framework": "megatron-lm"} | expected == found.model_dump(exclude_unset=True)


def test_the_folders_of_a_launchers_notes_say_what_the_notes_do_not() -> None:
    folder = "experiments/pretrain_llama3_8b_bf16_gpus8_tp1_pp2_cp1_vpNone_ep1_mbs1_gbs128_9"
    content = b"workload_info: {framework: megatron_bridge}\nmodel_info: {model_name: llama3}\n"
    (log,) = llmb.FORMAT.parse(f"{folder}/llmb-config_9.yaml", [content])
    said = log.configuration
    assert ("megatron-bridge", "llama3", 8, 2, 128) == (
        said.framework, said.model, said.num_gpus, said.pipeline_parallel, said.global_batch_size,
    )  # fmt: skip
