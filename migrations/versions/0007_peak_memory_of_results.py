"""the peak memory of a result: the highest of all steps of its run that say one

Steps are kept of the last reading of a run alone: its older revisions stay without.
"""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

DROPS = "the peak memory of results, which their steps still have"

STEPS = sa.table(
    "steps", sa.column("run_id", sa.Integer()), sa.column("peak_memory_bytes", sa.BigInteger())
)
RESULTS = sa.table(
    "results",
    sa.column("id", sa.Integer()),
    sa.column("run_id", sa.Integer()),
    sa.column("withheld", sa.Text()),
    sa.column("peak_memory_bytes", sa.BigInteger()),
)


def upgrade() -> None:

    comment = "the most of all steps of the run"
    op.add_column(
        "results", sa.Column("peak_memory_bytes", sa.BigInteger(), nullable=True, comment=comment)
    )
    peak = sa.select(sa.func.max(STEPS.c.peak_memory_bytes)).where(
        STEPS.c.run_id == RESULTS.c.run_id, STEPS.c.peak_memory_bytes > 0
    )
    of_run = RESULTS.c.run_id.is_not(None)
    last = sa.select(sa.func.max(RESULTS.c.id)).where(of_run).group_by(RESULTS.c.run_id)
    op.execute(
        RESULTS.update()
        .where(RESULTS.c.withheld.is_(None), RESULTS.c.id.in_(last))
        .values(peak_memory_bytes=peak.scalar_subquery())
    )


def downgrade() -> None:

    op.drop_column("results", "peak_memory_bytes")
