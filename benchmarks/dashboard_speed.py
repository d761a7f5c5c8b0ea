"""How long the dashboard takes to open and to answer on a large store.

`python -m benchmarks.dashboard_speed [--results 100000] [--repeats 5]`: fills a SQLite store with
`benchmarks.compare_speed`, and serves the dashboard on it, an empty page of Streamlit, and the
floor: a page with what the first page is asked to have, a row of key figures, a chart and a table,
of few numbers that are there. Chromium opens them in turns; the medians are compared, from the
request to the last chart that is drawn.
Then filters are changed on the pages, in this process: the CPU of each answer beside its limit.
Exits with 1 where a limit is missed.
"""

import argparse
import gc
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from statistics import median
from typing import Any, Final

from playwright.sync_api import Browser, sync_playwright
from sqlalchemy import URL

from benchmarks.compare_speed import RESULTS, fill
from benchmarks.workload import MODELS, SYSTEMS
from perfdb.db.session import store_url

CHROMIUM: Final = Path("/usr/bin/chromium")
EMPTY: Final = 'import streamlit as st\nst.title("Empty")\n'
FLOOR: Final = """
import streamlit as st
st.title("Floor")
with st.container(horizontal=True):
    for name in ("Faster", "Same", "Slower"):
        st.metric(name, 1, border=True)
st.vega_lite_chart({
    "data": {"values": [{"name": "A", "value": 1}, {"name": "B", "value": 2}]}, "mark": "bar",
    "encoding": {"x": {"field": "value", "type": "quantitative"}, "y": {"field": "name"}},
})
st.table([{"name": "A", "value": 1}, {"name": "B", "value": 2}])
"""
"""The least that a page with a row of key figures, a chart and a table takes."""
MOST_TIMES: Final = 1.3
"""How many times as long as an empty page the first page may take."""
MOST_ANSWER_S: Final = 0.3
"""The most CPU of an answer to a changed filter."""
PATIENCE_MS: Final = 300_000
IS_DONE: Final = """
() => document.querySelector('h1')
  && document.querySelector('[data-testid=stApp]').dataset.testScriptState === 'notRunning'
  && !document.querySelector('[data-testid=stSkeleton]')
  && [...document.querySelectorAll('[data-testid=stVegaLiteChart]')].every(
       one => one.querySelector('canvas, svg'))
"""


def free_port() -> int:
    """A port that nobody listens on."""
    with closing(socket.socket()) as probe:
        probe.bind(("localhost", 0))
        return int(probe.getsockname()[1])


@contextmanager
def serving(words: list[str], port: int, folder: Path) -> Iterator[str]:
    """The address of a server, from when it listens until the end."""
    environment = os.environ | {"HOME": str(folder), "PYTHONPATH": str(Path.cwd())}
    with subprocess.Popen(
        [sys.executable, "-m", *words], cwd=folder, env=environment,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    ) as server:  # fmt: skip
        try:
            while True:
                with closing(socket.socket()) as probe:
                    if probe.connect_ex(("localhost", port)) == 0:
                        break
                if server.poll() is not None:
                    raise RuntimeError(f"{words[0]} ended as it started")
                time.sleep(0.1)
            yield f"http://localhost:{port}/"
        finally:
            server.terminate()


def opened_s(browser: Browser, address: str) -> float:
    """Seconds until the page is complete, in a new session that has the scripts in its cache."""
    page = browser.contexts[0].new_page()
    page.set_default_navigation_timeout(PATIENCE_MS)
    began = time.perf_counter()
    page.goto(address)
    page.wait_for_function(IS_DONE, timeout=PATIENCE_MS, polling=10)
    taken = time.perf_counter() - began
    page.close()
    return taken


def first_page(url: URL, folder: Path, repeats: int) -> float:
    """Print how long each page takes; how many times as long as an empty page the dashboard is."""
    options = ["--server.headless=true", "--browser.gatherUsageStats=false"]
    words = {}
    for name, script in (("empty", EMPTY), ("floor", FLOOR)):
        file = folder / f"{name}.py"
        file.write_text(script)
        words[name] = ["streamlit", "run", str(file), *options, "--server.port"]
    words["dashboard"] = ["perfdb", "dashboard", "--db", str(url), "--headless", "--port"]
    with ExitStack() as stack:
        addresses = {}
        for name, some in words.items():
            port = free_port()
            addresses[name] = stack.enter_context(serving([*some, str(port)], port, folder))
        browser = stack.enter_context(sync_playwright()).chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        browser.new_context(viewport={"width": 1440, "height": 900})
        visits = [
            {name: opened_s(browser, address) for name, address in addresses.items()}
            for _ in range(repeats + 1)
        ]
        browser.close()
    usual = {name: median(visit[name] for visit in visits[1:]) for name in words}
    for name, taken_s in usual.items():
        times, of_floor = (taken_s / usual[one] for one in ("empty", "floor"))
        print(
            f"  {name:10} {taken_s:5.2f} s, {times:.2f} × empty, {of_floor:.2f} × floor; the first "
            f"visit {visits[0][name]:.2f} s"
        )
    print(f"  limit: {MOST_TIMES} × the empty page")
    return usual["dashboard"] / usual["empty"]


def answers() -> Mapping[str, float]:
    """The CPU of the answer to a filter that is changed on a page, by what was changed."""
    from streamlit.testing.v1 import AppTest

    def changed(page: str, key: str, value: Any, *, some: bool = False) -> float:
        module, function = page.split(".")
        app = AppTest.from_string(f"from dashboards.views import {module}\n{module}.{function}()")
        app.run(timeout=300)
        widget = app.multiselect(key=key) if some else app.selectbox(key=key)
        widget.set_value(value)
        gc.collect()  # what the pages before have left is no part of this answer
        began = time.process_time()
        app.run(timeout=300)
        assert not app.exception
        return time.process_time() - began

    asked: dict[str, Callable[[], float]] = {
        "Overview: precision": lambda: changed("overview.show", "one precision", "fp8_cs"),
        "Compare: slower only": lambda: changed("compare.show", "only", "slower"),
        "Explore: system": lambda: changed("explore.show", "system", [SYSTEMS[1]], some=True),
        "Explore: along GPUs": lambda: changed("explore.show", "along", "GPUs"),
        "Model: model": lambda: changed("history.show_model", "one model", MODELS[1]),
        "System: system": lambda: changed("history.show_system", "one system", SYSTEMS[1]),
        "Scaling: system": lambda: changed("scaling.show", "one system", SYSTEMS[1]),
        "What-if: model": lambda: changed("whatif.show", "one model", MODELS[1]),
    }
    return {name: ask() for name, ask in asked.items()}


def main() -> int:
    """Measure the first page and the answers; 1 where a limit is missed."""
    parser = argparse.ArgumentParser(description="Measure the dashboard on a large store.")
    parser.add_argument("--results", type=int, default=RESULTS, metavar="N")
    parser.add_argument("--repeats", type=int, default=5, metavar="N")
    given = parser.parse_args()
    folder, missed = Path(tempfile.mkdtemp(prefix="perfdb-dashboard-")), []
    try:
        url = store_url(str(folder / "store.sqlite"))
        fill(url, given.results)
        print(f"{given.results:,} results; load {os.getloadavg()[0]:.1f}")
        if first_page(url, folder, given.repeats) > MOST_TIMES:
            missed.append("first page")
        os.environ["PERFDB_URL"] = url.render_as_string()
        for name, taken_s in answers().items():
            print(f"  {name:24} {taken_s:6.3f} s of CPU, of {MOST_ANSWER_S:g}")
            missed += [name] if taken_s > MOST_ANSWER_S else []
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"missed: {', '.join(missed)}" if missed else "every limit is kept")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
