"""Which published rows have a recipe, have been measured here, and were reproduced."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Final

from perfdb import catalog
from perfdb.audit.interval import half_unit
from perfdb.compare import noise, report
from perfdb.compare.comparability import no_measure
from perfdb.compare.match import metric_for
from perfdb.compare.sides import Side
from perfdb.compare.verdict import Judgement, Reason, Terms, Verdict, by_tolerance, judge
from perfdb.fields import CONFIGURATION, DERIVED, WORKLOAD, short
from perfdb.groups import grouped
from perfdb.recipe import RunSpec
from perfdb.record import Origin, Result

REPRODUCED: Final = (Verdict.SAME, Verdict.FASTER)
"""The verdicts on a measurement that is as fast as the row says, or faster."""
SAME_PUBLISHED: Final = 0.01
"""By how much a run may differ from a page and be the same."""
SAME_AGAIN: Final = 0.04
"""By how much a run may differ from another run and have it again; single runs show no less."""
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


def judge_again(a: Side, b: Side, metric: str) -> Judgement:
    """B over A as `judge` has it, and a run over a page, which says nothing of its noise.

    A run is the `same` as another within `SAME_AGAIN` for sure, where no change is. As a page, it
    is within the digits printed and within `SAME_PUBLISHED`. It cannot be told where the
    noise of the run is more than twice that, or may be what is beyond that.
    """
    found, figure = judge(a, b, metric), a.median(metric)
    if found.low is not None and found.verdict is Verdict.UNKNOWN:
        wide = judge(a, b, metric, (), Terms(SAME_AGAIN))
        return wide if wide.verdict is Verdict.SAME else found
    of_b = b.by[metric]
    least, lacks_noise = of_b.noise
    is_fit = a.origin != b.origin and not no_measure(a, b, metric) and not lacks_noise
    if not (is_fit and found.ratio and figure and of_b.sample):
        return found
    rounding = half_unit(figure, metric, a.shown.printed.get(metric)) / figure
    change, allowed = log(found.ratio), max(rounding, SAME_PUBLISHED)
    either_way = noise.half_of(of_b.sample, noise.MLPERF, least)
    is_sure = either_way <= 2 * allowed and not allowed < abs(change) <= allowed + either_way
    verdict = by_tolerance(change, allowed, metric) if is_sure else Verdict.UNKNOWN
    reason = f"{abs(change):.1%} apart, {allowed:.1%} allowed, the run is ±{either_way:.1%}"
    return found._replace(verdict=verdict, why=Reason(reason))
