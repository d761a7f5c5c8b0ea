"""Whether a PostgreSQL store has changed."""

from sqlalchemy import (
    BigInteger,
    CompoundSelect,
    Text,
    cast,
    func,
    literal,
    literal_column,
    select,
    union_all,
)

from perfdb.db.tables import metadata


def row_versions() -> CompoundSelect[*tuple[object, ...]]:
    """For each table: its name, its number of rows, the sum of the transactions that wrote them.

    A row that is written or changed has the number of its transaction (xmin), which is higher than
    all before it: if the number of rows is the same after a change, the sum has grown.
    """
    written_by = cast(cast(literal_column("xmin"), Text), BigInteger)
    return union_all(
        *(
            select(literal(table.name), func.count(), func.sum(written_by)).select_from(table)
            for table in metadata.sorted_tables
        )
    )
