"""What the same bytes are of where they were read from another path before. Pure.

What was said then stays; --set holds over it, and what nobody said then is taken.
"""

from collections.abc import Iterator

from perfdb import attribute, following
from perfdb.attribute import Attributed, Said
from perfdb.record import CONFIGURATION_FIELDS, WORKLOAD_FIELDS, Case, Release


def held(now: Attributed, before: Attributed, words: Said) -> Attributed:
    """What a log is of by all that was said of its bytes, now and before."""
    stated = now.case.model_dump() | _said(before.case)
    insisted = words.configuration.model_dump(exclude_unset=True)
    case = following.with_what_follows(Case.model_validate(stated | insisted))
    if case.framework != before.release.framework:
        return Attributed(case, now.release)
    return Attributed(case, _release(now.release, before.release, words))


def untaken(now: Attributed, holds: Attributed) -> Iterator[str]:
    """Each field of which something else holds than is said now, with what holds."""
    said, kept = _fields(now), _fields(holds)
    for name, value in kept.items():
        if said.get(name) != value:
            yield f"{name} {value}"


def _release(now: Release, before: Release, words: Said) -> Release:
    stated = now.model_dump() | before.model_dump(exclude_none=True)
    insisted = {"version": words.release} if words.release else {}
    return Release.model_validate(stated | insisted)


def _fields(of: Attributed) -> dict[str, object]:
    release = {attribute.RELEASE: of.release.version, "container": of.release.container}
    return _said(of.case) | {name: value for name, value in release.items() if value}


def _said(case: Case) -> dict[str, object]:
    """The fields of a case that somebody said; the others follow from these."""
    fields = case.model_dump(include={*WORKLOAD_FIELDS, *CONFIGURATION_FIELDS})
    return {name: value for name, value in fields.items() if value not in (None, (), {})}
