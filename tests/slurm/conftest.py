"""The test Slurm, one for all tests of a process."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.slurm import service


@pytest.fixture(scope="session")
def slurm_service() -> Iterator[service.TestCluster]:
    """A Slurm of two nodes. Skips the test where none can be started."""
    if reason := service.why_not():
        pytest.skip(reason)
    folder = Path(tempfile.mkdtemp(prefix="perfdb-slurm-"))
    folder.chmod(0o755)
    with ExitStack() as stack:
        try:
            cluster = stack.enter_context(service.started(folder))
        except (OSError, subprocess.CalledProcessError, TimeoutError) as error:
            pytest.skip(f"no Slurm starts here: {error}")
        yield cluster
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def slurm(
    slurm_service: service.TestCluster, monkeypatch: pytest.MonkeyPatch
) -> service.TestCluster:
    """A Slurm of two nodes, to which Slurm's programs in this process's environment speak."""
    monkeypatch.setenv("SLURM_CONF", slurm_service.variables["SLURM_CONF"])
    return slurm_service
