"""What the rows of a release say of one another."""

from collections.abc import Sequence
from functools import cached_property

from perfdb.audit import flop_counts, rates
from perfdb.audit.flop_counts import Counted
from perfdb.audit.interval import Interval
from perfdb.audit.subject import Subject
from perfdb.flops.base import Convention
from perfdb.groups import grouped


class Release:
    """Rows of one release and origin. What they say is worked out when it is asked for."""

    def __init__(self, rows: Sequence[Subject]) -> None:
        self.rows = rows

    @cached_property
    def tokens(self) -> rates.Tokens:
        """How its tokens/s are read."""
        return rates.reader(self.rows)

    @cached_property
    def counted(self) -> list[Counted]:
        """GFLOP per token of each row that gives them."""
        return flop_counts.counted(self.rows, self.tokens)

    @cached_property
    def usual(self) -> Convention | None:
        """The convention that explains the most rows."""
        return flop_counts.convention_of(self.counted)

    def lengths(self, model: str) -> set[int]:
        """The sequence lengths of a model's rows."""
        return {row.sequence_length for row in self.rows if row.model == model}

    def expected(self, row: Subject, without: Subject) -> Interval | None:
        """GFLOP per token that a row must count: as others of its work agree, else by formula."""
        peers = self._agreed.get(flop_counts.work(row), ())
        agreed = [count for peer, count in peers if peer is not without]
        if agreed:
            return flop_counts.together(agreed)
        convention = flop_counts.stated(row) or self.usual
        return flop_counts.by_formula(row, convention) if convention else None

    @cached_property
    def _agreed(self) -> dict[tuple[str, str, str, int, str], list[Counted]]:
        groups = grouped(self.counted, lambda one: flop_counts.work(one[0]))
        return {key: flop_counts.consensus(group) for key, group in groups.items()}
