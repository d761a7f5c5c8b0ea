"""What the last audit found: findings of the results in force, and those results."""

from sqlalchemy import Select, select

from perfdb.db.tables import cases, findings, models, releases, results, sources, systems
from perfdb.queries.results import current as current_results


def current() -> Select[*tuple[object, ...]]:
    """Every finding of a result in force: the fields of an audit's finding, by result.

    Ordered by result, then by rule; how grave they are is for the reader to sort by.
    """
    return (
        select(
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
        .join(results, findings.c.result_id == results.c.id)
        .join(cases, results.c.case_id == cases.c.id)
        .join(releases, results.c.release_id == releases.c.id)
        .join(systems, cases.c.system_id == systems.c.id)
        .join(models, cases.c.model_id == models.c.id)
        .join(sources, results.c.source_id == sources.c.id)
        .where(~results.c.superseded)
        .order_by(findings.c.result_id, findings.c.rule, findings.c.message)
    )


def of_release(release_id: int) -> Select[*tuple[object, ...]]:
    """The same of one release."""
    return current().where(results.c.release_id == release_id)


def results_with_findings() -> Select[*tuple[object, ...]]:
    """Every result in force that has a finding, as results.current has it, with its key."""
    found = select(findings.c.result_id)
    columns = results.c.key.label("result_key")
    return current_results().where(results.c.id.in_(found)).add_columns(columns)
