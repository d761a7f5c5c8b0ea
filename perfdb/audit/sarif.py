"""Findings as code hosts read them: SARIF 2.1.0."""

from collections.abc import Sequence
from urllib.parse import quote

from perfdb import __version__
from perfdb.audit import arithmetic
from perfdb.audit.document import Fields, sentence, subject
from perfdb.audit.rules import RULES
from perfdb.audit.subject import Finding, Severity

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def log(findings: Sequence[Finding]) -> Fields:
    """A run of one tool, as code hosts show it beside the lines of a page.

    Source: OASIS, Static Analysis Results Interchange Format 2.1.0.
    """
    driver = {"name": "perfdb audit", "version": __version__, "rules": _rules()}
    results = [_result(finding) for finding in findings]
    run = {"tool": {"driver": driver}, "results": results}
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rules() -> list[Fields]:
    meanings = {name: rule.MEANING for name, rule in RULES.items()}
    meanings[arithmetic.NAME] = arithmetic.MEANING
    return [{"id": name, "shortDescription": {"text": it}} for name, it in meanings.items()]


def _result(finding: Finding) -> Fields:
    about = subject(finding)
    text = f"{about}: {sentence(finding)}" if about else sentence(finding)
    result: Fields = {
        "ruleId": finding.rule,
        "level": _LEVELS[finding.severity],
        "message": {"text": text},
    }
    if finding.source:
        result["locations"] = [{"physicalLocation": _location(finding)}]
    if finding.acknowledged:
        result["suppressions"] = [{"kind": "external", "justification": finding.acknowledged}]
    return result


def _location(finding: Finding) -> Fields:
    uri = quote(finding.source or "", errors="surrogateescape")
    location: Fields = {"artifactLocation": {"uri": uri}}
    if finding.source_line:
        location["region"] = {"startLine": finding.source_line}
    return location
