"""The case and release of a log whose bytes were stored before, from another path. Pure.

What was stated then stays, unless --set overrides it; what was not stated then is added.
"""

from collections.abc import Iterator

from perfdb import attribute, following
from perfdb.attribute import Attributed, Said
from perfdb.record import CONFIGURATION_FIELDS, WORKLOAD_FIELDS, Case, Release


def held(now: Attributed, before: Attributed, words: Said) -> Attributed:
    """The case and release of a log, by all that was stated of its bytes, now and before."""
    stated = now.case.model_dump() | _stated(before.case)
    insisted = words.configuration.model_dump(exclude_unset=True)
    case = following.with_what_follows(Case.model_validate(stated | insisted))
    if case.framework != before.release.framework:
        return Attributed(case, now.release)
    return Attributed(case, _release(now.release, before.release, words))


def is_held_by(one: Case, other: Case) -> bool:
    """Whether all that is stated of a case is stated of another one, too."""
    return _each_stated(one).items() <= _each_stated(other).items()


def untaken(now: Attributed, holds: Attributed) -> Iterator[str]:
    """'num_gpus 8': each field whose value that holds differs from the one stated now."""
    stated, kept = _fields(now), _fields(holds)
    for name, value in kept.items():
        if stated.get(name) != value:
            yield f"{name} {value}"


def _release(now: Release, before: Release, words: Said) -> Release:
    stated = now.model_dump() | before.model_dump(exclude_none=True)
    insisted = {"version": words.release} if words.release else {}
    return Release.model_validate(stated | insisted)


def _fields(of: Attributed) -> dict[str, object]:
    release = {attribute.RELEASE: of.release.version, "container": of.release.container}
    return _stated(of.case) | {name: value for name, value in release.items() if value}


def _stated(case: Case) -> dict[str, object]:
    """The fields of a case that were stated; the others follow from these."""
    fields = case.model_dump(include={*WORKLOAD_FIELDS, *CONFIGURATION_FIELDS})
    return {name: value for name, value in fields.items() if value not in (None, (), {})}


def _each_stated(case: Case) -> dict[str, object]:
    """The same, each option by itself."""
    options = {f"option {name}": value for name, value in case.options.items()}
    return {name: said for name, said in _stated(case).items() if name != "options"} | options
