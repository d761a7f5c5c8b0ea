"""What an audit rule is, what it is applied to, and how a message names a row."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from perfdb.audit import flop_counts
from perfdb.audit.equations import Tokens, reader
from perfdb.audit.flop_counts import Counted, Work
from perfdb.audit.interval import Interval
from perfdb.catalog import titles
from perfdb.flops.base import Convention
from perfdb.groups import grouped
from perfdb.record import Finding, Result, Severity

SMALL, LARGE = 0.01, 0.05
"""Deviations: below the first, two averages over different steps can explain it."""


@dataclass(frozen=True)
class ReleaseRows:
    """Rows of one release and origin. What they have in common is computed on demand."""

    rows: Sequence[Result]
    elsewhere: Mapping[int, Sequence[Result]] = field(default_factory=dict)
    """By the number of a result: the same result as other pages print it."""

    @cached_property
    def tokens(self) -> Tokens:
        """How its tokens/s are read."""
        return reader(self.rows)

    @cached_property
    def counted(self) -> list[Counted]:
        """GFLOP per token of each row that gives them."""
        return flop_counts.counted(self.rows, self.tokens)

    @cached_property
    def followers(self) -> Counter[Convention]:
        """How many rows each convention explains."""
        return Counter(one for row in self.counted for one in flop_counts.explaining(*row))

    @property
    def usual(self) -> Convention | None:
        """The convention that explains the most rows; None where none explains any."""
        return next((one for one, _ in self.followers.most_common(1)), None)

    @cached_property
    def agreed(self) -> Mapping[Work, list[Counted]]:
        """The rows that agree on the GFLOP per token, by their work."""
        groups = flop_counts.by_work(self.counted)
        return {flop_counts.work(group[0][0]): flop_counts.consensus(group) for group in groups}

    @cached_property
    def outliers(self) -> list[tuple[Counted, list[Counted]]]:
        """Each row that counts other FLOPs per token than its peers agree on, with these peers."""
        return [
            (one, agreed)
            for group in flop_counts.by_work(self.counted)
            if (agreed := self.agreed[flop_counts.work(group[0][0])])
            for one in flop_counts.outliers(group, agreed)
        ]

    def expected(self, row: Result, without: Result) -> Interval | None:
        """GFLOP per token that a row must count: as others of its work agree, else by formula."""
        peers = self.agreed.get(flop_counts.work(row), ())
        if agreed := [count for peer, count in peers if peer is not without]:
            return flop_counts.together(agreed)
        convention = flop_counts.stated(row) or self.usual
        return flop_counts.by_formula(row, convention) if convention else None


@dataclass(frozen=True)
class Rule:
    """One way in which numbers can contradict one another, and its meaning in words."""

    name: str
    meaning: str
    check: Callable[[ReleaseRows], Iterator[Finding]]


def release_rule(meaning: str) -> Callable[[Callable[[ReleaseRows], Iterator[Finding]]], Rule]:
    """Make a function that looks at all rows of a release a rule, named as the function is."""
    return lambda check: Rule(check.__name__, meaning, check)


def row_rule(meaning: str) -> Callable[[Callable[[Result, ReleaseRows], Iterator[Finding]]], Rule]:
    """Make a function that looks at one row of a release a rule, named as the function is."""

    def made(check: Callable[[Result, ReleaseRows], Iterator[Finding]]) -> Rule:
        def each(release: ReleaseRows) -> Iterator[Finding]:
            return (finding for row in release.rows for finding in check(row, release))

        return Rule(check.__name__, meaning, each)

    return made


def identity(rule: str, row: Result) -> dict[str, Any]:
    """What every finding of a rule in a row has."""
    return {
        "rule": rule, "model": row.model, "system": row.system, "release": row.release,
        "source": row.source or None, "source_line": row.source_line, "framework": row.framework,
        "result_id": row.result_id or None,
    }  # fmt: skip


def releases(rows: Iterable[Result]) -> Iterable[Sequence[Result]]:
    """The rows of each release and origin, in their order.

    Rows without a release belong together where they have the same source.
    """

    def key(row: Result) -> tuple[str | None, ...]:
        source = row.source if row.release is None else None
        return (row.framework, row.release, row.container, row.origin, source)

    return grouped(rows, key).values()


def job(row: Result) -> tuple[object, ...]:
    """What was trained on what, whatever the precision, the size of the machine and the batch."""
    return (row.system, row.model, row.qualifiers, row.task, row.variant, row.kernels,
            row.sequence_length)  # fmt: skip


def name(row: Result) -> str:
    """'Llama 3 70B (dropout) LoRA on DGX-GB200'."""
    model = titles.qualified(titles.model(row.model), row.qualifiers)
    return f"{model} {titles.task(row.task)} on {titles.system(row.system)}"


def severity(deviation: float) -> Severity:
    """How sure it is that a relative deviation beyond rounding is a mistake."""
    if abs(deviation) < SMALL:
        return Severity.INFO
    return Severity.WARNING if abs(deviation) < LARGE else Severity.ERROR
