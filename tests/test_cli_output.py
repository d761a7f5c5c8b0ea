"""What a command says where its output cannot be written: not what a closed gate says."""

import subprocess
import sys
from pathlib import Path

import pytest

PERFDB = str(Path(sys.executable).with_name("perfdb"))


def ended(line: str) -> tuple[int, str]:
    """The exit code of a command line, and what it says on stderr."""
    words = ["bash", "-c", f"set -o pipefail; {line.replace('perfdb', PERFDB)}"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    "line", ["perfdb systems", "perfdb systems --json", "perfdb --help", "perfdb nonsense 2>&1"]
)
def test_a_closed_pipe_ends_as_any_program_does_there(line: str) -> None:
    """128 + SIGPIPE; by rich and click it is 1."""
    assert (141, "") == ended(f"{line} | true")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux")
@pytest.mark.parametrize("line", ["perfdb systems", "perfdb systems --json", "perfdb --help"])
def test_a_full_disk_is_no_defect(line: str) -> None:
    said = "error: cannot write the output: No space left on device\n"
    assert (2, said) == ended(f"{line} > /dev/full")
    assert (2, "") == ended(f"{line} > /dev/full 2>&1")
