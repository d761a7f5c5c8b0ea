"""EP × ETP must divide the GPUs of a pipeline stage, and EP the experts."""

from collections.abc import Iterator, Sequence

from perfdb import catalog
from perfdb.audit import layout
from perfdb.audit.subject import Remark, Severity, Subject

NAME = "expert_parallel"
MEANING = "EP × ETP divides TP × CP × DP; EP divides the number of experts"


def check(rows: Sequence[Subject]) -> Iterator[Remark]:
    """Rows whose experts cannot be spread as they say."""
    for row in rows:
        experts = layout.size(row, "expert_parallel")
        stage = row.num_gpus // layout.size(row, "pipeline_parallel")
        if experts > 1 and stage % (experts * layout.size(row, "expert_tensor_parallel")):
            yield _unfit(row, stage)
        elif experts > 1:
            yield from _of_model(row, experts)


def _unfit(row: Subject, stage: int) -> Remark:
    tensor = row.expert_tensor_parallel
    asked = f"EP {row.expert_parallel}" + (f" × ETP {tensor}" if tensor else "")
    return Remark(
        row,
        Severity.ERROR,
        ("expert_parallel", "expert_tensor_parallel", "num_gpus", "pipeline_parallel"),
        f"a divisor of {stage:,}",
        asked,
        f"{asked} does not divide the {stage:,} GPUs of a pipeline stage",
    )


def _of_model(row: Subject, size: int) -> Iterator[Remark]:
    model = catalog.models().get(row.model)
    if model is None or (model.num_experts and model.num_experts % size == 0):
        return
    held = f"has {model.num_experts} experts" if model.num_experts else "has no experts"
    yield Remark(
        row,
        Severity.ERROR if model.num_experts else Severity.WARNING,
        ("expert_parallel", "model"),
        f"a divisor of {model.num_experts}" if model.num_experts else "EP 1",
        f"EP {size}",
        f"{model.title} {held}, which EP {size} cannot divide",
        None if model.num_experts else "EP 1",
    )
