"""Follow the figures of the same work over releases and runs, and say where they got worse."""

from perfdb.trend.base import Decline, Point, Series, Timed
from perfdb.trend.follow import follow, follow_each, noted_missing

__all__ = ["Decline", "Point", "Series", "Timed", "follow", "follow_each", "noted_missing"]
