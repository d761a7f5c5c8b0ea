"""Change points: how often series without a change have one, and where others moved."""

import json
from itertools import product

import numpy as np
import pytest
from sqlalchemy import URL

from perfdb.compare.change_points import found
from perfdb.compare.noise import MLPERF, Sample, sample
from perfdb.record import Figures
from perfdb.site import read
from perfdb.site.build import with_comparisons
from perfdb.site.pages import catalog
from tests.factories import case, published, release, stored
from tests.shell import Shell
from tests.site.samples import soup, words


def series(
    generator: np.random.Generator, deviation: float, *levels: float, runs: int = 1
) -> list[Sample]:
    """Releases at these levels, as logarithms, each of so many runs with normal errors."""
    return [sample(np.exp(generator.normal(level, deviation, runs))) for level in levels]


@pytest.mark.parametrize("count", [5, 8, 20, 50])
def test_of_series_without_a_change_one_in_a_hundred_has_a_change_point(count: int) -> None:
    """At no margin, for single runs and three, at the noise of public MLPerf runs.

    Of the 581 runs of MLPerf Training v4.1 and v5.0 the coefficient of variation is 0.19 % in the
    middle, 0.5 % at the 90th percentile and 0.87 % at most (docs/explanation/verdicts.md).
    """
    generator = np.random.default_rng(20261128)
    ways = list(product((0.0019, 0.005, 0.0087), (1, 3), range(50)))
    alarms = sum(
        bool(found(series(generator, deviation, *[0.0] * count, runs=runs), MLPERF, 0.0))
        for deviation, runs, _ in ways
    )
    assert alarms <= len(ways) / 100


def test_a_series_that_moves_is_found_where_it_moved() -> None:
    """A step of 3 % among twenty single runs of 0.5 %, and one release that was off by 5 %."""
    generator = np.random.default_rng(1)
    steps = [found(series(generator, 0.005, *[0.0] * 12, *[-0.03] * 8), MLPERF) for _ in range(100)]
    assert 95 <= sum([*some] == [12] for some in steps)
    dips = [
        found(series(generator, 0.005, *[0.0] * 9, -0.05, *[0.0] * 10), MLPERF) for _ in range(100)
    ]
    assert 95 <= sum([*some] == [9, 10] for some in dips)


def test_places_are_those_of_ruptures() -> None:
    """Dynp(model="l2", min_size=1, jump=1) of ruptures 1.1.10 has these for two changes."""
    known = [4.605, 4.603, 4.606, 4.604, 4.572, 4.574, 4.571, 4.573, 4.575, 4.640, 4.641, 4.639]
    moved = found([Sample(1, it) for it in known], MLPERF)
    assert [4, 9] == [*moved]
    means = [sum(known[a:b]) / (b - a) for a, b in ((0, 4), (4, 9), (9, 12))]
    expected = np.exp(np.diff(means))
    assert expected == pytest.approx([*moved.values()])


def test_few_points_and_changes_that_do_not_matter_are_none() -> None:
    """Four points have verdicts; 0.5 % is sure and within the margin of 1 %."""
    steps = [Sample(1, it) for it in (0.0, 0.0, 0.5, 0.5)]
    assert {} == found(steps, MLPERF)
    small = [Sample(1, it) for it in [0.0] * 10 + [0.005] * 10]
    assert ({}, [10]) == (found(small, MLPERF), [*found(small, MLPERF, 0.001)])
    assert {} == found(steps * 2, MLPERF, least=0.5)


RATES = (10_010, 9_990, 10_020, 10_000, 9_985, 10_310, 10_290, 10_300, 10_320)
"""9.001: ten thousand, and 3 % more from the sixth release on."""


@pytest.fixture
def store(sqlite: URL) -> URL:
    for version, rate in enumerate(RATES, start=1):
        row = published(
            case=case(framework="nemo"), release=release(f"{version}.0", framework="nemo"),
            figures=Figures(tokens_per_sec_per_gpu=rate), raw={},
        )  # fmt: skip
        stored(sqlite, row, page=f"{version}.md")
    return sqlite


def test_trends_and_pages_of_models_mark_them(store: URL, perfdb: Shell) -> None:
    """The mean of the last four over that of the first five is 1.0304."""
    asked = ("trend", "llama3-8b", "--db", store.render_as_string(hide_password=False))
    out = perfdb(*asked).stdout
    assert ("◆ moved +3.0%" in out, "change point: 6.0 (+3.0%)" in out) == (True, True)
    [point] = json.loads(perfdb(*asked, "--json").stdout)["series"][0]["change_points"]
    assert ("6.0", pytest.approx(1.0304, abs=1e-4)) == (point["release"], point["ratio"])
    known = with_comparisons(read.stored(store))
    page = next(it for it in catalog.pages(known) if it.name == "models/llama3-8b")
    shown = soup(page)
    assert any("Change points: 6.0." in words(it) for it in shown.select("svg desc"))
    assert "10,310 ◆ +3.0%" in words(shown)
