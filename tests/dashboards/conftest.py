"""What the pages show, and what Streamlit's AppTest leaves to those who test with it."""

import shutil
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from sqlalchemy import URL

from perfdb.db.session import store_url
from tests.conftest import made_once


@pytest.fixture
def shows(
    tmp_path_factory: pytest.TempPathFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Callable[[URL, Path], None]], URL]:
    """Makes the pages show a copy of a store, which is filled once, with files in a folder."""

    def show(fill: Callable[[URL, Path], None]) -> URL:
        def make(folder: Path) -> None:
            fill(store_url(str(folder / "store.sqlite")), folder)

        made = made_once(tmp_path_factory, fill.__name__, make)
        url = store_url(shutil.copy(made / "store.sqlite", tmp_path))
        monkeypatch.setenv("PERFDB_URL", str(url))
        return url

    return show


@pytest.fixture(autouse=True)
def own_main_module() -> Iterator[None]:
    """Streamlit runs a page as the main module; what `spawn` starts imports it: pytest's own."""
    main = sys.modules["__main__"]
    yield
    sys.modules["__main__"] = main


@pytest.fixture(autouse=True, scope="session")
def components_sought_once() -> Iterator[None]:
    """Each AppTest seeks Streamlit's components in all that is installed, for half a second."""
    from streamlit.components.v2 import manifest_scanner as scanner

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scanner, "scan_component_manifests", cache(scanner.scan_component_manifests))
        yield
