"""Findings as other tools read them: JSON objects, a Markdown table, SARIF 2.1.0."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import quote

from perfdb import __version__
from perfdb.audit import arithmetic
from perfdb.audit.rules import RULES
from perfdb.audit.subject import Finding, Severity
from perfdb.catalog import titles
from perfdb.units import UNKNOWN

Fields = dict[str, object]

SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def objects(findings: Iterable[Finding]) -> list[Fields]:
    """One flat object for each finding; null is unknown, or does not apply."""
    return [finding.model_dump(mode="json") for finding in findings]


def place(finding: Finding) -> str:
    """'page.md:132'; – where the source is not known."""
    line = f":{finding.source_line}" if finding.source_line else ""
    return f"{finding.source}{line}" if finding.source else UNKNOWN


def subject(finding: Finding) -> str:
    """'Mixtral 8x22B on DGX-H100, nemo 25.04'; empty for a document's own."""
    if finding.model is None or finding.system is None:
        return ""
    release = f"{finding.framework} {finding.release or '(unattributed)'}"
    return f"{titles.model(finding.model)} on {titles.system(finding.system)}, {release}"


def sentence(finding: Finding) -> str:
    """The message, what to change, and who accepted it."""
    change = f" Suggestion: {finding.suggestion}." if finding.suggestion else ""
    accepted = f" Acknowledged: {finding.acknowledged}." if finding.acknowledged else ""
    return f"{finding.message}.{change}{accepted}"


def counts(findings: Iterable[Finding]) -> str:
    """'2 errors, 1 info, 3 explained': how many there are of each kind; empty where none is."""
    found = Counter(it.kind for it in findings)
    plural = {kind: "s" for kind in ("error", "warning") if found[kind] > 1}
    kinds = (*(severity.value for severity in Severity), "explained")
    return ", ".join(f"{found[one]:,} {one}{plural.get(one, '')}" for one in kinds if found[one])


def markdown(findings: Sequence[Finding]) -> str:
    """A table to paste into a page or an issue."""
    columns = ("Severity", "Rule", "Result", "Finding", "Source")
    lines = [_line(columns), _line("---" for _ in columns)]
    for it in findings:
        lines.append(_line((it.kind, f"`{it.rule}`", subject(it), sentence(it), place(it))))
    return "\n".join(lines)


def _line(cells: Iterable[str]) -> str:
    escaped = (cell.replace("|", "\\|").replace("\n", " ") or UNKNOWN for cell in cells)
    return f"| {' | '.join(escaped)} |"


def sarif(findings: Sequence[Finding]) -> Fields:
    """A run of one tool, as code hosts show it beside the lines of a page.

    Source: OASIS, Static Analysis Results Interchange Format 2.1.0.
    """
    driver = {"name": "perfdb audit", "version": __version__, "rules": _rules()}
    results = [_result(finding) for finding in findings]
    run = {"tool": {"driver": driver}, "results": results}
    return {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}


def meanings() -> Mapping[str, str]:
    """What each rule looks for."""
    of_rules = {name: rule.MEANING for name, rule in RULES.items()}
    return of_rules | {arithmetic.NAME: arithmetic.MEANING}


def _rules() -> list[Fields]:
    return [
        {"id": name, "shortDescription": {"text": meaning}} for name, meaning in meanings().items()
    ]


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
