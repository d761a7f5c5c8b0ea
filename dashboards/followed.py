"""Figures that a row does not state but that follow from those it states: shown with a mark."""

import pandas as pd

from dashboards import data
from dashboards.look import Computed
from perfdb import stated
from perfdb.stated import FOLLOWING, Stated


def column(metric: str) -> str:
    """The name of the column with a metric's computed figures, empty in rows that state it."""
    return f"computed_{metric}"


def followed(results: pd.DataFrame) -> pd.DataFrame:
    """The results with a column of computed figures for each metric that can follow from others."""
    rows = [Stated.model_validate(row) for row in data.records(results)]
    return results.assign(
        **{
            column(metric): pd.array(
                [stated.computed(row, metric) for row in rows], dtype="Float64"
            )
            for metric in FOLLOWING
        }
    )


def filled(results: pd.DataFrame) -> pd.DataFrame:
    """The results with the computed figures filled into their metric's own column."""
    return results.assign(
        **{metric: results[metric].fillna(results[column(metric)]) for metric in FOLLOWING}
    )


def computed(results: pd.DataFrame) -> Computed:
    """For each metric, which results have a computed figure."""
    return {metric: results[column(metric)].notna() for metric in FOLLOWING}
