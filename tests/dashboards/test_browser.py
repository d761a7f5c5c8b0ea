"""The real dashboard in a real browser: what is on the page, and what it asks of the network."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from perfdb.db.session import store_url
from tests.factories import release, stored, write_run

CHROMIUM = Path("/usr/bin/chromium")
STEPS = (9.0, 5.0, 4.1, 4.0, 4.2, 4.0, 4.3, 4.0, 4.1, 4.0)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not CHROMIUM.exists(), reason="no Chromium on this machine"),
]


def free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("localhost", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of `perfdb dashboard`, started on a store with two releases."""
    folder, port = tmp_path_factory.mktemp("dashboard"), free_port()
    url = store_url(str(folder / "store.sqlite"))
    faster = [time * 0.8 for time in STEPS]
    stored(
        url,
        write_run(folder, run_id="old", step_times=STEPS),
        write_run(folder, run_id="new", release=release("0.16.1"), step_times=faster),
    )
    perfdb = Path(sys.executable).with_name("perfdb")
    command = [perfdb, "dashboard", "--db", str(url), "--port", str(port), "--headless"]
    server = subprocess.Popen(command, cwd=folder, env=os.environ | {"HOME": str(folder)})
    try:
        wait_for(server, port)
        yield f"http://localhost:{port}"
    finally:
        server.send_signal(signal.SIGINT)
        assert 0 == server.wait(timeout=30)


def wait_for(server: "subprocess.Popen[bytes]", port: int) -> None:
    """Until the server listens; fails at once where it has ended."""
    for _ in range(300):
        assert server.poll() is None, "the dashboard ended as it started"
        with closing(socket.socket()) as probe:
            if probe.connect_ex(("localhost", port)) == 0:
                return
        time.sleep(0.1)
    pytest.fail("the dashboard does not listen after 30 seconds")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )


class Visit:
    """A page with all that it asked for and complained about."""

    def __init__(self, browser: Browser, width: int) -> None:
        self.page: Page = browser.new_page(viewport={"width": width, "height": 900})
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on(
            "console",
            lambda said: self.complaints.append(said.text) if said.type == "error" else None,
        )

    def outside(self, site: str) -> list[str]:
        """What it asked of others than the dashboard."""
        own = (site, site.replace("http", "ws", 1), "data:", "blob:")
        return [url for url in self.requests if not url.startswith(own)]

    def overflow_px(self) -> int:
        """By how much the page is wider than the window."""
        wider: int = self.page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        return wider


@pytest.mark.parametrize("width", [1440, 390])
def test_the_comparison_is_on_the_page_and_nothing_is_asked_of_others(site, browser, width):
    visit = Visit(browser, width)
    visit.page.goto(f"{site}/?a=megatron-core+0.16.0&b=megatron-core+0.16.1")
    row = visit.page.get_by_role("row").filter(has_text="Llama 3 8B")
    row.wait_for()
    assert ["Llama 3 8B", "8 × DGX-H100", "1.250", "▲ faster"] == row.locator(
        "td"
    ).all_inner_texts()[:4]
    visit.page.locator("[data-testid=stVegaLiteChart] :is(canvas, svg)").first.wait_for()
    assert ([], [], 0) == (visit.outside(site), visit.complaints, visit.overflow_px())
    visit.page.close()


def test_every_page_is_reached_by_its_link(site, browser):
    visit = Visit(browser, 1440)
    visit.page.goto(site)
    for link, heading in (("Explore results", "Explore results"), ("Look into runs", "Command")):
        visit.page.get_by_role("link", name=link).click()
        visit.page.get_by_role("heading", name=heading).first.wait_for()
        assert 0 == visit.overflow_px()
    assert visit.page.url.startswith(f"{site}/runs?run=")
    assert ([], []) == (visit.outside(site), visit.complaints)
    visit.page.close()


def test_an_address_leads_to_a_run(site, browser):
    visit = Visit(browser, 1440)
    visit.page.goto(f"{site}/runs?run=old")
    visit.page.get_by_role("heading", name="old").wait_for()
    visit.page.get_by_text("torchrun train.py").wait_for()
    visit.page.close()
