"""What the audit found in a result: how grave it is, its mark, and what its entry is called."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from perfdb.audit.report import counts, ordered
from perfdb.catalog import titles
from perfdb.groups import grouped
from perfdb.record import Finding, Severity
from perfdb.site import tables
from perfdb.site.data import Audited, Flag, Result
from perfdb.site.markup import Html, tag
from perfdb.site.profile import Column
from perfdb.site.profiles import CASE
from perfdb.site.words import gpus, section_title

KINDS = (*(severity.value for severity in Severity), "explained")
"""The gravest first. A finding that is acknowledged is explained, however grave it was."""


def badge(how: str) -> Html:
    """One of the kinds as a word in a box."""
    return tag("span", how, class_=f"perf-badge {how}")


def audited(result: Result, key: str, found: Iterable[Finding]) -> Audited:
    """A result with its findings; `key` is its identity, the same in every revision."""
    gravest_first = sorted(ordered(found), key=gravity)
    return Audited(result=result, anchor=f"result-{key[:12]}", findings=tuple(gravest_first))


def flag(one: Audited) -> Flag | None:
    """The mark of a result; None where the findings are only worth knowing."""
    raised = objections(one)
    if not raised:
        return None
    return Flag(said=counts(raised), kind=raised[0].kind, anchor=one.anchor)


def objections(one: Audited) -> list[Finding]:
    """The errors and warnings of a result, also those that somebody has explained."""
    return [finding for finding in one.findings if finding.severity in _OBJECTING]


_OBJECTING: Final = frozenset(one for one in Severity if one.reaches(Severity.WARNING))


def still_open(one: Audited) -> list[Finding]:
    """The errors and warnings of a result that nobody has explained."""
    return [finding for finding in objections(one) if not finding.acknowledged]


def gravity(finding: Finding) -> int:
    """Where its kind stands among KINDS."""
    return KINDS.index(finding.kind)


def titles_of(given: Iterable[Audited]) -> dict[str, str]:
    """What each entry of a release is called: with all in which those of one name differ.

    By its anchor.
    """
    names: dict[str, str] = {}
    for name, some in grouped(given, lambda one: title(one.result)).items():
        apart = [
            it for it in CASE.columns if len({tables.known(it, one.result) for one in some}) > 1
        ]
        named = {one.anchor: ", ".join((name, *_configured(one, apart))) for one in some}
        times = Counter(named.values())
        names |= {
            one.anchor: it if times[it] == 1 else f"{it}, {_from(one.result)}"
            for one, it in zip(some, named.values(), strict=True)
        }
    return names


def _from(result: Result) -> str:
    return f"run {result.run_id}" if result.run_id else f"line {result.source_line}"


def _configured(one: Audited, columns: Iterable[Column]) -> Iterator[str]:
    for column in columns:
        value = tables.known(column, one.result)
        if value is not None:
            yield f"{column.title} {tables.formatted(column, value)}"


def title(result: Result) -> str:
    """What was run: model, precision, task, GPUs and system."""
    model = titles.qualified(result.model_title, result.qualifiers)
    work = (titles.precision(result.precision), section_title(result.task, result.variant))
    where = f"{gpus(result.num_gpus, result.system)} on {result.system_title}"
    return ", ".join(filter(None, (model, *work, where)))
