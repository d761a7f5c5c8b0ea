"""The queries of the store: functions that return a Select, and readers of results."""

from sqlalchemy import Select

Rows = Select[*tuple[object, ...]]
"""A query with columns that are known by name alone."""
