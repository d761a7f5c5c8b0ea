"""The store keeps what it is given, once, and keeps what it said before."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

import pytest
import zstandard
from sqlalchemy import URL, func, select
from sqlalchemy.exc import IntegrityError, OperationalError

from perfdb.db import results as writes
from perfdb.db import tables
from perfdb.db.rows import SourceFile
from perfdb.db.session import is_race, reading
from perfdb.db.sources import Action, LogEntry, log
from perfdb.db.tables import ingest_log, models, releases, results, run_files, sources, steps
from perfdb.measure import of_page as published_row
from perfdb.queries.results import current
from perfdb.record import Figures, PublishedResult
from tests import factories
from tests.trees import rows_of, writing

PAGE = "data/published/nemo.md"


def put_page(
    url: URL, *rows: PublishedResult, path: str = PAGE, when: datetime = factories.STARTED
) -> tuple[list[str], int]:
    """What became of each row of a page at a path, and how many results it withdrew."""
    content = "".join(row.model_dump_json() for row in rows).encode()
    source = SourceFile(path, content, "page", 1)
    given = [published_row(row) for row in rows]
    with writing(url) as connection:
        page = writes.put_page(connection, source, given, when)
    return [action.value for action in page.actions], len(page.withdrawn)


def figures_in_force(url: URL) -> list[tuple[object, ...]]:
    question = select(results.c.tokens_per_sec_per_gpu, results.c.revision)
    return sorted(rows_of(url, question.where(~results.c.superseded)), key=repr)


def printed(tokens: float, **changed: object) -> PublishedResult:
    return factories.published(figures=Figures(tokens_per_sec_per_gpu=tokens), **changed)


def test_a_run_is_stored_with_its_steps_files_and_one_result(store: URL, tmp_path: Path) -> None:
    """Every part of a run directory has its row; bytes are kept as they were, steps with lines."""
    run = factories.write_run(tmp_path, step_times=(2.0, 1.5, 1.25))
    factories.stored(store, run)

    names = ("systems", "models", "releases", "cases", "runs", "steps", "results")
    count = [
        rows_of(store, select(func.count()).select_from(tables.metadata.tables[name]))[0][0]
        for name in names
    ]
    assert [1, 1, 1, 1, 1, 3, 1] == count
    files = ["console.log", "recipe.yaml", "run.json", "steps.jsonl", "worker.json"]
    found = rows_of(store, select(run_files.c.name).order_by(run_files.c.name))
    assert [*files, "worker_config.json"] == [name for (name,) in found]
    of_steps = select(sources.c.content, sources.c.size_bytes)
    [(content, size)] = rows_of(store, of_steps.where(sources.c.path == str(run.steps)))
    assert isinstance(content, bytes)
    unpacker = zstandard.ZstdDecompressor().decompressobj()
    assert run.steps.read_bytes() == unpacker.decompress(content)
    assert run.steps.stat().st_size == size
    question = select(steps.c.step, steps.c.step_time_s, steps.c.source_line, steps.c.skipped)
    expected = [(1, 2.0, 1, False), (2, 1.5, 2, False), (3, 1.25, 3, False)]
    assert expected == rows_of(store, question.order_by(steps.c.step))


def test_a_model_that_is_in_no_catalogue_is_stored_without_a_family(store: URL) -> None:
    """The store keeps what a page calls a model, even if perfdb does not know its shape."""
    put_page(store, printed(100, case=factories.case(model="Cosmos Nemotron 34B")))

    assert [("Cosmos Nemotron 34B", "Cosmos Nemotron 34B", None, {})] == rows_of(
        store, select(models.c.name, models.c.title, models.c.family, models.c.specification)
    )


NEXT = printed(300, release=factories.release("25.07", framework="nemo"))
UNATTRIBUTED, ATTRIBUTED = (
    printed(100, release=factories.release(version, framework="nemo"))
    for version in (None, "25.04")
)


@pytest.mark.parametrize(
    ("readings", "in_force"),
    [
        pytest.param(
            [(printed(100), "new"), (printed(110), "revised"), (printed(100), "revised")],
            [(100.0, 3)], id="an edited page is a revision, and a reverted one is one too",
        ),
        pytest.param(
            [(printed(100, line=7), "new"), (printed(100, line=9), "unchanged")],
            [(100.0, 1)], id="a row that moved down the page says the same",
        ),
        pytest.param(
            [(printed(100), "new"), (NEXT, "new")],
            [(100.0, 1), (300.0, 1)], id="the page of the next release withdraws nothing",
        ),
        pytest.param(
            [(UNATTRIBUTED, "new"), (ATTRIBUTED, "new, withdrawn")],
            [(100.0, 1)], id="results of no stated release give way to those of a stated one",
        ),
    ],
)  # fmt: skip
def test_what_becomes_of_a_page_of_one_row(
    store: URL, readings: Sequence[tuple[PublishedResult, str]], in_force: list[tuple[float, int]]
) -> None:
    for row, became in readings:
        [action], withdrawn = put_page(store, row)
        assert became == action + ", withdrawn" * withdrawn
    assert in_force == figures_in_force(store)
    states = {row.model_dump_json() for row, _ in readings}
    assert rows_of(store, select(func.count()).select_from(sources))[0][0] <= len(states)


def test_a_result_says_since_when_it_is_no_longer_in_force(store: URL) -> None:
    """Superseded on the second day, withdrawn on the third; what is in force says nothing."""
    days = [factories.STARTED + timedelta(days=day) for day in range(3)]
    other = printed(200, case=factories.case(num_gpus=16))
    put_page(store, printed(100), other, when=days[0])
    put_page(store, printed(110), other, when=days[1])
    put_page(store, other, when=days[2])

    columns = (results.c.tokens_per_sec_per_gpu, results.c.superseded_at)
    found = dict(rows_of(store, select(*columns).where(results.c.superseded)))
    naive = {key: str(moment).removesuffix("+00:00") for key, moment in found.items()}
    assert {100.0: "2026-01-03 03:04:05", 110.0: "2026-01-04 03:04:05"} == naive
    assert [(200.0, None)] == rows_of(store, select(*columns).where(~results.c.superseded))


def test_ga_and_dp_are_those_of_each_row_whatever_others_of_its_case_say(store: URL) -> None:
    """They are no part of a case's identity, and a mistake of one page is none of another."""
    stated = [(88, None), (32, 4), (None, None)]
    for number, (ga, dp) in enumerate(stated):
        version = factories.release(f"25.0{number}", framework="nemo")
        of = factories.case(gradient_accumulation=ga, data_parallel=dp)
        put_page(store, printed(100, case=of, release=version), path=f"{number}.md")

    with reading(store) as connection:
        rows = connection.execute(current()).all()
    assert stated == [(row.gradient_accumulation, row.data_parallel) for row in rows]
    assert 1 == len({row.case_key for row in rows})
    assert 3 == rows_of(store, select(func.count()).select_from(releases))[0][0]


def test_a_rejection_is_noted_once(store: URL) -> None:
    """A file that stays broken does not fill the log."""
    entry = LogEntry("runs/a/run.json", Action.REJECTED, 3, "not JSON")
    for day in range(3):
        with writing(store) as connection:
            log(connection, [entry, entry], factories.STARTED + timedelta(days=day))

    question = select(ingest_log.c.path, ingest_log.c.action, ingest_log.c.line)
    assert [("runs/a/run.json", "rejected", 3)] == rows_of(store, question)


def test_two_inserts_of_the_same_row_are_a_race_and_a_syntax_error_is_not(store: URL) -> None:
    """Only what another process caused is worth trying again."""
    row = {"name": "x", "title": "X", "specification": {}}
    with pytest.raises(IntegrityError) as clash, writing(store) as connection:
        connection.execute(tables.systems.insert(), [row, row])
    with pytest.raises(Exception, match="no_such_table") as mistake, writing(store) as connection:
        connection.exec_driver_sql("SELECT * FROM no_such_table")

    assert is_race(clash.value)
    assert isinstance(mistake.value, OperationalError) == (store.get_backend_name() == "sqlite")
    assert not is_race(mistake.value)
