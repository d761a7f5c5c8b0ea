"""Findings that a person has looked at and accepts: the reviewed file, and what it explains."""

import datetime
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from pydantic import PositiveInt, StringConstraints

from perfdb import catalog, units, yamlfile
from perfdb.errors import Diagnostic, InputError, suggestion
from perfdb.record import Finding, Frozen

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
REVIEWED: Final = Path("data/acknowledged.yaml")
ENTRY: Final = "acknowledged"
_NUMBER = re.compile(r"[0-9][0-9,]*(?:\.[0-9]+)?")


class Acknowledgement(Frozen):
    """One entry: which findings are accepted, why, by whom and when.

    A field that is None matches every finding. `results` is the number of results that were
    reviewed; an entry that matches more accepts none.
    """

    rule: Text
    model: Text | None = None
    system: Text | None = None
    release: Text | None = None
    source: Text | None = None
    line: PositiveInt | None = None
    found: Text | None = None
    results: PositiveInt = 1
    reason: Text
    by: Text
    date: datetime.date

    def covers(self, finding: Finding) -> bool:
        """Whether a finding is one of those that it accepts."""
        version = f"{finding.framework} {finding.release}"
        return (
            self.rule == finding.rule
            and self.model in (None, finding.model)
            and self.system in (None, finding.system)
            and self.release in (None, finding.release, version)
            and self.source in (None, finding.source)
            and self.line in (None, finding.source_line)
            and (self.found is None or _names(self.found, finding.found or ""))
        )

    def __str__(self) -> str:
        """'peak llama3-8b 25.04': what it is for."""
        values = (
            self.rule, self.model, self.system, self.release, self.source, self.line, self.found,
        )  # fmt: skip
        return " ".join(str(one) for one in values if one is not None)


def _names(named: str, found: str) -> bool:
    """Whether an entry names what was found: the whole of it, or the number it begins with."""
    numbers = [_NUMBER.match(text) for text in (named, found)]
    values = [float(one[0].replace(",", "")) for one in numbers if one]
    return named == found or (len(values) == 2 and values[0] == values[1])


class Acknowledgements(Frozen):
    """The file: a list of entries."""

    acknowledged: tuple[Acknowledgement, ...]


@dataclass(frozen=True)
class Entry:
    """An acknowledgement and its place."""

    it: Acknowledgement
    where: str
    line: int | None

    def problem(self, message: str, remedy: str, field: str | None = None) -> Diagnostic:
        """A diagnostic at its place."""
        return Diagnostic(self.where, message, field=field, line=self.line, remedy=remedy)

    def num_results(self, findings: Iterable[Finding]) -> int:
        """How many results have findings that it covers."""
        covered = (one for one in findings if self.it.covers(one))
        return len({(one.source, one.source_line, one.result_id) for one in covered})


def accepted(reviewed: Path | None) -> tuple[Entry, ...]:
    """The findings that a reviewed file accepts, by default the project's; none without a file.

    Raises InputError with everything that is wrong with it.
    """
    path = reviewed or REVIEWED
    if not path.is_file():
        return ()
    return entries(str(path), yamlfile.text_of(path))


def entries(where: str, text: str) -> tuple[Entry, ...]:
    """The entries of a file's text, a YAML list; none where it has nothing but comments.

    Raises InputError with everything that is wrong.
    """
    from perfdb.audit.check import meanings  # noqa: PLC0415  few need them

    document = yamlfile.list_of(where, text, ENTRY)
    if document is None:
        return ()
    read = yamlfile.checked(document, Acknowledgements)
    found = tuple(
        Entry(it, where, document.line((ENTRY, place)))
        for place, it in enumerate(read.acknowledged)
    )
    rules = meanings()
    unknown = [
        one.problem(f"no rule {one.it.rule!r}", suggestion(one.it.rule, rules), "rule")
        for one in found
        if one.it.rule not in rules
    ]
    if unknown:
        raise InputError(unknown)
    return found


def explained(findings: Iterable[Finding], known: Sequence[Entry]) -> tuple[Finding, ...]:
    """The findings, each with the words of the first entry that accepts it.

    The words are 'the page swaps the columns (A. Person, 2026-01-31)'.
    """
    every = tuple(findings)
    valid = [one.it for one in known if one.num_results(every) <= one.it.results]

    def with_reason(finding: Finding) -> Finding:
        words = (f"{it.reason} ({it.by}, {it.date})" for it in valid if it.covers(finding))
        reason = next(words, None)
        return finding.model_copy(update={"acknowledged": reason}) if reason else finding

    return tuple(map(with_reason, every))


def exceeded(findings: Sequence[Finding], known: Iterable[Entry]) -> tuple[Diagnostic, ...]:
    """The entries that match more results than were reviewed, and accept none."""
    return tuple(
        entry.problem(
            f"accepts nothing: {units.counted(count, 'result')} match, and it was reviewed for "
            f"{entry.it.results}: {entry.it}",
            f"look at each; narrow it by line or found, or write `results: {count}`",
        )
        for entry in known
        if (count := entry.num_results(findings)) > entry.it.results
    )


def unused(findings: Sequence[Finding], known: Iterable[Entry]) -> tuple[Diagnostic, ...]:
    """The entries that match no finding: the number was corrected, or they never matched.

    A name that is neither in the catalog nor in a finding may be misspelled.
    """
    models = {*catalog.models(), *(one.model for one in findings if one.model)}
    systems = {*catalog.systems(), *(one.system for one in findings if one.system)}
    problems = []
    for entry in known:
        if any(entry.it.covers(finding) for finding in findings):
            continue
        unknown = [
            f"no {name!r}: {suggestion(name, names)}"
            for name, names in ((entry.it.model, models), (entry.it.system, systems))
            if name and name not in names
        ]
        remedy = "; ".join(unknown) or "remove the entry if the number was mended"
        problems.append(entry.problem(f"no finding matches: {entry.it}", remedy))
    return tuple(problems)
