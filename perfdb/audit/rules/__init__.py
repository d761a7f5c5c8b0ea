"""The audit's rules. To add one: write its module, add it to the table, add its cases."""

from perfdb.audit.rules import (
    data_parallel,
    emitted,
    expert_parallel,
    faster_precision,
    few_steps,
    flops_formula,
    flops_per_token,
    gradient_accumulation,
    low_precision_throughput,
    mfu,
    micro_batch,
    missing_figure,
    peak,
    precision,
    same_figures,
    scaling,
    step_spread,
    throughput,
    time_to_train,
    total_throughput,
    two_pages,
    unknown_model,
    virtual_pipeline,
    world_size,
    zero_figure,
)
from perfdb.audit.rules.base import Rule

__all__ = ["RULES"]

_MEMBERS: tuple[Rule, ...] = (
    throughput, total_throughput, time_to_train, micro_batch, gradient_accumulation, world_size,
    data_parallel, expert_parallel, virtual_pipeline, flops_per_token, flops_formula, mfu, peak,
    precision, two_pages, same_figures, missing_figure, zero_figure, faster_precision, scaling,
    step_spread, few_steps, emitted, low_precision_throughput, unknown_model,
)  # fmt: skip
RULES: dict[str, Rule] = {rule.NAME: rule for rule in _MEMBERS}
