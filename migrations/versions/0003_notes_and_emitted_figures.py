"""footnotes, printed totals, what programs print, when a result was superseded, what was audited"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

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

    op.drop_index(op.f("ix_results_run_id"), "results")
    dropped = {"steps": _of_steps(), "results": _of_results(), "releases": _of_releases()}
    for table, columns in dropped.items():
        for column in reversed(columns):
            op.drop_column(table, column.name)
