"""Run every rule over results: the table of the rules, and what they find in the store."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from sqlalchemy import Connection, RowMapping

from perfdb.audit import rules_flops, rules_layout, rules_peers, rules_throughput
from perfdb.audit.base import ReleaseRows, Rule, identity, releases
from perfdb.audit.equations import FIGURES, TOTAL
from perfdb.audit.report import ordered
from perfdb.db.sources import content
from perfdb.groups import grouped
from perfdb.queries import results
from perfdb.record import Finding, Result, Severity

AUDIT_VERSION: Final = 13
"""Raised when a rule changes, or what a rule reads: every release is then audited again."""

RULES: Final[Mapping[str, Rule]] = {
    rule.name: rule
    for rule in (
        rules_throughput.THROUGHPUT,
        rules_throughput.TOTAL_THROUGHPUT,
        rules_throughput.TIME_TO_TRAIN,
        rules_layout.MICRO_BATCH,
        rules_layout.GRADIENT_ACCUMULATION,
        rules_layout.WORLD_SIZE,
        rules_layout.DATA_PARALLEL,
        rules_layout.EXPERT_PARALLEL,
        rules_layout.VIRTUAL_PIPELINE,
        rules_flops.FLOPS_PER_TOKEN,
        rules_flops.FLOPS_FORMULA,
        rules_flops.MFU,
        rules_flops.PEAK,
        rules_flops.PRECISION,
        rules_peers.TWO_PAGES,
        rules_peers.SAME_FIGURES,
        rules_peers.MISSING_FIGURE,
        rules_throughput.ZERO_FIGURE,
        rules_peers.FASTER_PRECISION,
        rules_peers.SCALING,
        rules_throughput.STEP_SPREAD,
        rules_throughput.FEW_STEPS,
        rules_throughput.EMITTED,
        rules_throughput.LOW_PRECISION_THROUGHPUT,
        rules_flops.UNKNOWN_MODEL,
    )
}
"""The rules. To add one: write it in the module of its theme, add it here, add its cases."""

Elsewhere = Mapping[int, Sequence[Result]]
"""By the number of a result: the same result as other pages print it."""


def audit(rows: Iterable[Result], others: Elsewhere | None = None) -> tuple[Finding, ...]:
    """Everything the rules find, the gravest first, then by source and line.

    Rows are compared with rows of their own release and origin alone. Results whose figures are
    withheld are left out: they are known to be no good.
    """
    usable = [row for row in rows if row.withheld is None]
    of_releases = [ReleaseRows(some, others or {}) for some in releases(usable)]
    return ordered(
        one for release in of_releases for rule in RULES.values() for one in applied(rule, release)
    )


def applied(rule: Rule, release: ReleaseRows) -> list[Finding]:
    """What a rule finds; where its arithmetic fails, in each row by itself, with a finding."""
    try:
        return list(rule.check(release))
    except (ArithmeticError, ValueError) as error:
        if len(release.rows) == 1:
            return [_not_applied(rule, release.rows[0], error)]
        alone = (replace(release, rows=[row]) for row in release.rows)
        return [one for each in alone for one in applied(rule, each)]


def _not_applied(rule: Rule, row: Result, error: Exception) -> Finding:
    return Finding(
        **identity(rule.name, row),
        severity=Severity.ERROR,
        fields=(),
        expected=None,
        found=None,
        message=f"this rule could not be applied: {type(error).__name__}: {error}",
        suggestion="look whether its figures can be; if they can, report a defect of perfdb",
    )


def stored(
    connection: Connection, release_ids: Sequence[int] | None = None
) -> tuple[list[Result], Elsewhere]:
    """Every current result, or those of some releases; and the same as other pages print them."""
    asked = results.current()
    wanted = [asked] if release_ids is None else [results.of_release(asked, n) for n in release_ids]
    rows = [row for question in wanted for row in results.read(connection, question)]
    return rows, _elsewhere(connection, {row.result_id: row for row in rows})


def _elsewhere(connection: Connection, rows: Mapping[int, Result]) -> Elsewhere:
    """The latest figures that each other page still prints of these results."""
    latest = {
        (row["result_id"], row["source"]): row
        for row in connection.execute(results.on_other_pages()).mappings()
        if row["result_id"] in rows
    }
    printed = [
        _as_printed(rows[number], row) for (number, _), row in latest.items() if row["replaced"]
    ]
    return grouped(printed, lambda row: row.result_id)


def _as_printed(row: Result, other: RowMapping) -> Result:
    """A result with the figures, the cells and the place of another page."""
    figures = {name: other[name] for name in (*FIGURES, TOTAL)}
    cells = {name: other[name] for name in ("raw", "printed", "source", "source_line")}
    return replace(row, **figures, **cells)


def pages(connection: Connection, rows: Iterable[Result]) -> dict[str, str]:
    """The text of each page that prints a result, by its path."""
    hashes = {row.source: row.source_sha256 for row in rows if not row.is_measured}
    return {
        path: content(connection, sha256).decode(errors="replace")
        for path, sha256 in hashes.items()
        if path and sha256
    }
