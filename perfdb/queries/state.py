"""Whether a PostgreSQL store still holds what it held."""

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
    """Of each table its name, its rows, and the sum of the transactions that wrote them.

    A row that is written, or written anew, bears the number of its transaction (xmin), which is
    higher than all before it: where as many rows are left as were there, the sum has grown.
    """
    written_by = cast(cast(literal_column("xmin"), Text), BigInteger)
    return union_all(
        *(
            select(literal(table.name), func.count(), func.sum(written_by)).select_from(table)
            for table in metadata.sorted_tables
        )
    )
