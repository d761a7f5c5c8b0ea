"""Logs in, rows out: by what they say, what lies beside them and what the command line says."""

import hashlib
import os
import random
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import zstandard
from sqlalchemy import URL, func, select

from perfdb.db.tables import cases, ingest_log, models, releases, results, runs, sources, steps
from perfdb.errors import InputError
from perfdb.formats import FORMATS
from perfdb.ingest import LogOptions, Options, Report, ingest, preview
from perfdb.pages.base import PageContext
from perfdb.verify import verify
from tests import factories
from tests.logs import GIVEN, SET, SUMMARY, TIMES, megatron, nemo, step_line, titan, write
from tests.snapshots import snapshot
from tests.trees import NEMO, PAGE, counted, read_at, rows_in_words

DATA = Path(__file__).parent / "data" / "formats"
CORPUS = Path(__file__).parents[2] / "shared" / "corpus"


def count(url: URL, table: str) -> int:
    """The rows of a table."""
    return int(
        str(
            rows_in_words(url, select(func.count()).select_from(sources.metadata.tables[table]))[0][
                0
            ]
        )
    )


def test_a_log_gives_a_run_with_its_steps_and_one_result(store: URL, tmp_path: Path) -> None:
    """128 × 8192 tokens ÷ 2.1 s ÷ 8 GPUs."""
    path = write(tmp_path / "a")

    assert (1, 0, 0, 0) == counted(ingest([path], store, GIVEN))

    question = select(
        runs.c.outcome, runs.c.recipe, runs.c.started_at, runs.c.warmup_steps, runs.c.measured_steps
    )
    assert [("finished", None, None, 10, 10)] == rows_in_words(store, question)
    [row] = rows_in_words(
        store,
        select(
            results.c.origin, results.c.window, results.c.num_steps, results.c.step_time_s,
            results.c.tokens_per_sec_per_gpu, releases.c.version, models.c.name,
            cases.c.global_batch_size,
        )
        .join(releases, results.c.release_id == releases.c.id)
        .join(cases, results.c.case_id == cases.c.id)
        .join(models, cases.c.model_id == models.c.id),
    )  # fmt: skip
    assert (
        "measured", "skip_warmup(10)", 10, 2.1, pytest.approx(62415.238), "2.0", "llama3-8b", 128,
    ) == row  # fmt: skip
    first = select(steps.c.step, steps.c.step_time_s, steps.c.source_line).limit(1)
    assert [(1, 20.0, 1)] == rows_in_words(store, first)
    assert 20 == count(store, "steps")


def test_the_figures_are_those_of_a_run_directory_with_the_same_steps(
    sqlite: URL, tmp_path: Path
) -> None:
    """One arithmetic, wherever the steps come from."""
    case = factories.case(framework="nemo", num_gpus=8)
    run = factories.write_run(
        tmp_path, case=case, step_times=TIMES, warmup_steps=10, measured_steps=10
    )
    ingest([run.path, write(tmp_path / "a")], sqlite, GIVEN)

    names = ("step_time_s", "step_time_mean_s", "step_time_stdev_s", "step_time_p10_s",
             "tokens_per_sec_per_gpu", "model_tflops_per_sec_per_gpu", "mfu", "window")  # fmt: skip
    one, other = rows_in_words(sqlite, select(*[results.c[name] for name in names]))
    assert one == other
    assert None not in one


def test_the_same_log_twice_is_unchanged_wherever_it_lies(store: URL, tmp_path: Path) -> None:
    path = write(tmp_path / "a")
    ingest([path], store, GIVEN)
    before = snapshot(store)

    assert (0, 0, 1, 0) == counted(ingest([path], store, GIVEN))
    moved = path.rename(tmp_path / "elsewhere.log")
    assert (0, 0, 1, 0) == counted(ingest([moved], store, GIVEN))
    assert before == snapshot(store)


def test_fewer_words_do_not_take_back_what_was_said(store: URL, tmp_path: Path) -> None:
    """A folder that is read again, without the options of the first time."""
    ingest([write(tmp_path / "a")], store, GIVEN)
    before = snapshot(store)

    again = ingest([tmp_path], store, Options())

    assert (0, 0, 1, 0) == counted(again)
    assert () == again.unattributed
    assert before == snapshot(store)


def test_other_words_revise_it(store: URL, tmp_path: Path) -> None:
    """The run stays one run, and the older result is kept."""
    path = write(tmp_path / "a")
    ingest([path], store, GIVEN)

    other = Options(PageContext(release="2.1"), logs=LogOptions(SET))
    assert (0, 1, 0, 0) == counted(ingest([path], store, other))
    assert 1 == count(store, "runs")
    question = select(releases.c.version, results.c.superseded).join(
        releases, results.c.release_id == releases.c.id
    )
    assert {("2.0", True), ("2.1", False)} == set(rows_in_words(store, question))


def test_an_unattributed_log_is_kept_until_somebody_says_what_it_is_of(
    store: URL, tmp_path: Path
) -> None:
    """Its bytes are there; the second time nothing changes; with the words it is new."""
    path = write(tmp_path / "a")
    told = (
        f"{path}: names no model, system, num_gpus, sequence_length, task, release; pass "
        "--set model=… --set system=… --set num_gpus=… --set sequence_length=… --set task=… "
        "--release …",
    )

    first = ingest([path], store, Options())
    before, entries = snapshot(store), count(store, "ingest_log")
    second = ingest([path], store, Options())

    assert (told, told) == (first.unattributed, second.unattributed)
    assert (0, 0, 0, 0) == counted(first) == counted(second)
    assert not first.failed
    assert (before, entries) == (snapshot(store), count(store, "ingest_log"))
    assert [(str(path), "nemo2")] == rows_in_words(store, select(sources.c.path, sources.c.parser))
    [(action, reason)] = rows_in_words(store, select(ingest_log.c.action, ingest_log.c.reason))
    assert "unattributed" == action
    assert str(reason).startswith("names no model, system")

    third = ingest([path], store, GIVEN)
    assert ((1, 0, 0, 0), ()) == (counted(third), third.unattributed)


def test_a_log_of_the_last_rank_alone_says_where_its_settings_are(
    sqlite: URL, tmp_path: Path
) -> None:
    """Joined behind the log of rank 0, it needs no more words."""
    last = write(tmp_path / "a", megatron())
    report = ingest([last], sqlite, Options(PageContext(release="2.0")))
    why = "its iterations are those of the last rank, and rank 0 prints the arguments"
    remedy = "if rank 0 has a log of its own, ingest the two as one: cat RANK_0 THIS > JOINED"
    assert [f"{last}: {why}; {remedy}"] == [str(note) for note in report.notes]
    assert 1 == len(report.unattributed)
    rank_0 = (
        "------------------------ arguments ------------------------\n"
        "  seq_length ......... 4096\n  world_size ......... 16\n  bf16 ......... True\n"
        "-------------------- end of arguments ---------------------\n"
    )
    joined = write(tmp_path / "b", rank_0 + megatron())
    given = LogOptions(("model=llama3-8b", "system=dgx-h100", "task=pretrain"))
    assert 1 == ingest([joined], sqlite, Options(PageContext(release="2.0"), logs=given)).new


def test_of_a_log_whose_batch_grows_the_last_size_is_read(sqlite: URL, tmp_path: Path) -> None:
    """128 × 8192 tokens ÷ 2.1 s ÷ 8 GPUs; --window holds steps of that size only."""
    text = nemo().replace("global_batch_size: 128", "global_batch_size: 64", 12)
    asked = replace(GIVEN, logs=LogOptions(SET, window="window(5,20)"))
    report = ingest([write(tmp_path / "a", text)], sqlite, asked)
    changes = "the global batch size changes between 64 and 128: the steps up to 12 are left out"
    assert [changes] == [note.message for note in report.notes]
    question = select(results.c.step_time_s, results.c.tokens_per_sec_per_gpu)
    assert [(2.1, pytest.approx(62415.238))] == rows_in_words(sqlite, question)
    assert [] == [it for one in verify(sqlite, lambda *_: lambda: None) for it in one.faults]


def test_a_truncated_log_keeps_its_steps_and_has_no_figures(store: URL, tmp_path: Path) -> None:
    """Cut in the middle of a line, as by a full disk."""
    text = nemo()
    path = write(tmp_path / "a", text[: len(text) * 3 // 4])

    assert (1, 0, 0, 0) == counted(ingest([path], store, GIVEN))

    question = select(results.c.outcome, results.c.withheld, results.c.step_time_s, runs.c.outcome)
    [row] = rows_in_words(store, question.join(runs, results.c.run_id == runs.c.id))
    assert ("incomplete", "the log ends at step 15 of 20", None, "incomplete") == row
    assert 15 == count(store, "steps")


def test_a_loss_that_is_no_number_withholds_the_figures(store: URL, tmp_path: Path) -> None:
    """SQLite has no NaN and PostgreSQL's JSON neither: the step's loss is unknown."""
    lines = [step_line(n, 20, time, "nan" if n == 14 else 9) for n, time in enumerate(TIMES)]
    path = write(tmp_path / "a", "".join(lines))

    assert (1, 0, 0, 0) == counted(ingest([path], store, GIVEN))

    question = select(results.c.outcome, results.c.withheld, results.c.step_time_s)
    assert [("nan_loss", "step 15: loss is nan", None)] == rows_in_words(store, question)
    nothing = select(steps.c.step).where(steps.c.loss.is_(None))
    assert [(15,)] == rows_in_words(store, nothing)


def test_a_window_without_a_step_is_incomplete(sqlite: URL, tmp_path: Path) -> None:
    """The format's window skips ten steps; --window asks for what there is."""
    path = write(tmp_path / "a", nemo((4.0, 2.0)))
    last = Options(logs=LogOptions(SET, window="last"))
    question = select(results.c.withheld, results.c.step_time_s).where(~results.c.superseded)

    ingest([path], sqlite, GIVEN)
    assert [("no step in skip_warmup(10)", None)] == rows_in_words(sqlite, question)
    ingest([path], sqlite, last)
    assert [(None, 2.0)] == rows_in_words(sqlite, question)


def test_a_skipped_step_does_not_count_and_is_told_of(sqlite: URL, tmp_path: Path) -> None:
    """Loss scaling skips one now and then: the run is finished all the same."""
    given = replace(GIVEN, context=PageContext("megatron-lm", "2.0"))
    report = ingest([write(tmp_path / "a", megatron(15))], sqlite, given)

    said = "steps that the optimizer skipped are not counted: 1 of 10, the first is step 15"
    assert [said] == [note.message for note in report.notes]
    shown = (results.c.outcome, results.c.num_steps, results.c.step_time_mean_s, results.c.notes)
    assert [("finished", 9, 2.0, [said])] == rows_in_words(sqlite, select(*shown))


@pytest.mark.parametrize(("tokens", "rate"), [(64 * 4096, 32768.0), (50_000, 6250.0)])
def test_steps_of_other_lengths_than_the_cases_have_the_rate_of_their_tokens(
    sqlite: URL, tmp_path: Path, tokens: int, rate: float
) -> None:
    """AutoModel packs samples of many lengths: 64 × 4096 tokens in a second on 8 GPUs, or fewer."""
    line = '{{"step": {}, "loss": 1.0, "tps": {}, "num_tokens_per_step": {}}}\n'
    path = write(
        tmp_path / "a", "".join(line.format(n, tokens, tokens) for n in range(20)), "training.jsonl"
    )
    said = ("model=llama3-8b", "system=dgx-h100", "num_gpus=8", "sequence_length=4096",
            "global_batch_size=64", "task=sft")  # fmt: skip

    report = ingest([path], sqlite, Options(logs=LogOptions(said)))

    question = select(results.c.step_time_s, results.c.tokens_per_sec_per_gpu)
    assert [(1.0, rate)] == rows_in_words(sqlite, question)
    told = [note.message for note in report.notes if "tokens, not" in note.message]
    own = (
        "step 11 has 50,000 tokens, not 64 × 4,096: tokens/s are those of the steps, "
        "TFLOP/s and MFU are unknown"
    )
    assert ([own] if tokens == 50_000 else []) == told


LLMB = """\
job_info: {job_id: 1}
workload_info: {framework: nemo2, fw_version: 25.07.01, workload_type: pretrain}
model_info: {model_name: llama3, model_size: 8b, dtype: bf16, scale: 8, gpu_type: h100}
container_info: {images: [nvcr.io/nvidia/nemo:25.07.01]}
"""


def test_a_log_is_of_what_lies_beside_it(store: URL, tmp_path: Path) -> None:
    """The launcher's file says model, system, GPUs and release; it is kept with the run."""
    write(tmp_path / "a", LLMB, "llmb-config_1.yaml")
    write(tmp_path / "a")
    options = Options(logs=LogOptions(("sequence_length=8192",)))

    report = ingest([tmp_path], store, options)

    assert ((1, 0, 0, 0), ()) == (counted(report), report.unattributed)
    question = select(releases.c.version, releases.c.container, models.c.name, cases.c.num_gpus)
    [row] = rows_in_words(
        store,
        question.select_from(runs)
        .join(releases, runs.c.release_id == releases.c.id)
        .join(cases, runs.c.case_id == cases.c.id)
        .join(models, cases.c.model_id == models.c.id),
    )
    assert ("25.07.01", "nvcr.io/nvidia/nemo:25.07.01", "llama3-8b", 8) == row
    assert 2 == count(store, "run_files")


def test_a_run_has_the_environment_that_the_files_beside_its_log_say(
    store: URL, tmp_path: Path
) -> None:
    """Less what smells of a secret; and what they say of its figures stands with the result."""
    job = """\
job_config:
  profile_enabled: true
  env_overrides: {NCCL_NVLS_ENABLE: 0, HF_TOKEN: hf_abc}
"""
    write(tmp_path / "a", LLMB + job, "llmb-config_1.yaml")
    write(tmp_path / "a")

    ingest([tmp_path], store, Options(logs=LogOptions(("sequence_length=8192",))))

    variables = {"variables": {"NCCL_NVLS_ENABLE": "0"}}
    noted = ["steps under the profiler take longer"]
    question = select(runs.c.environment, results.c.notes).join(
        results, results.c.run_id == runs.c.id
    )
    assert [(variables, noted)] == rows_in_words(store, question)


def test_a_run_has_the_memory_that_its_log_says_a_gpu_has(sqlite: URL, tmp_path: Path) -> None:
    line = "[titan] - root - INFO - CUDA capacity: NVIDIA H100 80GB HBM3 with 79.00GiB memory\n"
    write(tmp_path / "a", line + titan(4096, 50, 16.0))

    said = Options(PageContext(release="1"), logs=LogOptions(("model=llama3-8b", "task=pretrain")))
    ingest([tmp_path], sqlite, said)

    assert [({"gpu_memory_bytes": 79 * 2**30},)] == rows_in_words(
        sqlite, select(runs.c.environment)
    )


def test_of_two_files_beside_a_log_neither_is_believed(sqlite: URL, tmp_path: Path) -> None:
    """Nobody says which of them is the log's."""
    write(tmp_path / "a", LLMB, "llmb-config_1.yaml")
    write(tmp_path / "a", LLMB.replace("scale: 8", "scale: 16"), "llmb-config_2.yaml")
    path = write(tmp_path / "a")

    report = ingest([tmp_path], sqlite, Options())
    assert (0, 0, 0, 0) == counted(report)
    [told] = report.unattributed
    assert told.startswith(f"{path}: names no model, system, num_gpus")


def test_a_folder_is_searched_and_what_is_no_log_is_passed_over(
    sqlite: URL, tmp_path: Path
) -> None:
    """Runs, pages and logs side by side; a run's own files are no logs of their own."""
    run = factories.write_run(tmp_path, run_id="a")
    run.console.write_text(nemo((3.0, 3.0)))
    write(tmp_path / "logs")
    write(tmp_path / "logs", "nothing in here\n", "notes.txt")
    write(tmp_path / "logs", "[1, 2]", "numbers.json")
    write(tmp_path / "logs", nemo((1.0, 1.0)), ".hidden.log")
    (tmp_path / "page.md").write_text(PAGE)

    options = Options(NEMO.context, logs=LogOptions(SET))
    report = ingest([tmp_path], sqlite, options)

    assert ((4, 0, 0, 0), ()) == (counted(report), report.unattributed)
    assert 2 == count(sqlite, "runs")


@pytest.mark.parametrize(
    ("ending", "outcome", "error"),
    [
        (
            "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n",
            "out_of_memory",
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
        ),
        (
            'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n'
            "ValueError: the vocabulary is empty\n",
            "failed",
            "ValueError: the vocabulary is empty",
        ),
    ],
)
def test_a_log_that_failed_before_its_first_step_is_kept_with_its_last_error(
    sqlite: URL, tmp_path: Path, ending: str, outcome: str, error: str
) -> None:
    """A run that failed is data: no figure, no step, and the line that says why."""
    path = write(tmp_path / "a", "[NeMo I] starting\n" + ending)
    forced = Options(
        GIVEN.context, logs=LogOptions((*SET, "global_batch_size=128"), format="nemo2")
    )

    assert (1, 0, 0, 0) == counted(ingest([path], sqlite, forced))

    [(found, reason, time)] = rows_in_words(
        sqlite, select(runs.c.outcome, runs.c.error, results.c.step_time_s).join(results)
    )
    assert (outcome, None, 0) == (found, time, count(sqlite, "steps"))
    assert str(reason).endswith(error)


def test_a_file_of_no_bytes_is_refused_where_it_is_named_and_passed_over_elsewhere(
    sqlite: URL, tmp_path: Path
) -> None:
    """Of each kind that is looked at."""
    paths = [
        write(tmp_path / "a", "", f"x{one}") for one in (".log", ".md", ".json", ".zip", ".gz")
    ]

    assert (0, 0, 0, 0) == counted(ingest([tmp_path], sqlite, GIVEN))
    forced = Options(GIVEN.context, logs=LogOptions(SET, format="nemo2"))
    for given in (GIVEN, forced):
        report = ingest(paths, sqlite, given)
        assert (0, 0, 0, len(paths)) == counted(report)
        said = {(one.message, one.remedy) for one in report.rejected}
        assert {("the file is empty", "write or copy it again")} == said


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user may look into, which those of the tests are not."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@contextmanager
def as_a_plain_user() -> Iterator[None]:
    """The administrator may read what nobody may."""
    user = os.geteuid()
    try:
        if user == 0:
            os.seteuid(65534)
        yield
    finally:
        os.seteuid(user)


def test_what_may_not_be_read_is_rejected_and_the_rest_is_read(open_folder: Path) -> None:
    """A file, and a folder of which nobody knows what it holds."""
    sound = write(open_folder, name="sound.log")
    sound.chmod(0o644)
    secret = write(open_folder, name="secret.log")
    secret.chmod(0)
    closed = open_folder / "closed"
    closed.mkdir(mode=0)

    with as_a_plain_user():
        rows, rejected = read_at(open_folder, GIVEN)
    closed.chmod(0o700)

    assert 1 == len(rows)
    assert [(str(secret), "Permission denied"), (str(closed), "Permission denied")] == [
        (problem.where, problem.message) for problem in rejected
    ]


@pytest.mark.timeout(20)
def test_what_is_no_file_is_never_waited_for(sqlite: URL, tmp_path: Path) -> None:
    """A pipe that nobody writes to, a socket, and links that lead in a circle."""
    folder = tmp_path / "a"
    write(folder)
    os.mkfifo(folder / "pipe.log")
    (folder / "circle.log").symlink_to(folder / "circle.log")
    (folder / "up").symlink_to(tmp_path)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(folder / "s.log"))
        report = ingest([folder], sqlite, GIVEN)
        named = ingest([folder / "pipe.log", folder / "s.log"], sqlite, GIVEN)

    assert (1, 0, 0, 0) == counted(report)
    assert ["neither a file nor a folder"] * 2 == [one.message for one in named.rejected]
    with pytest.raises(InputError, match=r"circle\.log: Too many levels of symbolic links"):
        ingest([folder / "circle.log"], sqlite, GIVEN)


@pytest.mark.parametrize("name", ["a\nb.log", "a\udcffb.log"])
def test_a_file_of_a_name_that_cannot_be_kept_is_rejected(
    sqlite: URL, tmp_path: Path, name: str
) -> None:
    """The name is shown on one line."""
    write(tmp_path / "a")
    path = write(tmp_path / "a", name=name)

    report = ingest([path.parent], sqlite, GIVEN)

    [problem] = report.rejected
    assert 1 == report.new
    assert str(problem).isprintable()
    assert "the name" in problem.message


@pytest.mark.parametrize("suffix", [".md", ".txt"])
def test_a_page_in_a_folder_is_read_and_other_texts_are_passed_over(
    sqlite: URL, tmp_path: Path, suffix: str
) -> None:
    (tmp_path / f"page{suffix}").write_text(PAGE)
    for one in (".md", ".mdx", ".rst", ".html", ".htm", ".txt"):
        (tmp_path / f"readme{one}").write_text("Nothing but words.\n")
    assert (2, 0, 0, 0) == counted(ingest([tmp_path], sqlite, NEMO))


def test_a_text_that_is_too_large_is_no_page(sqlite: URL, tmp_path: Path) -> None:
    path = write(tmp_path / "a", "word\n" * (2 << 20), "large.txt")
    [problem] = ingest([path], sqlite, GIVEN).rejected
    assert "larger than 8 MiB, which no page is" == problem.message


def test_the_bytes_of_a_large_log_can_be_had_back(store: URL, tmp_path: Path) -> None:
    """It is packed into a temporary file while it is read, and that is gone afterwards."""
    noise = random.Random(1).randbytes(300_000).hex()
    path = write(tmp_path / "a", nemo() + noise)

    ingest([path], store, GIVEN)

    [(content, sha256, size)] = rows_in_words(
        store, select(sources.c.content, sources.c.sha256, sources.c.size_bytes)
    )
    assert isinstance(content, bytes)
    assert path.read_bytes() == zstandard.ZstdDecompressor().decompressobj().decompress(content)
    assert (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_size) == (sha256, size)


def test_a_log_is_known_by_its_first_step_however_far_below_it_stands(
    sqlite: URL, tmp_path: Path
) -> None:
    """Also where a MiB of the file ends within the only one."""
    for before in (8, 30, 90):
        path = write(tmp_path / "a", "x\n" * (2**21 - before // 2) + nemo((2.0,)))
        assert (1, 0, 0, 0) == counted(ingest([path], sqlite, GIVEN))


def test_a_page_of_any_suffix_is_still_a_page(sqlite: URL, tmp_path: Path) -> None:
    (tmp_path / "page.txt").write_text(PAGE)
    assert (2, 0, 0, 0) == counted(ingest([tmp_path / "page.txt"], sqlite, NEMO))


def test_a_format_that_is_named_is_not_asked_for(sqlite: URL, tmp_path: Path) -> None:
    """A file without steps is rejected for what it lacks, and the formats are listed."""
    path = write(tmp_path / "a", "no step in here\n")
    forced = Options(logs=LogOptions(SET, format="nemo2"))

    report = ingest([path], sqlite, forced)
    message = (
        "--format nemo2: the log holds no step that can be read; the content looks like no format "
        "that is known"
    )
    assert [(str(path), message, f"known: {', '.join(sorted(FORMATS))}")] == [
        (problem.where, problem.message, problem.remedy) for problem in report.rejected
    ]


FAILED = nemo() + "RuntimeError: NCCL timed out\n"
IS_PAGE = "a page with a table of results"


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("mlperf", nemo(), "the log holds no 'train_step_time'; the content looks like nemo2"),
        ("nemo1", nemo(), "the log holds no step that can be read; the content looks like nemo2"),
        ("megatron_golden", nemo(), "not JSON: Expecting value; the content looks like nemo2"),
        ("nemo1", FAILED, "RuntimeError: NCCL timed out; the content looks like nemo2"),
        ("mlperf", PAGE, f"the log holds no 'train_step_time'; the content looks like {IS_PAGE}"),
    ],
)
def test_a_wrong_format_is_told_with_what_the_content_looks_like(
    sqlite: URL, tmp_path: Path, name: str, text: str, told: str
) -> None:
    path = write(tmp_path / "a", text)
    (problem,) = ingest([path], sqlite, Options(logs=LogOptions(SET, format=name))).rejected
    assert (str(path), f"--format {name}: {told}", "leave --format out") == (
        problem.where, problem.message, problem.remedy,
    )  # fmt: skip


DEEPSPEED = "-------- arguments --------\n  deepspeed ............ True\n"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (megatron().replace(" | elapsed", " | consumed tokens: 8396800 | elapsed"), 1),
        (DEEPSPEED + megatron(), 2),
        (DEEPSPEED + "Traceback (most recent call last):\nRuntimeError: no file\n", 2),
    ],
)
@pytest.mark.parametrize("name", [None, "megatron_bridge"])
def test_a_log_of_megatron_deepspeed_is_none_of_megatron(
    sqlite: URL, tmp_path: Path, text: str, line: int, name: str | None
) -> None:
    """Its lines look like those of Megatron-LM, and its sequences need not have `seq_length`."""
    path = write(tmp_path / "a", text)
    given = Options(PageContext(release="2.0"), logs=LogOptions(SET, format=name))
    (problem,) = ingest([path], sqlite, given).rejected
    assert (line, True) == (problem.line, "Megatron-DeepSpeed" in problem.message)


def test_an_empty_golden_is_rejected(sqlite: URL, tmp_path: Path) -> None:
    path = write(tmp_path / "a", "{}", "golden_values.json")
    report = ingest([path], sqlite, Options(logs=LogOptions(SET)))
    assert ["an empty object: no value was recorded"] == [one.message for one in report.rejected]


def test_a_file_that_sums_up_gives_its_figures_as_printed(store: URL, tmp_path: Path) -> None:
    """4000 TFLOP a step over 8 GPUs and 1.25 s: 400 TFLOP/s/GPU; nothing is computed beside it."""
    path = write(tmp_path / "a", SUMMARY, "results.json")
    options = Options(logs=LogOptions(("model=llama3-8b", "system=dgx-h100", "task=pretrain")))

    assert (1, 0, 0, 0) == counted(ingest([path], store, options))

    names = ("origin", "step_time_s", "model_tflops_per_sec_per_gpu", "mfu",
             "tokens_per_sec_per_gpu", "window", "formula_version")  # fmt: skip
    [row] = rows_in_words(store, select(*[results.c[name] for name in names]))
    assert ("published", 1.25, 400.0, 0.4, None, "skip_warmup(2)", None) == row
    assert (0, 0, 1, 0) == counted(ingest([path], store, options))


def test_fewer_words_do_not_take_back_the_release_of_a_file_that_sums_up(
    sqlite: URL, tmp_path: Path
) -> None:
    """A verification card names its commit; the first time it was said to be a release."""
    card = DATA / "verification_card" / "good" / "weak_scaling.yaml"
    path = write(tmp_path / "a", card.read_text(), "card.yaml")
    said = Options(PageContext(release="0.3"), logs=LogOptions(("model=qwen3-30b-a3b",)))
    first = ingest([path], sqlite, said)
    before = snapshot(sqlite)

    assert (0, 0, first.new, 0) == counted(ingest([path], sqlite, Options()))
    assert first.new
    assert before == snapshot(sqlite)


def test_a_dry_run_says_the_same_and_stores_nothing(sqlite: URL, tmp_path: Path) -> None:
    write(tmp_path / "a")
    before = snapshot(sqlite)
    _, changes = preview([tmp_path / "a"], sqlite, GIVEN)
    bare, _ = preview([tmp_path / "a"], sqlite, Options())

    assert [2.1] == [one.result.step_time_s for one in changes]
    assert before == snapshot(sqlite)
    assert 1 == len(bare.unattributed)


def test_the_reference_lists_every_format() -> None:
    page = (Path(__file__).parents[1] / "docs" / "reference" / "formats.md").read_text()
    listed = [line.split("`")[1] for line in page.splitlines() if line.startswith("| `")]
    assert list(FORMATS) == listed


EXPECTED = {
    "automodel_old_training_phi_4_squad_h100.jsonl": (100, "unattributed"),
    "automodel_training_gpt_oss_20b_h100.jsonl": (100, "unattributed"),
    "automodel_training_llama3_2_1b_squad_h100.jsonl": (100, "unattributed"),
    "automodel_training_qwen3_moe_30b_te_deepep_h100.jsonl": (100, "unattributed"),
    "cloudai_fixture_megatron_bridge_0.log": (1, "unattributed"),
    "cloudai_fixture_megatron_run_0.log": (3, "unattributed"),
    "cloudai_fixture_nemo_run_0.log": (12, "unattributed"),
    "cloudai_fixture_nemo_run_1.log": (2, "unattributed"),
    "cloudai_fixture_nemo_run_3.log": (2, "unattributed"),
    "dgxc_cluster_config.yaml": (0, "neither a run directory"),
    "dgxc_example_llmb_config.yaml": (0, "says what a run was and holds no result"),
    "dgxc_llama3.1_metadata.yaml": (0, "neither a run directory"),
    "mbridge_card_gpt-oss-120b.yaml": (0, "6 new"),
    "mbridge_card_qwen3-30b-a3b.yaml": (0, "12 new"),
    "mlm_golden_empty_object_lts_a100.json": (0, "an empty object"),
    "mlm_golden_gpt3_7b_tp4pp1_memory_speed_h100.json": (12, "unattributed"),
    "mlm_golden_list_values_old_schema_a100.json": (0, "unattributed"),
    "mlm_model_config_gpt3_7b_tp4pp1_memory_speed.yaml": (0, "says what a run was"),
    "mlperf_v5.0_nyx_n1_ngc25.04_nemo_llama2_70b_lora.txt": (0, "unattributed"),
    "nemo2_embedding_ft.log": (100, "unattributed"),
}
"""Steps by grep, and what becomes of a file alone and without a word."""

EVERYTHING = (
    "model=llama3-8b", "framework=nemo", "system=dgx-h100", "num_gpus=8", "sequence_length=4096",
    "global_batch_size=64", "task=pretrain",
)  # fmt: skip


def became(report: Report) -> str:
    """What a report says of one file."""
    if report.rejected:
        return report.rejected[0].message
    return f"{report.new} new" if report.new else "unattributed" * bool(report.unattributed)


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus is not beside the project")
@pytest.mark.parametrize("name", EXPECTED)
def test_a_file_of_a_program_is_stored_kept_or_refused_with_a_reason(
    store: URL, tmp_path: Path, name: str
) -> None:
    """With every required word, each step of a log is in the store."""
    num_steps, expected = EXPECTED[name]
    path = tmp_path / name
    path.write_bytes((CORPUS / name).read_bytes())

    assert expected in became(ingest([path], store, Options()))
    ingest([path], store, Options(logs=LogOptions(EVERYTHING)))
    assert num_steps == count(store, "steps")
