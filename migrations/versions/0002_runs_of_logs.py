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

COMMENTS = {
    "recipe": "NULL: read from a log, which does not say",
    "started_at": "NULL: read from a log",
}
ACTIONS = {False: "new | revised | rejected", True: "new | revised | rejected | unattributed"}


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
        for name, comment in COMMENTS.items():
            batch_op.alter_column(
                name,
                existing_type=RUNS.c[name].type,
                nullable=allowed,
                comment=comment if allowed else None,
                existing_comment=None if allowed else comment,
            )
    with op.batch_alter_table("ingest_log", schema=None) as batch_op:
        batch_op.alter_column(
            "action",
            existing_type=sa.Text(),
            existing_nullable=False,
            comment=ACTIONS[allowed],
            existing_comment=ACTIONS[not allowed],
        )
