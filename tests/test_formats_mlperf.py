"""MLPerf's events: those that its own parser reads, and those of damaged logs."""

import json
from pathlib import Path

import pytest

from perfdb.errors import Diagnostic
from perfdb.formats import mlperf

LOG = (
    Path(__file__).parents[2]
    / "shared" / "corpus" / "mlperf_v5.0_nyx_n1_ngc25.04_nemo_llama2_70b_lora.txt"
)  # fmt: skip


def logged(key: str, **metadata: object) -> str:
    """An event as mlperf_logging writes it."""
    event = {"time_ms": 1, "event_type": "POINT_IN_TIME", "key": key, "value": 7}
    return ":::MLLOG " + json.dumps(event | {"metadata": metadata})


def read(content: bytes) -> tuple[list[mlperf.Event], list[Diagnostic]]:
    """The events of a log, and what is none."""
    problems: list[Diagnostic] = []
    return [*mlperf.events("log", [content], problems)], problems


@pytest.mark.skipif(not LOG.is_file(), reason="the corpus is not beside the project")
def test_the_events_are_those_of_mlperf_loggings_own_parser() -> None:
    """Every key, value and metadata of a public result, in order."""
    theirs = pytest.importorskip("mlperf_logging.compliance_checker.mlp_parser")
    expected, failed = theirs.parse_file(str(LOG), ruleset="5.0.0")

    events, problems = read(LOG.read_bytes())

    assert ([], []) == (failed, problems)
    assert 99 == len(expected)
    assert [(one.key, one.value) for one in expected] == [
        (event.key, {"value": event.value, "metadata": event.metadata}) for event in events
    ]


def test_events_that_share_a_line_or_follow_a_prefix_are_all_read() -> None:
    """Ranks that print at once, and a launcher that names the rank."""
    text = f"0: {logged('a')}{logged('b')} more\r{logged('c')}\nnone\n1: {logged('d', step=3)}\n"

    events, problems = read(text.encode())

    assert [] == problems
    assert [("a", 1), ("b", 1), ("c", 1), ("d", 3)] == [(one.key, one.line) for one in events]
    assert {"step": 3} == events[-1].metadata


def test_what_is_no_event_is_named_with_its_line_and_the_rest_is_read() -> None:
    """A line cut off, an event without a key, a list, and JSON deeper than any stack."""
    lines = [
        logged("a")[:40],
        ':::MLLOG {"value": 1}',
        ":::MLLOG [1]",
        ":::MLLOG {" + '"a":{' * 10**5,
    ]

    events, problems = read("\n".join([*lines, logged("b")]).encode())

    assert ["b"] == [event.key for event in events]
    assert [
        (1, "an event that is not JSON"),
        (2, "an event without a 'key'"),
        (3, "an event that is not JSON"),
        (4, "an event that is not JSON"),
    ] == [(one.line, one.message) for one in problems]


@pytest.mark.parametrize(
    ("platform", "num_nodes"),
    [
        ("1xNVIDIA HGX B200", 1),
        ("64xDGX-H100", 64),
        ("8xNVIDIA DGX_H200", 8),
        ("NVIDIA DGX H100", None),
        # Boards of another size, or a number of something else than nodes.
        ("1xXE9640x4H100-SXM5-80GB", None),
        ("2xNVIDIA GB200 NVL72", None),
        ("1xNVIDIA HGX H100 (4x H100-SXM-80GB)", None),
    ],
)
def test_a_platform_says_its_nodes_where_the_system_has_one_size_of_them(
    platform: str, num_nodes: int | None
) -> None:
    event = {"key": "submission_platform", "value": platform}
    [log] = mlperf.FORMAT.parse("log", [f":::MLLOG {json.dumps(event)}\n".encode()])
    assert num_nodes == log.num_nodes


@pytest.mark.parametrize(
    ("benchmark", "expected"),
    [
        ("llama31_405b", ("llama3.1-405b", "pretrain")),
        ("gpt3", ("gpt3", "pretrain")),
        ("llama2_70b_lora", ("llama2-70b", "lora")),
        ("bert", ("bert", None)),
    ],
)
def test_a_benchmark_is_of_a_model_and_of_the_task_of_its_rules(
    benchmark: str, expected: tuple[str, str | None]
) -> None:
    event = json.dumps({"key": "submission_benchmark", "value": benchmark})
    [log] = mlperf.FORMAT.parse("log", [f":::MLLOG {event}\n".encode()])
    assert expected == (log.configuration.model, log.configuration.task)


@pytest.mark.parametrize(
    ("said", "length"),
    [
        ({"submission_benchmark": "llama2_70b_lora", "submission_division": "closed"}, 8192),
        ({"submission_benchmark": "llama2_70b_lora", "submission_division": "open"}, None),
        ({"submission_benchmark": "llama2_70b_lora"}, None),
        ({"submission_benchmark": "gpt3", "submission_division": "closed"}, None),
        (
            {
                "submission_benchmark": "llama2_70b_lora",
                "submission_division": "closed",
                "max_sequence_length": 4096,
            },
            4096,
        ),
    ],
)
def test_a_sequence_length_that_no_event_says_is_that_of_the_closed_divisions_rules(
    said: dict[str, object], length: int | None
) -> None:
    events = (json.dumps({"key": key, "value": value}) for key, value in said.items())
    text = "".join(f":::MLLOG {event}\n" for event in events)
    [log] = mlperf.FORMAT.parse("log", [text.encode()])
    assert length == log.configuration.sequence_length
    assert (length == 8192) == any("benchmark's rules" in note.message for note in log.notes)
