"""What of a folder is read, and what is passed over and told: links to folders, stderr of jobs."""

from pathlib import Path

import pytest
from sqlalchemy import URL, select

from perfdb.db.tables import sources
from perfdb.ingest import Report, ingest
from tests.logs import GIVEN, nemo, write
from tests.trees import rows_of

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


def test_a_folder_of_one_link_alone_says_so(sqlite: URL, tmp_path: Path) -> None:
    write(tmp_path / "elsewhere")
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "run").symlink_to(tmp_path / "elsewhere")
    report = ingest([tmp_path / "logs"], sqlite, GIVEN)
    assert (0, 1) == (report.new, len(told(report)))
    assert "passed over a link to a folder: " in told(report)[0]


def test_a_link_to_what_is_read_where_it_lies_is_not_told(sqlite: URL, logs: Path) -> None:
    """As `latest` of several runs; nor is what is hidden, or leads nowhere."""
    (logs / "a").mkdir()
    (logs / "latest").symlink_to("a")
    (logs / "other").symlink_to(logs.parent / "elsewhere")
    (logs / ".cache").symlink_to(logs.parent.parent)
    (logs / "gone").symlink_to("nowhere")
    report = ingest([logs, logs.parent / "elsewhere"], sqlite, GIVEN)
    assert (2, []) == (report.new, told(report))


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


def test_stderr_that_is_named_is_a_run_that_failed(sqlite: URL, tmp_path: Path) -> None:
    path = write(tmp_path / "logs", STARTED + DIED, name="job-77.err")
    report = ingest([path], sqlite, GIVEN)
    assert (1, ()) == (report.new + len(report.nameless), report.rejected)


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


@pytest.mark.parametrize("name", ["stderr", "job.e12345", "job.err.1", "job.log.1"])
def test_such_a_log_without_a_step_is_told(sqlite: URL, tmp_path: Path, name: str) -> None:
    """And an error in the stderr of a job is no run of its own, whatever its name."""
    path = write(tmp_path / "logs", "job starts" if ".log" in name else DIED, name)
    report = ingest([tmp_path / "logs"], sqlite, GIVEN)
    assert ((), (str(path),)) == (report.rejected, report.unknown)
