"""The results in force as a table: the columns that other tools rely on, in their order."""

from sqlalchemy import Connection

from perfdb.export.base import Column, Table
from perfdb.queries import results

COLUMNS = (
    "framework", "release", "container", "system", "model", "qualifiers", "task", "precision",
    "num_gpus", "global_batch_size", "micro_batch_size", "local_batch_size",
    "gradient_accumulation", "sequence_length", "tensor_parallel", "pipeline_parallel",
    "context_parallel", "expert_parallel", "expert_tensor_parallel", "virtual_pipeline",
    "data_parallel", "fsdp_enabled", "fsdp_size", "sequence_parallel", "kernels", "step_time_s",
    "tokens_per_sec_per_gpu", "model_tflops_per_sec_per_gpu", "mfu", "flops_convention", "window",
    "num_steps", "origin", "outcome", "source", "source_line",
)  # fmt: skip
EMITTED = ("tokens_per_sec_per_gpu", "model_tflops_per_sec_per_gpu", "mfu")
"""The figures that programs print themselves, exported as `emitted_…` behind the others."""


def table(connection: Connection) -> Table:
    """One row for each result, ordered so that the same store always gives the same table."""
    question = results.current()
    columns = [question.selected_columns[name] for name in COLUMNS]
    found = connection.execute(question).mappings()
    cells = tuple(
        (*(row[name] for name in COLUMNS), *map(row["emitted"].get, EMITTED)) for row in found
    )
    known = (Column(column.name, column.type.python_type) for column in columns)
    return Table((*known, *(Column(f"emitted_{name}", float) for name in EMITTED)), cells)
