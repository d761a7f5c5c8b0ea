"""Run every rule over results. Pure: subjects in, findings out."""

import traceback
from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import Final

from perfdb.audit import workload
from perfdb.audit.document import ordered
from perfdb.audit.rules import RULES
from perfdb.audit.rules.base import Rule
from perfdb.audit.subject import Finding, Remark, Severity, Subject

AUDIT_VERSION: Final = 12
"""Raised when a rule changes, or what a rule reads: every release is then audited again."""

_FAULTS: Final = (
    ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError,
    ValueError,
)  # fmt: skip
"""What a rule may raise of figures that nobody thought of when it was written."""

_REMEDY: Final = (
    "look whether its figures can be; if they can, report this as a defect of perfdb, with its line"
)


def audit(subjects: Iterable[Subject]) -> tuple[Finding, ...]:
    """Everything the rules find, the gravest first, then by source and line.

    Rows are held against rows of their own release and origin alone. Results whose figures are
    withheld are left out: they are known to be no good. A rule that fails on a result is a finding
    of it, and the others are audited all the same.
    """
    usable = [subject for subject in subjects if subject.withheld is None]
    found = [
        _finding(rule, remark)
        for rows in workload.releases(usable)
        for rule in RULES.values()
        for remark in _remarks(rule, rows)
    ]
    return ordered(found)


def _remarks(rule: Rule, rows: Sequence[Subject]) -> Sequence[Remark]:
    """What a rule says of rows; of those that it fails on, be it on all together, that it does."""
    try:
        return list(rule.check(rows))
    except _FAULTS as error:
        alone = {place: found for place, row in enumerate(rows) if (found := _failure(rule, row))}
        failing = alone or dict.fromkeys(range(len(rows)), error)
        rest = [row for place, row in enumerate(rows) if place not in failing]
        said = [_not_applied(rows[place], found) for place, found in failing.items()]
        return [*said, *(_remarks(rule, rest) if rest else ())]


def _failure(rule: Rule, row: Subject) -> Exception | None:
    """What a rule raises of a row by itself."""
    try:
        list(rule.check([row]))
    except _FAULTS as error:
        return error
    return None


def _not_applied(row: Subject, error: Exception) -> Remark:
    last = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{PurePath(last.filename).name}:{last.lineno}"
    message = f"this rule could not be applied: {type(error).__name__}: {error} ({where})"
    return Remark(row, Severity.ERROR, (), None, None, message, _REMEDY)


def _finding(rule: Rule, remark: Remark) -> Finding:
    row = remark.row
    said = {name: getattr(remark, name) for name in _SAID}
    whose = {name: getattr(row, name) for name in _WHOSE}
    return Finding.model_validate({"rule": rule.NAME} | said | whose)


_SAID = ("severity", "fields", "expected", "found", "message", "suggestion")
_WHOSE = ("model", "system", "release", "source", "source_line", "framework", "result_id")
