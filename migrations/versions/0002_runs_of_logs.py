"""runs of logs

A log says neither which recipe its run came from nor when it started: both become nullable. On the
way down unknown becomes '' and 1970-01-01, which no run has, and on the way up NULL again.
"""

from datetime import UTC, datetime

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

UNKNOWN = {"recipe": "", "started_at": datetime(1970, 1, 1, tzinfo=UTC)}
"""What stands for NULL where a column does not take it."""

RUNS = sa.table(
    "runs", sa.column("recipe", sa.Text()), sa.column("started_at", sa.DateTime(timezone=True))
)


def upgrade() -> None:

    _nullable(True)
    for name, unknown in UNKNOWN.items():
        column = RUNS.c[name]
        op.execute(RUNS.update().where(column == unknown).values({name: None}))


def downgrade() -> None:

    for name, unknown in UNKNOWN.items():
        column = RUNS.c[name]
        op.execute(RUNS.update().where(column.is_(None)).values({name: unknown}))
    _nullable(False)


def _nullable(allowed: bool) -> None:
    with op.batch_alter_table("runs", schema=None) as batch_op:
        batch_op.alter_column("recipe", existing_type=sa.Text(), nullable=allowed)
        batch_op.alter_column(
            "started_at", existing_type=sa.DateTime(timezone=True), nullable=allowed
        )
