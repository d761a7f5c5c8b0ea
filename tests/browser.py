"""A real Chromium that draws pages for a test."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

PROGRAMS = (Path("/usr/bin/chromium-headless-shell"), Path("/usr/bin/chromium"))
"""The one without windows and menus needs a fifth less of the processor."""
FOUND = [path for path in PROGRAMS if path.exists()]

needs_chromium = pytest.mark.skipif(not FOUND, reason="no Chromium on this machine")


@contextmanager
def started() -> Iterator[Browser]:
    """A browser that is closed afterwards."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=FOUND[0], args=["--no-sandbox", "--disable-gpu"]
        )
        yield browser
        browser.close()
