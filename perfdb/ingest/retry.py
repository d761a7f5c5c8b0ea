"""Does a transaction again that other processes got in the way of."""

import random
import time
from collections.abc import Callable
from typing import TypeVar

from sqlalchemy.exc import DBAPIError

from perfdb.db import store

ATTEMPTS = 8
"""How often a transaction is tried."""

FIRST_PAUSE_S = 0.02

Answer = TypeVar("Answer")


def retried(act: Callable[[], Answer]) -> Answer:
    """The answer of a transaction, tried again while other processes are in its way."""
    for attempt in range(ATTEMPTS - 1):
        try:
            return act()
        except DBAPIError as error:
            if not store.is_race(error):
                raise
            time.sleep(FIRST_PAUSE_S * 2**attempt * random.uniform(0.5, 1.5))
    return act()
