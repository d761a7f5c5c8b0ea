"""What the last audit found: how much of each kind, and each finding with its result."""

from collections import Counter
from urllib.parse import urlencode

import pandas as pd
import streamlit as st

from dashboards import data
from dashboards.choices import remembered_some
from dashboards.tables import download
from perfdb.audit.report import ordered, sentence
from perfdb.catalog import titles
from perfdb.record import Finding, Release
from perfdb.units import UNKNOWN

KINDS = ("error", "warning", "info", "explained")

LISTED = 500
"""The most findings that are listed; filters lead to the others."""


def show() -> None:
    """The page."""
    st.title("Findings")
    st.caption("Numbers that contradict one another, found by the last audit. Explained: somebody "
               "has accepted it, with a reason.")  # fmt: skip
    found = [one for those in data.findings_of(data.store()).values() for one in those]
    if not found:
        st.info("No audit findings.")
        return
    counts = Counter(one.kind for one in found)
    with st.container(horizontal=True):
        for kind in KINDS:
            st.metric(kind.capitalize(), f"{counts[kind]:,}", border=True, width=140)
    narrowed = _narrowed(found)
    rows = pd.DataFrame([_row(one) for one in narrowed[:LISTED]])
    first = f"The first {LISTED} of " if len(narrowed) > LISTED else ""
    st.caption(f"{first}{len(narrowed):,} of {len(found):,} findings, the gravest first.")
    if not narrowed:
        st.info("No finding is like this. Take a filter away.")
        return
    rule = st.column_config.TextColumn(width=150)
    link = st.column_config.LinkColumn("Results", display_text="explore")
    st.dataframe(rows, hide_index=True, placeholder=UNKNOWN, alt="The findings", column_config={
        "Rule": rule, "Results": link, "What it found": st.column_config.TextColumn(width=560),
    })  # fmt: skip
    download(rows.drop(columns="Results"), "perfdb-findings.csv")


def _narrowed(found: list[Finding]) -> list[Finding]:
    """The findings that the filters let through; at first those that nobody has explained."""
    left, middle, right = st.columns(3)
    rules = sorted({one.rule for one in found})
    releases = sorted({_release(one) for one in found})
    known = {one.kind for one in found}
    kinds = {kind: kind.capitalize() for kind in KINDS if kind in known}
    of_kind = remembered_some(
        "Kind", kinds, "kind", left, [kind for kind in kinds if kind in KINDS[:2]]
    )
    of_rule = remembered_some("Rule", dict(zip(rules, rules, strict=True)), "rule", middle)
    words = {name: titles.release(name) for name in releases}
    of_release = remembered_some("Release", words, "release", right)
    asked = ((of_kind, lambda it: it.kind), (of_rule, lambda it: it.rule), (of_release, _release))
    return [one for one in ordered(found) if all(not some or of(one) in some for some, of in asked)]


def _release(one: Finding) -> str:
    return Release(framework=one.framework or "", version=one.release).name


def _row(one: Finding) -> dict[str, str]:
    asked = {"release": _release(one), "model": one.model or "", "system": one.system or ""}
    return {
        "Kind": one.kind,
        "Rule": one.rule,
        "What it found": sentence(one),
        "Model": titles.model(one.model) if one.model else UNKNOWN,
        "System": titles.system(one.system) if one.system else UNKNOWN,
        "Release": titles.release(_release(one)),
        "Source": f"{one.source}:{one.source_line}" if one.source_line else one.source or UNKNOWN,
        "Results": f"explore?{urlencode(asked | {'precision': 'all'})}",
    }
