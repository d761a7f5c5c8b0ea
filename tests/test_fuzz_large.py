"""Files of absurd shapes are read in the memory and the time that any file is."""

import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import URL, select

from perfdb import yamlfile
from perfdb.db.tables import results, runs
from perfdb.formats import FORMATS
from tests.fuzz.mutations import LAUGHS
from tests.fuzz.seeds import NAMES
from tests.fuzz.targets import checked
from tests.logs import SET, nemo
from tests.trees import rows_of

MIB = 1 << 20
LINE_FORMATS = [
    name for name in FORMATS if not NAMES.get(name, "train.log").endswith((".json", ".yaml"))
]


def limited() -> None:
    """For a process that is to be read in: 1.5 GiB of addresses."""
    resource.setrlimit(resource.RLIMIT_AS, (1536 * MIB, 1536 * MIB))


@pytest.mark.slow
def test_a_line_of_100_mb_amid_the_steps_is_passed_over(sqlite: URL, tmp_path: Path) -> None:
    """In bounded memory; the steps before and behind it are read."""
    path = tmp_path / "train.log"
    lines = nemo().encode().splitlines(keepends=True)
    with path.open("wb") as file:
        file.writelines(lines[:10])
        for _ in range(100):
            file.write(b"x" * MIB)
        file.write(b"\n")
        file.writelines(lines[10:])
    command = "from perfdb.cli import main; main()"
    said = [word for one in SET for word in ("--set", one)]
    done = subprocess.run(
        [sys.executable, "-c", command, "ingest", str(path), *said, "--db", str(sqlite.database)],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=limited,
    )
    assert 0 == done.returncode, done.stderr
    assert [(10, 2.1)] == rows_of(sqlite, select(results.c.num_steps, results.c.step_time_s))
    assert [("finished",)] == rows_of(sqlite, select(runs.c.outcome))


@pytest.mark.parametrize("name", LINE_FORMATS)
def test_megabytes_without_an_end_of_line_hold_no_step(name: str) -> None:
    """Be they of the very words that steps are known by."""

    def endless() -> Iterator[bytes]:
        for _ in range(4):
            yield b"step: 1  loss: tps: elapsed time per iteration (ms): " * (MIB // 53)

    logs = FORMATS[name].parse("train.log", endless())
    assert not any(log.steps for log in logs)


@pytest.mark.parametrize("mark", ["*", "[", "[^", "<sup>", "⁴"])
def test_a_cell_of_many_footnote_marks_takes_no_longer_than_another(mark: str) -> None:
    """Their number is what it takes, not the square of it."""
    cell = mark * (40_000 // len(mark))
    page = f"| Model | GBS | Tokens / sec / GPU {cell}x |\n|---|---|---|\n| a | 1 | 2 |\n"
    checked("page", page.encode())


def test_a_document_of_billions_of_values_is_refused_in_words() -> None:
    """Its aliases are counted, not followed."""
    found = yamlfile.parse("a.yaml", LAUGHS.decode())
    assert isinstance(found, yamlfile.Unreadable)
    assert [
        "a.yaml: more than 262,144 values, with what its aliases (*) stand for; "
        "write out what they stand for"
    ] == list(map(str, found.problems))


def test_an_alias_of_itself_is_refused_and_others_are_read() -> None:
    """An anchor that holds its own alias has no end."""
    assert isinstance(yamlfile.parse("a.yaml", "a: &a [*a]\n"), yamlfile.Unreadable)
    read = yamlfile.parse("a.yaml", "a: &a [1, 2]\nb: *a\n")
    assert isinstance(read, yamlfile.Document)
    assert {"a": [1, 2], "b": [1, 2]} == read.content
