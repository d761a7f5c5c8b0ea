"""Ingest audits what it has stored: the findings in the store are those of the results in force."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import URL, func, select

from perfdb.audit import check
from perfdb.audit.check import audit
from perfdb.db.session import reading
from perfdb.db.tables import findings
from perfdb.ingest import Options, ingest
from perfdb.queries import results as questions
from perfdb.record import Finding
from tests import factories
from tests.trees import NEMO, rows_of

HEAD = """\
## DGX-B200

| Model | #-GPUs | GBS | MBS | Sequence Length | TP | PP | CP | VP | EP | GA | Tokens / sec / GPU |
|---|---|---|---|---|---|---|---|---|---|---|---|
"""
SWAPPED = "| Mixtral-8x22B | 256 | 1 | 64 | 65536 | 2 | 4 | 8 | 14 | 8 | 16 | 2399 |\n"
MENDED = SWAPPED.replace("| 1 | 64 |", "| 64 | 1 |")
SOUND = "| LLAMA3-8B | 8 | 128 | 2 | 8192 | 1 | 1 | 1 | 1 | 1 | 8 | 30411 |\n"


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """A page whose first row has GBS and MBS the wrong way round."""
    path = tmp_path / "nemo.md"
    path.write_text(HEAD + SWAPPED + SOUND)
    return path


def kept(url: URL) -> list[Finding]:
    """The findings of the results in force."""
    with reading(url) as connection:
        rows = connection.execute(questions.current_findings()).mappings()
        return [Finding.model_validate(dict(row)) for row in rows]


def audited_anew(url: URL) -> list[Finding]:
    """What an audit of the whole store finds, in the order of the query."""
    with reading(url) as connection:
        found = audit(*check.stored(connection))
    return sorted(found, key=lambda it: (it.result_id or 0, it.rule, it.message))


def stored(url: URL) -> int:
    """How many findings there are, of whatever results."""
    [(count,)] = rows_of(url, select(func.count()).select_from(findings))
    assert isinstance(count, int)
    return count


def test_what_an_audit_finds_is_kept_beside_the_result(sqlite: URL, page: Path) -> None:
    """With all that the audit says: what was expected and found, and how to mend it."""
    report = ingest([page], sqlite, NEMO)

    [found] = kept(sqlite)
    assert ("micro_batch", "error", "mixtral-8x22b", "dgx-b200", "25.04", str(page), 5) == (
        found.rule, found.severity, found.model, found.system, found.release, found.source,
        found.source_line,
    )  # fmt: skip
    assert ("GBS 64, MBS 1", "GBS 1, MBS 64") == (found.expected, found.found)
    assert audited_anew(sqlite) == [found]
    assert (found,) == report.findings


def test_a_page_that_is_corrected_loses_its_finding(sqlite: URL, page: Path) -> None:
    """That of the superseded revision goes too."""
    ingest([page], sqlite, NEMO)

    page.write_text(HEAD + MENDED + SOUND)
    report = ingest([page], sqlite, NEMO)

    assert ((), 0) == (report.findings, stored(sqlite))


def test_a_run_that_turns_out_to_be_of_another_release_leaves_no_finding_behind(
    sqlite: URL, tmp_path: Path
) -> None:
    """Both releases are audited: the one it is of, and the one it was of."""
    run = factories.write_run(tmp_path, release=factories.release("0.16.0"))
    ingest([tmp_path], sqlite, Options())
    before = [it.release for it in kept(sqlite)]

    run.write_record(factories.record(release=factories.release("0.17.0")))
    ingest([tmp_path], sqlite, Options())

    assert (["0.16.0"], ["0.17.0"]) == (before, [it.release for it in kept(sqlite)])
    assert 1 == stored(sqlite)


def test_several_that_read_of_one_release_at_once_keep_what_one_audit_finds(
    sqlite: URL, tmp_path: Path
) -> None:
    """Whoever audits last has seen the rows of all."""
    pages = []
    for number in range(6):
        path = tmp_path / f"{number}.md"
        path.write_text(HEAD + SWAPPED.replace("| 256 |", f"| {256 * (number + 1)} |"))
        pages.append(path)

    with ThreadPoolExecutor(len(pages)) as pool:
        reports = list(pool.map(lambda path: ingest([path], sqlite, NEMO), pages))

    assert [1] * len(pages) == [report.new for report in reports]
    assert len(pages) <= len(kept(sqlite))
    assert audited_anew(sqlite) == kept(sqlite)
    assert stored(sqlite) == len(kept(sqlite))
