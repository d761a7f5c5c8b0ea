"""A command as a person would type it."""

import shlex
from collections.abc import Iterable

BREAK = " \\\n    "
"""Goes on with a command on the next line."""


def shell(command: Iterable[str]) -> str:
    """The words quoted where they must be, each option with its value on a line of its own."""
    words = [shlex.quote(word) for word in command]
    breaks = [BREAK if word.startswith("-") else " " for word in words]
    return "".join(part for pair in zip(breaks, words, strict=True) for part in pair)[1:]
