"""footnotes, printed totals, what programs print, when a result was superseded, what was audited

What loses any of these on the way down is marked, so that it is read again on the way up: its
source has minus its number for a version of the parser, and its row of a page another hash.
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

DROPS = "notes and footnotes, printed totals, rates that programs print"

SOURCES = (
    "id",
    "sha256",
    "path",
    "parser",
    "parser_version",
    "size_bytes",
    "ingested_at",
    "content",
)
"""The bytes come last: SQLite copies what is large to write a column behind it."""

AS_PRINTED = "as the program printed it"
EMITTED = "figures the program printed itself, beside those made of its steps"


def _of_releases() -> tuple[sa.Column[object], ...]:
    return (
        sa.Column(
            "audited_version",
            sa.Integer(),
            nullable=True,
            comment="of the audit that saw its results as they are; NULL: none has",
        ),
    )


def _of_results() -> tuple[sa.Column[object], ...]:
    return (
        sa.Column(
            "superseded_at",
            sa.DateTime(timezone=True),
            nullable=True,
            comment="NULL: in force, or not known",
        ),
        sa.Column(
            "tokens_per_sec", sa.Double(), nullable=True, comment="of all GPUs together, as printed"
        ),
        sa.Column(
            "notes", sa.JSON(), nullable=False, server_default="[]", comment="texts of footnotes"
        ),
        sa.Column("emitted", sa.JSON(), nullable=False, server_default="{}", comment=EMITTED),
    )


def _of_steps() -> tuple[sa.Column[object], ...]:
    return (
        sa.Column("tokens_per_sec_per_gpu", sa.Double(), nullable=True, comment=AS_PRINTED),
        sa.Column("model_tflops_per_sec_per_gpu", sa.Double(), nullable=True, comment=AS_PRINTED),
    )


def _table(name: str, *columns: str) -> sa.TableClause:
    return sa.table(name, *map(sa.column, columns))


def _mark_what_loses() -> None:
    results = _table(
        "results", "id", "run_id", "source_id", "origin", "content_hash", "tokens_per_sec", "notes",
        "emitted",
    )  # fmt: skip
    steps = _table("steps", "run_id", *(column.name for column in _of_steps()))
    runs, sources = _table("runs", "id", "source_id"), _table("sources", "id", "parser_version")
    rated = sa.select(steps.c.run_id).where(
        sa.or_(*(steps.c[column.name].is_not(None) for column in _of_steps()))
    )
    loses = sa.or_(
        results.c.tokens_per_sec.is_not(None),
        sa.cast(results.c.notes, sa.Text()) != "[]",
        sa.cast(results.c.emitted, sa.Text()) != "{}",
        results.c.run_id.in_(rated),
    )
    read = sa.union(
        sa.select(results.c.source_id).where(loses),
        sa.select(runs.c.source_id).join(results, results.c.run_id == runs.c.id).where(loses),
    )
    of_these = sources.c.id.in_(sa.select(read.subquery().c.source_id))
    op.execute(sources.update().where(of_these).values(parser_version=-sources.c.id))
    another = sa.literal("downgraded ", sa.Text()).concat(results.c.content_hash)
    of_pages = sa.and_(loses, results.c.origin == "published")
    op.execute(results.update().where(of_pages).values(content_hash=another))


def upgrade() -> None:

    added = {"releases": _of_releases(), "results": _of_results(), "steps": _of_steps()}
    for table, columns in added.items():
        for column in columns:
            op.add_column(table, column)
    op.create_index(op.f("ix_results_run_id"), "results", ["run_id"])
    if op.get_bind().dialect.name == "sqlite":
        with op.batch_alter_table("sources", recreate="always", partial_reordering=[SOURCES]):
            pass  # nothing else changes


def downgrade() -> None:

    _mark_what_loses()
    op.drop_index(op.f("ix_results_run_id"), "results")
    dropped = {"steps": _of_steps(), "results": _of_results(), "releases": _of_releases()}
    for table, columns in dropped.items():
        for column in reversed(columns):
            op.drop_column(table, column.name)
