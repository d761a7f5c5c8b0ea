"""What a page printed of a result, by field: the one place that still asks the readers of pages."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from perfdb.site import printed

_FIELDS: Final = (
    "model_title", "precision", "num_gpus", "global_batch_size", "micro_batch_size",
    "local_batch_size", "gradient_accumulation", "sequence_length", "fsdp_size", "fsdp_enabled",
    "data_parallel", "tensor_parallel", "sequence_parallel", "pipeline_parallel",
    "context_parallel", "virtual_pipeline", "expert_parallel", "expert_tensor_parallel", "kernels",
    "tokens_per_sec_per_gpu", "model_tflops_per_sec_per_gpu", "step_time_s", "num_steps", "mfu",
    "flops_convention", "task", "variant", "tokens_per_sec", "container", "qualifiers",
)  # fmt: skip


@dataclass(frozen=True)
class _Printed:
    raw: Mapping[str, str]
    precision: str | None
    variant: str | None
    extras: Mapping[str, str]


def _of(row: Mapping[str, object]) -> _Printed:
    raw, extras = row.get("raw") or {}, row.get("extras") or {}
    assert isinstance(raw, Mapping)
    assert isinstance(extras, Mapping)
    precision, variant = row.get("precision"), row.get("variant")
    return _Printed(
        raw,
        precision if isinstance(precision, str) else None,
        variant if isinstance(variant, str) else None,
        extras,
    )


def of_row(row: Mapping[str, object]) -> dict[str, str]:
    """The text of each cell of a row of a page, by the field that is read from it."""
    own = _of(row)
    if not own.raw:
        return {}
    found = {name.removesuffix("_title"): printed.text_of((name,), own) for name in _FIELDS}
    return {name: text for name, text in found.items() if text is not None}


def extras_of_row(row: Mapping[str, object]) -> dict[str, str]:
    """The text of each column without a field, by its title."""
    own = _of(row)
    return {title: _extra(title, own) for title in own.extras}


def _extra(title: str, own: _Printed) -> str:
    text, cell = own.extras.get(title, ""), printed.cells_of(own).get(title)
    return text if cell is None or cell == own.raw[title] else cell
