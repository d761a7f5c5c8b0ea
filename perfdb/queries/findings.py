"""What the last audit found: the findings of the current results."""

from collections.abc import Iterable

from sqlalchemy import Select, select

from perfdb.db.tables import cases, findings, models, releases, results, sources, systems
from perfdb.queries.results import identified


def current() -> Select[*tuple[object, ...]]:
    """Every finding of a current result: the fields of an audit's finding, by result.

    Ordered by result, then by rule; not by severity.
    """
    columns = (
        findings.c.rule,
        findings.c.severity,
        findings.c.fields,
        findings.c.expected,
        findings.c.found,
        findings.c.message,
        findings.c.suggestion,
        models.c.name.label("model"),
        systems.c.name.label("system"),
        releases.c.version.label("release"),
        sources.c.path.label("source"),
        results.c.source_line,
        cases.c.framework,
        findings.c.result_id,
    )
    return (
        identified(select(*columns).join(results, findings.c.result_id == results.c.id))
        .where(~results.c.superseded)
        .order_by(findings.c.result_id, findings.c.rule, findings.c.message)
    )


def of_releases(release_ids: Iterable[int]) -> Select[*tuple[object, ...]]:
    """The findings of the current results of some releases."""
    return current().where(results.c.release_id.in_(release_ids))


def errors() -> Select[*tuple[object, ...]]:
    """The findings of the current results that are errors."""
    return current().where(findings.c.severity == "error")
