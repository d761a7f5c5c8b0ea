"""Runs that died before their first step, and other logs in which no format finds one."""

import json
from pathlib import Path

import pytest
from sqlalchemy import URL, select

from perfdb import formats
from perfdb.db.tables import cases, results, runs
from perfdb.formats import FORMATS
from perfdb.ingest import LogOptions, Options, ingest
from perfdb.ingest.find import file
from perfdb.ingest.logs import HEAD_BYTES, Recognition, recognition
from perfdb.ingest.unpack import CHUNK_BYTES, Budget
from perfdb.pages.base import PageContext
from perfdb.record import Note, NoteCode
from tests.logs import GIVEN, SET, nemo, titan
from tests.trees import counted, rows_of

MEMORY = "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
RAISED = 'Traceback (most recent call last):\n  File "train.py", line 3\nValueError: bad data\n'
ARGUMENTS = """\
------------------------ arguments ------------------------
  global_batch_size ............................... 64
  micro_batch_size ................................ 2
  seq_length ...................................... 4096
  world_size ...................................... 16
-------------------- end of arguments ---------------------
"""
BEGUN = {
    "megatron_lm": ARGUMENTS,
    "megatron_bridge": "0: ConfigContainer:\n0: train:\n0:   global_batch_size: 64\n",
    "nemo2": "[NeMo I 2025-08-26 13:42:48 nemo_logging:393] Setting up optimizers\n",
    "nemo1": "[NeMo I 2024-02-01 12:00:00 exp_manager:394] Experiments will be logged at /r\n",
    "torchtitan": "\x1b[32m[rank0]:[titan]\x1b[0m 2025-06-01 10:00:00 - root - INFO - Starting\n",
    "automodel_console": "2026-05-04 10:00:00 | INFO | root | Experiment_details:\n",
}
"""What each program prints before any step."""

ENDED = {
    "megatron_lm": "[after training is done] datetime: 2025-12-19 10:49:16\n",
    "nemo2": "`Trainer.fit` stopped: `max_steps=50` reached.\n",
    "torchtitan": "[rank0]:[titan] 2025-06-01 10:00:00 - root - INFO - Training completed\n",
}
WORDS = tuple(one for one in SET if one.split("=")[0] not in ("num_gpus", "sequence_length"))
SAID = Options(PageContext(release="2.0"), logs=LogOptions(WORDS))


def write(folder: Path, text: str, name: str = "train.log") -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(text)
    return path


@pytest.mark.parametrize("name", BEGUN)
def test_a_log_that_dies_before_its_first_step_is_of_the_program_that_began(
    tmp_path: Path, name: str
) -> None:
    for end in (MEMORY, RAISED, "Killed\n"):
        shown = recognition(file(write(tmp_path, BEGUN[name] + end), named=True), Budget())
        assert (None, FORMATS[name]) == (shown.format, shown.start)
    for behind in ("loading the data\n", "To avoid CUDA out of memory, see\n"):
        path = write(tmp_path, BEGUN[name] + behind)
        assert Recognition() == recognition(file(path, named=True), Budget())


@pytest.mark.parametrize("name", ENDED)
def test_a_log_of_another_rank_that_came_to_its_end_did_not_die(tmp_path: Path, name: str) -> None:
    """One rank prints the steps, another that the training is done."""
    text = BEGUN[name] + ENDED[name] + RAISED + "srun: error: n1: tasks 0-7: Killed\n"
    assert Recognition() == recognition(file(write(tmp_path, text), named=True), Budget())


ITERATION = (
    " iteration %8d/      50 | consumed samples: 12 | elapsed time per iteration (ms): 10.0 |\n"
)
RATE = "baseline: Step Time : 9.09s GPU utilization: 663.5MODEL_TFLOP/s/GPU\n"
OWN = {
    "nemo2": nemo(),
    "nemo1": "Epoch 0: : 1%| 1/20 [0:01<00:00, train_step_timing in s=5.900]\n" * 20,
    "megatron_lm": "".join(ITERATION % step for step in range(1, 21)),
    "torchtitan": titan(8192, 20, 4.0),
    "automodel_console": "step 0 | epoch 0 | loss 2.5 | tps 1028.12(10/gpu)\n" * 20,
    "mlperf": ':::MLLOG {"key": "tracked_stats", "value": {"train_step_time": 1.5}}\n' * 20,
}
QUOTED = {name: own.splitlines(keepends=True)[-1] for name, own in OWN.items()} | {
    "megatron_bridge": RATE
}
NEXT = zip(OWN, [*[*OWN][1:], "megatron_bridge"], strict=True)
FAR = [("megatron_lm", "nemo2", size) for size in (HEAD_BYTES, CHUNK_BYTES + HEAD_BYTES)]


@pytest.mark.parametrize(("name", "quoted", "between"), [*((*pair, 0) for pair in NEXT), *FAR])
def test_a_step_that_is_quoted_above_a_logs_own_does_not_tell_its_format(
    tmp_path: Path, name: str, quoted: str, between: int
) -> None:
    start = ARGUMENTS if name == "megatron_lm" else ""
    text = f"{start}NOTE: as it said {QUOTED[quoted]}{'.' * between}\n{OWN[name]}"
    assert FORMATS[name] is recognition(file(write(tmp_path, text), named=True), Budget()).format


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{ARGUMENTS}ConfigContainer\n{OWN['megatron_lm']}", "megatron_lm"),
        (f"{ARGUMENTS}{RATE}{OWN['megatron_lm']}", "megatron_lm"),
        (BEGUN["megatron_bridge"] + OWN["megatron_lm"], "megatron_bridge"),
        (OWN["megatron_lm"].replace("\n", f"\n{RATE}"), "megatron_bridge"),
    ],
)
def test_iterations_are_those_of_the_program_that_prints_its_settings_or_rates_beside_them(
    text: str, expected: str
) -> None:
    assert FORMATS[expected] is formats.recognized(text.encode(), "a.log")


@pytest.mark.parametrize(
    ("above", "length"),
    [(0, 0), (HEAD_BYTES - 32, 2 * CHUNK_BYTES + 40), (CHUNK_BYTES - 32, 5 << 20), (3 << 20, 0)],
)
def test_a_start_and_an_end_are_found_wherever_they_stand(
    tmp_path: Path, above: int, length: int
) -> None:
    begun = "." * above + "\n" + ARGUMENTS
    text = begun + "." * (length - len(begun) - len(MEMORY)) + "\n" + MEMORY
    assert (
        FORMATS["megatron_lm"]
        is recognition(file(write(tmp_path, text), named=True), Budget()).start
    )


def test_a_run_that_died_at_its_start_is_a_run_without_figures(sqlite: URL, tmp_path: Path) -> None:
    report = ingest([write(tmp_path, ARGUMENTS + MEMORY)], sqlite, SAID)

    assert ((1, 0, 0, 0), False) == (counted(report), report.failed)
    said = (
        runs.c.outcome, runs.c.error, results.c.withheld, results.c.step_time_s,
        cases.c.num_gpus, cases.c.global_batch_size, cases.c.sequence_length,
    )  # fmt: skip
    question = select(*said).select_from(results).join(runs).join(cases)
    expected = (
        "out_of_memory",
        MEMORY.strip(),
        Note(NoteCode.RUN_ENDED, {"outcome": "out_of_memory"}),
        None,
        16,
        64,
        4096,
    )
    assert [expected] == rows_of(sqlite, question)


def test_one_whose_log_does_not_say_what_it_was_of_waits_for_words(
    sqlite: URL, tmp_path: Path
) -> None:
    write(tmp_path / "a", BEGUN["nemo2"] + RAISED)
    assert 1 == len(ingest([tmp_path], sqlite, Options()).nameless)
    said = Options(GIVEN.context, logs=LogOptions((*SET, "global_batch_size=64")))
    assert (1, 0, 0, 0) == counted(ingest([tmp_path / "a" / "train.log"], sqlite, said))
    assert [("failed", "ValueError: bad data")] == rows_of(
        sqlite, select(runs.c.outcome, runs.c.error)
    )


def test_a_format_that_is_named_holds_against_how_a_log_begins(sqlite: URL, tmp_path: Path) -> None:
    path = write(tmp_path, BEGUN["nemo2"] + RAISED)
    words = LogOptions((*SET, "global_batch_size=64"), format="nemo1")
    report = ingest([path], sqlite, Options(GIVEN.context, logs=words))
    assert ((1, 0, 0, 0), ()) == (counted(report), report.rejected)


UNKNOWN = (
    "holds no step, names no program that is known, and ends in an error: {}; "
    "name it with --format NAME to keep it as a run that failed"
)


@pytest.mark.parametrize(
    ("end", "error"), [(MEMORY, MEMORY.strip()), (RAISED, "ValueError: bad data")]
)
def test_a_log_of_no_known_program_that_ends_in_an_error_is_not_passed_over(
    sqlite: URL, tmp_path: Path, end: str, error: str
) -> None:
    path = write(tmp_path / "a", "starting up\n" + end)
    for named in (path, tmp_path):
        report = ingest([named], sqlite, Options())
        assert report.failed
        assert [f"{path}: {UNKNOWN.format(error)}"] == [str(one) for one in report.rejected]


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_a_log_in_utf_16_is_named_as_such(sqlite: URL, tmp_path: Path, encoding: str) -> None:
    path = write(tmp_path / "a", "")
    path.write_bytes(("\ufeff" + nemo()).encode(encoding))
    for named in (path, tmp_path):
        report = ingest([named], sqlite, GIVEN)
        convert = "convert it: iconv -f UTF-16 -t UTF-8 train.log > utf8-train.log"
        expected = f"{path}: the file is in UTF-16, not in UTF-8; {convert}"
        assert [expected] == [str(one) for one in report.rejected]
    path.write_text(path.read_bytes().decode("utf-16"))
    assert (1, 0, 0, 0) == counted(ingest([path], sqlite, GIVEN))


@pytest.mark.parametrize("shown", ["[{}]", '{{"events": [{}]}}', "{}"])
def test_a_log_within_the_json_of_a_collector_is_named_as_such(
    sqlite: URL, tmp_path: Path, shown: str
) -> None:
    """Its lines would be read with their escapes."""
    separator = "\n" if shown == "{}" else ",\n"
    lines = separator.join(json.dumps({"message": line}) for line in nemo().splitlines())
    path = write(tmp_path / "a", shown.format(lines))
    report = ingest([path], sqlite, GIVEN)
    remedy = "as by jq -r '.OBJECT.message'"
    message = "holds the lines of a log within JSON; write them to a file as text"
    assert [f"{path}: {message}, {remedy}"] == [str(one) for one in report.rejected]


# As the code of each program prints it; where that stands is beside the table of them.
OTHERS = {
    "the Hugging Face Trainer": (
        "{'loss': 1.4208, 'grad_norm': 3.02, 'learning_rate': 4.9e-05, 'epoch': 0.01}\n"
    ),
    "litgpt": (
        "Epoch 1 | iter 4 step 1 | loss train: 10.985, val: n/a | iter time: 352.31 ms (step) "
        "remaining time: 0:06:51\n"
    ),
    "nanotron": (
        "11/24/2026 10:00:00 [INFO|DP=0|PP=0|TP=0]: iteration: 5 / 100 | consumed_tokens: 5.24M | "
        "elapsed_time_per_iteration_ms: 1.21K | tokens_per_sec: 865K\n"
    ),
    "Composer": "[batch=5/4800]:\n\t Train time/batch: 4\n\t Train loss/train/total: 11.7359\n",
}


@pytest.mark.parametrize("program", OTHERS)
def test_a_log_of_another_program_is_refused_by_its_name(
    sqlite: URL, tmp_path: Path, program: str
) -> None:
    """Wherever its steps stand in a long log."""
    path = write(tmp_path, "." * HEAD_BYTES + "\n" + OTHERS[program] * 20)
    [problem] = ingest([path], sqlite, Options()).rejected
    assert f"a log of {program}" in problem.message
    assert problem.remedy == "write its figures into a table of a page, and ingest that"
