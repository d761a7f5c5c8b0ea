"""`perfdb releases` and `perfdb results`: what the store has, and names that it does not have."""

import json
from pathlib import Path

import pytest
from sqlalchemy import URL

from perfdb.errors import nearest
from perfdb.record import RunKind
from tests.factories import case, published, stored, write_run
from tests.logs import nemo
from tests.shell import Shell


@pytest.fixture
def told(sqlite: URL, tmp_path: Path) -> None:
    """A store of two published rows of NeMo 25.04 and a run of Megatron-Core."""
    rows = [
        published(line=line, case=case(framework="nemo", num_gpus=num_gpus))
        for line, num_gpus in ((7, 8), (8, 16))
    ]
    stored(sqlite, *rows, page="page.md")
    stored(sqlite, write_run(tmp_path / "runs"))


@pytest.mark.usefixtures("told")
def test_releases_are_listed_with_the_keys_of_the_contract(perfdb: Shell, sqlite: URL) -> None:
    words = ("releases", "--db", sqlite.render_as_string())
    image = "nvcr.io/nvidia/nemo:25.04"
    keys = ("framework", "release", "container", "results", "measured", "published")
    rows = [("megatron-core", "0.16.0", None, 1, 1, 0), ("nemo", "25.04", image, 2, 0, 2)]
    assert [dict(zip(keys, row, strict=True)) for row in rows] == json.loads(
        perfdb(*words, "--json").stdout
    )
    lines = [line.split() for line in perfdb(*words).stdout.splitlines()]
    assert ["nemo", "25.04", image, "2", "0", "2"] in lines


@pytest.mark.usefixtures("told")
def test_a_release_counts_the_results_that_are_listed(
    perfdb: Shell, sqlite: URL, tmp_path: Path
) -> None:
    """A checkpoint and a profile are no results; the run of `told` is one."""
    for kind in (RunKind.CHECKPOINT, RunKind.PROFILE):
        stored(sqlite, write_run(tmp_path / "runs", run_id=kind.value, kind=kind))
    store = ("--db", sqlite.render_as_string(), "--json")
    core, nemo_25_04 = json.loads(perfdb("releases", *store).stdout)
    assert (1, 1, 2) == (core["results"], core["measured"], nemo_25_04["results"])
    assert 3 == len(json.loads(perfdb("results", *store).stdout))


@pytest.mark.usefixtures("told")
def test_results_are_listed_with_filters_and_as_the_export_has_them(
    perfdb: Shell, sqlite: URL
) -> None:
    words = ("results", "--db", sqlite.render_as_string())
    only = ("--framework", "nemo", "--release", "25.04")
    exported = perfdb("export", "results", *words[1:], "--framework", "nemo", "--json").stdout
    assert json.loads(exported) == json.loads(perfdb(*words, *only, "--json").stdout)
    out = perfdb(*words, *only, "--wide").stdout
    assert out.startswith("2 results\n")
    assert ["page.md:7", "page.md:8"] == [it.split()[-1] for it in out.splitlines()[4:6]]
    code, _, err = perfdb(*words, "--system", "h100")
    assert (2, "error: --system: no results of 'h100'; did you mean dgx-h100?\n") == (code, err)


@pytest.mark.parametrize(
    ("word", "known", "said"),
    [
        ("lama3-8b", ["llama3-8b", "gpt3-175b"], "did you mean llama3-8b?"),
        ("dgx-h10", ["dgx-h100", "dgx-h200", "cpu"], "did you mean dgx-h100 or dgx-h200?"),
        ("x", ["b", "a"], "known: a, b"),
        ("a1b1", ["zzzz", "a2", "a3", "a4", "a5", "a6"], "nearest: a6, a5, a4, a3, a2"),
    ],
)
def test_an_unknown_name_shows_the_five_nearest(word: str, known: list[str], said: str) -> None:
    assert said == nearest(word, known)


PAGE = """\
| Model | #-GPUs | GBS | Sequence Length | Tokens / sec / GPU |
|---|---|---|---|---|
| LLAMA3-8B | 8 | 128 | 8192 | 12273 |
"""


def test_pages_and_logs_are_attributed_by_the_same_settings(perfdb: Shell, tmp_path: Path) -> None:
    """Where the files leave a field open, its option and --set state the same of both."""
    (tmp_path / "page.md").write_text(PAGE)
    (tmp_path / "a.log").write_text(nemo((4.0, 4.0)))
    fields = {"framework": "nemo", "release": "25.10", "container": "nemo:25.10",
              "system": "dgx-h100", "precision": "bf16"}  # fmt: skip
    more = ("--set", "task=pretrain", "--window", "last")
    of_log = ("--set", "model=llama3-8b", "--set", "num_gpus=8", "--set", "sequence_length=8192")
    found = []
    for number, form in enumerate(("--set={}={}", "--{}={}")):
        given = [form.format(name, value) for name, value in fields.items()]
        db = ("--db", f"{number}.sqlite")
        assert 0 == perfdb("ingest", "page.md", *given, *more, *db).code
        assert 0 == perfdb("ingest", "a.log", *given, *more, *of_log, *db).code
        rows = json.loads(perfdb("export", "results", "--json", *db).stdout)
        found.append([{name: row[name] for name in fields} for row in rows])
    assert [[fields, fields]] * 2 == found
