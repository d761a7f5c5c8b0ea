"""Run every rule over results: the table of the rules, and what they find in the store."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from sqlalchemy import Connection

from perfdb.audit import rules_flops, rules_layout, rules_peers, rules_throughput
from perfdb.audit.equations import FIGURES, TOTAL
from perfdb.audit.report import ordered
from perfdb.audit.rules import ReleaseRows, Rule, identity, releases
from perfdb.db.sources import content
from perfdb.groups import grouped
from perfdb.queries import results
from perfdb.record import Finding, Result

AUDIT_VERSION: Final = 17
"""Raised when a rule changes, or what a rule reads: every release is then audited again."""

LAYOUT_RULES: Final = (
    rules_layout.micro_batch, rules_layout.gradient_accumulation, rules_layout.world_size,
    rules_layout.data_parallel, rules_layout.expert_parallel, rules_layout.virtual_pipeline,
)  # fmt: skip
"""What is checked of rows without figures too."""

_NAMES: Final = ("framework", "model", "system")
"""What is empty in a row without figures that does not state it."""

RULES: Final[Mapping[str, Rule]] = {
    rule.name: rule
    for rule in (
        rules_throughput.throughput, rules_throughput.total_throughput,
        rules_throughput.time_to_train, *LAYOUT_RULES, rules_flops.flops_per_token,
        rules_flops.flops_formula, rules_flops.mfu, rules_flops.peak, rules_flops.precision,
        rules_peers.two_pages, rules_peers.same_figures, rules_peers.missing_figure,
        rules_throughput.zero_figure, rules_peers.faster_precision, rules_peers.scaling,
        rules_throughput.step_spread, rules_throughput.few_steps, rules_throughput.unlike_nodes,
        rules_throughput.emitted, rules_throughput.low_precision_throughput,
        rules_flops.unknown_model,
    )
}  # fmt: skip
"""The rules. To add one: write it in the module of its theme, add it here, add its cases."""


def meanings() -> dict[str, str]:
    """What each rule holds, also those that look at documents and at all releases together."""
    from perfdb.audit import documents  # noqa: PLC0415  ingest does not need it

    return {name: rule.meaning for name, rule in RULES.items()} | {
        documents.NAME: documents.MEANING,
        rules_flops.ACROSS_RELEASES: "published TFLOP/s ÷ tokens/s is the same for a model, task "
        "and sequence length in each release of a framework",
    }


Elsewhere = Mapping[int, Sequence[Result]]
"""By the number of a result: the same result as other pages print it."""


def audit(rows: Iterable[Result], others: Elsewhere | None = None) -> tuple[Finding, ...]:
    """Everything the rules find, the gravest first, then by source and line.

    Rows are compared with rows of their own release and origin alone. Results whose figures are
    withheld are left out.
    """
    usable = [row for row in rows if row.withheld is None]
    of_releases = [ReleaseRows(some, others or {}) for some in releases(usable)]
    return ordered(
        one for release in of_releases for rule in RULES.values() for one in _applied(rule, release)
    )


def configurations(rows: Iterable[Result]) -> tuple[Finding, ...]:
    """What the rules of layout find in rows without figures, which may name no model or system."""
    return tuple(
        found.model_copy(update={it: getattr(row, it) or None for it in _NAMES})
        for row in rows
        for rule in LAYOUT_RULES
        for found in _applied(rule, ReleaseRows([row]))
    )


def _applied(rule: Rule, release: ReleaseRows) -> list[Finding]:
    """What a rule finds; where its arithmetic fails, in each row by itself, with a finding."""
    try:
        return list(rule.check(release))
    except (ArithmeticError, ValueError) as error:
        if len(release.rows) > 1:
            alone = (replace(release, rows=[row]) for row in release.rows)
            return [one for each in alone for one in _applied(rule, each)]
        failed = Finding(
            **identity(rule.name, release.rows[0]),
            fields=(),
            message=f"this rule could not be applied: {type(error).__name__}: {error}",
            suggestion="look whether its figures can be; if they can, report a defect of perfdb",
        )
        return [failed]


def stored(
    connection: Connection, release_ids: Sequence[int] | None = None
) -> tuple[list[Result], Elsewhere]:
    """Every current result, or those of some releases; and the same as other pages print them.

    Of another page only the latest figures count, and only while it still prints them.
    """
    asked = results.current()
    wanted = [asked] if release_ids is None else [results.of_release(asked, n) for n in release_ids]
    rows = [row for question in wanted for row in results.read(connection, question)]
    by_id = {row.result_id: row for row in rows}
    latest = {
        (other["result_id"], other["source"]): other
        for other in connection.execute(results.on_other_pages()).mappings()
        if other["result_id"] in by_id
    }
    names = (*FIGURES, TOTAL, "raw", "printed", "source", "source_line")
    printed = [
        replace(by_id[number], **{name: other[name] for name in names})
        for (number, _), other in latest.items()
        if other["replaced"]
    ]
    return rows, grouped(printed, lambda row: row.result_id)


def across_releases(connection: Connection, shown: Collection[int] | None = None) -> list[Finding]:
    """In what releases contradict one another: judged over all published results in any case.

    `shown`: the findings in the results of these numbers alone.
    """
    found = rules_flops.across_releases(results.read(connection, results.published()))
    return [it for it in found if shown is None or it.result_id in shown]


def pages(connection: Connection, rows: Iterable[Result]) -> dict[str, str]:
    """The text of each page that prints a result, by its path."""
    hashes = {row.source: row.source_sha256 for row in rows if not row.is_measured}
    return {
        path: content(connection, sha256).decode(errors="replace")
        for path, sha256 in hashes.items()
        if path and sha256
    }
