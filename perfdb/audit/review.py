"""Findings that a person has looked at and accepts: the reviewed file, and what it explains."""

import datetime
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from pydantic import PositiveInt, StringConstraints

from perfdb import catalog, units, yamlfile
from perfdb.audit import documents
from perfdb.errors import Diagnostic, InputError, suggestion
from perfdb.record import Finding, Frozen

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
REVIEWED: Final = Path("data/acknowledged.yaml")
ENTRY: Final = "acknowledged"
_NUMBER = re.compile(r"[0-9][0-9,]*(?:\.[0-9]+)?")


class Acknowledgement(Frozen):
    """One entry: which findings are accepted, why, by whom and when. None: whichever it is.

    `results`: of how many results it was reviewed; where more match, it accepts none.
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
        """What is wrong with it."""
        return Diagnostic(self.where, message, field=field, line=self.line, remedy=remedy)


def accepted(reviewed: Path | None) -> tuple[Entry, ...]:
    """The findings that a reviewed file accepts, by default the project's; none without a file.

    Raises InputError with all that is wrong with it.
    """
    path = reviewed or REVIEWED
    if not path.is_file():
        return ()
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(Diagnostic(str(path), f"cannot be read: {error}")) from error
    return entries(str(path), text)


def entries(where: str, text: str) -> tuple[Entry, ...]:
    """The entries of a file's text, a YAML list; none of one with nothing but comments.

    Raises InputError with all that is wrong.
    """
    if all(line.lstrip().startswith("#") or not line.strip() for line in text.splitlines()):
        return ()
    parsed = yamlfile.parse(where, text)
    if isinstance(parsed, yamlfile.Unreadable):
        raise InputError(parsed.problems)
    lines = {(ENTRY, *place): line for place, line in parsed.lines.items()}
    document = yamlfile.Document(where, {ENTRY: parsed.content}, lines)
    read = yamlfile.validate(document, Acknowledgements)
    if isinstance(read, list):
        raise InputError(read)
    found = [
        Entry(it, where, document.line((ENTRY, place)))
        for place, it in enumerate(read.acknowledged)
    ]
    rules = _rules()
    unknown = [
        one.problem(f"no rule {one.it.rule!r}", suggestion(one.it.rule, rules), "rule")
        for one in found
        if one.it.rule not in rules
    ]
    if unknown:
        raise InputError(unknown)
    return tuple(found)


def _rules() -> Sequence[str]:
    from perfdb.audit.check import RULES  # noqa: PLC0415  a site without entries needs none

    return (*RULES, documents.NAME)


def explained(findings: Iterable[Finding], known: Sequence[Entry]) -> tuple[Finding, ...]:
    """The findings, each with the words of the first entry that accepts it."""
    every = tuple(findings)
    valid = [entry.it for entry in known if _num_results(entry, every) <= entry.it.results]
    return tuple(_explained(finding, valid) for finding in every)


def _explained(finding: Finding, valid: Sequence[Acknowledgement]) -> Finding:
    """With 'the page swaps the columns (A. Person, 2026-01-31)'."""
    words = (f"{it.reason} ({it.by}, {it.date})" for it in valid if it.covers(finding))
    reason = next(words, None)
    return finding.model_copy(update={"acknowledged": reason}) if reason else finding


def _num_results(entry: Entry, findings: Iterable[Finding]) -> int:
    """How many results have findings that an entry is for."""
    covered = (one for one in findings if entry.it.covers(one))
    return len({(one.source, one.source_line, one.result_id) for one in covered})


def exceeded(findings: Sequence[Finding], known: Iterable[Entry]) -> tuple[Diagnostic, ...]:
    """The entries that are for more results than they were reviewed for, and accept none."""
    counted = [(entry, _num_results(entry, findings)) for entry in known]
    return tuple(
        entry.problem(
            f"accepts nothing: {units.counted(count, 'result')} match, and it was reviewed for "
            f"{entry.it.results}: {entry.it}",
            f"look at each; narrow it by line or found, or write `results: {count}`",
        )
        for entry, count in counted
        if count > entry.it.results
    )


def unused(findings: Sequence[Finding], known: Iterable[Entry]) -> tuple[Diagnostic, ...]:
    """The entries that accept nothing: what they were for is mended, or they never matched."""
    return tuple(
        entry.problem(
            f"no finding matches: {entry.it}",
            _misspelled(entry.it, findings) or "remove the entry if the number was mended",
        )
        for entry in known
        if not any(entry.it.covers(finding) for finding in findings)
    )


def _misspelled(it: Acknowledgement, findings: Sequence[Finding]) -> str | None:
    """What a name that is neither in the catalog nor in a finding may be meant for."""
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
