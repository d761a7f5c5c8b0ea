"""PyTorch benchmark records: one for each figure, in the fields of the database's version 3."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from perfdb.export import pytorch
from perfdb.export.formats import Table
from perfdb.export.results import COLUMNS as NAMES
from perfdb.export.results import columns
from perfdb.metrics import METRICS

FINISHED = {
    "framework": "megatron-core", "release": "0.16.1", "container": "nvcr.io/nvidia/nemo:26.04",
    "system": "dgx-h100", "model": "llama3-8b", "qualifiers": "dropless", "task": "pretrain",
    "precision": "fp8_cs", "num_gpus": 8, "global_batch_size": 128, "sequence_length": 8192,
    "fsdp_enabled": True, "kernels": "", "options": '{"recompute_granularity": "full"}',
    "step_time_s": 12.15, "tokens_per_sec_per_gpu": 10787.5, "window": "skip_warmup(2)",
    "num_steps": 8, "origin": "measured", "outcome": "finished", "source": "runs/a/steps.jsonl",
    "emitted_tokens_per_sec_per_gpu": 10000.0,
}  # fmt: skip
FAILED = {"framework": "nemo", "system": "cpu", "model": "tiny", "num_gpus": 1}

EXPECTED = """
{"benchmark": {"name": "perfdb", "mode": "training", "dtype": "fp8_cs", "extra_info": {
    "device": "dgx-h100", "framework": "megatron-core", "release": "0.16.1",
    "container": "nvcr.io/nvidia/nemo:26.04", "qualifiers": "dropless", "task": "pretrain",
    "num_gpus": "8", "global_batch_size": "128", "sequence_length": "8192",
    "fsdp_enabled": "true", "options": "{\\"recompute_granularity\\": \\"full\\"}"}},
 "model": {"name": "llama3-8b"},
 "metric": {"name": "tokens_per_sec_per_gpu", "benchmark_values": [10787.5], "extra_info": {
    "origin": "measured", "outcome": "finished", "window": "skip_warmup(2)", "num_steps": "8",
    "source": "runs/a/steps.jsonl", "emitted": "10000.0"}}}
"""


KINDS = {column.name: column.kind for column in columns()}


def rendered(*rows: dict[str, Any]) -> list[dict[str, Any]]:
    """The records of rows that know only these cells."""
    table = Table(columns(), tuple(tuple(row.get(name) for name in NAMES) for row in rows))
    return list(json.loads(pytorch.render(table)))


def test_each_figure_has_a_record_with_all_that_is_known() -> None:
    """Two figures, two records; texts in every extra_info, a number in benchmark_values alone."""
    step_time, tokens = rendered(FINISHED)
    assert json.loads(EXPECTED) == tokens
    of_time = step_time["metric"]
    assert ("step_time_s", [12.15]) == (of_time["name"], of_time["benchmark_values"])
    assert "emitted" not in of_time["extra_info"]


def test_the_step_time_has_its_spread_and_memory_a_record() -> None:
    """A spread is of the step time, and of no other figure."""
    spread = {"step_time_mean_s": 12.25, "step_time_stdev_s": 0.5}
    step_time, tokens, memory = rendered(FINISHED | spread | {"peak_memory_bytes": 64 * 2**30})
    said = {"step_time_mean_s": "12.25", "step_time_stdev_s": "0.5"}
    assert said.items() <= step_time["metric"]["extra_info"].items()
    assert json.loads(EXPECTED) == tokens
    of_memory = memory["metric"]
    assert ("peak_memory_bytes", [68_719_476_736]) == (
        of_memory["name"], of_memory["benchmark_values"],
    )  # fmt: skip
    assert not spread.keys() & of_memory["extra_info"].keys()


def test_what_a_page_says_of_a_figure_stands_with_it_and_what_is_computed_nowhere() -> None:
    """The variant is of the workload."""
    said = {"notes": "Mock data.", "source_url": "https://a.b", "published_on": "2025-04-30"}
    (record,) = rendered(
        FAILED | said | {"mfu": 0.5, "variant": "x", "computed_tokens_per_sec_per_gpu": 1.5}
    )
    assert said == record["metric"]["extra_info"]
    assert {"device": "cpu", "framework": "nemo", "num_gpus": "1", "variant": "x"} == (
        record["benchmark"]["extra_info"]
    )


def test_what_is_not_known_is_absent() -> None:
    """No figure, no record; no release, no precision: no field that says nothing."""
    assert [] == rendered(FAILED)
    (record,) = rendered(FAILED | {"mfu": 0.5})
    info = {"device": "cpu", "framework": "nemo", "num_gpus": "1"}
    assert {
        "benchmark": {"name": "perfdb", "mode": "training", "extra_info": info},
        "model": {"name": "tiny"},
        "metric": {"name": "mfu", "benchmark_values": [0.5]},
    } == record


SCHEMA: dict[str, dict[str, type]] = {
    "benchmark": {"name": str, "mode": str, "dtype": str, "extra_info": dict},
    "model": {"name": str, "type": str, "origins": list},
    "metric": {
        "name": str, "benchmark_values": list, "target_value": float, "extra_info": dict,
    },
}  # fmt: skip
"""The tuples of oss_ci_benchmark_v3 that torchao 0.18.0 and vLLM 0.33.0 fill in, too."""

figures = st.none() | st.floats(min_value=1e-3, max_value=1e6)
words = st.none() | st.text(max_size=8)


def cells(name: str) -> st.SearchStrategy[object]:
    choices: dict[type, st.SearchStrategy[object]] = {
        bool: st.none() | st.booleans(),
        str: words,
        float: figures,
        int: st.none() | st.integers(1, 4096),
    }
    required = name in ("framework", "system", "model")
    return st.text(min_size=1, max_size=8) if required else choices[KINDS[name]]


def fits(found: dict[str, Any], fields: dict[str, type]) -> bool:
    texts = found.get("extra_info", {}).items()
    known = all(isinstance(value, fields[name]) for name, value in found.items())
    return known and all(isinstance(word, str) for pair in texts for word in pair)


@given(st.fixed_dictionaries({name: cells(name) for name in NAMES}))
def test_every_record_is_of_the_documented_schema(row: dict[str, Any]) -> None:
    """Only its fields, each of its type, for any row; and no figure is lost."""
    records = rendered(row)
    known = {name: row[name] for name in METRICS if row[name] is not None}
    assert known == {
        record["metric"]["name"]: record["metric"]["benchmark_values"][0] for record in records
    }
    for record in records:
        assert set(SCHEMA) == set(record)
        assert all(fits(record[name], fields) for name, fields in SCHEMA.items())
