"""What a page no longer states is withdrawn."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from sqlalchemy import URL, select

from perfdb.audit.check import audit, stored
from perfdb.db.session import reading
from perfdb.db.tables import ingest_log, results, sources
from perfdb.ingest import Options, Report, ingest
from perfdb.pages.base import PageContext
from perfdb.verify import verify
from tests import logs
from tests.conftest import ON_SQLITE
from tests.shell import Shell
from tests.snapshots import snapshot
from tests.trees import counted, rows_of

HEAD = """---
perfdb: {{framework: nemo{}}}
---
# Throughput

## Pre-training

### System: DGX-H100, Precision: FP8

| Model | #-GPUs | GBS | Sequence Length | Tokens / sec / GPU |
|---|---|---|---|---|
"""
SILENT, STATED = HEAD.format(""), HEAD.format(", release: '25.04'")
OF_8B, OF_70B = "| LLAMA3-8B | 8 | 128 | 8192 | {} |", "| LLAMA3-70B | 64 | 128 | 8192 | 1,621 |"
BOTH = (OF_8B.format("12,812"), OF_70B)


@pytest.fixture(autouse=True)
def folder(store: URL, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A working directory of its own: pages are named as people name them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PERFDB_URL", store.render_as_string(hide_password=False))


def read(
    store: URL, name: str, rows: Sequence[str] = BOTH, head: str = STATED, **said: str
) -> Report:
    """Write a page, and ingest it by its name."""
    Path(name).write_text(head + "".join(f"{row}\n" for row in rows))
    return ingest([Path(name)], store, Options(PageContext(**said)))


def in_force(store: URL) -> list[tuple[object, ...]]:
    """The rate and the page of each result."""
    columns = (results.c.tokens_per_sec_per_gpu, sources.c.path)
    question = select(*columns).join(sources, results.c.source_id == sources.c.id)
    return rows_of(store, question.where(~results.c.superseded).order_by(columns[0]))


def check_sound(store: URL) -> None:
    """The store holds together, and no two of its pages disagree."""
    found = verify(store, lambda *_: lambda: None)
    assert [] == [it for one in found for it in (*one.faults, *one.passed_over)]
    with reading(store) as connection:
        assert [] == [it for it in audit(*stored(connection)) if it.rule == "two_pages"]


@ON_SQLITE
def test_a_page_without_rows_withdraws_all_it_stated_when_it_is_named(
    store: URL, perfdb: Shell
) -> None:
    """Headers alone are left: nothing in a folder, everything by name, and once."""
    read(store, "a.md")
    Path("a.md").write_text(STATED)

    assert (0, "0 new, 0 revised, 0 unchanged, 0 rejected\n") == perfdb("ingest", ".")[:2]
    assert 2 == len(in_force(store))
    code, said, _ = perfdb("ingest", "a.md")

    assert (0, "0 new, 0 revised, 0 unchanged, 2 withdrawn, 0 rejected\n") == (code, said)
    assert [] == in_force(store)
    logged = rows_of(store, select(ingest_log.c.path, ingest_log.c.reason))
    assert ("a.md", "2 withdrawn") == logged[-1]
    before = snapshot(store)
    assert (0, "0 new, 0 revised, 0 unchanged, 0 rejected\n") == perfdb("ingest", "a.md")[:2]
    assert before == snapshot(store)
    check_sound(store)


def test_a_page_that_is_gone_is_withdrawn_by_its_path(store: URL, perfdb: Shell) -> None:
    """Once; and reading it again brings its results back."""
    read(store, "a.md")
    Path("a.md").unlink()

    assert (0, "2 withdrawn\n") == perfdb("withdraw", "a.md", "--reason", "a draft")[:2]
    assert [] == in_force(store)
    logged = rows_of(store, select(ingest_log.c.path, ingest_log.c.reason))
    assert ("a.md", "2 withdrawn: a draft") == logged[-1]
    before = snapshot(store)
    assert (0, "0 withdrawn\n") == perfdb("withdraw", "a.md")[:2]
    assert before == snapshot(store)
    check_sound(store)
    assert (0, 2, 0, 0) == counted(read(store, "a.md"))


def test_a_path_that_is_not_whole_is_told_which_ones_there_are(store: URL, perfdb: Shell) -> None:
    Path("pages").mkdir()
    for name in ("pages/a.md", "pages/b%.md"):
        read(store, name)
    for word, told in (
        ("a.md", "did you mean pages/a.md?"),
        ("page/a.md", "did you mean pages/a.md?"),
        ("pages/", "did you mean pages/a.md or pages/b%.md?"),
        ("a%.md", "name it as the site does"),
    ):
        code, _, beside = perfdb("withdraw", word)
        assert (2, True) == (code, f"or this id of a run; {told}" in beside), word


@ON_SQLITE
def test_one_page_has_one_path_however_it_is_named(store: URL, tmp_path: Path) -> None:
    """Relative, absolute, or by a link: the path that the store has it under stays."""
    read(store, "a.md")
    Path("link.md").symlink_to("a.md")
    Path("folder").mkdir()
    names = ["./a.md", str(tmp_path / "a.md"), "folder/../a.md", "link.md"]

    for name in names:
        assert 1 == read(store, name, [OF_70B]).withdrawn, name
        assert (0, 1, 1, 0) == counted(read(store, name)), name

    assert {("a.md",)} == set(rows_of(store, select(sources.c.path)))


FORMATS = Path(__file__).parent / "data" / "formats"
FILES = {
    "a summary": ("automodel_summary/good/benchmark.json", 1),
    "golden values of the older layout": ("megatron_golden/good/lists_of_the_old_schema.json", 1),
    "a verification card": ("verification_card/good/weak_scaling.yaml", 2),
}
"""Files that give results and are neither a page nor a run, and how many results each gives."""
SAID = ("--release", "2.0", *(f"--set={it}" for it in (*logs.SET, "global_batch_size=64")))


@pytest.mark.parametrize(
    ("store", "kind"),
    [*(("sqlite", kind) for kind in FILES), ("postgres", "a summary")],
    indirect=["store"],
)
def test_a_file_of_results_is_withdrawn_as_a_page_is(store: URL, perfdb: Shell, kind: str) -> None:
    """By any name of its path, be it gone, once; and reading it again brings its results back."""
    kept, count = FILES[kind]
    content, name = (FORMATS / kept).read_bytes(), Path(kept).name
    said = () if name.endswith(".yaml") else SAID
    Path(name).write_bytes(content)
    perfdb("ingest", name, *said)
    figures = rows_of(store, select(results.c.step_time_s).where(~results.c.superseded))
    assert count == len(figures)
    Path(name).unlink()

    assert (0, f"{count} withdrawn\n") == perfdb("withdraw", f"./{name}", "--reason", "a draft")[:2]

    assert [] == in_force(store)
    logged = rows_of(store, select(ingest_log.c.path, ingest_log.c.action, ingest_log.c.reason))
    assert (name, "revised", f"{count} withdrawn: a draft") == logged[-1]
    before = snapshot(store)
    assert (0, "0 withdrawn\n") == perfdb("withdraw", name)[:2]
    assert before == snapshot(store)
    check_sound(store)
    Path(name).write_bytes(content)
    assert f"0 new, {count} revised" in perfdb("ingest", name, *said).stdout
    assert figures == rows_of(store, select(results.c.step_time_s).where(~results.c.superseded))
    check_sound(store)


@ON_SQLITE
def test_a_file_of_a_run_is_no_file_of_results(store: URL, perfdb: Shell) -> None:
    """Golden values with steps are a run: it is withdrawn for a reason, beside those without."""
    for kept in ("golden_values_dev_dgx_h100.json", "lists_of_the_old_schema.json"):
        Path(kept).write_bytes((FORMATS / "megatron_golden/good" / kept).read_bytes())
        perfdb("ingest", kept, *SAID)
    code, _, beside = perfdb("withdraw", "golden_values_dev_dgx_h100.json")
    assert (2, True) == (code, "a run is withdrawn for a reason" in beside)
    assert "1 withdrawn\n" == perfdb("withdraw", "lists_of_the_old_schema.json").stdout
    why = ("--reason", "too hot")
    assert "1 withdrawn\n" == perfdb("withdraw", "golden_values_dev_dgx_h100.json", *why).stdout
    assert "1 restored\n" == perfdb("withdraw", "--undo", "golden_values_dev_dgx_h100.json").stdout
    check_sound(store)
