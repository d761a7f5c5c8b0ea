"""${message}

A schema change is three things in one commit: perfdb/db/tables.py, this file, and a test.
A column that rows already lack is added with a default or as nullable; data is moved, not dropped.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy import Text
${imports if imports else ""}
revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = None
depends_on = None


def upgrade() -> None:
    ${upgrades if upgrades else "pass"}


def downgrade() -> None:
    ${downgrades if downgrades else "pass"}
