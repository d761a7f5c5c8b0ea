"""where the original of a published page is, and when it was published, as the page says"""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

DROPS = "where the originals of pages are, and of which day"


def upgrade() -> None:

    op.create_table(
        "originals",
        sa.Column("source_id", sa.Integer(), nullable=False),
        sa.Column("source_url", sa.Text(), nullable=True, comment="NULL: the page does not say"),
        sa.Column("published_on", sa.Date(), nullable=True, comment="NULL: the page does not say"),
        sa.ForeignKeyConstraint(
            ["source_id"],
            ["sources.id"],
            name=op.f("fk_originals_source_id_sources"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("source_id", name=op.f("pk_originals")),
    )


def downgrade() -> None:

    op.drop_table("originals")
