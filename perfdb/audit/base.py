"""What an audit rule is, what it is applied to, and how a message names a row."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypedDict

from perfdb.audit import flop_counts
from perfdb.audit.equations import Tokens, reader
from perfdb.audit.flop_counts import Counted
from perfdb.audit.interval import Interval
from perfdb.catalog import titles
from perfdb.flops.base import Convention
from perfdb.groups import grouped
from perfdb.record import Finding, Result, Severity

SMALL, LARGE = 0.01, 0.05
"""Deviations: below the first, two averages over different steps can explain it."""


@dataclass(frozen=True)
class ReleaseRows:
    """Rows of one release and origin. What they have in common is worked out when it is needed."""

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
    def usual(self) -> Convention | None:
        """The convention that explains the most rows."""
        return flop_counts.convention_of(self.counted)

    @cached_property
    def outliers(self) -> list[tuple[Counted, list[Counted]]]:
        """Each row that counts other FLOPs per token than its peers agree on, with these."""
        found = []
        for group in flop_counts.by_work(self.counted):
            if agreed := flop_counts.consensus(group):
                found += [(one, agreed) for one in flop_counts.outliers(group, agreed)]
        return found

    def lengths(self, model: str) -> set[int]:
        """The sequence lengths of a model's rows."""
        return {row.sequence_length for row in self.rows if row.model == model}

    def expected(self, row: Result, without: Result) -> Interval | None:
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


@dataclass(frozen=True)
class Rule:
    """One way in which numbers can contradict one another: its name, and its meaning in words."""

    name: str
    meaning: str
    check: Callable[[ReleaseRows], Iterator[Finding]]


class Identity(TypedDict):
    """Which rule a finding is of, and which row."""

    rule: str
    model: str
    system: str
    release: str | None
    source: str | None
    source_line: int | None
    framework: str
    result_id: int | None


def identity(rule: str, row: Result) -> Identity:
    """What every finding of a rule in a row has."""
    return {
        "rule": rule,
        "model": row.model,
        "system": row.system,
        "release": row.release,
        "source": row.source or None,
        "source_line": row.source_line,
        "framework": row.framework,
        "result_id": row.result_id or None,
    }


def releases(rows: Iterable[Result]) -> Iterable[Sequence[Result]]:
    """The rows of each release and origin, in their order.

    Rows that nobody attributed to a release belong together where they are of one source.
    """
    return grouped(rows, _release).values()


def _release(row: Result) -> tuple[str | None, ...]:
    source = row.source if row.release is None else None
    return (row.framework, row.release, row.container, row.origin, source)


def job(row: Result) -> tuple[object, ...]:
    """What was trained on what, whatever the precision, the size of the machine and the batch."""
    words = (row.model, row.qualifiers, row.task, row.variant, row.kernels)
    return (row.system, *words, row.sequence_length)


def name(row: Result) -> str:
    """'Llama 3 70B (dropout) LoRA on DGX-GB200'."""
    model = titles.qualified(titles.model(row.model), row.qualifiers)
    return f"{model} {titles.task(row.task)} on {titles.system(row.system)}"


def severity(deviation: float) -> Severity:
    """How sure it is that a relative deviation beyond rounding is a mistake."""
    if abs(deviation) < SMALL:
        return Severity.INFO
    return Severity.WARNING if abs(deviation) < LARGE else Severity.ERROR
