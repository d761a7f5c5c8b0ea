"""the stamp of a run's files: their sizes and times, by which they are known unread

NULL, for every run that is there: its files are read once more, and then it has one.
"""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:

    comment = "of its files' sizes and times, to know them unread"
    op.add_column("runs", sa.Column("stamp", sa.Text(), nullable=True, comment=comment))


def downgrade() -> None:

    op.drop_column("runs", "stamp")
