"""A damaged store is an error of every command that reads it or writes to it."""

from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import URL

from perfdb.errors import StoreError
from perfdb.ingest import ingest
from perfdb.queries.scope import Scope
from perfdb.verify import verify
from perfdb.verify.figures import Asked
from perfdb.verify.recompute import recompute
from tests.trees import NEMO, write_tree

HASH = b"content_hash"
DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "the second half is missing": lambda store: store[: len(store) // 2],
    "the tables are no SQL": lambda store: store.replace(b"CREATE TABLE", b"CREATE TABEL"),
    "the tables are no text": lambda store: store.replace(b"CREATE TABLE", b"CREATE TABL\xe8"),
    "a name of a column is no text": lambda store: store.replace(HASH, HASH[:-1] + b"\xe8"),
    "a column has another name": lambda store: store.replace(HASH, HASH[:-1] + b"i"),
    "pages are blank": lambda store: store[: 3 * 4096] + bytes(6 * 4096) + store[9 * 4096 :],
}
USES: dict[str, Callable[[Path, URL], object]] = {
    "ingest": lambda tree, url: ingest([tree], url, NEMO),
    "verify": lambda _, url: verify(url, lambda _, __: lambda: None),
    "recompute": lambda _, url: recompute(url, Scope(), Asked()),
}


@pytest.mark.parametrize("use", USES)
def test_a_damaged_store_is_an_error_that_says_so(sqlite: URL, tmp_path: Path, use: str) -> None:
    """With the name of the store and what can be done."""
    (tmp_path / "tree").mkdir()
    tree = write_tree(tmp_path / "tree")
    ingest([tree], sqlite, NEMO)
    store = Path(str(sqlite.database))
    whole = store.read_bytes()
    for damage in DAMAGES.values():
        store.write_bytes(damage(whole))
        with pytest.raises(
            StoreError, match=r"store\.sqlite: .*; the file is damaged: take an old"
        ):
            USES[use](tree, sqlite)
