"""Findings that a person has looked at and accepts: the reviewed file, and what it explains."""

import datetime
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import StringConstraints

from perfdb import catalog, yamlfile
from perfdb.audit import arithmetic
from perfdb.audit.rules import RULES
from perfdb.audit.subject import Finding
from perfdb.errors import InputError, Problem, suggestion
from perfdb.record import Frozen

Said = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
ENTRY = "acknowledged"


class Acknowledgement(Frozen):
    """One entry: which findings are accepted, why, by whom and when. None: whichever it is."""

    rule: Said
    model: Said | None = None
    system: Said | None = None
    release: Said | None = None
    source: Said | None = None
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
    return (*RULES, arithmetic.NAME)


def _no_such_rule(entry: Entry) -> Problem:
    rule = entry.it.rule
    remedy = suggestion(rule, _rules())
    return Problem(entry.where, f"no rule {rule!r}", field="rule", line=entry.line, remedy=remedy)


def explained(findings: Iterable[Finding], known: Sequence[Entry]) -> tuple[Finding, ...]:
    """The findings, each with the words of the first entry that accepts it."""
    return tuple(_explained(finding, known) for finding in findings)


def _explained(finding: Finding, known: Sequence[Entry]) -> Finding:
    words = next((entry.it.words for entry in known if entry.it.covers(finding)), None)
    return finding.model_copy(update={"acknowledged": words}) if words else finding


def unused(findings: Sequence[Finding], known: Iterable[Entry]) -> tuple[Problem, ...]:
    """The entries that accept nothing: what they were for is mended, or they never matched."""
    return tuple(
        Problem(
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
    return " ".join(filter(None, (it.rule, it.model, it.system, it.release, it.source)))
