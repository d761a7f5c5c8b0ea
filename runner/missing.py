"""Which cases a comparison of two releases lacks; the store is read by `perfdb compare`."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace

from perfdb.cli import another
from perfdb.errors import Diagnostic, InputError, RunError
from perfdb.record import Origin, Outcome, Release
from runner.plan import PlanAction, Planned

OPTION = "--missing-for"


@dataclass(frozen=True)
class Missing:
    """The cases, by key, that were measured at one of two releases, and the one that lacks them."""

    a: str
    b: str
    lacking: Mapping[str, str]

    def narrowed(self, planned: Planned) -> Planned:
        """A planned case, skipped where the comparison does not lack it, or lacks another run."""
        if planned.action is not PlanAction.RUN:
            return planned
        lacks = self.lacking.get(planned.point.case.key)
        has = self.b if lacks == self.a else self.a
        if lacks is None:
            why = f"not measured at one of {self.a} and {self.b} alone"
        elif is_of(has, planned.release):
            why = f"{has} has it, {lacks} lacks it: run it there"
        else:
            return planned
        return replace(planned, action=PlanAction.SKIP, reason=why)


def missing(pair: str, db: str | None) -> Missing:
    """What the store lacks for a comparison `A..B`. Raises InputError."""
    a, dots, b = (word.strip() for word in pair.partition(".."))
    if not (a and dots and b):
        raise InputError(Diagnostic(OPTION, f"{pair!r} is not RELEASE_A..RELEASE_B"))
    try:
        # An address may have a password, and everybody sees the arguments of a process.
        variables = {**os.environ, "PERFDB_URL": db} if db else None
        found = another.answer(["compare", a, b], variables=variables, is_quiet=True)
    except RunError as error:
        raise InputError(Diagnostic(OPTION, str(error))) from error
    return of_comparison(a, b, found)


def of_comparison(a: str, b: str, found: Mapping[str, list[Mapping[str, object]]]) -> Missing:
    """What the document of a comparison says was measured at one of the two releases alone."""
    of_a = _measured(found["only_a"], "") | _measured(found["matched"], "_a")
    of_b = _measured(found["only_b"], "") | _measured(found["matched"], "_b")
    return Missing(a, b, dict.fromkeys(of_a - of_b, b) | dict.fromkeys(of_b - of_a, a))


def _measured(rows: list[Mapping[str, object]], side: str) -> set[str]:
    """The keys of the cases of which a run of this side has finished."""
    return {
        str(row[f"case_key{side}"])
        for row in rows
        if row[f"origin{side}"] == Origin.MEASURED and row[f"outcome{side}"] == Outcome.FINISHED
    }


def is_of(name: str, release: Release) -> bool:
    """Whether a release is the one of a name: 'nemo 25.04', nemo@25.04, 25.04, with [CONTAINER].

    Of a release in an image the version is not known before it has run.
    """
    word, bracket, box = name.rstrip("]").partition(" [")
    if release.version is None or (bracket and box != (release.container or "no container")):
        return bool(bracket) and box == release.container
    names = (release.version, release.name)
    return word.replace("@", " ", 1).lower() in map(str.lower, names)
