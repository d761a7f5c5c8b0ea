"""Inputs that once showed a fault; `make fuzz` adds to them."""

from pathlib import Path

import pytest

from tests.fuzz.targets import TARGETS, checked

FOUND = sorted((Path(__file__).parent / "data" / "fuzz").glob("*/*"))


@pytest.mark.parametrize("path", FOUND, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_an_input_that_once_showed_a_fault_shows_none(path: Path) -> None:
    checked(path.parent.name, path.read_bytes())


def test_every_input_is_of_a_target() -> None:
    assert {path.parent.name for path in FOUND} <= TARGETS.keys()
