"""A command as a person would type it."""

import shlex
from collections.abc import Iterable


BREAK = " \\\n    "
"""Goes on with a command on the next line."""


def shell(command: Iterable[str]) -> str:
    """The words quoted where they must be, each option with its value on a line of its own."""
    first, *others = map(shlex.quote, command)
    return first + "".join((BREAK if word.startswith("-") else " ") + word for word in others)
