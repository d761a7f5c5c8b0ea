"""Which published rows have a recipe, have been measured here, and were reproduced."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from perfdb import catalog
from perfdb.compare import report
from perfdb.compare.match import metric_for
from perfdb.compare.sides import Side
from perfdb.compare.verdict import Verdict, judge_again
from perfdb.fields import CONFIGURATION, DERIVED, WORKLOAD, short
from perfdb.groups import grouped
from perfdb.recipe import RunSpec
from perfdb.record import Origin, Result

REPRODUCED: Final = (Verdict.SAME, Verdict.FASTER)
"""The verdicts on a measurement that is as fast as the row says, or faster."""
Corrections = Mapping[str, tuple[object, object]]
"""Fields that a row prints wrongly: what is printed, and what the recipe has instead."""


@dataclass(frozen=True)
class RowCoverage:
    """A published row, the case of a recipe that runs it, and how its measurement compares."""

    row: Result
    spec: RunSpec | None
    corrections: Corrections
    verdict: Verdict | None
    """Of the measured figures against the row's; None where the case was not measured."""

    @property
    def is_reproduced(self) -> bool:
        """Whether a measurement is as fast as the row says, or faster."""
        return self.verdict in REPRODUCED


def coverage(results: Iterable[Result], specs: Sequence[RunSpec]) -> list[RowCoverage]:
    """The coverage of each published result among `results`, in their order."""
    of_origin = grouped(results, lambda one: one.origin)
    measured = grouped(of_origin.get(Origin.MEASURED, ()), lambda one: one.case_key)
    by_work = grouped(specs, lambda spec: (spec.case.framework, spec.case.model))
    found = []
    for row in of_origin.get(Origin.PUBLISHED, ()):
        closest = closest_case(row, by_work.get((row.framework, row.model), ()))
        spec, fixed = closest or (None, {})
        runs = measured.get(spec.case.key, ()) if spec else ()
        found.append(RowCoverage(row, spec, fixed, _verdict(row, runs)))
    return found


def closest_case(row: Result, specs: Iterable[RunSpec]) -> tuple[RunSpec, Corrections] | None:
    """The case that runs a row with the fewest corrections, and these; None if there is none."""
    every = ((spec, corrections(row, spec)) for spec in specs)
    covers = [(spec, fixed) for spec, fixed in every if fixed is not None]
    return min(covers, key=lambda pair: len(pair[1]), default=None)


def corrections(row: Result, spec: RunSpec) -> Corrections | None:
    """The fields in which a case differs from a row on purpose; None if it is another case.

    A field that the row does not state may have any value. FP8 without its scaling is any FP8.
    """
    found = {}
    for name in (*WORKLOAD, *CONFIGURATION, *DERIVED):
        printed, asked = row.value(name), getattr(spec.case, name)
        if name == "options" or (printed in (None, "") and name != "qualifiers"):
            continue
        if isinstance(asked, tuple):
            asked = ", ".join(asked)
        if name == "precision" and _leaves_open(str(printed), str(asked)):
            continue
        if printed == asked:
            continue
        if spec.published.get(name) != printed:
            return None
        found[name] = (printed, asked)
    return found


def _leaves_open(printed: str, asked: str) -> bool:
    """Whether a precision is FP8 of some scaling that the page does not state."""
    precisions = catalog.precisions()
    return printed == "fp8" and precisions[asked].peak == precisions["fp8"].peak


def _verdict(row: Result, runs: Sequence[Result]) -> Verdict | None:
    if not runs:
        return None
    published, measured = Side((row,)), Side(tuple(runs))
    return judge_again(published, measured, metric_for([published], [measured], None)).verdict


COLUMNS = ("Row", "Source", "Recipe", "Row prints, recipe has", "Measured")


def cells(it: RowCoverage) -> tuple[object, ...]:
    """What a table prints of a row's coverage, by `COLUMNS`."""
    row = f"{it.row.release_name}: {report.workload(it.row)}"
    fixed = (f"{short(name)} {a}, {b}" for name, (a, b) in it.corrections.items())
    return row, it.row.place, it.spec and it.spec.name, "\n".join(fixed) or None, it.verdict


def summary(
    rows: Sequence[RowCoverage], built: Mapping[str, bool | None] | None
) -> dict[str, object]:
    """How many rows there are, have a recipe, were measured and reproduced; each row, as JSON.

    `built` has the verdict of the deep check on each case by name; None: it was not made.
    """
    listed = [_object(it) for it in rows]
    buildable = [built.get(it.spec.name) for it in rows if it.spec] if built is not None else None
    return {
        "rows": len(rows),
        "with_recipe": sum(it.spec is not None for it in rows),
        "buildable": None if buildable is None else buildable.count(True),
        "measured": sum(it.verdict is not None for it in rows),
        "reproduced": sum(it.is_reproduced for it in rows),
        "missing": [it for it in listed if it["case"] is None],
        "covered": [it for it in listed if it["case"] is not None],
    }


def _object(it: RowCoverage) -> dict[str, object]:
    return {
        "framework": it.row.framework,
        "release": it.row.release,
        "system": it.row.system,
        "model": it.row.model,
        "task": it.row.task,
        "source": it.row.source,
        "source_line": it.row.source_line,
        "case": it.spec and it.spec.name,
        "corrections": {
            name: {"printed": printed, "recipe": asked}
            for name, (printed, asked) in it.corrections.items()
        },
        "verdict": it.verdict,
    }
