"""Logs whose attempts had other settings: the case of one is that of some of its steps. Pure."""

import re
from collections.abc import Sequence
from typing import Final

_SAID: Final = "alone have the settings of the case: of others"
_STEPS: Final = re.compile(rf"steps (\d+) to (\d+) {_SAID}")
_WITHHELD: Final = "the window holds steps of other settings: "


def said(first: int, last: int, names: Sequence[str]) -> str:
    """That of a log these steps alone have its settings; `names`: the fields that differ."""
    return f"steps {first} to {last} {_SAID} {', '.join(names)} differ"


def why_none(notes: Sequence[str], first: int, last: int) -> str | None:
    """Why a result of these notes has no figures over these steps; None where it has some."""
    found = next(filter(None, map(_STEPS.match, notes)), None)
    if found is None or (int(found[1]) <= first and last <= int(found[2])):
        return None
    return f"{_WITHHELD}{found.string}"


def is_why(withheld: str | None) -> bool:
    """Whether a reason for no figures is that."""
    return bool(withheld and withheld.startswith(_WITHHELD))
