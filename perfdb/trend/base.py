"""What a trend takes and gives: results with their time, points and series."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from perfdb.compare import Difference, Judgement, Level, Result, Side, Verdict
from perfdb.compare.verdict import judge

UNATTRIBUTED = "(unattributed)"


class Timed(Result):
    """A result as `perfdb.queries.results.current` gives it, with its release and its time."""

    release_id: int
    run_id: str | None
    started_at: datetime | None


@dataclass(frozen=True)
class Point:
    """The figure of a release, and how it stands to the one before that has one without errors.

    `judgement` is None for the first release.
    """

    side: Side
    judgement: Judgement | None
    differences: tuple[Difference, ...]
    """The fields of the configuration that changed since."""
    runs: tuple[Timed, ...]
    """Its runs, the earliest first; of a published figure the one row."""

    @property
    def release(self) -> str:
        """Its version: '25.04'; '(unattributed)' where nobody stated one."""
        return self.side.shown.release or UNATTRIBUTED

    @property
    def cannot_be_told(self) -> str | None:
        """Why there is no verdict though both releases have a figure; None where there is one."""
        judged = self.judgement
        return judged.reason if judged and judged.verdict is Verdict.UNKNOWN else None

    @property
    def has_open_errors(self) -> bool:
        """Whether the audit finds errors in its figure that nobody has accepted."""
        return self.side.shown.has_open_errors

    @property
    def is_judged(self) -> bool:
        """Whether no open error, of its own or of the release before, stands in the way."""
        if self.judgement is None:
            return not self.has_open_errors
        return self.judgement.verdict is not Verdict.NOT_JUDGED

    @property
    def is_slower(self) -> bool:
        """Whether it is slower than the release before, by the rule of `perfdb compare`."""
        return self.judgement is not None and self.judgement.verdict is Verdict.SLOWER


@dataclass(frozen=True)
class Series:
    """The same work over releases, all measured or all published, by one metric.

    `level` says whether each release stands with its best configuration or with the same one.
    """

    level: Level
    metric: str
    points: tuple[Point, ...]
    missing_in: str | None = None
    """The newest release, where the one before has this and it has not."""

    @property
    def shown(self) -> Result:
        """What it is of, by its last point."""
        return self.points[-1].side.shown

    def figures(self, runs: Sequence[Timed]) -> list[float]:
        """The figures of runs, of those that have one."""
        return [figure for run in runs if (figure := run.figure(self.metric)) is not None]

    @property
    def regression(self) -> Point | None:
        """The first release that is slower than the one before it; None: none is."""
        return next((point for point in self.points if point.is_slower), None)

    @property
    def recovered(self) -> bool:
        """Whether the last release is no longer slower than the one before the regression."""
        if self.regression is None:
            return False
        told = [point for point in self.points if point.side.is_usable(self.metric)]
        before = told[told.index(self.regression) - 1]
        now = judge(before.side, told[-1].side, self.metric).verdict
        return now in (Verdict.SAME, Verdict.FASTER)
