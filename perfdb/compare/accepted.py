"""Regressions that a person has looked at and accepts for a while: the reviewed file. Pure."""

import datetime
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from perfdb import yamlfile
from perfdb.audit.review import Text
from perfdb.compare.match import Match
from perfdb.record import Frozen, Release

FILE: Final = Path("data/accepted_regressions.yaml")
_ENTRY: Final = "accepted"


class Accepted(Frozen):
    """One entry: which regressions close no gate, why, by whom and until when.

    A field that is None matches every one. `release` is B, as '25.04' or 'nemo 25.04'; `case` is
    the beginning of the key of its case or work.
    """

    model: Text | None = None
    system: Text | None = None
    metric: Text | None = None
    release: Text | None = None
    case: Text | None = None
    reason: Text
    by: Text
    expires: datetime.date

    def covers(self, match: Match) -> bool:
        """Whether it accepts what a match shows."""
        it = match.b.shown
        name = Release(framework=it.framework, version=it.release).name
        keys = it.case_key, it.workload_key
        return (
            self.model in (None, it.model)
            and self.system in (None, it.system)
            and self.metric in (None, match.metric)
            and self.release in (None, it.release, name)
            and (self.case is None or any(key.startswith(self.case) for key in keys))
        )

    def __str__(self) -> str:
        """'llama3-8b dgx-h100: the sampler is slower (A. Person)'."""
        named = (self.model, self.system, self.metric, self.release, self.case)
        return f"{' '.join(filter(None, named)) or 'all'}: {self.reason} ({self.by})"


class _File(Frozen):
    accepted: tuple[Accepted, ...]


def read(path: Path | None) -> tuple[Accepted, ...]:
    """The entries of a file, by default the project's; none without one.

    Raises InputError with everything that is wrong with it.
    """
    named = path or FILE
    if not named.is_file():
        return ()
    document = yamlfile.list_of(str(named), yamlfile.text_of(named), _ENTRY)
    if document is None:
        return ()
    return yamlfile.checked(document, _File).accepted


def left(
    found: Iterable[Match], known: Sequence[Accepted], today: datetime.date
) -> tuple[list[Match], list[str]]:
    """The matches that nobody accepts, and what to know of the entries that were used."""
    remaining, notes = [], []
    for match in found:
        fitting = [one for one in known if one.covers(match)]
        valid = [one for one in fitting if one.expires >= today]
        if valid:
            notes.append(f"accepted until {valid[0].expires}: {valid[0]}")
            continue
        notes += [f"expired on {one.expires}: {one}" for one in fitting]
        remaining.append(match)
    return remaining, list(dict.fromkeys(notes))
