"""`python -m benchmarks.compare_power`: what verdicts miss and make up, beside other rules.

Pages of 200 cases are simulated. A step time is an AR(1) process of correlation 0.5 and 1 %, with
the tails of Student's t of 4 degrees of freedom, and one step in 50 takes half as long again. A run
is 50 steps, and runs of a case vary by 0.2 to 0.9 %, log-uniform over the cases. Rules are those of

- perfdb: `perfdb.compare.noise` with its margin and its control of false discoveries;
- Mann-Whitney: the steps of B against those of A, p < 0.002, as `asv compare` has it;
- z > 5: the mean of B against mean and deviation of the releases before, as Conbench has it;
- 2 %: the median of B against that of A;
- 5 %: the same, as the golden values of Megatron-LM's CI;
- mean of ten: B against the mean of up to ten releases before, 2 %.

`--write` puts the tables into docs/explanation/verdicts.md.
"""

import argparse
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isnan
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy import stats

from perfdb.compare import noise
from perfdb.compare.noise import Prediction, Question, Sample

Array = npt.NDArray[np.float64]

CASES, STEPS, HISTORY, MOST_RUNS = 200, 50, 20, 5
FASTER = 0.03
"""The change of what changes."""
RUNS = (1, 2, 3, 5)
HISTORIES = (0, 5, 20)
DOCUMENT = Path("docs/explanation/verdicts.md")
MARKS = "<!-- compare_power -->", "<!-- /compare_power -->"


@dataclass(frozen=True)
class World:
    """Medians of runs as logarithms, by case, release and run; and the steps of the last two."""

    medians: Array
    steps: Array

    @classmethod
    def drawn(cls, rng: np.random.Generator, deviations: Array) -> "World":
        """Runs of cases without any change."""
        releases = HISTORY + 1  # A is the last of the history
        medians = np.empty((len(deviations), releases, MOST_RUNS))
        steps = np.empty((len(deviations), 2, MOST_RUNS, STEPS), dtype=np.float32)
        for release in range(releases):
            for run in range(MOST_RUNS):
                times = step_times(rng, len(deviations))
                times += (deviations * rng.standard_normal(len(deviations)))[:, None]
                medians[:, release, run] = np.median(times, axis=1)
                if release >= HISTORY - 1:
                    steps[:, release - HISTORY + 1, run] = times
        return cls(medians, steps)


def step_times(rng: np.random.Generator, count: int) -> Array:
    """Logarithms of the step times of a run of each case."""
    shocks = rng.standard_t(4, (STEPS, count)) / np.sqrt(2)
    times = np.empty_like(shocks)
    times[0] = shocks[0]
    for at in range(1, STEPS):
        times[at] = 0.5 * times[at - 1] + np.sqrt(0.75) * shocks[at]
    spikes = np.log(1.5) * (rng.random(shocks.shape) < 0.02)
    return np.asarray((0.01 * times + spikes).T)


@dataclass(frozen=True)
class Cell:
    """The world at so many runs of each release, with so many releases before B, A included."""

    world: World
    runs: int
    history: int

    @cached_property
    def _samples(self) -> list[list[Sample]]:
        """Of each case, the newest release last: those before, A and B."""
        known = self.world.medians[:, HISTORY - max(self.history, 1) :, : self.runs]
        means = known.mean(axis=2)
        squares = ((known - means[:, :, None]) ** 2).sum(axis=2)
        return [
            [Sample(self.runs, *one) for one in zip(of_mean, of_squares, strict=True)]
            for of_mean, of_squares in zip(means.tolist(), squares.tolist(), strict=True)
        ]

    def pages(self, share: float) -> Iterator[tuple[Sequence[bool], list[Prediction]]]:
        """Of each page: which of its cases changed, and the predictions."""
        changed = [at < share * CASES for at in range(CASES)]
        for start, prior in self._priors.items():
            page = self._samples[start : start + CASES]
            asked = [
                Question(case, len(case) - 1, _shifted(case[-1], is_changed))
                for case, is_changed in zip(page, changed, strict=True)
            ]
            yield changed, noise.predicted(asked, prior)

    @cached_property
    def _priors(self) -> Mapping[int, noise.Prior]:
        """Of each page, by the place of its first case."""
        found = {}
        for start in range(0, len(self._samples), CASES):
            page = self._samples[start : start + CASES]
            known = [case[:-1] for case in page] + [case[-1:] for case in page]
            found[start] = noise.prior_of(known)
        return found

    def perfdb(self, share: float) -> dict[str, float]:
        """The shares, in percent: false and true verdicts, same where not, closed gates."""
        false, found, same, right, closed, pages = 0, 0, 0, 0, 0, 0
        for changed, predictions in self.pages(share):
            rates = noise.adjusted([one.p for one in predictions])
            closes = False
            for is_changed, one, rate in zip(changed, predictions, rates, strict=True):
                apart = abs(one.change)
                is_sure = apart > max(one.half, noise.MARGIN)
                is_verdict = is_sure and rate <= noise.FALSE_DISCOVERIES
                is_same = apart + one.half <= noise.MARGIN
                closes |= is_sure and rate <= noise.FALSE_DISCOVERIES_OF_GATE
                found, same = found + (is_changed and is_verdict), same + (is_changed and is_same)
                false += not is_changed and is_verdict
                right += not is_changed and is_same
            closed, pages = closed + closes, pages + 1
        num_changed = pages * sum(at < share * CASES for at in range(CASES))
        unchanged = pages * CASES - num_changed
        return {
            "false": _percent(false, pages * CASES), "power": _percent(found, num_changed),
            "same": _percent(same, num_changed), "right": _percent(right, unchanged),
            "closed": _percent(closed, pages),
        }  # fmt: skip

    def others(self) -> dict[str, tuple[float, float]]:
        """Of each other rule: false verdicts and power, in percent."""
        return {
            name: (_share(rule(0.0)), _share(rule(FASTER)))
            for name, rule in (
                ("Mann-Whitney", self._mann_whitney), ("z > 5", self._z), ("2 %", self._two),
                ("5 %", self._five), ("mean of ten", self._mean),
            )
        }  # fmt: skip

    def _mann_whitney(self, by: float) -> npt.NDArray[np.bool_] | None:
        a, b = (
            self.world.steps[:, at, : self.runs].reshape(-1, self.runs * STEPS) for at in (0, 1)
        )
        p = stats.mannwhitneyu(a, b - by, axis=1, method="asymptotic").pvalue
        return np.asarray(p < 0.002)

    def _z(self, by: float) -> npt.NDArray[np.bool_] | None:
        before = self._before(self.history)
        if self.history < 3:
            return None
        return np.abs(self._new - by - before.mean(1)) > 5 * before.std(1, ddof=1)

    def _two(self, by: float) -> npt.NDArray[np.bool_] | None:
        return np.abs(self._new - by - self._before(1)[:, 0]) > 0.02

    def _five(self, by: float) -> npt.NDArray[np.bool_] | None:
        return np.abs(self._new - by - self._before(1)[:, 0]) > 0.05

    def _mean(self, by: float) -> npt.NDArray[np.bool_] | None:
        return np.abs(self._new - by - self._before(min(self.history, 10) or 1).mean(1)) > 0.02

    @cached_property
    def _new(self) -> Array:
        return np.asarray(np.median(self.world.medians[:, -1, : self.runs], axis=1))

    def _before(self, count: int) -> Array:
        known = self.world.medians[:, HISTORY - count : HISTORY, : self.runs]
        return np.asarray(np.median(known, axis=2))


def _shifted(one: Sample, is_changed: bool) -> Sample:
    return Sample(one.count, one.mean - FASTER * is_changed, one.squares)


def _percent(count: int, of: int) -> float:
    return 100 * count / of if of else float("nan")


def _share(found: npt.NDArray[np.bool_] | None) -> float:
    return float("nan") if found is None else 100 * float(found.mean())


def _cell(value: float) -> str:
    return "–" if isnan(value) else f"{value:.1f}" if value < 99.95 else "100"


def tables(pages: int) -> str:
    """The two tables, as Markdown."""
    rng = np.random.default_rng(20_261_128)
    deviations = np.exp(rng.uniform(np.log(0.002), np.log(0.009), pages * CASES))
    world = World.drawn(rng, deviations)
    ours = [
        "| runs | earlier releases | false, none changed | false, a tenth changed | false, half "
        "changed | power, a tenth changed | power, all changed | *same* though 3 % apart | *same*, "
        "none changed | gates closed, none changed |",
        "|" + "---|" * 10,
    ]
    theirs = []
    for runs in RUNS:
        for history in HISTORIES:
            cell = Cell(world, runs, history)
            none, tenth, half, every = (cell.perfdb(share) for share in (0.0, 0.1, 0.5, 1.0))
            values = (none["false"], tenth["false"], half["false"], tenth["power"], every["power"],
                      tenth["same"], none["right"], none["closed"])  # fmt: skip
            ours.append(f"| {runs} | {history} | {' | '.join(map(_cell, values))} |")
            others = cell.others()
            if not theirs:
                theirs = [
                    f"| runs | earlier releases | perfdb | {' | '.join(others)} |",
                    "|" + "---|" * (3 + len(others)),
                ]
            pairs = [(none["false"], every["power"]), *others.values()]
            shown = [f"{_cell(false)} / {_cell(power)}" for false, power in pairs]
            theirs.append(f"| {runs} | {history} | {' | '.join(shown)} |")
    title = f"{pages} pages of {CASES} cases, 3 %, all in percent:"
    other = "False verdicts where nothing changed / power where all did, in percent:"
    return "\n".join([title, "", *ours, "", other, "", *theirs])


def main() -> None:
    """Print the tables, or write them into the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pages", type=int, default=20)
    parser.add_argument("--write", action="store_true", help=f"into {DOCUMENT}")
    asked = parser.parse_args()
    begun = time.perf_counter()
    made = tables(asked.pages)
    print(made)
    print(f"\n{time.perf_counter() - begun:.0f} s")
    if asked.write:
        text, (start, end) = DOCUMENT.read_text(), MARKS
        block = f"{start}\n\n{made}\n\n{end}"
        DOCUMENT.write_text(re.sub(f"{start}.*{end}", lambda _: block, text, flags=re.DOTALL))


if __name__ == "__main__":
    main()
