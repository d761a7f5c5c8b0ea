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


LORA = {"submission_benchmark": "llama2_70b_lora"}
CLOSED = {"submission_division": "closed"}


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        # Nodes where the system has one size of them: not boards of another, nor anything else.
        ({"submission_platform": "64xDGX-H100"}, {"num_nodes": 64, "system": "dgx-h100"}),
        ({"submission_platform": "1xNVIDIA HGX B200"}, {"num_nodes": 1, "system": "dgx-b200"}),
        ({"submission_platform": "NVIDIA DGX H100"}, {"system": "dgx-h100"}),
        ({"submission_platform": "1xXE9640x4H100-SXM5-80GB"}, {}),
        ({"submission_platform": "2xNVIDIA GB200 NVL72"}, {"system": "dgx-gb200"}),
        # The model and the task by the rules of a benchmark, and the length in the closed division.
        ({"submission_benchmark": "llama31_405b"}, {"model": "llama3.1-405b", "task": "pretrain"}),
        ({"submission_benchmark": "bert"}, {"model": "bert"}),
        (LORA, {"model": "llama2-70b", "task": "lora"}),
        (LORA | CLOSED, {"model": "llama2-70b", "task": "lora", "sequence_length": 8192}),
        (LORA | CLOSED | {"max_sequence_length": 4096},
         {"model": "llama2-70b", "task": "lora", "sequence_length": 4096}),
        ({"submission_benchmark": "gpt3"} | CLOSED, {"model": "gpt3", "task": "pretrain"}),
    ],
)  # fmt: skip
def test_a_submission_says_what_was_run(
    said: dict[str, object], expected: dict[str, object]
) -> None:
    events = (json.dumps({"key": key, "value": value}) for key, value in said.items())
    text = "".join(f":::MLLOG {event}\n" for event in events)
    [log] = mlperf.FORMAT.parse("log", [text.encode()])
    nodes = {"num_nodes": log.num_nodes} if log.num_nodes else {}
    assert expected == nodes | log.configuration.model_dump(exclude_unset=True)
    by_rules = expected.get("sequence_length") == 8192
    assert by_rules == any("benchmark's rules" in note.message for note in log.notes)


def run_of(*events: tuple[str, object, dict[str, object]], stop_ms: int = 91_500) -> str:
    """A successful run of 48 samples in batches of 8, which starts at 1,500 ms."""
    made = [
        (0, "global_batch_size", 8, {}),
        (1_500, "run_start", None, {}),
        *((2_000, *event) for event in events),
        (stop_ms, "run_stop", None, {"status": "success", "samples_count": 48}),
    ]
    return "\n".join(
        ":::MLLOG " + json.dumps({"time_ms": time, "key": key, "value": value, "metadata": data})
        for time, key, value, data in made
    )


BLOCK: tuple[str, object, dict[str, object]] = (
    "tracked_stats", {"train_step_time": 3.0, "throughput": 8 / 3}, {"step": 0},
)  # fmt: skip


@pytest.mark.parametrize("name", ["train_step_time", "train_step_timing in s"])
def test_the_times_of_steps_are_not_mixed_with_those_of_blocks(name: str) -> None:
    """(2 + 3 + 2.5) / 3; the block's 3 s and the time to train are beside it."""
    steps: list[tuple[str, object, dict[str, object]]] = [
        ("tracked_stats", {name: time, "reduced_train_loss": 7.5}, {"step": 8.0 * after})
        for after, time in enumerate((2.0, 3.0, 2.5), start=1)
    ]
    [log] = mlperf.FORMAT.parse("log", [run_of(*steps, BLOCK).encode()])
    assert (2.5, "finished") == (log.emitted.step_time_s, log.outcome)
    assert {"block_step_time_s": "3.0", "time_to_train_s": "90.0"} == log.extras
    assert (
        "the step time is the mean over 3 logged steps; block_step_time_s is the mean over 1 block "
        "of training, by their samples"
    ) == log.notes[0].message


def test_a_block_with_its_throughput_alone_has_the_time_of_a_batch() -> None:
    """Batches of 8 samples at 4 samples/s."""
    text = run_of(("tracked_stats", {"throughput": 4.0}, {"step": 0}))
    [log] = mlperf.FORMAT.parse("log", [text.encode()])
    assert 2 == log.emitted.step_time_s
    assert "1 block of training (batch ÷ throughput)" in log.notes[0].message


def test_a_log_with_its_time_to_train_alone_sums_a_run_up() -> None:
    [log] = mlperf.FORMAT.parse("log", [run_of().encode()])
    assert ("finished", {"time_to_train_s": "90.0"}) == (log.outcome, log.extras)
    assert log.is_summary
    assert log.emitted.step_time_s is None
