"""Findings of the audit on a result: the mark in its row, and the sentences behind the mark."""

from collections.abc import Iterable, Mapping

import streamlit as st

from perfdb.audit.report import counts, ordered, sentence
from perfdb.groups import grouped
from perfdb.record import Finding, Severity

FLAG = "⚑"

Findings = Mapping[int, tuple[Finding, ...]]
"""By result_id, the gravest first; without the results that have no findings."""

Marked = tuple[str, tuple[Finding, ...]]
"""The title of a row and its findings, the gravest first."""


def by_result(found: Iterable[Finding]) -> Findings:
    """The findings of each result; leaves out findings of documents, which belong to no result."""
    groups = grouped(ordered(found), lambda finding: finding.result_id)
    return {
        result_id: tuple(sorted(those, key=lambda finding: finding.acknowledged is not None))
        for result_id, those in groups.items()
        if result_id is not None
    }


def mark(found: Iterable[Finding]) -> str | None:
    """'⚑ 2 errors, 1 explained', the gravest first; None if there are no findings."""
    text = counts(found)
    return f"{FLAG} {text}" if text else None


def is_wrong(found: Iterable[Finding]) -> bool:
    """Whether there is an error that nobody has accepted: charts leave such a figure out."""
    return any(finding.is_open_error for finding in found)


def gravest_first(marked: Iterable[Marked]) -> list[Marked]:
    """The rows that have findings, by the gravest of each; else in their order."""

    def gravity(row: Marked) -> tuple[bool, int]:
        first = row[1][0]
        return first.acknowledged is not None, list(Severity).index(first.severity)

    return sorted(((title, found) for title, found in marked if found), key=gravity)


def listed(marked: Iterable[Marked]) -> None:
    """Show every finding of the rows that have any, under the title of the row."""
    rows = gravest_first(marked)
    if not rows:
        return
    every = [finding for _, found in rows for finding in found]
    with st.expander(f"{FLAG} What the audit says: {counts(every)}"):
        for title, found in rows:
            st.markdown(f"**{plain(title)}**\n\n{bullets(found)}")


def bullets(found: Iterable[Finding]) -> str:
    """A Markdown list of the findings: how grave, by which rule, and the sentence."""
    return "\n".join(
        f"- {finding.kind} (`{finding.rule}`): {plain(sentence(finding))}" for finding in found
    )


def plain(text: str) -> str:
    """A text with Markdown's signs escaped, so that names are shown as they are."""
    return "".join(f"\\{sign}" if sign in "\\`*_{}[]()<>#+-.!|~$:&" else sign for sign in text)
