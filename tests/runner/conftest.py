"""Ctrl-C works in these tests as at a terminal, wherever pytest itself was started."""

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def ctrl_c() -> Iterator[None]:
    """A shell starts background jobs with SIGINT ignored, which children would inherit."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
