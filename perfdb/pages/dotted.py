"""How versions are written: `25.11`, `0.14.0-rc1`, `25.11 RC1`."""

import re
from typing import Final

_NOT_FINAL: Final = r"rc|release candidate|alpha|beta|pre-?release|pre(?![\s-]*train)|nightly|dev"
ENDING: Final = (
    rf"(?:-(?:{_NOT_FINAL}|preview)(?![a-z])(?:[\w.+-]*\w)?"
    r"|\+(?![0-9]+\.[0-9])\w(?:[\w.-]*\w)?)?+"
)
"""Behind a version that is not the final one: `-rc1`, `+abc`."""
DOTTED: Final = (
    r"(?![0-9.]+[bkmt](?![\w.]))[0-9]+\.[0-9]\w*(?:\.\w+)*(?:-[a-z]\w*(?:\.\w+)*)?"
    rf"{ENDING}"
)
"""A version of numbers; `1.3B` is the size of a model."""
CALENDAR: Final = rf"[0-9]{{2}}\.[0-9]{{2}}(?:[\w.]*\w)?{ENDING}"
"""NeMo's releases; `NeMo 2.0` is a generation."""
_APART: Final = re.compile(
    rf"([0-9]\.[0-9][\w.]{{,9}})(?:[^\S\n]+\(?|\(|-)({_NOT_FINAL})s?(?![a-z]|(?<=pre|dev)-[a-z])"
    r"(?:[ .-]?([0-9]+)(?![\w.]))?\)?",
    re.IGNORECASE,
)
"""A version and what says that it is not final, as words: `25.11 RC1`."""


def joined(words: str) -> str:
    """The words with each version that is not final in one: `25.11 RC1` is 25.11-rc1."""
    return _APART.sub(_as_one, words)


def _as_one(found: re.Match[str]) -> str:
    version, stage, number = found.groups("")
    return f"{version}-{stage.casefold().replace('release candidate', 'rc')}{number}"
