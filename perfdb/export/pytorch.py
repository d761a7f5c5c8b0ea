"""Records of the PyTorch benchmark database, version 3: a list with an object for each metric.

What is not known is left out: a result without figures has no record. Whatever has no field there
stands in an `extra_info`, whose values are texts; the program that uploads adds when and where.
Only fields that other programs write, too: torchao 0.18.0 (_models/utils.py,
write_json_result_ossci) and vLLM 0.33.0 (benchmarks/lib/utils.py,
convert_to_pytorch_benchmark_format). The framework, its release and its container are therefore
in the `extra_info` of the benchmark: neither program writes the database's `dependencies`, nor the
`backend` or `extra_info` of a model.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from perfdb.export.base import Cell, Table, text
from perfdb.metrics import METRICS

NAME = "pytorch"

_SPREAD: Final = (
    "step_time_mean_s", "step_time_stdev_s", "step_time_p10_s", "step_time_p90_s",
)  # fmt: skip
_OF_METRIC: Final = (
    "origin", "outcome", "withheld", "window", "num_steps", "flops_convention", "tokens_per_sec",
    "notes", "run_id", "source", "source_line", "source_url", "published_on",
)  # fmt: skip
_IN_FIELDS: Final = ("system", "model", "precision")

Row = Mapping[str, Cell]


def render(table: Table) -> bytes:
    """A record for each figure of each row."""
    rows = (dict(zip(table.names, row, strict=True)) for row in table.rows)
    records = [record for row in rows for record in _records(row)]
    return (json.dumps(records, indent=1, ensure_ascii=False) + "\n").encode()


def _records(row: Row) -> Iterator[dict[str, object]]:
    for metric in METRICS:
        if row[metric] is not None:
            yield {
                "benchmark": _benchmark(row),
                "model": {"name": row["model"]},
                "metric": _known(
                    name=metric,
                    benchmark_values=[row[metric]],
                    extra_info=_texts(row, _of(metric)) | _emitted(row, metric),
                ),
            }


def _benchmark(row: Row) -> dict[str, object]:
    beside = (name for name in row if name.startswith(("emitted_", "computed_")))
    elsewhere = {*METRICS, *_SPREAD, *_OF_METRIC, *_IN_FIELDS, *beside}
    workload = _texts(row, [name for name in row if name not in elsewhere])
    return _known(
        name="perfdb",
        mode="training",
        dtype=row["precision"],
        extra_info={"device": text(row["system"])} | workload,
    )


def _of(metric: str) -> tuple[str, ...]:
    """The columns that speak of a figure: of the step time also its spread."""
    return (*_SPREAD, *_OF_METRIC) if metric == "step_time_s" else _OF_METRIC


def _emitted(row: Row, metric: str) -> dict[str, str]:
    """What the program printed itself."""
    printed = row.get(f"emitted_{metric}")
    return {"emitted": text(printed)} if printed is not None else {}


def _texts(row: Row, names: Iterable[str]) -> dict[str, str]:
    return {name: text(row[name]) for name in names if row[name] not in (None, "")}


def _known(**fields: object) -> dict[str, object]:
    """The fields that say something."""
    return {name: value for name, value in fields.items() if value not in (None, "", {})}
