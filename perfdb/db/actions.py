"""What the log of ingests says of what was read."""

from datetime import timedelta
from enum import StrEnum
from typing import Final


class Action(StrEnum):
    """What became of a source or a result that was read."""

    NEW = "new"
    REVISED = "revised"
    UNCHANGED = "unchanged"
    REJECTED = "rejected"
    UNATTRIBUTED = "unattributed"


RUN_LOGGED_AS = "run "
"""What stands before the id of a run in the log, in place of a path."""

FALLS_BACK_AFTER: Final = timedelta(microseconds=1)
"""From when a page no longer states a result to when another one holds that does."""
