"""How often a gate closes though nothing has changed: `python -m benchmarks.compare_gates`.

Pages of 250 cases and 40 releases without a change, one run of 50 steps each, are simulated as by
`benchmarks.compare_power`. Each page is one run of CI: `compare --fail-on slower` of the last two
releases, with the releases before them as the baseline, and `trend --fail-on regression` of all.
Exits with 1 where more than one page in a hundred closes a gate.
"""

import argparse
import sys
import time
from collections.abc import Iterator

import numpy as np
from scipy import stats

from benchmarks.compare_power import Array, step_times
from perfdb.compare import Choice, comparison
from perfdb.compare.releases import HISTORY
from perfdb.compare.trend import follow_each
from perfdb.record import Origin, Result

CASES, RELEASES = 250, 40
MOST = 0.01
"""The share of pages without a change that may close a gate."""
TOKENS, GPUS = 8 * 4096, 8
"""Of a step."""


def page(rng: np.random.Generator, runs: int) -> list[list[Result]]:
    """The results of each release: cases that vary by 0.2 to 0.9 % from run to run."""
    deviations = np.exp(rng.uniform(np.log(0.002), np.log(0.009), CASES))
    found: list[list[Result]] = []
    for number in range(RELEASES):
        drawn = [
            np.exp(step_times(rng, CASES) + (deviations * rng.standard_normal(CASES))[:, None])
            for _ in range(runs)
        ]
        found.append([one for times in drawn for one in _results(times, number)])
    return found


def _results(times: Array, number: int) -> Iterator[Result]:
    """A run of each case at a release, by its step times."""
    p10, medians, p90 = np.percentile(times, (10, 50, 90), axis=1).tolist()
    means, spreads = times.mean(axis=1).tolist(), times.std(axis=1, ddof=1).tolist()
    for case, median in enumerate(medians):
        yield Result(
            case_key=f"{case:064}", workload_key=f"{case:064}", framework="megatron-core",
            release=f"0.{number}.0", release_id=number, system="dgx-h100", model="llama3-8b",
            num_gpus=GPUS, global_batch_size=8, sequence_length=4096 + case,
            step_time_s=median, step_time_mean_s=means[case], step_time_stdev_s=spreads[case],
            step_time_p10_s=p10[case], step_time_p90_s=p90[case], num_steps=times.shape[1],
            window="skip_warmup(10)", tokens_per_sec_per_gpu=TOKENS / GPUS / median,
            origin=Origin.MEASURED,
        )  # fmt: skip


def closed(releases: list[list[Result]]) -> tuple[bool, bool]:
    """Whether the gates of `compare` and of `trend` close on a page."""
    before, (a, b) = releases[-HISTORY - 2 : -2][::-1], releases[-2:]
    compared = comparison(a, b, earlier=before)
    choices = [
        Choice(f"megatron-core 0.{number}.0", "megatron-core", f"0.{number}.0", (number,))
        for number in range(RELEASES)
    ]
    series = follow_each([one for some in releases for one in some], choices)
    assert len(compared.matched) == len(series) == CASES
    in_trend = any("regression" in one.closes(0.0) for one in series)
    return bool(compared.slower(lambda _: 0.0)), in_trend


def main() -> int:
    """Print how many pages close each gate; 1 where they are too many."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pages", type=int, default=200)
    parser.add_argument("--runs", type=int, default=1, help="of each case at each release")
    asked = parser.parse_args()
    rng, begun = np.random.default_rng(20_261_129), time.perf_counter()
    found = [closed(page(rng, asked.runs)) for _ in range(asked.pages)]
    print(f"{asked.pages} pages of {CASES} cases × {RELEASES} releases × {asked.runs} runs")
    for gate, of_gate in zip(("compare", "trend"), zip(*found, strict=True), strict=True):
        count = sum(of_gate)
        at_most = stats.beta.ppf(0.95, count + 1, asked.pages - count)
        print(f"  {gate:8} closed on {count}; of all pages at most {at_most:.1%} (95 % sure)")
    print(f"{time.perf_counter() - begun:.0f} s")
    return int(any(sum(of_gate) > MOST * asked.pages for of_gate in zip(*found, strict=True)))


if __name__ == "__main__":
    sys.exit(main())
