"""What a command says when it is run as the shell does: the fixture `perfdb` runs it."""

from collections.abc import Callable
from typing import NamedTuple


class Done(NamedTuple):
    """How a command ended, and what it printed."""

    code: int
    stdout: str
    stderr: str


Shell = Callable[..., Done]
