"""Steps of one run that differ too much say little of a step."""

from collections.abc import Iterator, Sequence

from perfdb.audit.subject import Remark, Severity, Subject
from perfdb.record import Origin
from perfdb.units import percent

NAME = "step_spread"
MEANING = "the standard deviation of a measured run's step times is within 10 % of their mean"

MOST = 0.10
"""The noisiest of 581 public MLPerf runs stays well below."""


def check(rows: Sequence[Subject]) -> Iterator[Remark]:
    """Measured rows whose steps spread too much."""
    for row in rows:
        mean, deviation = row.step_time_mean_s, row.step_time_stdev_s
        if row.origin is Origin.MEASURED and mean and deviation and deviation > MOST * mean:
            found = percent(deviation / mean)
            causes = ("something else ran, or the warm-up was too short", *row.notes)
            yield Remark(
                row,
                Severity.WARNING,
                ("step_time_s",),
                f"{percent(MOST, 0)} at most",
                found,
                f"the step times of the run spread by {found} of their mean ({deviation:.4g} s of "
                f"{mean:.4g} s): {'; '.join(causes)}",
                "run it again with more warm-up steps",
            )
