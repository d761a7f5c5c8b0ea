"""Records of the PyTorch benchmark database, version 3: a list with an object for each metric.

What is not known is left out: a result without figures has no record. What has no field there is in
an `extra_info` of texts; the program that uploads adds when and where. Only fields
that other programs write, too: torchao 0.18.0 (_models/utils.py, write_json_result_ossci) and vLLM
0.33.0 (benchmarks/lib/utils.py, convert_to_pytorch_benchmark_format). The framework, its release
and its container are therefore in the `extra_info` of the benchmark: neither program writes the
database's `dependencies`, nor the `backend` or `extra_info` of a model.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Final

from perfdb.export.formats import Cell, Table, text
from perfdb.metrics import METRICS

_SPREAD: Final = (
    "step_time_mean_s", "step_time_stdev_s", "step_time_p10_s", "step_time_p90_s",
)  # fmt: skip
_OF_METRIC: Final = (
    "origin", "outcome", "withheld", "window", "num_steps", "flops_convention", "tokens_per_sec",
    "notes", "run_id", "source", "source_line", "source_url", "published_on",
)  # fmt: skip
_NOT_OF_WORKLOAD: Final = {*METRICS, *_SPREAD, *_OF_METRIC, "system", "model", "precision"}

Row = Mapping[str, Cell]


def render(table: Table) -> bytes:
    """A record for each figure of each row."""
    rows = [dict(zip(table.names, row, strict=True)) for row in table.rows]
    records = [
        _record(row, metric) for row in rows for metric in METRICS if row[metric] is not None
    ]
    return (json.dumps(records, indent=1, ensure_ascii=False) + "\n").encode()


def _record(row: Row, metric: str) -> dict[str, object]:
    printed = row.get(f"emitted_{metric}")
    spread = _SPREAD if metric == "step_time_s" else ()
    workload = (
        name
        for name in row
        if name not in _NOT_OF_WORKLOAD and not name.startswith(("emitted_", "computed_"))
    )
    return {
        "benchmark": _known(
            name="perfdb",
            mode="training",
            dtype=row["precision"],
            extra_info={"device": text(row["system"])} | _texts(row, workload),
        ),
        "model": {"name": row["model"]},
        "metric": _known(
            name=metric,
            benchmark_values=[row[metric]],
            extra_info=_texts(row, (*spread, *_OF_METRIC))
            | ({} if printed is None else {"emitted": text(printed)}),
        ),
    }


def _texts(row: Row, names: Iterable[str]) -> dict[str, str]:
    return {name: text(row[name]) for name in names if row[name] not in (None, "")}


def _known(**fields: object) -> dict[str, object]:
    return {name: value for name, value in fields.items() if value not in (None, "", {})}
