"""The cases that `perfdb trend` need not follow one by one: it says the same of them.

`--since` with the first release leaves nothing out, and follows each case.
"""

import random
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import URL

from perfdb.compare import releases, unchanged
from perfdb.db.session import reading
from perfdb.queries.scope import Scope
from tests import factories
from tests.shell import Shell
from tests.test_trend import ONE, TWO, Lab

ALL = "regression,missing,unknown"


@pytest.fixture
def lab(sqlite: URL, tmp_path: Path) -> Lab:
    """Sizes of 0.3 % noise, two of them slower at last, and cases that are not so simple."""
    lab, chance = Lab(sqlite, tmp_path / "runs"), random.Random(2)
    runs = [
        lab.written(
            str(version),
            12.0 * chance.gauss(1, 0.003) * (1.05 if (version, size) in ((3, 3), (3, 7)) else 1.0),
            factories.case(num_gpus=8 * size),
        )
        for size in range(1, 13)
        for version in (1, 2, 3)
    ]
    failed, gone = factories.case(model="llama3-70b"), factories.case(model="mixtral-8x7b")
    again = factories.case(system="dgx-b200")
    runs += [lab.written(version, 12.0, case) for case, versions in ((gone, "12"), (again, "1233"))
             for version in versions]  # fmt: skip
    runs += [lab.written("1", 12.0, failed), lab.written("3", case=failed, outcome="failed")]
    runs += [lab.written("main", 12.0, factories.case(num_gpus=16))]
    runs += [lab.written(version, 11.0, TWO) for version in "23"]
    factories.stored(sqlite, *runs)
    return lab


def test_the_same_is_said_as_if_each_case_were_followed(lab: Lab, perfdb: Shell) -> None:
    """Of 12 sizes two are slower, one has two layouts, and one ran on a branch: 8 are unchanged."""
    trend = partial(perfdb, "trend", "--db", lab.store.render_as_string())
    for words in ((), ("--fail-on", ALL), ("--format", "markdown", "--metric", "step_time_s")):
        assert trend("--since", "1", *words) == trend(*words)

    with reading(lab.store) as connection:
        choices = releases.known_releases(connection)
        versions = releases.versions(connection, choices)
        found = unchanged.found(connection, Scope(), choices, versions, releases.Judging())
        assert found
        followed = {
            (it.model, it.system, it.num_gpus) for it in unchanged.others(connection, found)
        }
    assert (8, 16) == (found.num_cases, len(found.rates))
    assert {(ONE.model, ONE.system, 8 * size) for size in (1, 2, 3, 7)} < followed
    assert 4 + 3 == len(followed)
