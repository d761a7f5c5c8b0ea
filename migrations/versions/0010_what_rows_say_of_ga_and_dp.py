"""GA and DP of each result, as its row or its run says them; those of a case were said last

Every result gets those of its case, until it is read anew.
"""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

DROPS = "what each result says of GA and DP, but for one of each case"

NAMES = ("gradient_accumulation", "data_parallel")
CASES = sa.table("cases", *(sa.column(name, sa.Integer()) for name in ("id", *NAMES)))
RESULTS = sa.table(
    "results",
    *(sa.column(name, sa.Integer()) for name in ("id", "case_id", *NAMES)),
    sa.column("superseded", sa.Boolean()),
)


def upgrade() -> None:

    comment = "as the row or the run says it"
    for name in NAMES:
        op.add_column("results", sa.Column(name, sa.Integer(), nullable=True, comment=comment))
        said = sa.select(CASES.c[name]).where(CASES.c.id == RESULTS.c.case_id)
        op.execute(RESULTS.update().values({name: said.scalar_subquery()}))
        op.drop_column("cases", name)


def downgrade() -> None:

    for name in NAMES:
        op.add_column("cases", sa.Column(name, sa.Integer(), nullable=True))
        of_it = RESULTS.c.case_id == CASES.c.id, RESULTS.c[name].is_not(None)
        order = RESULTS.c.superseded, RESULTS.c.id.desc()
        said = sa.select(RESULTS.c[name]).where(*of_it).order_by(*order).limit(1)
        op.execute(CASES.update().values({name: said.scalar_subquery()}))
        op.drop_column("results", name)
