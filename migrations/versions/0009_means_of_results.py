"""of how many means a result is, where each time in a log is the mean of several steps

NULL for every result that is there: what is read or recomputed has it.
"""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

DROPS = "of how many means figures are"


def upgrade() -> None:

    comment = "of how many means they are; NULL: of single steps"
    op.add_column("results", sa.Column("num_means", sa.Integer(), nullable=True, comment=comment))


def downgrade() -> None:

    op.drop_column("results", "num_means")
