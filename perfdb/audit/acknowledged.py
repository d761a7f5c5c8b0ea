"""Findings that a person has looked at and accepts: the reviewed file, and what it explains."""

import datetime
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import PositiveInt, StringConstraints

from perfdb import catalog, units, yamlfile
from perfdb.audit.subject import Finding
from perfdb.errors import Diagnostic, InputError, suggestion
from perfdb.record import Frozen

Said = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
ENTRY = "acknowledged"
_NUMBER = re.compile(r"[0-9][0-9,]*(?:\.[0-9]+)?")


class Acknowledgement(Frozen):
    """One entry: which findings are accepted, why, by whom and when. None: whichever it is.

    `results`: of how many results it was reviewed; where more match, it accepts none.
    """

    rule: Said
    model: Said | None = None
    system: Said | None = None
    release: Said | None = None
    source: Said | None = None
    line: PositiveInt | None = None
    found: Said | None = None
    results: PositiveInt = 1
    reason: Said
    by: Said
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
            and (self.found is None or _are_one(self.found, finding.found))
        )

    @property
    def words(self) -> str:
        """'the page swaps the columns (A. Person, 2026-01-31)'."""
        return f"{self.reason} ({self.by}, {self.date})"


class Acknowledgements(Frozen):
    """The file: a list of entries."""

    acknowledged: tuple[Acknowledgement, ...]


@dataclass(frozen=True)
class Entry:
    """An acknowledgement and where it stands."""

    it: Acknowledgement
    where: str
    line: int | None


def entries(where: str, text: str) -> tuple[Entry, ...]:
    """The entries of a file's text, a YAML list; none of one with nothing but comments.

    Raises InputError with all that is wrong.
    """
    if all(line.lstrip().startswith("#") or not line.strip() for line in text.splitlines()):
        return ()
    parsed = yamlfile.parse(where, text)
    if isinstance(parsed, yamlfile.Unreadable):
        raise InputError(parsed.problems)
    document = yamlfile.Document(
        where,
        {ENTRY: parsed.content},
        {(ENTRY, *place): line for place, line in parsed.lines.items()},
    )
    read = yamlfile.validate(document, Acknowledgements)
    if isinstance(read, list):
        raise InputError(read)
    found = [
        Entry(it, where, document.line((ENTRY, place)))
        for place, it in enumerate(read.acknowledged)
    ]
    unknown = [_no_such_rule(entry) for entry in found if entry.it.rule not in _rules()]
    if unknown:
        raise InputError(unknown)
    return tuple(found)


def _rules() -> Iterable[str]:
    from perfdb.audit import arithmetic  # noqa: PLC0415  a site without entries needs none
    from perfdb.audit.rules import RULES  # noqa: PLC0415  likewise

    return (*RULES, arithmetic.NAME)


def _no_such_rule(entry: Entry) -> Diagnostic:
    rule = entry.it.rule
    remedy = suggestion(rule, _rules())
    return Diagnostic(
        entry.where, f"no rule {rule!r}", field="rule", line=entry.line, remedy=remedy
    )


def explained(findings: Iterable[Finding], known: Sequence[Entry]) -> tuple[Finding, ...]:
    """The findings, each with the words of the first entry that accepts it."""
    every = tuple(findings)
    holding = [entry for entry in known if _num_results(entry, every) <= entry.it.results]
    return tuple(_explained(finding, holding) for finding in every)


def _explained(finding: Finding, known: Sequence[Entry]) -> Finding:
    words = next((entry.it.words for entry in known if entry.it.covers(finding)), None)
    return finding.model_copy(update={"acknowledged": words}) if words else finding


def _num_results(entry: Entry, findings: Iterable[Finding]) -> int:
    """How many results have findings that an entry is for."""
    covered = (one for one in findings if entry.it.covers(one))
    return len({(one.source, one.source_line, one.result_id) for one in covered})


def exceeded(findings: Sequence[Finding], known: Iterable[Entry]) -> tuple[Diagnostic, ...]:
    """The entries that are for more results than they were reviewed for, and accept none."""
    counted = [(entry, _num_results(entry, findings)) for entry in known]
    return tuple(
        Diagnostic(
            entry.where,
            f"accepts nothing: {units.counted(count, 'result')} match, and it was reviewed for "
            f"{entry.it.results}: {_which(entry.it)}",
            line=entry.line,
            remedy=f"look at each; narrow it by line or found, or write `results: {count}`",
        )
        for entry, count in counted
        if count > entry.it.results
    )


def unused(findings: Sequence[Finding], known: Iterable[Entry]) -> tuple[Diagnostic, ...]:
    """The entries that accept nothing: what they were for is mended, or they never matched."""
    return tuple(
        Diagnostic(
            entry.where,
            f"no finding matches: {_which(entry.it)}",
            line=entry.line,
            remedy=_misspelt(entry.it, findings) or "remove the entry if the number was mended",
        )
        for entry in known
        if not any(entry.it.covers(finding) for finding in findings)
    )


def _misspelt(it: Acknowledgement, findings: Sequence[Finding]) -> str | None:
    """What a name that is neither in the catalogue nor in a finding may be meant for."""
    names = (
        (it.model, {*catalog.models(), *(one.model for one in findings if one.model)}),
        (it.system, {*catalog.systems(), *(one.system for one in findings if one.system)}),
    )
    unknown = [
        f"no {name!r}: {suggestion(name, known)}"
        for name, known in names
        if name and name not in known
    ]
    return "; ".join(unknown) or None


def _which(it: Acknowledgement) -> str:
    said = (it.rule, it.model, it.system, it.release, it.source, it.line, it.found)
    return " ".join(str(one) for one in said if one is not None)


def _are_one(named: str, found: str | None) -> bool:
    """Whether an entry names what was found: the whole of it, or the number it begins with."""
    number = _number(found or "")
    return named == found or (number is not None and number == _number(named))


def _number(text: str) -> float | None:
    """The number that a text begins with."""
    found = _NUMBER.match(text)
    return float(found[0].replace(",", "")) if found else None
