"""A figure over few steps may change with the next run."""

from collections.abc import Iterator, Sequence

from perfdb.audit.subject import Remark, Severity, Subject
from perfdb.record import Origin
from perfdb.units import counted

NAME = "few_steps"
MEANING = "a measured run has 40 steps or more after its warm-up"

FEWEST = 40
"""The field's recipes run 50 steps, of which `skip_warmup(10)` leaves so many.

Over 50 or more the median of 581 public MLPerf runs varied by 0.8 % at the worst; of independent
steps 40 vary √(50/40) = 1.12 times as much.
"""


def check(rows: Sequence[Subject]) -> Iterator[Remark]:
    """Measured rows over fewer steps."""
    for row in rows:
        if row.origin is Origin.MEASURED and row.num_steps and row.num_steps < FEWEST:
            found = counted(row.num_steps, "step")
            yield Remark(
                row,
                Severity.INFO,
                ("num_steps",),
                f"{FEWEST} or more",
                str(row.num_steps),
                f"the figures are of {found}; below {FEWEST} the next run may give others",
            )
