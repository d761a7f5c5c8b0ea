"""Run every rule over results. Pure: subjects in, findings out."""

from collections.abc import Iterable, Iterator
from typing import Final

from perfdb.audit import workload
from perfdb.audit.rules import RULES
from perfdb.audit.rules.base import Rule
from perfdb.audit.subject import Finding, Remark, Severity, Subject

AUDIT_VERSION: Final = 8
"""Raised when a rule changes, or what a rule reads: every release is then audited again."""


def audit(subjects: Iterable[Subject]) -> tuple[Finding, ...]:
    """Everything the rules find, the gravest first, then by source and line.

    Rows are held against rows of their own release and origin alone. Results whose figures are
    withheld are left out: they are known to be no good.
    """
    usable = [subject for subject in subjects if subject.withheld is None]
    found = [
        _finding(rule, remark)
        for rows in workload.releases(usable)
        for rule in RULES.values()
        for remark in rule.check(rows)
    ]
    return ordered(found)


def ordered(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The gravest first, then by source and line, then by rule."""
    return tuple(sorted(findings, key=lambda finding: tuple(_order(finding))))


def _order(finding: Finding) -> Iterator[tuple[int, str]]:
    yield (list(Severity).index(finding.severity), finding.source or "")
    yield (finding.source_line or 0, finding.rule)
    yield (0, finding.message)


def _finding(rule: Rule, remark: Remark) -> Finding:
    row = remark.row
    said = {name: getattr(remark, name) for name in _SAID}
    whose = {name: getattr(row, name) for name in _WHOSE}
    return Finding.model_validate({"rule": rule.NAME} | said | whose)


_SAID = ("severity", "fields", "expected", "found", "message", "suggestion")
_WHOSE = ("model", "system", "release", "source", "source_line", "framework", "result_id")
