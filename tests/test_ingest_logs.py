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
from sqlalchemy import URL, select

from perfdb.db.tables import cases, ingest_log, models, releases, results, runs, sources, steps
from perfdb.errors import InputError
from perfdb.formats import FORMATS
from perfdb.ingest import LogOptions, Options, Report, ingest, preview, withdraw
from perfdb.pages.base import PageContext
from tests import factories
from tests.logs import GIVEN, LLMB, SET, SUMMARY, TIMES, megatron, nemo, write
from tests.snapshots import snapshot
from tests.trees import NEMO, PAGE, counted, faults, read_at, rows_in_words, rows_of


def count(url: URL, table: str) -> int:
    """The rows of a table."""
    return len(rows_of(url, select(sources.metadata.tables[table])))


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


def test_the_same_log_is_unchanged_wherever_it_lies_with_its_words_or_fewer(
    sqlite: URL, tmp_path: Path
) -> None:
    """Without the options of the first time nothing is taken back that they said."""
    path = write(tmp_path / "a")
    ingest([path], sqlite, GIVEN)
    before = snapshot(sqlite)

    moved = tmp_path / "elsewhere.log"
    for place, options in ((path, GIVEN), (path.parent, Options()), (moved, GIVEN)):
        if place == moved:
            path.rename(moved)
        report = ingest([place], sqlite, options)
        assert ((0, 0, 1, 0), ()) == (counted(report), report.unattributed)
        assert before == snapshot(sqlite)


def test_other_words_revise_it(sqlite: URL, tmp_path: Path) -> None:
    """The run stays one run, and the older result is kept."""
    path = write(tmp_path / "a")
    ingest([path], sqlite, GIVEN)

    other = replace(GIVEN, logs=LogOptions((*SET, "micro_batch_size=2")))
    assert (0, 1, 0, 0) == counted(ingest([path], sqlite, other))
    assert 1 == count(sqlite, "runs")
    question = select(cases.c.micro_batch_size, results.c.superseded).join(
        cases, results.c.case_id == cases.c.id
    )
    assert {(None, True), (2, False)} == set(rows_in_words(sqlite, question))


BY_RELEASE = (
    select(releases.c.version, results.c.superseded, runs.c.withdrawn)
    .join(releases, results.c.release_id == releases.c.id)
    .join(runs, results.c.run_id == runs.c.id)
    .order_by(results.c.id)
)


def test_the_same_log_is_a_result_of_each_release(sqlite: URL, tmp_path: Path) -> None:
    """Each is read again, verified and withdrawn by itself; a note names the other one."""
    path = write(tmp_path / "a")
    later = replace(GIVEN, context=PageContext(release="2.1"))
    ingest([path], sqlite, GIVEN)

    report = ingest([path], sqlite, later)

    told = "the same content is stored for release 2.0: each release has its result"
    assert ((1, 0, 0, 0), [told]) == (counted(report), [it.message for it in report.notes])
    padded = replace(GIVEN, context=PageContext(release="2.0.0"))
    for options, expected in ((GIVEN, (0, 0, 1, 0)), (later, (0, 0, 1, 0)), (padded, (0, 1, 0, 0))):
        assert expected == counted(ingest([path], sqlite, options))
    assert [] == faults(sqlite)

    report = ingest([path], sqlite, Options(logs=LogOptions((*SET, "micro_batch_size=2"))))
    [problem] = report.rejected
    assert (problem.remedy, report.unattributed) == ("pass --release 2.0.0 with them", ())
    assert [("2.0", True), ("2.1", False), ("2.0.0", False)] == [
        row[:2] for row in rows_in_words(sqlite, BY_RELEASE)
    ]

    [first, _] = rows_of(sqlite, select(runs.c.run_id).order_by(runs.c.id))
    withdraw([first[0]], sqlite, "of release 2.1")
    assert (0, 0, 1, 0) == counted(ingest([path], sqlite, later))
    assert [None] == [
        row[2] for row in rows_in_words(sqlite, BY_RELEASE.where(~results.c.superseded))
    ]


def test_a_log_that_grew_is_a_later_state_of_its_own_release(sqlite: URL, tmp_path: Path) -> None:
    path = write(tmp_path / "a", nemo()[: len(nemo()) * 3 // 4])
    later = replace(GIVEN, context=PageContext(release="2.1"))
    for options in (GIVEN, later):
        ingest([path], sqlite, options)
    write(tmp_path / "a")

    for options in (later, GIVEN):
        assert (0, 1, 0, 0) == counted(ingest([path], sqlite, options))
    assert ["2.1", "2.0"] == [
        row[0] for row in rows_in_words(sqlite, BY_RELEASE.where(~results.c.superseded))
    ]
    assert [] == faults(sqlite)


def test_an_unattributed_result_becomes_that_of_the_first_release(
    sqlite: URL, tmp_path: Path
) -> None:
    path = write(tmp_path / "a")
    ingest([path], sqlite, Options(logs=LogOptions(SET)))

    assert (0, 1, 0, 0) == counted(ingest([path], sqlite, GIVEN))
    assert 1 == count(sqlite, "runs")


def test_an_unattributed_log_is_kept_until_somebody_says_what_it_is_of(
    sqlite: URL, tmp_path: Path
) -> None:
    """Its bytes are there; the second time nothing changes; with the words it is new."""
    path = write(tmp_path / "a")
    told = (
        f"{path}: names no model, system, num_gpus, sequence_length, task, release; pass "
        "--set model=… --set system=… --set num_gpus=… --set sequence_length=… --set task=… "
        "--release …"
    )

    first = ingest([path], sqlite, Options())
    before, entries = snapshot(sqlite), count(sqlite, "ingest_log")
    second = ingest([path], sqlite, Options())

    assert [[told], [told]] == [[*map(str, it.unattributed)] for it in (first, second)]
    assert (0, 0, 0, 0) == counted(first) == counted(second)
    assert not first.failed
    assert (before, entries) == (snapshot(sqlite), count(sqlite, "ingest_log"))
    assert [(str(path), "nemo2")] == rows_in_words(sqlite, select(sources.c.path, sources.c.parser))
    [(action, reason)] = rows_in_words(sqlite, select(ingest_log.c.action, ingest_log.c.reason))
    assert "unattributed" == action
    assert str(reason).startswith("names no model, system")

    third = ingest([path], sqlite, GIVEN)
    assert ((1, 0, 0, 0), ()) == (counted(third), third.unattributed)


def test_a_log_is_of_what_lies_beside_it(sqlite: URL, tmp_path: Path) -> None:
    """The launcher's file says model, system, GPUs and release; it is kept with the run."""
    write(tmp_path / "a", LLMB, "llmb-config_1.yaml")
    write(tmp_path / "a")
    options = Options(logs=LogOptions(("sequence_length=8192",)))

    report = ingest([tmp_path], sqlite, options)

    assert ((1, 0, 0, 0), ()) == (counted(report), report.unattributed)
    question = select(releases.c.version, releases.c.container, models.c.name, cases.c.num_gpus)
    [row] = rows_in_words(
        sqlite,
        question.select_from(runs)
        .join(releases, runs.c.release_id == releases.c.id)
        .join(cases, runs.c.case_id == cases.c.id)
        .join(models, cases.c.model_id == models.c.id),
    )
    assert ("25.07.01", "nvcr.io/nvidia/nemo:25.07.01", "llama3-8b", 8) == row
    assert 2 == count(sqlite, "run_files")


def test_a_run_has_the_environment_that_the_files_beside_its_log_say(
    sqlite: URL, tmp_path: Path
) -> None:
    """Less what smells of a secret; and what they say of its figures stands with the result."""
    job = """\
job_config:
  profile_enabled: true
  env_overrides: {NCCL_NVLS_ENABLE: 0, HF_TOKEN: hf_abc}
"""
    write(tmp_path / "a", LLMB + job, "llmb-config_1.yaml")
    write(tmp_path / "a")

    ingest([tmp_path], sqlite, Options(logs=LogOptions(("sequence_length=8192",))))

    variables = {"variables": {"NCCL_NVLS_ENABLE": "0"}}
    noted = ["steps under the profiler take longer"]
    question = select(runs.c.environment, results.c.notes).join(
        results, results.c.run_id == runs.c.id
    )
    assert [(variables, noted)] == rows_in_words(sqlite, question)


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


def test_the_bytes_of_a_large_log_can_be_had_back(sqlite: URL, tmp_path: Path) -> None:
    """It is packed into a temporary file while it is read, and that is gone afterwards."""
    noise = random.Random(1).randbytes(300_000).hex()
    path = write(tmp_path / "a", nemo() + noise)

    ingest([path], sqlite, GIVEN)

    [(content, sha256, size)] = rows_in_words(
        sqlite, select(sources.c.content, sources.c.sha256, sources.c.size_bytes)
    )
    assert isinstance(content, bytes)
    assert path.read_bytes() == zstandard.ZstdDecompressor().decompressobj().decompress(content)
    assert (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_size) == (sha256, size)


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
        (
            "mlperf",
            nemo(),
            "the log holds no 'train_step_time' and no time to train; the content looks like nemo2",
        ),
        ("nemo1", nemo(), "the log holds no step that can be read; the content looks like nemo2"),
        ("megatron_golden", nemo(), "not JSON: Expecting value; the content looks like nemo2"),
        ("nemo1", FAILED, "RuntimeError: NCCL timed out; the content looks like nemo2"),
        (
            "mlperf",
            PAGE,
            "the log holds no 'train_step_time' and no time to train; the content looks like "
            f"{IS_PAGE}",
        ),
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


def test_a_file_that_sums_up_gives_its_figures_as_printed(sqlite: URL, tmp_path: Path) -> None:
    """4000 TFLOP a step over 8 GPUs and 1.25 s: 400 TFLOP/s/GPU; nothing is computed beside it."""
    path = write(tmp_path / "a", SUMMARY, "results.json")
    options = Options(logs=LogOptions(("model=llama3-8b", "system=dgx-h100", "task=pretrain")))

    assert (1, 0, 0, 0) == counted(ingest([path], sqlite, options))

    names = ("origin", "step_time_s", "model_tflops_per_sec_per_gpu", "mfu",
             "tokens_per_sec_per_gpu", "window", "formula_version")  # fmt: skip
    [row] = rows_in_words(sqlite, select(*[results.c[name] for name in names]))
    assert ("published", 1.25, 400.0, 0.4, None, "skip_warmup(2)", None) == row
    assert (0, 0, 1, 0) == counted(ingest([path], sqlite, options))


def test_the_reference_lists_every_format() -> None:
    page = (Path(__file__).parents[1] / "docs" / "reference" / "formats.md").read_text()
    listed = [line.split("`")[1] for line in page.splitlines() if line.startswith("| `")]
    assert list(FORMATS) == listed


IN_FORCE = (
    select(
        releases.c.version, cases.c.num_gpus, cases.c.tensor_parallel, cases.c.micro_batch_size,
        results.c.tokens_per_sec_per_gpu,
    )
    .join(releases, results.c.release_id == releases.c.id)
    .join(cases, results.c.case_id == cases.c.id)
    .where(~results.c.superseded)
)  # fmt: skip


def test_the_same_path_is_taken_at_its_last_word_however_it_is_spelled(
    sqlite: URL, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "a")
    ingest([path], sqlite, GIVEN)
    monkeypatch.chdir(tmp_path)

    report = ingest([Path("a/train.log")], sqlite, replace(GIVEN, context=PageContext(release="3")))

    assert (1, 0, 0, 0) == counted(report)
    assert ["2.0", "3"] == [row[0] for row in rows_of(sqlite, IN_FORCE)]


@pytest.mark.parametrize("tail_bytes", [0, 300_000])
def test_a_log_that_grew_is_one_run(store: URL, tmp_path: Path, tail_bytes: int) -> None:
    """Read while it ran and when it was done; packed in memory, and in a file."""
    whole = nemo() + random.Random(1).randbytes(tail_bytes).hex()
    path = write(tmp_path / "a", nemo()[: len(nemo()) * 3 // 4])
    assert (1, 0, 0, 0) == counted(ingest([path], store, GIVEN))
    path.write_text(whole)

    planned, _ = preview([path], store, GIVEN)
    assert (0, 1, 0, 0) == counted(planned) == counted(ingest([path], store, GIVEN))
    assert (0, 0, 1, 0) == counted(ingest([path], store, GIVEN))

    assert [("finished",)] == rows_of(store, select(runs.c.outcome))
    question = select(results.c.outcome, results.c.superseded).order_by(results.c.id)
    assert [("incomplete", True), ("finished", False)] == rows_of(store, question)
    assert 2 == len(rows_of(store, select(sources.c.id)))


DIED = "Traceback (most recent call last):\nRuntimeError: boom\n"
STARTED = "[NeMo I 2025-08-26 13:43:03 nemo_logging:405] starts\n"


def told(report: Report) -> list[str]:
    return [str(note) for note in report.notes if "passed over" in note.message]


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """A folder with a log, beside one with another."""
    write(tmp_path / "elsewhere", nemo([3.0] * 20))
    write(tmp_path / "logs")
    return tmp_path / "logs"


def test_links_to_folders_are_named_and_not_followed(sqlite: URL, logs: Path) -> None:
    links = [logs / "2026-03-01", logs / "a" / "again"]
    (logs / "a").mkdir()
    for link in links:
        link.symlink_to(logs.parent / "elsewhere")

    report = ingest([logs], sqlite, GIVEN)

    assert (1, ()) == (report.new, report.rejected)
    assert told(report) == [
        f"{logs}: passed over 2 links to folders: {links[0]}, {links[1]}; "
        "name the folder to read what it holds"
    ]
    assert report.unknown == tuple(map(str, links))


def test_steps_in_the_stderr_of_a_job_are_read(sqlite: URL, tmp_path: Path) -> None:
    path = write(tmp_path / "logs", name="job-77.err")
    write(tmp_path / "logs", "job starts on n1\n", name="job-77.out")
    report = ingest([tmp_path / "logs"], sqlite, GIVEN)
    assert (1, ()) == (report.new, report.rejected)
    assert (str(path.with_suffix(".out")),) == report.unknown


@pytest.mark.parametrize("text", ["", "warning: slow\n", DIED, STARTED, STARTED + DIED])
def test_stderr_without_a_step_is_passed_over(sqlite: URL, tmp_path: Path, text: str) -> None:
    """The run that it may tell the end of stands in another file: it is no run of its own."""
    write(tmp_path / "logs", name="job-77.out")
    path = write(tmp_path / "logs", text, name="job-77.err")
    report = ingest([tmp_path / "logs"], sqlite, GIVEN)
    assert (1, (), ()) == (report.new, report.rejected, report.nameless)
    assert (str(path),) == report.unknown


OTHER_NAMES = (
    "train.log.1", "TRAIN.OUT-20260301", "slurm-1.out.2", "a.jsonl.2026-03-01T10:00", "b.log.old",
    "job.o12345", "job.o12345.2", "stdout", "stderr", "job.e12345",
)  # fmt: skip


def test_logs_under_the_names_of_rotation_and_schedulers_are_read(
    sqlite: URL, tmp_path: Path
) -> None:
    """Not what only looks so."""
    no_logs = ("core.12345", "lib.so.1", "x.log.py", "events.out.tfevents.1.n1.2.0", "a.output")
    for number, name in enumerate((*OTHER_NAMES, *no_logs)):
        write(tmp_path / "logs", nemo([2.0 + number, 2.5] * 10), name)
    report = ingest([tmp_path / "logs"], sqlite, GIVEN)
    stored = rows_of(sqlite, select(sources.c.path))
    assert sorted(OTHER_NAMES) == sorted(Path(str(path)).name for (path,) in stored)
    assert (len(OTHER_NAMES), ()) == (report.new, report.unknown)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (megatron().replace(" | elapsed", " | consumed tokens: 8396800 | elapsed"), 1),
        ("-------- arguments --------\n  deepspeed ............ True\n" + megatron(), 2),
    ],
)
def test_a_log_of_megatron_deepspeed_is_none_of_megatron(
    sqlite: URL, tmp_path: Path, text: str, line: int
) -> None:
    """Its lines look like those of Megatron-LM, and its sequences need not have `seq_length`."""
    path = write(tmp_path / "a", text)
    given = Options(PageContext(release="2.0"), logs=LogOptions(SET))
    (problem,) = ingest([path], sqlite, given).rejected
    assert (line, True) == (problem.line, "Megatron-DeepSpeed" in problem.message)
