"""What follows of a case from what is said of it: GPUs from nodes, DP and GA from the layout."""

from perfdb import catalog, metrics
from perfdb.formats.numbers import count
from perfdb.record import Case, PartialCase


def with_gpus(whole: PartialCase, num_nodes: int | None) -> PartialCase:
    """With the number of GPUs where a number of nodes is said, of a system with so many in each."""
    system = catalog.systems().get(whole.system or "")
    if whole.num_gpus or num_nodes is None or system is None or system.gpus_per_node is None:
        return whole
    return whole.model_copy(update={"num_gpus": count(num_nodes * system.gpus_per_node)})


def with_what_follows(case: Case) -> Case:
    """With DP and GA where the other fields give them; what was said of them otherwise."""
    tensor, pipeline, context = case.tensor_parallel, case.pipeline_parallel, case.context_parallel
    ranks, batch = case.data_parallel, case.local_batch_size or case.micro_batch_size
    if tensor and pipeline and context and case.num_gpus % (tensor * pipeline * context) == 0:
        ranks = metrics.data_parallel(case.num_gpus, tensor, pipeline, context)
    steps = case.gradient_accumulation
    if ranks and batch and case.global_batch_size % (batch * ranks) == 0:
        steps = metrics.gradient_accumulation(case.global_batch_size, batch, ranks)
    return case.model_copy(update={"data_parallel": ranks, "gradient_accumulation": steps})
