"""The test Slurms, each one for all tests of a process."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.slurm import service


@contextmanager
def _started(*, accounting: bool, min_job_age_s: int) -> Iterator[service.TestCluster]:
    """A Slurm of two nodes. Skips the test where none can be started."""
    reason = service.why_not() or (service.without_accounting() if accounting else None)
    if reason:
        pytest.skip(reason)
    folder = Path(tempfile.mkdtemp(prefix="perfdb-slurm-"))
    folder.chmod(0o755)
    with ExitStack() as stack:
        try:
            cluster = stack.enter_context(
                service.started(folder, min_job_age_s, accounting=accounting)
            )
        except (OSError, subprocess.CalledProcessError, TimeoutError) as error:
            pytest.skip(f"no Slurm starts here: {error}")
        yield cluster
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def slurm_service() -> Iterator[service.TestCluster]:
    """A Slurm without accounting."""
    with _started(accounting=False, min_job_age_s=300) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def accounting_service() -> Iterator[service.TestCluster]:
    """A Slurm with slurmdbd, whose controller forgets a job some seconds after its end."""
    with _started(accounting=True, min_job_age_s=2) as cluster:
        yield cluster


@pytest.fixture
def slurm(
    slurm_service: service.TestCluster, monkeypatch: pytest.MonkeyPatch
) -> service.TestCluster:
    """A Slurm of two nodes, to which Slurm's programs in this process's environment speak."""
    monkeypatch.setenv("SLURM_CONF", slurm_service.variables["SLURM_CONF"])
    return slurm_service
