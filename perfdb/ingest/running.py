"""Tells whether somebody is at work on a run that has not said how it ended."""

import os
import socket

from perfdb.record import RunRecord
from perfdb.rundir import RunDir


def is_running(run: RunDir, record: RunRecord) -> bool:
    """Whether a run has not ended and its runner is at work on it.

    A runner holds its run's lock; of one that has none, its process on this machine tells.
    """
    if record.outcome is not None:
        return False
    if run.lock.is_file():
        return run.in_progress()
    return record.environment.hostname == socket.gethostname() and _is_alive(record.runner_pid)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # another user's, but alive
        return True
    return True
