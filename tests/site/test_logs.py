"""A site of nothing but logs: what a log does not say is shown as unknown."""

from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from perfdb import ingest
from perfdb.db.session import store_url
from tests import logs
from tests.site.conftest import site_of


@pytest.mark.slow
def test_the_runs_of_logs_have_pages_without_recipe_start_and_command(tmp_path: Path) -> None:
    """It is built without a warning, with a run and with a file that sums up."""
    url = store_url(str(tmp_path / "store.sqlite"))
    logs.write(tmp_path / "logs")
    logs.write(tmp_path / "logs", logs.SUMMARY, "results.json")
    assert 2 == ingest.ingest([tmp_path / "logs"], url, logs.GIVEN).new

    html = site_of(tmp_path, url).built().html

    [page] = (html / "runs").glob("log-*.html")
    text = BeautifulSoup(page.read_text(), "html.parser").get_text(" ", strip=True)
    assert "Recipe – " in text
    assert "Started – " in text
    assert "The run kept no recipe file." in text
    assert "The run kept no command." in text
    listed = BeautifulSoup((html / "runs" / "index.html").read_text(), "html.parser")
    assert "finished" in listed.get_text(" ", strip=True)
