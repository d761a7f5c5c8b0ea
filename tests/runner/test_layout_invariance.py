"""The same model trains the same way however it is laid out over processes.

The expected figures are those of a separate program, our first proof of concept, on one process:
it has the same weights and data by its own functions, and Megatron-Core's own attention.
"""

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.runner.megatron_worker import EXPERTS, config, job, needs_megatron

pytestmark = needs_megatron

TOLERANCE = 1e-5
"""Relative. Sums in another order differ by some 1e-6 in fp32; wrong gradients by far more."""


@dataclass(frozen=True)
class Expected:
    losses: list[float]
    grad_norms: list[float]
    num_parameters: int


DENSE = Expected(
    [6.248015105724335, 6.178706407546997], [0.9513826234677716, 0.8230324836707517], 229_952
)
# Two query groups for four heads.
GROUPED = Expected(
    [6.239484071731567, 6.182977378368378], [0.9024087131119334, 1.0286230092796007], 213_568
)
MIXTURE = Expected(
    [6.24423611164093, 6.175255656242371], [0.9387492439683494, 0.8291912771690865], 525_888
)
# The proof of concept cannot tie; these are this worker's own, on one process.
TIED = Expected([6.259559, 6.182393], [0.85288, 0.79446], 197_184)

SP = {"tensor_parallel": 2, "sequence_parallel": True}
VP = {"pipeline_parallel": 2, "virtual_pipeline": 2}
ETP = {"expert_parallel": 2, "expert_tensor_parallel": 2}

LAYOUTS = {
    "one process": (DENSE, 1, {}),
    "DP2 with the distributed optimizer, overlapped": (DENSE, 2, {"overlap": True}),
    "TP2 SP": (DENSE, 2, SP),
    "PP2 VP2": (DENSE, 2, VP),
    "CP2 with grouped queries": (GROUPED, 2, {"context_parallel": 2, "num_query_groups": 2}),
    "tied embeddings over PP2": (TIED, 2, {"pipeline_parallel": 2, "tied_embeddings": True}),
    "experts over EP2 ETP2": (MIXTURE, 4, EXPERTS | ETP),
}


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_gives_the_same_losses_and_grad_norms(
    layout: str, preloaded: Path, tmp_path: Path
) -> None:
    """To 1e-5 in fp32, over two steps, of which the second follows from the update of the first;
    and counts each weight of the model once.
    """
    expected, processes, fields = LAYOUTS[layout]
    settings = config(measured_steps=1, **fields)
    run = job(preloaded / "python", tmp_path, settings, processes)
    run.run()
    for name, figures in (("loss", expected.losses), ("grad_norm", expected.grad_norms)):
        assert figures == pytest.approx([step[name] for step in run.steps], rel=TOLERANCE)
    assert expected.num_parameters == run.summary["num_parameters"]


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
