"""Figures that follow from what a row states, where it does not state them: shown with a mark."""

import pandas as pd

from dashboards import data
from dashboards.look import Computed
from perfdb import stated
from perfdb.stated import FOLLOWING, Stated


def column(metric: str) -> str:
    """The column that holds a metric's figures that follow; empty where the row states its own."""
    return f"computed_{metric}"


def followed(results: pd.DataFrame) -> pd.DataFrame:
    """The results with a column of them for each metric that can follow from others."""
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
    """The results with such figures in their metric's own column."""
    return results.assign(
        **{metric: results[metric].fillna(results[column(metric)]) for metric in FOLLOWING}
    )


def computed(results: pd.DataFrame) -> Computed:
    """Which results have such a figure, by metric."""
    return {metric: results[column(metric)].notna() for metric in FOLLOWING}
