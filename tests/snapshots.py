"""What a store says, without the numbers and moments that depend on who came first."""

from collections.abc import Iterable
from datetime import UTC, datetime

from sqlalchemy import URL, Column, FromClause, Select, Table, select

from perfdb.db.session import reading
from perfdb.db.tables import cases, metadata, models, releases, results, runs, sources, systems

ACCIDENTAL = {
    "id",
    "ingested_at",
    "created_at",
    "at",
    "content",
    "specification",
    "audited_version",
    "stamp",
}
NAMES: dict[Table, Column[str]] = {
    cases: cases.c.key,
    models: models.c.name,
    releases: releases.c.key,
    results: results.c.key,
    runs: runs.c.run_id,
    sources: sources.c.sha256,
    systems: systems.c.name,
}
"""What stands for a row wherever another one refers to it."""


def snapshot(url: URL) -> dict[str, list[str]]:
    """Every row of every table but the log, as text, in an order of its own."""
    tables = [table for table in metadata.sorted_tables if table.name != "ingest_log"]
    with reading(url) as connection:
        return {
            table.name: sorted(_text(row) for row in connection.execute(_said(table)))
            for table in tables
        }


def _text(row: Iterable[object]) -> str:
    """The same on SQLite, which keeps no offset, and on PostgreSQL."""
    return repr([_in_utc(cell) if isinstance(cell, datetime) else cell for cell in row])


def _in_utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment


def _said(table: Table) -> Select[*tuple[object, ...]]:
    shown: list[Column[object]] = []
    joined: FromClause = table
    for column in table.columns:
        if column.foreign_keys:
            referred = next(iter(column.foreign_keys)).column.table
            alias = referred.alias(f"of_{column.name}")
            joined = joined.outerjoin(alias, alias.c.id == column)
            shown.append(alias.c[NAMES[referred].name])
        elif column.name not in ACCIDENTAL:
            shown.append(column)
    return select(*shown).select_from(joined)
