"""Findings as they are shown: in order, in words, as JSON, as a Markdown table, and as SARIF."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import quote

from perfdb import __version__
from perfdb.catalog import titles
from perfdb.groups import grouped
from perfdb.record import UNATTRIBUTED, Finding, Severity
from perfdb.units import UNKNOWN

Fields = dict[str, object]
SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}

_SUMMARIZED = ("few_steps", "step_spread", "virtual_pipeline", "flops_formula")
"""Rules that object to many rows for one cause; what they find of a row gets no entry of its own,
unless it is an error, or a warning of FLOPs or layers."""


def summarized(findings: Iterable[Finding]) -> tuple[list[Finding], dict[str, list[Finding]]]:
    """The findings that have an entry each, and by rule those that share one: two or more."""

    def is_minor(it: Finding) -> bool:
        minor = it.severity is Severity.INFO or it.rule == "step_spread"
        return minor and it.rule in _SUMMARIZED and not it.acknowledged

    every = list(findings)
    by_rule = grouped(filter(is_minor, every), lambda it: it.rule)
    shared = {rule: some for rule, some in by_rule.items() if len(some) > 1}
    return [it for it in every if not (is_minor(it) and it.rule in shared)], shared


def ordered(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The gravest first, then by source and line, then by rule."""

    def key(it: Finding) -> tuple[int, str, int, str, str]:
        grave = list(Severity).index(it.severity)
        return grave, it.source or "", it.source_line or 0, it.rule, it.message

    return tuple(sorted(findings, key=key))


def objects(findings: Iterable[Finding]) -> list[Fields]:
    """One flat object for each finding; null is unknown, or does not apply."""
    return [finding.model_dump(mode="json") for finding in findings]


def place(finding: Finding) -> str:
    """'page.md:132'; – where the source is not known."""
    line = f":{finding.source_line}" if finding.source_line else ""
    return f"{finding.source}{line}" if finding.source else UNKNOWN


def subject(finding: Finding) -> str:
    """'Mixtral 8x22B on DGX-H100, nemo 25.04', as far as known; empty for a finding in a text."""
    if finding.model is None:
        return ""
    system = f" on {titles.system(finding.system)}" if finding.system else ""
    version = f", {finding.framework} {finding.release or UNATTRIBUTED}"
    return f"{titles.model(finding.model)}{system}{version if finding.framework else ''}"


def sentence(finding: Finding) -> str:
    """The message, what to change, and who accepted it."""
    change = f" Suggestion: {finding.suggestion}." if finding.suggestion else ""
    accepted = f" Acknowledged: {finding.acknowledged}." if finding.acknowledged else ""
    return f"{finding.message}.{change}{accepted}"


def counts(findings: Iterable[Finding]) -> str:
    """'2 errors, 1 info, 3 explained': how many there are of each kind; empty without findings."""
    return of_kinds(Counter(it.kind for it in findings))


def of_kinds(found: Counter[str]) -> str:
    """The same of numbers by kind."""
    plural = {kind: "s" for kind in ("error", "warning") if found[kind] > 1}
    kinds = (*(severity.value for severity in Severity), "explained")
    return ", ".join(f"{found[one]:,} {one}{plural.get(one, '')}" for one in kinds if found[one])


def markdown(findings: Sequence[Finding]) -> str:
    """A table to paste into a page or an issue."""
    rows: list[tuple[str, ...]] = [("Severity", "Rule", "Result", "Finding", "Source")]
    rows += [("---",) * 5]
    rows += [(it.kind, f"`{it.rule}`", subject(it), sentence(it), place(it)) for it in findings]
    escaped = [[c.replace("|", "\\|").replace("\n", " ") or UNKNOWN for c in row] for row in rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in escaped)


def sarif(findings: Sequence[Finding], rules: Mapping[str, str]) -> Fields:
    """A run of one tool, as code hosts show it next to the lines of a page.

    `rules` are the names of all rules with their meaning.
    Source: OASIS, Static Analysis Results Interchange Format 2.1.0.
    """
    described = [{"id": name, "shortDescription": {"text": it}} for name, it in rules.items()]
    driver = {"name": "perfdb audit", "version": __version__, "rules": described}
    run = {"tool": {"driver": driver}, "results": list(map(_sarif_result, findings))}
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _sarif_result(finding: Finding) -> Fields:
    text = ": ".join(filter(None, (subject(finding), sentence(finding))))
    level = _LEVELS[finding.severity]
    result: Fields = {"ruleId": finding.rule, "level": level, "message": {"text": text}}
    if finding.source:
        uri = quote(finding.source, errors="surrogateescape")
        location: Fields = {"artifactLocation": {"uri": uri}}
        if finding.source_line:
            location["region"] = {"startLine": finding.source_line}
        result["locations"] = [{"physicalLocation": location}]
    if finding.acknowledged:
        result["suppressions"] = [{"kind": "external", "justification": finding.acknowledged}]
    return result
