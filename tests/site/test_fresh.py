"""When a build has nothing to do: only as long as nothing that it is made from has changed."""

import os
import shutil
from pathlib import Path

import pytest
from sqlalchemy import URL, update

from perfdb.db.session import store_url
from perfdb.db.tables import models
from perfdb.record import Figures
from perfdb.site import fresh, read
from perfdb.site.files import Layout
from perfdb.site.fresh import Origin
from tests.factories import published, release, stored
from tests.trees import writing

HOUR_NS = 3600 * 10**9


def aged(url: URL) -> URL:
    """The store as if it had been written an hour ago."""
    path = Path(str(url.database))
    then = path.stat().st_mtime_ns - HOUR_NS
    os.utime(path, ns=(then, then))
    return url


def key(url: URL) -> str | None:
    return Origin(url.render_as_string(hide_password=False), None).key()


def test_a_store_that_nobody_writes_to_has_the_same_key(sqlite: URL) -> None:
    stored(sqlite, published())
    first = key(aged(sqlite))
    read.stored(sqlite)
    assert first is not None
    assert first == key(sqlite)


def test_an_address_is_that_of_the_file_that_is_read(sqlite: URL, tmp_path: Path) -> None:
    """Where `%41` is an A, and the name of another file."""
    before, written = Path(str(sqlite.database)), tmp_path / "nightly%41.sqlite"
    shutil.copy(before, tmp_path / "nightlyA.sqlite")
    url = aged(sqlite.set(database=str(before.rename(written))))
    assert key(url) is not None
    aged(sqlite.set(database=str(tmp_path / "nightlyA.sqlite")))
    assert Origin(f"sqlite:///{written}", None).key() != key(url)
    address = f"sqlite:///{written}"
    first = Origin(address, None).key()
    stored(store_url(address), published())
    assert first != Origin(address, None).key()


def test_a_store_that_was_just_written_has_no_key(sqlite: URL) -> None:
    """It may be written again in the same moment, and its age would not tell."""
    stored(sqlite, published())
    assert key(sqlite) is None
    assert key(sqlite.set(database=f"{sqlite.database}-missing")) is None


def test_every_change_of_a_store_is_another_key(store: URL) -> None:
    """Results, their revisions, and a title; that a store is written to is enough for a file."""

    def seen() -> str | None:
        return key(aged(store) if store.get_backend_name() == "sqlite" else store)

    stored(store, published())
    keys = [seen()]
    stored(store, published(release=release("2.0")))
    keys.append(seen())
    stored(store, published(release=release("2.0"), figures=Figures(tokens_per_sec_per_gpu=9)))
    keys.append(seen())
    with writing(store) as connection:
        assert connection.execute(update(models).values(title="Other")).rowcount
    keys.append(seen())
    assert None not in keys
    assert 4 == len(set(keys))


def test_what_is_accepted_is_part_of_the_key(sqlite: URL, tmp_path: Path) -> None:
    stored(sqlite, published())
    address = aged(sqlite).render_as_string()
    file = tmp_path / "acknowledged.yaml"
    keys = [Origin(address, None).key(), Origin(address, file).key()]
    for text in ("[]", "[ ]"):
        file.write_text(text)
        keys.append(Origin(address, file).key())
    assert 4 == len(set(keys))


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """A page that was made, and what it was made from."""
    made = Layout(tmp_path)
    made.page("index").write_text("made")
    fresh.keep(made, "key", [made.page("index")])
    return made


def test_what_was_made_holds_for_its_key_alone(layout: Layout) -> None:
    assert fresh.holds(layout, "key")
    assert not fresh.holds(layout, "another")
    assert not fresh.holds(layout, None)


def test_a_page_that_was_changed_or_removed_is_made_again(layout: Layout) -> None:
    page = layout.page("index")
    page.write_text("changed by hand")
    assert not fresh.holds(layout, "key")
    page.unlink()
    assert not fresh.holds(layout, "key")


def test_a_note_that_was_cut_off_is_none(layout: Layout) -> None:
    layout.done.write_text(layout.done.read_text()[:9])
    assert not fresh.holds(layout, "key")


def test_a_build_without_a_key_is_never_held_to_be_done(layout: Layout) -> None:
    fresh.keep(layout, None, [])
    assert not fresh.holds(layout, None)
