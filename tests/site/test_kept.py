"""What a build reads after a change: only the releases that have changed, and all of those."""

from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy import URL, Engine, event

from perfdb.audit.review import entries
from perfdb.db.session import store_url, writer
from perfdb.ingest import withdraw
from perfdb.queries.fingerprints import ReleaseName
from perfdb.record import Figures
from perfdb.site import files, read
from perfdb.site.build import Site, with_comparisons
from perfdb.site.files import BuildOptions, SiteLayout
from perfdb.site.kept import KeptBuild, KeptPairs, KeptReleases
from perfdb.site.pages.release_pairs import ReleasePair
from tests.factories import case, published, release, stored, write_run

PAGE = "data/published/nemo.md"
WRONG = Figures(tokens_per_sec_per_gpu=12_273, model_tflops_per_sec_per_gpu=7_110)
ACCEPTED = """
- rule: {rule}
  release: nemo 25.04
  reason: the page counts otherwise
  by: A. Person
  date: 2026-01-31
"""
NEMO, OLDER, CORE = ("nemo", "25.04"), ("nemo", "25.02"), ("megatron-core", "0.16.0")


def execute(url: URL, statement: str) -> None:
    """Change a row by hand."""
    engine = writer(url)
    with engine.begin() as connection:
        connection.execute(sa.text(statement))
    engine.dispose()


def filled(url: URL, folder: Path) -> KeptReleases:
    """What is known of a store with two releases of pages and one of runs."""
    older = published(release=release("25.02", framework="nemo"))
    stored(url, published(figures=WRONG), page=PAGE)
    stored(url, older, page="data/published/other.md")
    # the audit follows
    stored(url, write_run(folder, run_id="one"), write_run(folder, run_id="two"))
    kept: KeptReleases = {}
    read.stored(url, (), kept)
    assert [*kept] == [CORE, OLDER, NEMO]
    return kept


def test_after_a_change_the_data_is_that_of_a_whole_read(store: URL, tmp_path: Path) -> None:
    """A result more, a revised figure, a withdrawal, a release, a finding accepted, a row edited.

    Of the others nothing is read again.
    """
    kept = filled(store, tmp_path)
    rule = kept[NEMO].findings[0].rule
    wide = published(8, case=case(framework="nemo", num_gpus=16))
    newer = published(release=release("25.07", framework="nemo"))
    right = published(figures=Figures(tokens_per_sec_per_gpu=12_000))
    figure = "UPDATE results SET mfu = 0.5 WHERE run_id IS NOT NULL"
    step = "UPDATE steps SET loss = 1.5 WHERE step = 4"
    title = "UPDATE models SET title = 'another'"
    accepted = entries("accepted.yaml", ACCEPTED.format(rule=rule))
    steps: list[tuple[set[ReleaseName], Callable[[], object]]] = [
        ({NEMO}, lambda: stored(store, published(figures=WRONG), wide, page=PAGE)),
        ({NEMO}, lambda: None),  # the finding is accepted
        ({("nemo", "25.07")}, lambda: stored(store, newer, page="data/published/newer.md")),
        ({NEMO}, lambda: stored(store, right, page=PAGE)),
        ({CORE}, lambda: execute(store, figure)),
        ({CORE}, lambda: execute(store, step)),
        ({CORE}, lambda: withdraw(["two"], store, "others used the machine")),
        ({OLDER}, lambda: withdraw(["data/published/other.md"], store, "a draft")),
        ({*kept, ("nemo", "25.07")}, lambda: execute(store, title)),
    ]
    for number, (changed, step_of) in enumerate(steps):
        before = dict(kept)
        step_of()
        known = accepted if number else ()
        after = read.stored(store, known, kept)
        assert after == read.stored(store, known)
        assert {it for it in kept if kept[it] is not before.get(it)} == changed, number


def rows_read(url: URL, kept: KeptReleases) -> int:
    """How many rows the statements return that read what has changed."""
    asked: list[tuple[str, tuple[object, ...]]] = []

    def note(*given: object) -> None:
        _, _, statement, parameters, *_ = given
        asked.append((str(statement), parameters))  # type: ignore[arg-type]

    event.listen(Engine, "before_cursor_execute", note)
    try:
        read.stored(url, (), kept)
    finally:
        event.remove(Engine, "before_cursor_execute", note)
    engine = writer(url)
    with engine.connect() as connection:
        answers = [connection.exec_driver_sql(*one) for one in asked if "SELECT" in one[0]]
        count = sum(len(answer.all()) for answer in answers)
    engine.dispose()
    return count


def keys(url: URL, folder: Path) -> dict[str, str]:
    """What each page is made from."""
    return Site(SiteLayout(folder), BuildOptions(url.render_as_string(), None)).keys


def one_run_more(folder: Path, others: int) -> tuple[set[str], set[str], int]:
    """The pages that change, those that do not, and the rows that are read, after a run more
    beside so many results of another release."""
    folder.mkdir()
    url = store_url(str(folder / "store.sqlite"))
    of = {"framework": "nemo", "model": "qwen3-30b-a3b", "system": "dgx-b200"}
    at = release("25.02", framework="nemo")
    rows = [published(n, release=at, case=case(**of, num_gpus=8 * n)) for n in range(others)[1:]]
    stored(url, *rows, page="data/published/many.md")
    kept = filled(url, folder)
    before = keys(url, folder / "docs")
    stored(url, write_run(folder, run_id="three"))
    after = keys(url, folder / "docs")
    changed = {it for it in after if after[it] != before.get(it)}
    return changed, after.keys() - changed, rows_read(url, kept)


def test_what_is_read_after_one_result_does_not_grow_with_the_others(tmp_path: Path) -> None:
    """Pages: those of its release, model and system, of its case's runs, and the lists of all."""
    few, many = (one_run_more(tmp_path / str(count), count) for count in (3, 30))
    changed, others, rows = many
    assert (few[0], few[2]) == (changed, rows)
    assert {"performance/megatron-core/0.16.0", "models/llama3-8b", "runs/three"} < changed
    assert {"performance/nemo/25.02", "performance/nemo/25.04", "models/qwen3-30b-a3b"} < others
    assert {it for it in changed if it.startswith("sources/")} == set()


def test_comparisons_of_releases_that_are_the_same_are_kept(sqlite: URL) -> None:
    """A slower newest release changes its own comparison, not the one before it."""

    def pairs(kept: KeptPairs) -> dict[str, ReleasePair]:
        found = with_comparisons(read.stored(sqlite), kept=kept)
        assert found.pairs == with_comparisons(read.stored(sqlite)).pairs
        return {one.after: one for one in kept.values()}

    def store_release(version: str, tokens: float) -> None:
        figures = Figures(tokens_per_sec_per_gpu=tokens)
        one = published(figures=figures, release=release(version, framework="nemo"))
        stored(sqlite, one, page=f"data/published/{version}.md")

    kept: KeptPairs = {}
    for version in ("25.02", "25.04", "25.07"):
        store_release(version, 12_000)
    before = pairs(kept)
    store_release("25.07", 9_000)
    after = pairs(kept)
    assert [*before] == [*after] == ["25.07", "25.04"]
    assert after["25.04"] is before["25.04"]
    ratios = [it["25.07"].comparison.matched[0].judgement.ratio for it in (before, after)]
    assert ratios == [1, 0.75]


def test_what_is_damaged_or_of_other_settings_is_not_used(
    sqlite: URL, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is whole is the same as it was read."""
    folder = tmp_path / "kept"
    made = KeptBuild(folder)
    made.releases |= filled(sqlite, tmp_path)
    with_comparisons(read.stored(sqlite), kept=made.pairs)
    assert len(made.save()) == 4
    again = KeptBuild(folder)
    assert (again.releases, [*again.pairs]) == (made.releases, [*made.pairs])
    for path in again.save():
        path.write_bytes(path.read_bytes()[:-1] + b"!")
        break
    found = KeptBuild(folder)
    assert len(found.releases) + len(found.pairs) == 3
    own = tmp_path / "perfdb.toml"
    own.write_text("")
    monkeypatch.setenv("PERFDB_CONFIG", str(own))
    assert files.own_catalog() == b""
    found = KeptBuild(folder)
    assert (found.releases, found.pairs) == ({}, {})
