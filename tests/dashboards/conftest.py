"""Streamlit runs a page as the program's main module; the tests that follow need their own back."""

import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def own_main_module() -> Iterator[None]:
    """Processes started by `spawn` import the main module again: it must be pytest's."""
    main = sys.modules["__main__"]
    yield
    sys.modules["__main__"] = main
