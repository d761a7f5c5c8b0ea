"""What the log of ingests says of what was read."""

from enum import StrEnum


class Action(StrEnum):
    """What became of a source or a result that was read."""

    NEW = "new"
    REVISED = "revised"
    UNCHANGED = "unchanged"
    REJECTED = "rejected"
    UNATTRIBUTED = "unattributed"


RUN_LOGGED_AS = "run "
"""What stands before the id of a run in the log, in place of a path."""
