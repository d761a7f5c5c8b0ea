"""The noise model against hand arithmetic and scipy.stats, another way to the same numbers."""

from importlib import import_module
from math import erfc, inf, log, pi, sqrt
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfdb.compare import noise
from perfdb.compare.noise import MLPERF, Prediction, Prior, Question, Sample, sample


def lone(*percents: float) -> list[Sample]:
    """Releases of one run each, so many per cent from one another."""
    return [Sample(1, percent / 100) for percent in percents]


def predicted(
    releases: list[Sample], new: Sample, prior: Prior = MLPERF, least: float = 0.0
) -> Prediction:
    """A new release against those before it, the newest first."""
    [found] = noise.predicted([Question(releases[::-1], len(releases), new, least)], prior)
    return found


@pytest.fixture(scope="module")
def stats():
    """scipy's, which takes two seconds to import."""
    return import_module("scipy.stats")


class TestSamples:
    def test_a_sample_is_of_logarithms(self):
        """By hand: logarithms 0 and ln 2, of mean ln 2 / 2."""
        found = sample([1.0, 2.0])
        assert (2, log(2) / 2, 2 * (log(2) / 2) ** 2) == pytest.approx(
            (found.count, found.mean, found.squares)
        )

    @given(st.lists(st.floats(0.1, 10), min_size=2, max_size=20), st.integers(1, 19))
    def test_two_samples_together_are_the_sample_of_both(self, figures, cut):
        parts = [part for part in (figures[:cut], figures[cut:]) if part]
        whole, found = sample(figures), noise.total(map(sample, parts))
        assert whole.count == found.count
        assert (whole.mean, whole.squares) == pytest.approx((found.mean, found.squares), abs=1e-9)


class TestPrior:
    def test_that_of_mlperf_has_the_quantiles_of_its_logs(self, stats):
        """Coefficients of variation of 581 / 69 runs: 0.19 % in the middle, 0.5 % at the 90th."""
        degrees = 581 / 69 - 1
        for share, percent in ((0.5, 0.19), (0.9, 0.5)):
            variance = stats.f(degrees, noise.MLPERF.degrees).ppf(share) * noise.MLPERF.variance
            assert percent == pytest.approx(100 * sqrt(variance), rel=0.03)

    @pytest.mark.parametrize("degrees_each", [1, 3, 19])
    def test_it_is_estimated_from_variances_that_follow_it(self, stats, degrees_each):
        """4,000 cases whose variances are 0.3 %² of 5 degrees over chi-squared, as scipy draws."""
        rng = np.random.default_rng(20_260_301)
        variances = 5 * 0.003**2 / stats.chi2(5).rvs(4_000, random_state=rng)
        seen = variances * stats.chi2(degrees_each).rvs(4_000, random_state=rng) / degrees_each
        found = noise.fitted([(one, degrees_each) for one in seen.tolist()])
        assert 5 == pytest.approx(found.degrees, rel=0.25)
        assert 0.003 == pytest.approx(sqrt(found.variance), rel=0.05)

    def test_equal_variances_are_no_proof_that_all_cases_are_alike(self):
        found = noise.fitted([(1e-5, 4.0)] * 30)
        assert 8 == found.degrees
        assert noise.fitted([(0.0, 1.0)] * 30).variance < 1e-11

    def test_changes_between_releases_are_no_noise(self):
        """A third of the cases became 4 % faster in one release; the noise is 0.3 %."""
        rng = np.random.default_rng(7)
        levels = rng.standard_normal((300, 6)) * 0.003
        levels[::3, 3:] -= 0.04
        cases = [[Sample(1, mean) for mean in row] for row in levels.tolist()]
        assert 0.003 == pytest.approx(sqrt(noise.prior_of(cases).variance), rel=0.15)

    def test_too_few_cases_leave_that_of_mlperf(self):
        pairs = [[Sample(2, 0.0, 1e-4)]] * 19
        assert noise.MLPERF is noise.prior_of(pairs)
        assert noise.MLPERF is not noise.prior_of([*pairs, pairs[0]])
        assert noise.MLPERF is noise.prior_of([[Sample(1, 0.0)]] * 100)


class TestPrediction:
    PRIOR = Prior(4.0, 0.004**2)

    def test_by_hand_with_scipy(self, stats):
        """Releases of 0, 1 and -1 %, 3 % after: 4 × 0.4 %² + 2 × 1 %² of 4 + 2 degrees."""
        prior = Prior(4.0, 0.01**2)
        found = predicted(lone(0, 1, -1), Sample(1, 0.03), prior)
        deviation = sqrt((4 * 0.01**2 + 2 * 0.01**2) / 6)
        error = deviation * sqrt(1 + 1 / 3)
        assert (0.03, error, 6) == pytest.approx((found.change, found.error, found.degrees))
        assert (3, 1) == found.num_runs
        assert stats.t(6).ppf(0.995) * error == pytest.approx(found.half)
        assert 2 * stats.t(6).sf(0.03 / error) == pytest.approx(found.p)

    @pytest.mark.parametrize(
        ("releases", "num_releases"),
        [((0, 2.5), 2), ((0, 2.7), 1), ((0, 0, 2.0), 3), ((0, 0, 2.2), 2)],
    )
    def test_a_baseline_ends_at_a_release_that_differs(self, releases, num_releases):
        """t(4) at 1 % × 0.4 % × √2 = 2.60 %; t(5) at ½ % × √(4/5) × 0.4 % × √(3/2) = 2.09 %."""
        assert num_releases == predicted(lone(*releases), Sample(1, 0.0), self.PRIOR).num_releases

    def test_the_mean_of_the_last_five_releases_is_the_baseline_and_all_show_the_noise(self):
        """The newest first."""
        found = predicted(lone(0.1, 0.2, 0.3, -0.5, -0.6, 0.8), Sample(1, 0.0), self.PRIOR)
        assert (0.001, 6, (5, 1)) == (
            pytest.approx(found.change), found.num_releases, found.num_runs,
        )  # fmt: skip
        squares = np.sum((np.array([0.1, 0.2, 0.3, -0.5, -0.6, 0.8]) - 0.05) ** 2) / 100**2
        deviation = sqrt((4 * 0.004**2 + squares) / 9)
        assert deviation * sqrt(6 / 5) == pytest.approx(found.error, rel=1e-6)

    def test_what_lies_before_a_change_is_no_baseline(self):
        found = predicted(lone(0.1, 0.0, 5.0, 5.1), Sample(1, 0.001), self.PRIOR)
        assert (2, 0.0005) == (found.num_releases, pytest.approx(found.change))

    def test_runs_of_few_steps_are_no_sharper_than_these(self):
        sharp, blunt = (predicted(lone(0), Sample(1, 0.03), self.PRIOR, it) for it in (0.0, 0.1))
        assert (2.5758 * 0.1, True) == (pytest.approx(blunt.half, rel=1e-4), sharp.p < blunt.p)

    def test_what_no_machine_varies_by_is_a_change_whatever_the_prior(self, stats):
        """8 % is 6.5 times √2 × 0.87 %; by two degrees alone it were a chance of 1 in 1,000.

        Runs that vary by more than the worst of MLPerf show that this one is another machine.
        """
        found = predicted(lone(0), Sample(1, 0.08))
        by_t = 2 * stats.t(2).sf(0.08 / (0.00166 * sqrt(2)))
        by_worst = 2 * stats.norm.sf(0.08 / (0.0087 * sqrt(2)))
        assert (by_worst, True) == (pytest.approx(found.p), by_worst < by_t)
        noisy = predicted([Sample(2, 0.0, 2 * 0.01**2)], Sample(1, 0.08))
        assert noisy.p > 1e-3
        assert [1.0, 0.0] == [predicted(lone(0), it, Prior(2.0, 0.0)).p for it in lone(0, 1)]


def test_false_discovery_rates_are_those_of_scipy(stats):
    chances = [0.01, 0.04, 0.03, 0.002, 0.5, 0.5]
    assert list(stats.false_discovery_control(chances)) == pytest.approx(noise.adjusted(chances))
    assert [] == noise.adjusted([])


class TestDistributions:
    """Against printed tables of Student's t, and closed forms."""

    @pytest.mark.parametrize(
        ("degrees", "t"), [(1, 63.657), (2, 9.925), (5, 4.032), (10, 3.169), (30, 2.750)]
    )
    def test_students_t_is_that_of_tables(self, degrees, t):
        assert noise.quantile(degrees, 0.01) == pytest.approx(t, abs=5e-4)
        assert noise.two_sided(-t, degrees) == pytest.approx(0.01, rel=2e-3)

    @pytest.mark.parametrize("z", [0.0, 1.96, 8.0])
    def test_infinite_degrees_are_the_normal_distribution(self, z):
        assert noise.two_sided(z) == pytest.approx(erfc(z / sqrt(2)), rel=1e-10)
        assert noise.quantile(inf, 0.01) == pytest.approx(NormalDist().inv_cdf(0.995))

    def test_polygamma_functions_in_closed_form(self):
        assert noise.trigamma(1.0) == pytest.approx(pi**2 / 6)
        assert noise.trigamma(0.5) == pytest.approx(pi**2 / 2)
        assert noise.digamma(1.0) - noise.digamma(0.5) == pytest.approx(2 * log(2))
        assert noise.inverse_trigamma(pi**2 / 6) == pytest.approx(1.0, rel=1e-7)
