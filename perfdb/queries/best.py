"""The best figure of each group of results: chosen by the database, so that few rows are read."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import ColumnElement, Select, asc, case, desc, func, literal, or_, select

from perfdb import catalog
from perfdb.db.tables import cases, models, results, systems
from perfdb.metrics import METRICS
from perfdb.queries import Rows
from perfdb.queries.results import COUNTS, WHOLE, chosen, current, representative
from perfdb.record import Origin
from perfdb.stated import MFU, RATE

AXES: Final[Mapping[str, ColumnElement[object]]] = {
    "framework": cases.c.framework, "release_id": results.c.release_id,
    "system": systems.c.name, "model": models.c.name, "task": cases.c.task,
    "precision": cases.c.precision, "num_gpus": cases.c.num_gpus,
    "sequence_length": cases.c.sequence_length, "global_batch_size": cases.c.global_batch_size,
    "variant": cases.c.variant, "qualifiers": cases.c.qualifiers, "origin": results.c.origin,
}  # fmt: skip
"""What results can be narrowed to and grouped by."""
_OF_CASES: Final = tuple(name for name in AXES if name not in ("release_id", "origin"))

Values = tuple[str | int | None, ...]


@dataclass(frozen=True)
class Narrowing:
    """The values of some of `AXES`, any of which fits; an axis without values is left open."""

    values: tuple[tuple[str, Values], ...] = ()

    @classmethod
    def of(cls, **values: Sequence[str | int | None]) -> "Narrowing":
        """The same by the names of axes; no value: open."""
        return cls(tuple((name, tuple(some)) for name, some in values.items() if some))

    def but(self, **values: Sequence[str | int | None]) -> "Narrowing":
        """The same, with the values of some axes in place of its own."""
        return self.of(**(dict(self.values) | values))

    @property
    def conditions(self) -> list[ColumnElement[bool]]:
        """The same as conditions on results alone, which need no join."""
        found = self.of_results
        if of_cases := self.of_cases:
            ids = _cases(cases.c.id).where(*of_cases).correlate(None)
            found.append(results.c.case_id.in_(ids))
        return found

    @property
    def of_cases(self) -> list[ColumnElement[bool]]:
        """What it asks of a case, with its model and system."""
        return [_among(AXES[name], some) for name, some in self.values if name in _OF_CASES]

    @property
    def of_results(self) -> list[ColumnElement[bool]]:
        """What it asks of a result itself."""
        return [_among(AXES[name], some) for name, some in self.values if name not in _OF_CASES]


EVERYTHING: Final = Narrowing()


def _cases(*columns: ColumnElement[Any]) -> Rows:
    of_model = select(*columns).select_from(cases).join(models, cases.c.model_id == models.c.id)
    return of_model.join(systems, cases.c.system_id == systems.c.id)


def _among(column: ColumnElement[object], values: Values) -> ColumnElement[bool]:
    known = column.in_([value for value in values if value is not None])
    return or_(known, column.is_(None)) if None in values else known


def figure(metric: str) -> ColumnElement[float | None]:
    """The value of a metric, stated or computed, as `perfdb.stated.figure` has it."""
    found = [case((results.c[metric] > 0, results.c[metric]))]
    published = results.c.origin == Origin.PUBLISHED.value
    if metric == RATE:
        tokens = cases.c.global_batch_size * cases.c.sequence_length
        found += [
            case((published & (results.c.tokens_per_sec > 0),
                  results.c.tokens_per_sec / cases.c.num_gpus)),
            case((published & (results.c.step_time_s > 0),
                  tokens / results.c.step_time_s / cases.c.num_gpus)),
        ]  # fmt: skip
    elif metric == MFU and (peaks := _peaks()):
        flops = results.c.model_tflops_per_sec_per_gpu
        found.append(case((published & (flops > 0), flops / case(*peaks))))
    return func.coalesce(*found, None)


def _peaks() -> list[tuple[ColumnElement[bool], ColumnElement[float]]]:
    return [
        ((systems.c.name == system) & (cases.c.precision == precision), literal(peak.tflops))
        for system in catalog.systems()
        for precision in catalog.precisions()
        if (peak := catalog.peak(system, precision))
    ]


def ranked(
    metric: str, by: Sequence[str], where: Narrowing, wrong: Collection[int], most: int
) -> Rows:
    """The result with the best figure of each group, the best group first, at most so many.

    As `perfdb.queries.results.current` has them, with the `value` of each and `num_groups`.
    `wrong` are the results, by their number, whose figures are left out.
    """
    better = asc if METRICS[metric].better == "lower" else desc
    groups = [AXES[name].label(f"by_{name}") for name in by]
    ids = chosen((*where.conditions, WHOLE), (figure(metric).label("value"), *groups))
    parts = [ids.c[f"by_{name}"] for name in by]
    place = func.row_number().over(partition_by=parts, order_by=(better(ids.c.value), ids.c.id))
    usable = (ids.c.value.is_not(None), ids.c.rank == 0, ids.c.id.not_in(wrong))
    known = select(ids.c.id, ids.c.value, place.label("place")).where(*usable).subquery()
    count = func.count().over().label("num_groups")
    best = select(known.c.id, known.c.value, count).where(known.c.place == 1).subquery("best")
    question = current().join(best, best.c.id == results.c.id)
    question = question.add_columns(best.c.value, best.c.num_groups)
    return question.order_by(None).order_by(better(best.c.value), results.c.id).limit(most)


def page(where: Narrowing, most: int) -> Rows:
    """The results that tables print, narrowed down, at most so many."""
    return representative(where.conditions).limit(most)


def totals(where: Narrowing) -> Select[int, int]:
    """How many results tables print, and how many they stand for."""
    ids = chosen(where.conditions)
    counted = select(func.count(), func.coalesce(func.sum(ids.c.num_results), 0))
    joined = counted.select_from(ids).join(results, ids.c.id == results.c.id)
    return joined.join(cases, results.c.case_id == cases.c.id).where(WHOLE)


def values_of(axis: str, where: Narrowing = EVERYTHING) -> Rows:
    """The values of an axis that current results have, with how many cases have each."""
    column = AXES[axis]
    if axis not in _OF_CASES:
        columns: tuple[ColumnElement[Any], ...] = (column, func.count(results.c.case_id.distinct()))
        return select(*columns).where(~results.c.superseded, *where.conditions).group_by(column)
    is_current = select(results.c.id).where(results.c.case_id == cases.c.id, ~results.c.superseded)
    has_any = is_current.where(*where.of_results).correlate(cases).exists()
    return _cases(column, func.count()).where(has_any, *where.of_cases, WHOLE).group_by(column)


def widest() -> Rows:
    """The model, system and precision with results on the most numbers of GPUs."""
    parts = (AXES["model"].label("model"), AXES["system"].label("system"), cases.c.precision)
    is_current = select(results.c.id).where(results.c.case_id == cases.c.id, ~results.c.superseded)
    asked = _cases(*parts).where(is_current.correlate(cases).exists(), WHOLE).group_by(*parts)
    return asked.order_by(func.count(cases.c.num_gpus.distinct()).desc(), *parts).limit(1)


def scaled_releases(where: Narrowing) -> Select[int]:
    """The releases that have results on two or more numbers of GPUs."""
    asked = select(results.c.release_id).join(cases, results.c.case_id == cases.c.id)
    asked = asked.where(~results.c.superseded, COUNTS, WHOLE, *where.conditions)
    several = func.count(cases.c.num_gpus.distinct()) > 1
    return asked.group_by(results.c.release_id).having(several)


def num_shared(a: Sequence[int], b: Sequence[int]) -> Select[int]:
    """How many workloads two releases, each with some ids, both have results of."""
    of_a, of_b = (
        select(cases.c.workload_key)
        .join(results, results.c.case_id == cases.c.id)
        .where(results.c.release_id.in_(ids), ~results.c.superseded)
        for ids in (a, b)
    )
    return select(func.count()).select_from(of_a.intersect(of_b).subquery())
