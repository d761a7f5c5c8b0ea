"""What a training process computes before its first step, without a process of its own.

Torch is imported in these tests, not above: it takes each process that collects them seconds. They
share a file, so that one process of a run of all tests imports it.
"""

import json
from datetime import datetime

import pytest

from tests.runner.megatron_worker import config, needs_megatron

pytestmark = needs_megatron


def test_a_sample_follows_its_recurrence() -> None:
    """Token by token as the proof of concept draws it: 3·t + 7 from a start by the sample's id."""
    import torch

    from runner.megatron.config import parse_config
    from runner.megatron.data import MockData, Shard

    data = MockData(parse_config(config()), Shard(0, 1), Shard(0, 1), torch.device("cpu"))
    sample = data.step(2)[5]
    number = 2 * 8 + 5
    token = (1103515245 * number + 1234) % 2**31 % 512
    for drawn, following in zip(sample.tokens[0].tolist(), sample.labels[0].tolist(), strict=True):
        assert token == drawn
        token = (3 * token + 7) % 512
        assert token == following


def test_every_layout_sees_the_same_global_batch() -> None:
    """Data-parallel ranks divide its samples, context-parallel ranks the tokens of each."""
    import torch

    from runner.megatron.config import parse_config
    from runner.megatron.data import MockData, Shard

    settings, cpu = parse_config(config(micro_batch_size=2)), torch.device("cpu")

    def sentences(data: Shard, context: Shard) -> list[list[int]]:
        batches = MockData(settings, data, context, cpu).step(1)
        return [row for batch in batches for row in batch.tokens.tolist()]

    whole = sentences(Shard(0, 1), Shard(0, 1))
    replicas = [sentences(Shard(rank, 2), Shard(0, 1)) for rank in range(2)]
    assert whole == replicas[0][:2] + replicas[1][:2] + replicas[0][2:] + replicas[1][2:]
    early_and_late, middle = (sentences(Shard(0, 1), Shard(rank, 2)) for rank in range(2))
    for sentence, outer, inner in zip(whole, early_and_late, middle, strict=True):
        assert sentence == outer[:16] + inner + outer[16:]


def test_a_rank_holds_a_part_of_the_gate_and_of_the_up_projection() -> None:
    """Not the gate on one rank and the up-projection on the other."""
    import torch

    from runner.megatron.data import Shard
    from runner.megatron.weights import GlobalWeight, cut

    whole = torch.arange(8).reshape(8, 1)
    name, local = "L1.mlp.linear_fc1.weight", torch.nn.Parameter(torch.empty(4, 1))
    second = cut(whole, GlobalWeight(name, local, 0, Shard(1, 2)), halves=2)
    assert [2, 3, 6, 7] == second.flatten().tolist()


@pytest.mark.filterwarnings("ignore:full scope is deprecated")  # the library's own default
@pytest.mark.parametrize(
    ("precision", "expected"),
    [
        ("fp32", (None, None, False)),
        ("bf16", (None, None, True)),
        ("fp8_ds", ("hybrid", "delayed", True)),
        ("fp8_cs", ("hybrid", "tensorwise", True)),
        ("fp8_sc", ("e4m3", "blockwise", True)),
        ("fp8_mx", ("e4m3", "mxfp8", True)),
        ("nvfp4", ("e2m1", "nvfp4", True)),
    ],
)
def test_a_precision_is_megatron_cores_own(
    precision: str, expected: tuple[str | None, str | None, bool]
) -> None:
    """Its dataclass takes the fields, and Transformer Engine's recipe is chosen by one it knows."""
    from runner.megatron.config import WorkerConfigError, parse_config

    torch = pytest.importorskip("torch")  # without the warnings of what it imports
    model = pytest.importorskip("runner.megatron.model")
    enums = pytest.importorskip("megatron.core.enums")
    read = parse_config(config(attention_backend="flash") | {"precision": precision})
    made = model.transformer_config(read, on_gpu=False)
    is_fp4 = made.fp4 is not None
    asked = (made.fp4, made.fp4_recipe) if is_fp4 else (made.fp8, made.fp8 and made.fp8_recipe)
    assert expected == (*asked, made.bf16)
    assert "flash" == made.attention_backend.name
    if recipe := asked[1]:
        assert recipe in {one.value for one in (enums.Fp4Recipe if is_fp4 else enums.Fp8Recipe)}
        with pytest.raises(WorkerConfigError, match="needs Transformer Engine on a GPU"):
            model.build(read, torch.device("cpu"))


def test_a_step_is_written_in_plain_json_and_in_megatrons_words() -> None:
    """JSON has infinities as texts; like Megatron-LM a log counts a NaN loss and leaves it out."""
    from runner.megatron.config import parse_config
    from runner.megatron.steps import WorkerStep, megatron_line

    step = WorkerStep(3, 0.5, 0.25, float("inf"), float("-inf"), 256, 1024, True, None)
    assert {
        "step": 3, "step_time_s": 0.5, "step_time_min_s": 0.25, "loss": "Infinity",
        "grad_norm": "-Infinity", "tokens": 256, "peak_memory_bytes": 1024, "skipped": True,
    } == json.loads(step.as_json())  # fmt: skip
    on_gpu = WorkerStep(3, 0.5, 0.5, 1, 1, 1, 1, False, 0.4)
    assert 0.4 == json.loads(on_gpu.as_json())["cuda_event_time_s"]
    step = WorkerStep(3, 0.5, 0.25, float("nan"), None, 256, 1024, True, None)
    settings = parse_config(config(measured_steps=9, global_batch_size=4))
    assert (
        " [2026-01-16 07:32:24] iteration        3/      10 | consumed samples:           12 | "
        "elapsed time per iteration (ms): 500.0 | learning rate: 1.000000E-03 | "
        "global batch size:     4 | loss scale: 1.0 | number of skipped iterations:   1 | "
        "number of nan iterations:   1 |"
    ) == megatron_line(step, settings, datetime(2026, 1, 16, 7, 32, 24))


@pytest.mark.parametrize(("num_nodes", "num_pairs"), [(1, 0), (2, 1), (3, 3), (4, 4), (7, 7)])
def test_each_node_is_in_two_pairs_and_never_twice_at_a_time(
    num_nodes: int, num_pairs: int
) -> None:
    from runner.node_check import pairs

    rounds = pairs(num_nodes)
    flat = [pair for together in rounds for pair in together]
    assert num_pairs == len(set(flat)) == len(flat)
    for together in rounds:
        names = [node for pair in together for node in pair]
        assert len(names) == len(set(names))
