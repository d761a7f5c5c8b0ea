"""The figures of all real inputs are those that were recorded."""

import pytest

from tests.oracle.__main__ import check
from tests.oracle.shell import SHARED


@pytest.mark.slow
@pytest.mark.skipif(not (SHARED / "corpus").is_dir(), reason="no corpus beside the project")
@pytest.mark.parametrize("section", ["pages", "logs", "rundir", "store"])
def test_outputs_are_as_recorded(section: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Every difference is accepted in tests/data/oracle/reviewed.yml."""
    assert (0, "") == (check([section]), "".join(capsys.readouterr().out.split("===")[1:]))


@pytest.mark.slow
def test_commands_are_as_recorded(capsys: pytest.CaptureFixture[str]) -> None:
    """The help of every command, and how bad input ends."""
    assert (0, "") == (check(["cli"]), "".join(capsys.readouterr().out.split("===")[1:]))
