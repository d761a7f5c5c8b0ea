"""The formats on files of the programs themselves; each count was taken by hand or with grep."""

from pathlib import Path

import pytest

from perfdb import formats
from perfdb.formats import ParsedLog

CORPUS = Path(__file__).parents[2] / "shared" / "corpus"
pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus is not beside the project")

READ = {
    "automodel_old_training_phi_4_squad_h100.jsonl": ("automodel_training", [(100, "finished")]),
    "automodel_training_gpt_oss_20b_h100.jsonl": ("automodel_training", [(100, "finished")]),
    "automodel_training_llama3_2_1b_squad_h100.jsonl": ("automodel_training", [(100, "finished")]),
    "automodel_training_qwen3_moe_30b_te_deepep_h100.jsonl": (
        "automodel_training", [(100, "finished")],
    ),
    "cloudai_fixture_megatron_bridge_0.log": ("megatron_bridge", [(1, "finished")]),
    "cloudai_fixture_megatron_run_0.log": ("megatron_lm", [(3, "incomplete")]),
    "cloudai_fixture_nemo_run_0.log": ("nemo2", [(12, "incomplete")]),
    "cloudai_fixture_nemo_run_1.log": ("nemo2", [(2, "incomplete")]),
    "cloudai_fixture_nemo_run_3.log": ("nemo2", [(2, "incomplete")]),
    "dgxc_example_llmb_config.yaml": ("llmb_config", [(0, None)]),
    "mbridge_card_gpt-oss-120b.yaml": ("verification_card", [(0, "finished")] * 7),
    "mbridge_card_qwen3-30b-a3b.yaml": ("verification_card", [(0, "finished")] * 14),
    "mlm_golden_empty_object_lts_a100.json": ("megatron_golden", [(0, "no_data")]),
    "mlm_golden_gpt3_7b_tp4pp1_memory_speed_h100.json": ("megatron_golden", [(12, "finished")]),
    "mlm_golden_list_in_object_core_r0.10.0_t5_220m_a100.json": (
        "megatron_golden", [(20, "finished")],
    ),
    "mlperf_v5.0_eos-dfw_n64_ngc25.01_nemo_llama31_405b.txt": ("mlperf", [(0, "finished")]),
    "mlm_golden_list_values_old_schema_a100.json": ("megatron_golden", [(0, "finished")]),
    "mlm_model_config_gpt3_7b_tp4pp1_memory_speed.yaml": ("megatron_config", [(0, None)]),
    "mlperf_v5.0_nyx_n1_ngc25.04_nemo_llama2_70b_lora.txt": ("mlperf", [(0, "finished")]),
    "nemo2_embedding_ft.log": ("nemo2", [(100, "finished")]),
}  # fmt: skip
NO_LOG = ["INDEX.tsv", "dgxc_cluster_config.yaml", "dgxc_llama3.1_metadata.yaml"]


def parsed(name: str) -> tuple[ParsedLog, ...]:
    content = (CORPUS / name).read_bytes()
    found = formats.recognized(content, name)
    assert found, name
    return found.parse(name, [content])


def test_every_file_is_read_or_refused() -> None:
    files = {path.name for path in CORPUS.iterdir() if path.is_file()}
    assert files == {*READ, *NO_LOG}


@pytest.mark.parametrize("name", READ)
def test_a_file_gives_its_steps_and_how_it_ended(name: str) -> None:
    expected_format, expected = READ[name]
    found = formats.recognized((CORPUS / name).read_bytes(), name)
    assert found is formats.named(expected_format)
    assert expected == [(len(log.steps), log.outcome) for log in parsed(name)]


def test_the_times_of_a_nemo_log_add_up_to_what_awk_adds_up() -> None:
    (log,) = parsed("nemo2_embedding_ft.log")
    assert pytest.approx(NEMO_SECONDS, abs=1e-6) == sum(r.step_time_s for r in log.steps)
    assert (517, 1) == log.steps[0][:2]
    assert (726, 100) == log.steps[-1][:2]


NEMO_SECONDS = 127.0468
"""grep -o 'train_step_timing in s: [0-9.]*' | awk '{s += $4} END {print s}'"""


def test_a_wrapped_iteration_has_its_rate_and_its_loss() -> None:
    (log,) = parsed("cloudai_fixture_megatron_bridge_0.log")
    (reading,) = log.steps
    expected = (50, 9.089, 8.114214, 0.042, 663.5)
    assert expected == (
        reading.step,
        reading.step_time_s,
        reading.loss,
        reading.grad_norm,
        reading.model_tflops_per_sec_per_gpu,
    )


def test_an_automodel_step_takes_its_tokens_over_its_rate() -> None:
    (log,) = parsed("automodel_old_training_phi_4_squad_h100.jsonl")
    first = log.steps[0]
    assert pytest.approx(6032 / 1174.8826685154995) == first.step_time_s
    assert (1, 6032, 4.176974296569824) == (first.step, first.tokens, first.loss)


def test_the_old_golden_values_have_an_average_only() -> None:
    (log,) = parsed("mlm_golden_list_values_old_schema_a100.json")
    assert 0.11905411764705882 == log.emitted.step_time_s


def test_golden_values_in_a_list_are_those_of_one_step_in_five() -> None:
    """Places are counted from 0: the first value, of 9.4 s, is that of step 1. By eye."""
    (log,) = parsed("mlm_golden_list_in_object_core_r0.10.0_t5_220m_a100.json")
    assert [*range(1, 101, 5)] == log.steps.step.tolist()
    expected = [(1, 9.40905, 10.33709), (51, 0.49625, 7.393), (96, 0.22948, 6.96648)]
    steps = {step.step: (step.step, step.step_time_s, step.loss) for step in log.steps}
    assert expected == [steps[number] for number in (1, 51, 96)]
    assert "it has a time of one in 5 steps: each counts as one step" == log.notes[0].message


def test_a_card_says_which_gpus_precision_and_task_each_figure_is_of() -> None:
    found = {log.emitted_line: log for log in parsed("mbridge_card_qwen3-30b-a3b.yaml")}
    tuned = found[528]
    expected = ("qwen3-30b-a3b", "pretrain", "dgx-h100", 16, "bf16", None)
    said = tuned.configuration
    assert expected == (
        said.model, said.task, said.system, said.num_gpus, said.precision, said.variant,
    )  # fmt: skip
    assert pytest.approx(20.14729) == tuned.emitted.step_time_s
    assert "3a9559f01283190bf16a7a592c1e2c35d908c496" == tuned.framework_version
    assert "nvcr.io/nvidia/nemo:26.06" == tuned.container
    assert (256, 16384) == (
        found[644].configuration.num_gpus,
        found[644].configuration.global_batch_size,
    )


def test_a_card_gives_the_settings_of_its_commands_however_they_are_said() -> None:
    """By hand, of the leaves that say any beside sizes of the batch: `model.NAME=VALUE` of Hydra's
    (lines 220 and 221 of the one, 343 and 344 of the other), flags, and the enabled features.
    """
    cards = [parsed(f"mbridge_card_{name}.yaml") for name in ("gpt-oss-120b", "qwen3-30b-a3b")]
    found = [{log.emitted_line: log.configuration for log in card} for card in cards]
    names = ("tensor_parallel", "sequence_parallel", "context_parallel", "options")
    said = [
        {line: values for line, one in card.items()
         if any(values := tuple(getattr(one, name) for name in names))}
        for card in found
    ]  # fmt: skip
    selective = {"recompute_granularity": "selective", "recompute_modules": "moe_act"}
    full = {
        "recompute_granularity": "full", "recompute_method": "uniform", "recompute_num_layers": 1,
    }  # fmt: skip
    assert {232: (2, True, None, selective), 310: (None, None, 4, None)} == said[0]
    assert {352: (8, None, 2, full)} == {line: one for line, one in said[1].items() if line == 352}


STATED = {605: 512, 618: 2048, 631: 8192, 644: 16384}
"""The global batch sizes in the commands of a card, by the line of the result's step time."""
FOLLOWING = {
    177: 1024, 223: 512, 271: 32, 352: 32, 398: 32, 444: 1024, 495: 512, 528: None, 553: None,
    577: 512,
}  # fmt: skip
"""tokens/s/GPU · GPUs · time / sequence length, with bc; two do not say their sequence length."""


def test_a_card_agrees_with_itself_on_tokens_per_second() -> None:
    """tokens/s/GPU = sequence · global batch / (time · GPUs), where the card says all of them."""
    found = {log.emitted_line: log for log in parsed("mbridge_card_qwen3-30b-a3b.yaml")}
    for line, batch in STATED.items():
        said, figures = found[line].configuration, found[line].emitted
        assert batch == said.global_batch_size
        assert said.sequence_length
        assert said.num_gpus
        assert figures.step_time_s
        expected = said.sequence_length * batch / (figures.step_time_s * said.num_gpus)
        assert pytest.approx(expected, rel=1e-4) == figures.tokens_per_sec_per_gpu


def test_a_batch_size_that_a_card_does_not_say_follows_from_its_figures() -> None:
    """They have seven digits: only one whole number fits."""
    found = {
        log.emitted_line: log.configuration.global_batch_size
        for log in parsed("mbridge_card_qwen3-30b-a3b.yaml")
    }
    assert STATED | FOLLOWING == found


def test_an_mlperf_log_gives_the_mean_over_its_blocks() -> None:
    """1,536 samples at 1.5408692 s and four times 384 at 1.5421427, …2.6755, …2.9353, …3.0695."""
    (log,) = parsed("mlperf_v5.0_nyx_n1_ngc25.04_nemo_llama2_70b_lora.txt")
    others = (1.5421426771663391, 1.5426755422498293, 1.5429352984168265, 1.5430694899581188)
    expected = (4 * 1.5408691637135234 + sum(others)) / 8
    assert pytest.approx(expected) == log.emitted.step_time_s
    assert ("llama2-70b", "lora", "dgx-b200", 8, 8192) == (
        log.configuration.model,
        log.configuration.task,
        log.configuration.system,
        log.configuration.global_batch_size,
        log.configuration.sequence_length,
    )
    assert 1 == log.num_nodes
    assert {"max_memory_usage": "168.827", "time_to_train_s": "663.896"} == log.extras


def test_an_mlperf_log_of_steps_gives_their_mean_and_that_of_its_blocks_beside_it() -> None:
    """240 steps with a loss; six blocks of 46,080 samples, whose mean is that of their times."""
    (log,) = parsed("mlperf_v5.0_eos-dfw_n64_ngc25.01_nemo_llama31_405b.txt")
    assert pytest.approx(MLPERF_SECONDS / 240) == log.emitted.step_time_s
    blocks = (55.016766262, 55.336699370, 55.101733397, 55.158971271, 55.199709703, 55.237867481)
    assert pytest.approx(sum(blocks) / 6) == float(log.extras["block_step_time_s"])
    # run_start is at 1744812623887 ms, run_stop at 1744826460888 ms.
    assert "13837.001" == log.extras["time_to_train_s"]
    said = log.configuration
    assert ("llama3.1-405b", "dgx-h100", 64) == (said.model, said.system, log.num_nodes)
    assert (1152, 8192) == (said.global_batch_size, said.sequence_length)


MLPERF_SECONDS = 13235.348194
"""grep reduced_train_loss | grep -o 'train_step_time": [0-9.]*' | awk '{s += $2} END {print s}'"""


def test_a_launchers_notes_complete_what_a_log_says() -> None:
    (log,) = parsed("cloudai_fixture_megatron_bridge_0.log")
    (beside,) = parsed("dgxc_example_llmb_config.yaml")
    said = log.configuration.completed_by(beside.configuration)
    expected = ("megatron-bridge", "llama3-8b", "dgx-h100", 8, "fp8", 512)
    assert expected == (
        said.framework, said.model, said.system, said.num_gpus, said.precision,
        said.global_batch_size,
    )  # fmt: skip
    assert "nvcr.io/nvidia/nemo:26.04.00" == beside.container
