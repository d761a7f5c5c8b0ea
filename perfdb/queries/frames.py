"""From a Select to a DataFrame in which unknown is unknown: nullable types, never 0 or NaN."""

import pandas as pd
from sqlalchemy import Connection, Select


def frame(connection: Connection, question: Select[*tuple[object, ...]]) -> pd.DataFrame:
    """The rows as a frame of nullable columns, so that an id stays an integer beside an unknown."""
    found = connection.execute(question)
    columns = list(found.keys())
    rows = pd.DataFrame([tuple(row) for row in found], columns=columns, dtype=object)
    return rows.convert_dtypes()
