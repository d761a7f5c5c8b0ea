"""From a Select to a DataFrame with nullable types: what is unknown is never 0 or NaN."""

import pandas as pd
from sqlalchemy import Connection, Select


def frame(connection: Connection, question: Select[*tuple[object, ...]]) -> pd.DataFrame:
    """The rows as a frame of nullable columns, so that ids stay integers if some are unknown."""
    found = connection.execute(question)
    columns = list(found.keys())
    rows = pd.DataFrame([tuple(row) for row in found], columns=columns, dtype=object)
    return rows.convert_dtypes()
