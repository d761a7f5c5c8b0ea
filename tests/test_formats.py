"""Every log format: what it reads, what it refuses and why, and that it leaves others' files be."""

import math
import re
from pathlib import Path

import numpy as np
import pytest
import yaml

from perfdb import aggregation, formats
from perfdb.errors import InputError
from perfdb.formats import AVERAGES, FORMATS, ParsedLog, Reading, piecewise
from perfdb.formats.ending import Account, training_log
from perfdb.formats.spans import interval_note, spans
from perfdb.formats.steps import Settled, settle
from perfdb.record import Case, PartialCase
from tests.logs import titan

DATA = Path(__file__).parent / "data" / "formats"
GOLDEN = {"good": ".yml", "bad": ".txt"}


def files(kind: str) -> list[Path]:
    """The files of a kind; beside each stands its golden file, with one more suffix."""
    everything = set(DATA.glob(f"*/{kind}/*"))
    return sorted(path for path in everything if not golden(path) & everything)


def golden(path: Path) -> set[Path]:
    """The file whose golden file this one would be."""
    suffix = GOLDEN[path.parent.name]
    return {path.with_suffix("")} if path.suffix == suffix else set()


def parsed(path: Path) -> tuple[ParsedLog, ...]:
    return FORMATS[path.parents[1].name].parse(path.name, [path.read_bytes()])


def plain(value: object) -> object:
    """Numbers to nine figures, as golden files hold them; NaN as a word, which equals itself."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else float(f"{value:.9g}")
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, list | tuple) else value


def said(log: ParsedLog) -> object:
    """All that a log says, without what it does not say."""
    fields = {
        "configuration": log.configuration.model_dump(mode="json", exclude_unset=True),
        "framework_version": log.framework_version,
        "container": log.container,
        "environment": dict(log.environment),
        "gpu_memory_bytes": log.gpu_memory_bytes,
        "num_nodes": log.num_nodes,
        "planned_steps": log.planned_steps,
        "emitted": log.emitted.model_dump(exclude_none=True),
        "emitted_line": log.emitted_line,
        "peak_memory_bytes": log.peak_memory_bytes,
        "extras": dict(log.extras),
        "window": log.window,
        "outcome": log.outcome and log.outcome.value,
        "error": log.error,
        "steps": [
            {name: value for name, value in reading._asdict().items() if value not in (None, False)}
            for reading in log.readings
        ],
        "problems": [str(problem) for problem in log.problems],
        "notes": [str(note) for note in log.notes],
    }
    return plain({name: value for name, value in fields.items() if value not in (None, [], {})})


def name_of(path: Path) -> str:
    return "/".join(path.parts[-3:])


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_has_three_good_files_and_three_bad_ones(name: str) -> None:
    assert len([path for path in files("good") if path.parents[1].name == name]) >= 3
    assert len([path for path in files("bad") if path.parents[1].name == name]) >= 3


def test_every_golden_file_has_the_file_it_was_written_for() -> None:
    known = {path for kind in GOLDEN for path in files(kind)}
    expected = known | {path.with_name(path.name + GOLDEN[path.parent.name]) for path in known}
    assert expected == {path for kind in GOLDEN for path in DATA.glob(f"*/{kind}/*")}


@pytest.mark.parametrize("path", files("good"), ids=name_of)
def test_a_format_reads_its_files(path: Path) -> None:
    expected = yaml.safe_load(path.with_name(f"{path.name}.yml").read_text())
    assert expected == [said(log) for log in parsed(path)]


@pytest.mark.parametrize("path", files("bad"), ids=name_of)
def test_a_format_says_what_is_wrong_with_a_file(path: Path) -> None:
    expected = path.with_name(f"{path.name}.txt").read_text().splitlines()
    told = [
        line
        for log in parsed(path)
        for line in (f"{log.outcome}: {log.error}", *map(str, log.problems))
    ]
    assert expected == told


@pytest.mark.parametrize("path", [*files("good"), *files("bad")], ids=name_of)
def test_only_its_own_format_recognises_a_file(path: Path) -> None:
    head = path.read_bytes()
    found = [name for name, one in FORMATS.items() if one.recognises(head, path.name)]
    assert [path.parents[1].name] == found


def test_a_name_is_looked_up_with_a_suggestion() -> None:
    assert formats.named("nemo2") is FORMATS["nemo2"]
    with pytest.raises(InputError, match=r"no format 'nemo'; did you mean nemo[12]"):
        formats.named("nemo")


def test_nothing_recognises_a_file_of_another_kind() -> None:
    assert formats.recognised(b"# Performance\n\n| Model | GPUs |\n", "page.md") is None


def test_a_configuration_has_every_field_of_a_case_and_needs_none() -> None:
    assert set(Case.model_fields) == set(PartialCase.model_fields)
    assert {} == PartialCase().model_dump(exclude_unset=True)


def test_a_configuration_is_completed_by_what_it_does_not_say() -> None:
    log = PartialCase(framework="nemo", virtual_pipeline=None)
    beside = PartialCase(framework="other", virtual_pipeline=4, num_gpus=8)
    expected = {"framework": "nemo", "virtual_pipeline": None, "num_gpus": 8}
    assert expected == log.completed_by(beside).model_dump(exclude_unset=True)


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([1, 2, 3, 4], [1, 1, 1, 1]),
        ([25, 50], [25, 25]),
        ([1, 25, 50, 75], [1, 24, 25, 25]),
        ([1, 10], [1, 9]),
        ([10, 20, 40, 50], [10, 10, 10, 10]),  # the line of step 30 is lost
        ([1, 2, 3, 5, 6], [1, 1, 1, 1, 1]),
        ([1010, 1020, 1030], [10, 10, 10]),  # goes on from a checkpoint
        # The interval is another since a restart; of lines that are lost the gaps are uneven.
        ([1, 2, 3, 4, 5, 6, 16, 26, 36, 46, 56], [1] * 6 + [10] * 5),
        ([10, 20, 30, 40, 50, 60, 70, 170, 270, 370, 470, 570], [10] * 7 + [100] * 5),
        ([1, 2, 3, 4, 5, 6, 16, 26, 36, 46, 47, 57], [1] * 12),
        ([50], [1]),  # no other line tells of how many
        ([1], [1]),
        ([], []),
    ],
)
def test_a_line_stands_for_the_steps_since_the_one_before(
    steps: list[int], expected: list[int]
) -> None:
    assert expected == spans(np.array(steps, np.int64)).tolist()


@pytest.mark.parametrize("first", [1, 40, 60, 63])
def test_an_interval_that_changes_is_told_wherever_pieces_part(
    monkeypatch: pytest.MonkeyPatch, first: int
) -> None:
    steps = np.array([*range(1, first + 1), *range(first + 10, 900, 10)], np.int64)
    expected = spans(steps).tolist()
    monkeypatch.setattr(piecewise, "AT_ONCE", 8)
    assert expected == spans(steps).tolist()


@pytest.mark.parametrize("until", [60, 20])
def test_a_note_says_that_the_interval_changes(until: int) -> None:
    numbers = [*range(1, until + 1), *range(until + 10, 350, 10)]
    [note] = interval_note("a.log", [Reading(step, step, 1.0) for step in numbers])
    assert "the log interval changes: each time is the mean of 1 to 10 steps" == note.message


def test_formats_of_means_are_formats() -> None:
    assert {"megatron_lm", "torchtitan"} < AVERAGES < set(FORMATS)


NO_MEANS = {
    "nemo1", "automodel_benchmark", "automodel_console", "automodel_summary", "automodel_training",
    "megatron_golden", "megatron_bridge_golden", "megatron_config", "llmb_config",
    "verification_card", "mlperf",
}  # fmt: skip
"""Formats that print the time of single steps, or of none."""


REFERENCE = (Path(__file__).parents[1] / "docs" / "reference" / "formats.md").read_text()


def test_of_each_format_it_is_known_whether_a_time_is_the_mean_of_several_steps() -> None:
    """Where it is, the format is in AVERAGES, else here; a program says it in its own code."""
    assert AVERAGES ^ NO_MEANS == set(FORMATS)


def test_the_reference_has_a_row_for_each_format_in_their_order() -> None:
    [_, *rows] = re.findall(r"^\| `?(\w+)`? \| .* \| .* \| .* \|$", REFERENCE, re.MULTILINE)
    assert list(FORMATS) == rows


def test_the_reference_names_the_formats_of_means() -> None:
    [said] = re.findall(r"^In (.+) logs a line stands for the steps since", REFERENCE, re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", said)) == AVERAGES


def attempts(*ranges: tuple[int, int], window: str = "skip_warmup(10)") -> ParsedLog:
    """A log of attempts, each of the steps from its first to its last."""
    numbers = [step for first, last in ranges for step in range(first, last + 1)]
    printed = [Reading(line, step, 1.0 + line) for line, step in enumerate(numbers, start=1)]
    account = Account(planned=60)
    return training_log(PartialCase(), settle("a.log", printed), account, window)


@pytest.mark.parametrize(
    ("ranges", "window", "restarted_at"),
    [
        ([(1, 60)], "skip_warmup(10)", None),
        ([(1, 25), (21, 60)], "skip_warmup(30)", 21),
        ([(1, 25), (21, 45), (41, 60)], "skip_warmup(50)", 41),
        ([(1, 55), (51, 60)], "window(11,50)", 51),  # too short: its warm-up is all there is
        ([(1, 15), (11, 20)], "skip_warmup(20)", 11),  # and so it is of the steps before
        ([(21, 45), (41, 70)], "skip_warmup(30)", 41),  # counted from step 21: from 51 on
        ([(21, 45), (41, 50)], "window(31,40)", 41),
        ([(1, 25), (1, 60)], "skip_warmup(10)", None),  # nothing of the first attempt is kept
        ([(11, 25), (1, 60)], "skip_warmup(10)", None),
        ([(1, 60), (1, 25)], "skip_warmup(10)", None),  # another run
        ([(1, 60), (1, 25), (21, 40)], "skip_warmup(30)", 21),
        ([(1, 25), (25, 60)], "skip_warmup(34)", 25),  # at the step that was printed last
        ([(1, 30), (25, 45), (41, 48)], "window(35,40)", 41),  # of the second, warmed up
        ([(1, 30), (21, 25), (23, 32)], "window(11,20)", 23),  # of the first: the second is short
        ([(1, 30), (25, 28), (21, 30)], "window(11,20)", 21),  # nothing of the second is kept
    ],
)
def test_a_window_follows_the_warm_up_of_the_last_attempt(
    ranges: list[tuple[int, int]], window: str, restarted_at: int | None
) -> None:
    log = attempts(*ranges)
    assert (window, restarted_at) == (log.window, log.restarted_at)
    assert ranges[-1][1] == log.readings[-1].step


LOADED = {
    "megatron_lm": (
        "---- arguments ----\n",
        "  successfully loaded checkpoint from /a [ t 1/1, p 1/1 ] at iteration {0}\n",
        " iteration {0}/ 80 | consumed samples: 12 | elapsed time per iteration (ms): {1} | "
        "global batch size: 64 | lm loss: 1.5 | number of nan iterations: 0 |\n",
    ),
    "torchtitan": (
        "[titan] Building 0-D device mesh with [], []\n[titan] Trainer is initialized with local "
        "batch size 8, global batch size 64, sequence length 512, total steps 80 \n",
        "[titan] Training starts at step {1}.\n",
        "[titan] step: {0:2}  loss:  8.0000  memory:  1.50GiB(3.16%)  tps: {1}  mfu: 1.00%\n",
    ),
}
"""What programs print when they begin, when they go on from a checkpoint, and of a step."""


@pytest.mark.parametrize(
    ("before", "behind", "loaded", "expected"),
    [
        ((10, 70), (50, 80), None, ("skip_warmup(59)", 50, 41)),
        ((10, 70), (50, 80), 40, ("skip_warmup(50)", 41, None)),
        ((10, 70), (50, 80), 45, ("skip_warmup(55)", 46, None)),
        ((10, 70), (50, 80), 49, ("skip_warmup(59)", 50, None)),
        # None of these leads to the line of step 50.
        ((10, 70), (50, 80), 39, ("skip_warmup(59)", 50, 41)),
        ((10, 70), (50, 80), 50, ("skip_warmup(59)", 50, 41)),
        # It goes on behind step 50, with any step up to 60.
        ((10, 50), (60, 80), None, ("skip_warmup(69)", 60, 51)),
        ((10, 50), (60, 80), 55, ("skip_warmup(65)", 56, None)),
        # It is too short: the window is of the first, as far as no step is of the second.
        ((10, 50), (40, 50), None, ("window(11,39)", 40, 31)),
        ((10, 50), (40, 50), 35, ("window(11,35)", 36, None)),
        # A run that is resumed where its log begins.
        ((0, 0), (30, 80), 25, ("skip_warmup(15)", None, None)),
        ((0, 0), (30, 80), None, ("skip_warmup(10)", None, None)),
    ],
)
@pytest.mark.parametrize("name", LOADED)
def test_the_warm_up_of_an_attempt_counts_from_the_step_that_it_began_with(
    before: tuple[int, int],
    behind: tuple[int, int],
    loaded: int | None,
    expected: tuple[str, int | None, int | None],
    name: str,
) -> None:
    """Lines of ten steps each; a checkpoint may lie between them."""
    start, told, step = LOADED[name]
    first, last = ([*range(one, end + 1, 10)] for one, end in (before, behind))
    text = start + "".join(step.format(one, 900 + one) for one in first if one)
    text += start + (told.format(loaded, loaded + 1) if loaded else "")
    text += "".join(step.format(one, 800 + one) for one in last)
    [log] = FORMATS[name].parse("a.log", [text.encode()])
    assert expected == (log.window, log.restarted_at, log.restarted_from)


def printed_at(*places: tuple[int, int]) -> Settled:
    """Steps at lines, each of another time."""
    return settle("a.log", [Reading(line, step, 1.0 + line) for line, step in places])


def test_an_attempt_may_begin_with_the_step_that_the_one_before_printed_last() -> None:
    """Lines of ten steps each, preempted at 25 and 35; each start prints 12 lines."""
    steps = printed_at((13, 10), (14, 20), (27, 20), (28, 30), (41, 30), (42, 40), (43, 50))
    assert (20, 30) == steps.restarts
    log = training_log(PartialCase(), steps, Account(planned=50), "skip_warmup(10)")
    assert "skip_warmup(39)" == log.window


@pytest.mark.parametrize("apart", [1, 3])
@pytest.mark.parametrize("every", [2, 3, 12])
def test_a_step_that_another_rank_or_a_bar_prints_again_is_no_restart(
    every: int, apart: int
) -> None:
    """Of the other rank's lines only some can be read; steps are `apart` lines apart."""
    ranks = [(step * 9 * apart, step) for step in range(1, 61)]
    again = [(line + apart, step) for line, step in ranks if step % every == 0]
    assert () == printed_at(*sorted(ranks + again)).restarts


def test_steps_that_are_often_printed_twice_with_nothing_between_are_of_ranks() -> None:
    """Two ranks; each third line of one of them cannot be read."""
    numbers = [step for step in range(1, 61) for _ in range(2 if step % 3 else 1)]
    assert () == printed_at(*enumerate(numbers, start=1)).restarts


def test_ranks_that_print_one_behind_the_other_are_no_restart() -> None:
    """The second is a line late once: 29, 30, 31, 30, 31, 32, 32 …"""
    ranks = [(step, step) for step in range(1, 60) for _ in range(2)]
    ranks[60:63] = [ranks[62], ranks[60], ranks[61]]
    log = attempts(*ranks)
    assert (59, "skip_warmup(10)", None) == (len(log.readings), log.window, log.restarted_at)


def test_a_restart_of_which_no_step_has_a_time_changes_no_window() -> None:
    """It goes back to step 45, at rates by which a step would take eighty years."""
    once = titan(4096, 46, 16.0)
    *_, step_45, step_46 = once.splitlines(keepends=True)
    again = re.sub(r"tps: \d+", "tps: 0.0001", step_45 + step_46)
    [log] = FORMATS["torchtitan"].parse("a.log", [(once + again).encode()])
    assert (44, "skip_warmup(10)") == (len(log.readings), log.window)


def test_a_restart_at_a_step_of_many_digits_has_a_window() -> None:
    log = attempts((1, 25), (10**18, 10**18 + 25), (10**18 + 21, 10**18 + 40))
    assert log.window == f"skip_warmup({10**18 + 30})" == aggregation.named(str(log.window)).name


@pytest.mark.parametrize("numbers", [[*range(60, 0, -1)], [*range(90, 40, -1), *range(60, 0, -1)]])
def test_a_log_whose_newest_line_stands_first_is_refused(numbers: list[int]) -> None:
    """As collectors export them: of two attempts the steps of the abandoned one would be kept."""
    found = settle(
        "a.log", [Reading(line, step, 1.0) for line, step in enumerate(numbers, start=1)]
    )
    assert ((), ()) == (tuple(found.readings), tuple(found.restarts))
    assert (
        "a.log:1: its steps go backwards: the newest line stands first; turn it around: "
        "tac FILE, logcli query --forward"
    ) == str(found.problems[-1])


def test_a_window_by_its_steps_stays_after_a_restart() -> None:
    assert "window(5,20)" == attempts((1, 25), (21, 60), window="window(5,20)").window


def test_values_without_lines_go_back_to_no_step() -> None:
    """Golden values have their order from their keys: "1", "10", "2"."""
    printed = [Reading(1, step, 1.0) for step in (1, 10, 11, 2, 3)]
    assert settle("a.json", printed).restarted_at is None


def test_a_count_of_nan_iterations_is_a_loss_that_is_no_number_though_one_is_printed() -> None:
    """The mean of an interval is over the others."""
    line = (
        b" iteration %d/20 | consumed samples: 8 | elapsed time per iteration (ms): 1.5 | "
        b"lm loss: 2.5 | number of skipped iterations: 1 | number of nan iterations: %d |\n"
    )
    (log,) = FORMATS["megatron_lm"].parse("a.log", [line % (10, 0) + line % (20, 3)])
    assert ("nan_loss", "step 20: loss is nan") == (log.outcome, log.error)


MESHES = {
    "['dp_shard', 'tp'], [8, 2]": (16, 2, 1, 1, 8, 1),
    "['pp', 'dp_shard', 'cp', 'tp'], [2, 2, 2, 2]": (16, 2, 2, 2, 2, 1),
    "['dp_replicate', 'dp_shard'], [2, 4]": (8, 1, 1, 1, 8, 1),
    "[], []": (1, 1, 1, 1, 1, 1),
    "['dp_shard_mod_ep', 'dp_shard_in_ep', 'cp'], [4, 2, 2]": (16, 1, 1, 2, 8, 4),
    "['dp_shard_mod_ep', 'dp_shard_in_ep', 'tp'], [4, 2, 2]": (16, 2, 1, 1, 8, None),
    "['spmd'], [8]": (8, None, None, None, None, None),
    "['tp'], [2, 8]": (16, None, None, None, None, None),
}
"""GPUs, TP, PP, CP, DP and EP of each: torchtitan/distributed/parallel_dims.py, 0.1.0."""


@pytest.mark.parametrize("mesh", MESHES)
def test_a_mesh_of_torchtitan_says_the_layout_and_what_it_lacks_is_one(mesh: str) -> None:
    text = titan(4096, 20, 16.0).replace("[], []", mesh)
    [log] = FORMATS["torchtitan"].parse("a.log", [text.encode()])
    said = log.configuration
    assert MESHES[mesh] == (
        said.num_gpus, said.tensor_parallel, said.pipeline_parallel, said.context_parallel,
        said.data_parallel, said.expert_parallel,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("CUDA capacity: NVIDIA H200 with 139.72GiB memory", {"system": "dgx-h200"}),
        (
            "CUDA capacity: AMD Instinct MI901X with 191.98GiB memory",
            {"system": "AMD Instinct MI901X"},
        ),
        (
            "\x1b[34mModel llama3 70B \x1b[31msize: 70,553,706,496 total parameters\x1b[39m",
            {"model": "llama3-70b"},
        ),
        (
            "Profiling active. Traces will be saved at ./outputs/profile_trace",
            {"options": {"enable_profiling": True}},
        ),
        (
            "Applied selective activation checkpointing to the model\n"
            "Compiling each TransformerBlock with torch.compile",
            {"options": {"activation_checkpointing": "selective", "compile": True}},
        ),
        ("Float8 tensorwise scaled training active", {"precision": "fp8_cs"}),
        ("Float8 training active", {"precision": "fp8"}),
        ("Float8 training active with recipe tensorwise", {"precision": "fp8_cs"}),
        ("Float8 training active with recipe rowwise", {"precision": "fp8"}),
        ("Float8 training active with recipe mxfp8", {"precision": "fp8_mx"}),
        ("MXFP8 training active with recipe mxfp8_cublas", {"precision": "fp8_mx"}),
        ("Swapped to Float8Linear layers with enable_fsdp_float8_all_gather=True",
         {"precision": "fp8"}),
        ("Float8 tensorwise scaled training active\nSwapped to Float8Linear layers with "
         "enable_fsdp_float8_all_gather=False", {"precision": "fp8_cs"}),
    ],
)  # fmt: skip
def test_torchtitan_says_its_model_its_gpu_and_how_it_computes(
    line: str, expected: dict[str, object]
) -> None:
    texts = (titan(4096, 20, 16.0), f"[titan] - root - INFO - {line}\n{titan(4096, 20, 16.0)}")
    bare, found = (
        FORMATS["torchtitan"].parse("a.log", [text.encode()])[0].configuration.model_dump()
        for text in texts
    )
    assert expected == {name: value for name, value in found.items() if value != bare[name]}


@pytest.mark.parametrize(("printed", "size"), [("79.10", 84_932_978_278), ("0.00", None)])
def test_torchtitan_says_how_much_memory_its_gpu_has(printed: str, size: int | None) -> None:
    """In GiB, as PyTorch is told by the driver."""
    line = f"[titan] - root - INFO - CUDA capacity: NVIDIA H100 with {printed}GiB memory\n"
    [log] = FORMATS["torchtitan"].parse("a.log", [f"{line}{titan(4096, 20, 16.0)}".encode()])
    assert size == log.gpu_memory_bytes
