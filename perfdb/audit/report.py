"""Findings as they are shown: in order, in words, as JSON, as a Markdown table, and as SARIF."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from urllib.parse import quote

from perfdb import __version__
from perfdb.catalog import titles
from perfdb.record import UNATTRIBUTED, Finding, Severity
from perfdb.units import UNKNOWN

Fields = dict[str, object]
SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def ordered(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The gravest first, then by source and line, then by rule."""
    return tuple(sorted(findings, key=lambda finding: tuple(_order(finding))))


def _order(finding: Finding) -> Iterator[tuple[int, str]]:
    yield (list(Severity).index(finding.severity), finding.source or "")
    yield (finding.source_line or 0, finding.rule)
    yield (0, finding.message)


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
    release = f"{finding.framework} {finding.release or UNATTRIBUTED}"
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
