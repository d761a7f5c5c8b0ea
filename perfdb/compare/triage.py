"""A comparison in groups, the largest changes first, and as text for pull requests and for CI."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Final
from xml.etree import ElementTree

from perfdb.compare import report
from perfdb.compare.match import Comparison, Match, metric_for, nearest_text
from perfdb.compare.sides import Side
from perfdb.compare.verdict import Verdict
from perfdb.metrics import METRICS
from perfdb.units import UNKNOWN, figure

GROUPS: Final[Mapping[str, tuple[Verdict, ...]]] = {
    "slower": (Verdict.FAILED, Verdict.SLOWER),
    "faster": (Verdict.FASTER,),
    "recovered": (Verdict.RECOVERED,),
    "cannot-tell": (Verdict.UNKNOWN,),
    "same": (Verdict.SAME,),
    "not-comparable": (Verdict.NOT_COMPARABLE, Verdict.NOT_JUDGED),
}
"""The verdicts of each group of matches."""
NEW, MISSING = "new", "missing"
ONLY: Final = (*GROUPS, NEW, MISSING)
"""The names of all groups."""
FORMATS: Final = ("table", "json", "markdown", "junit", "github")
"""How comparisons and trends are printed."""
COLUMNS: Final = ("Case", "Figure", "A", "B", "B/A", "99 % interval", "Verdict")


def groups(matches: Sequence[Match]) -> dict[str, list[Match]]:
    """The matches by group, the largest change of each first; no group without any."""
    found = {}
    for name, verdicts in GROUPS.items():
        some = [match for match in matches if match.judgement.verdict in verdicts]
        if some:
            found[name] = sorted(some, key=_size, reverse=True)
    return found


def _size(match: Match) -> tuple[bool, float]:
    ratio = match.judgement.ratio
    return match.judgement.verdict is Verdict.FAILED, abs(log(ratio)) if ratio else 0.0


def cells(match: Match) -> tuple[str, ...]:
    """A match in `COLUMNS`, with lines between what a cell has of several things."""
    a, b = match.a.shown, match.b.shown
    verdict = (report.verdict(match.judgement, match.metric), report.failed(match.b))
    lines = (report.workload(a), report.how(match), report.remark(match), *notes(match))
    return (
        "\n".join(filter(None, lines)),
        METRICS[match.metric].title,
        report.figure(a, match.metric),
        report.figure(b, match.metric),
        figure(match.judgement.ratio, 3),
        report.interval(match.judgement),
        "\n".join(filter(None, verdict)),
    )


def notes(match: Match) -> Iterator[str]:
    """What its pages say of a match that changed: footnotes and known issues."""
    for name, side in (("A", match.a), ("B", match.b)):
        yield from (f"{name}: {text}" for text in report.footnotes(side))


def tables(
    found: Comparison, shown: Collection[str] = ONLY
) -> Iterator[tuple[str, Sequence[str], list[tuple[str, ...]]]]:
    """The groups that have any: name, columns and rows of each."""
    for name, matches in groups(found.matched).items():
        if name in shown:
            yield name, COLUMNS, [cells(match) for match in matches]
    for name, sides, others in ((NEW, found.only_b, ()), (MISSING, found.only_a, found.only_b)):
        if sides and name in shown:
            yield name, ("Case", "Figure", "Value"), [lone(side, others) for side in sides]


def markdown(title: str, found: Comparison, shown: Collection[str] = ONLY) -> str:
    """A comment for a pull request: the summary, and a table for each group."""
    parts = [f"### {title}", report.summary(found)]
    for name, columns, rows in tables(found, shown):
        parts.append(f"**{named(name)}** ({len(rows)})\n\n{table(columns, rows)}")
    return "\n\n".join(parts)


def named(group: str) -> str:
    """'Cannot tell': the title of a group."""
    return group.replace("-", " ").capitalize()


def lone(side: Side, others: Sequence[Side], asked: str | None = None) -> tuple[str, ...]:
    """A side without a match: its case, figure and value."""
    metric, it = METRICS[metric_for([side], [side], asked)], side.shown
    remarks = report.remark_of(side), nearest_text(side, others)
    case = filter(None, (report.workload(it), report.configuration(it), *remarks))
    return "\n".join(case), metric.title, report.figure(it, metric.name)


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of Markdown."""
    head = f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}"
    body = "\n".join(f"| {' | '.join(map(_escaped, row))} |" for row in rows)
    return f"{head}\n{body}"


def _escaped(cell: str) -> str:
    plain = cell.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")
    return plain.replace("\n", "<br>") or UNKNOWN


@dataclass(frozen=True)
class GateCheck:
    """A test case of a report for CI: what is to say of it, and whether it closes a gate."""

    name: str
    words: str
    is_told: bool
    is_wrong: bool


def checks(found: Comparison, closing: Collection[int]) -> Iterator[GateCheck]:
    """A test case for each match and loss; `closing` are the ids of those that close a gate."""
    for match in found.matched:
        words = "; ".join(filter(None, (_change(match), report.remark(match))))
        yield GateCheck(_name(match), words, match.judgement.is_told, id(match) in closing)
    for side in found.only_a:
        yield GateCheck(_missing(side), "missing in B", is_told=False, is_wrong=id(side) in closing)


def junit(suites: Iterable[tuple[str, Iterable[GateCheck]]]) -> str:
    """A JUnit report of suites, each with its name."""
    root = ElementTree.Element("testsuites")
    for title, cases in suites:
        suite = ElementTree.SubElement(root, "testsuite", name=title)
        for case in cases:
            _test_case(suite, case)
        counts = {"tests": "testcase", "failures": "failure", "skipped": "skipped"}
        for name, tag in counts.items():
            suite.set(name, str(len(list(suite.iter(tag)))))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode")


def _test_case(suite: ElementTree.Element, it: GateCheck) -> None:
    case = ElementTree.SubElement(suite, "testcase", name=it.name, classname=suite.get("name", ""))
    if it.is_wrong:
        ElementTree.SubElement(case, "failure", message=it.words)
    elif not it.is_told:
        ElementTree.SubElement(case, "skipped", message=it.words)
    ElementTree.SubElement(case, "system-out").text = it.words


def github(title: str, found: Comparison, closing: Collection[int]) -> str:
    """Workflow commands of GitHub: an error for what closes a gate, else a warning or a notice."""
    lines = []
    for match in found.matched:
        is_worse = match.judgement.verdict in GROUPS["slower"]
        if id(match) in closing or is_worse or match.judgement.verdict in GROUPS["faster"]:
            level = "error" if id(match) in closing else "warning" if is_worse else "notice"
            lines.append(command(level, f"{_name(match)}: {_change(match)}"))
    for side in found.only_a:
        if id(side) in closing:
            lines.append(command("error", f"{_missing(side)}: missing in B"))
    lines.append(command("notice", f"{title}: {report.summary(found)}"))
    return "\n".join(lines)


def command(level: str, message: str) -> str:
    """A workflow command of GitHub: an error, a warning or a notice."""
    escaped = message.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return f"::{level} title=perfdb::{escaped}"


def _name(match: Match) -> str:
    return f"{report.workload(match.a.shown)}, {report.how(match)}"


def _missing(side: Side) -> str:
    return f"{report.workload(side.shown)}, {report.configuration(side.shown)}"


def _change(match: Match) -> str:
    ratio, within = figure(match.judgement.ratio, 3), report.interval(match.judgement)
    of = f"{METRICS[match.metric].title} × {ratio}" if ratio != UNKNOWN else ""
    interval = f"({within})" if within != UNKNOWN else ""
    return " ".join(filter(None, (report.verdict(match.judgement, match.metric), of, interval)))
