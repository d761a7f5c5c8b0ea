"""runs that were withdrawn, with the reason; sources are found by their path

On the way down the reason is left in the ingest log alone. On the way up again a run of which no
result is in force is one that was withdrawn.
"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

DROPS = "why runs were withdrawn, but in the ingest log"

RUNS = sa.table("runs", sa.column("id", sa.Integer()), sa.column("withdrawn", sa.Text()))
RESULTS = sa.table(
    "results", sa.column("run_id", sa.Integer()), sa.column("superseded", sa.Boolean())
)


def upgrade() -> None:

    comment = "why it does not count; NULL: it does"
    op.add_column("runs", sa.Column("withdrawn", sa.Text(), nullable=True, comment=comment))
    in_force = sa.exists().where(RESULTS.c.run_id == RUNS.c.id, ~RESULTS.c.superseded)
    op.execute(RUNS.update().where(~in_force).values(withdrawn="see the ingest log"))
    op.create_index(op.f("ix_sources_path"), "sources", ["path"])


def downgrade() -> None:

    op.drop_index(op.f("ix_sources_path"), "sources")
    op.drop_column("runs", "withdrawn")
