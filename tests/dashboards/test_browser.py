"""The real dashboard in a real browser: what is on the page, and what it asks of the network."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page

from perfdb.db.session import store_url
from tests import logs
from tests.browser import needs_chromium, started
from tests.factories import release, stored, write_run

STEPS = (90.0, 50.0, 41.0, 40.0, 42.0, 40.0, 43.0, 40.0, 41.0, 40.0)
"""Seconds of 166 TFLOP/s: the audit finds no error in them."""

pytestmark = [pytest.mark.slow, needs_chromium]


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


PATIENCE_MS = 60_000
"""On a busy machine a page of Streamlit takes as long."""


@pytest.fixture(scope="module")
def context() -> Iterator[BrowserContext]:
    """A browser that keeps Streamlit's scripts. Each page in it is a session of its own."""
    with started() as browser:
        context = browser.new_context(reduced_motion="reduce")
        context.set_default_timeout(PATIENCE_MS)
        yield context


@pytest.mark.parametrize(("name", "status"), [("evil.example", 403), ("localhost", 101)])
def test_a_name_that_is_not_this_machines_reads_nothing(site: str, name: str, status: int) -> None:
    """A page of evil.example whose name points here is of the same origin as the dashboard."""
    host = site.removeprefix("http://").replace("localhost", name)
    asked = {
        "Host": host, "Origin": f"http://{host}", "Connection": "Upgrade", "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    }  # fmt: skip
    with closing(HTTPConnection(site.removeprefix("http://"), timeout=10)) as connection:
        connection.request("GET", "/_stcore/stream", headers=asked)
        assert status == connection.getresponse().status


def opened_page(context: BrowserContext, width: int = 1440) -> Page:
    """A page of a window that is so many pixels wide."""
    page = context.new_page()
    page.set_viewport_size({"width": width, "height": 900})
    return page


class Visit:
    """A page with all that it asked for and complained about."""

    def __init__(self, context: BrowserContext, width: int) -> None:
        self.page = opened_page(context, width)
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.missing: set[str] = set()
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on(
            "response",
            lambda answer: self.missing.add(answer.url) if answer.status == 404 else None,
        )
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on(
            "console",
            lambda said: self.complaints.append(said.text) if said.type == "error" else None,
        )

    def outside(self, site: str) -> list[str]:
        """What it asked of others than the dashboard."""
        own = (site, site.replace("http", "ws", 1), "data:", "blob:")
        return [url for url in self.requests if not url.startswith(own)]

    def chart_px(self) -> tuple[float, float]:
        """The width and the height of the last chart of the page, once it is drawn."""
        charts = self.page.locator("[data-testid=stVegaLiteChart] :is(canvas, svg.marks)")
        charts.last.wait_for()
        box = charts.last.bounding_box()
        assert box is not None
        return box["width"], box["height"]

    def overflow_px(self) -> int:
        """By how much the page is wider than the window."""
        wider: int = self.page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        return wider


AXIS_PX, LEGEND_PX = 35, 30
"""The least that ticks, their numbers and a title take below a chart, and a legend above it."""


@pytest.mark.parametrize("width", [1440, 390])
def test_a_comparison_is_whole_on_the_page_and_nothing_is_asked_of_others(site, context, width):
    """Its chart has one match of 46 pixels beside an axis and a legend.

    That of the results has one bar of 44 pixels beside an axis.
    """
    visit = Visit(context, width)
    visit.page.goto(f"{site}/?a=megatron-core+0.16.0&b=megatron-core+0.16.1")
    row = visit.page.get_by_role("row").filter(has_text="Llama 3 8B")
    row.wait_for()
    assert ["1", "Llama 3 8B", "8 × DGX-H100", "1.250", "▲ faster"] == row.locator(
        "td"
    ).all_inner_texts()[:5]
    assert 46 + AXIS_PX + LEGEND_PX < visit.chart_px()[1]
    assert ([], [], 0) == (visit.outside(site), visit.complaints, visit.overflow_px())
    visit.page.goto(f"{site}/explore")
    visit.page.get_by_role("heading", name="Explore results").wait_for()
    chart_width, height = visit.chart_px()
    assert 44 + AXIS_PX < height
    assert chart_width <= width
    visit.page.close()


PAGES = {
    "Overview": "Overview", "Compare": "Compare", "Explore": "Explore results", "Model": "Model",
    "System": "System", "Scaling": "Scaling", "Run": "Run", "Findings": "Findings",
    "What-if": "What-if", "Mine": "Mine",
}  # fmt: skip
"""Each link to a page with its heading."""


def test_every_page_is_reached_by_its_link(site, context):
    visit = Visit(context, 1440)
    visit.page.goto(site)
    for link, heading in PAGES.items():
        visit.page.get_by_role("link", name=link, exact=True).click()
        visit.page.get_by_role("heading", name=heading, exact=True).first.wait_for()
        assert 0 == visit.overflow_px()
    assert ([], []) == (visit.outside(site), visit.complaints)
    assert 0 == visit.page.get_by_test_id("stException").count()
    visit.page.close()


def test_a_regression_leads_to_its_run_and_a_copied_link_to_the_same_view(site, context):
    """0.16.0 against 0.16.1 is slower: its run took 40.5 s a step, and the other 32.4 s."""
    page = opened_page(context)
    page.goto(f"{site}/compare")
    for label, name in (("Release A", "0.16.1"), ("Release B", "0.16.0")):
        page.get_by_role("combobox", name=label).click()
        page.get_by_role("option", name=f"Megatron-Core {name}").click()
        # A choice that is made while the page is still drawn anew can be lost.
        page.wait_for_url(f"**{label[-1].lower()}=megatron-core+{name}**")
    page.get_by_text("▼ slower").last.wait_for()
    compared = page.url
    row = page.get_by_role("row").filter(has_text="0.800")
    with context.expect_page() as opened:
        row.get_by_role("link", name="steps").click()
    run = opened.value
    run.get_by_role("heading", name="Step time").wait_for()
    run.get_by_text("What differs from another run").wait_for()
    run.wait_for_url("**run=old&with=new**")
    links = {compared: "▼ slower", run.url: "What differs from another run"}
    run.close()
    for address, words in links.items():
        page.goto("about:blank")
        page.goto(address)
        page.get_by_text(words).last.wait_for()
        assert address == page.url
    page.close()


def test_an_own_log_is_laid_over_the_official_results(site, context, tmp_path):
    page = opened_page(context)
    page.goto(f"{site}/mine")
    page.get_by_text("What the file does not state").wait_for()
    stated = page.get_by_role("textbox")
    stated.fill("\n".join([*logs.SET, "release=0.16.1"]))
    stated.press("Control+Enter")
    page.locator("input[type=file]").set_input_files(logs.write(tmp_path))
    page.get_by_role("heading", name="Unofficial: your file").wait_for()
    page.get_by_role("heading", name="Llama 3 8B, BF16: official results and yours").wait_for()
    page.locator("[data-testid=stVegaLiteChart] :is(canvas, svg)").first.wait_for()
    page.close()


def test_the_only_complaints_of_a_direct_visit_are_streamlits_own(site, context):
    """Streamlit's page looks for its server below its own address first, then at the root.

    The two answers "not found" lead it there; nothing else may be missing.
    """
    visit = Visit(context, 1440)
    visit.page.goto(f"{site}/runs?run=old")
    visit.page.get_by_role("heading", name="old").wait_for()
    visit.page.get_by_text("torchrun train.py").wait_for()
    visit.chart_px()
    own = {f"{site}/runs/_stcore/health", f"{site}/runs/_stcore/host-config"}
    assert (own, len(own)) == (visit.missing, len(visit.complaints))
    assert all("404" in complaint for complaint in visit.complaints)
    visit.page.close()
