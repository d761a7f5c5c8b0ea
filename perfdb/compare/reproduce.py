"""Which published rows have a recipe and were reproduced; what belongs to a number. Pure.

`perfdb recipes coverage` counts the rows; `perfdb reproduce` has what it takes to have a number
again, and whether a run has it again.
"""

import glob
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from math import log
from typing import Final

from perfdb import catalog
from perfdb.audit.interval import half_unit
from perfdb.compare import noise, report
from perfdb.compare.comparability import no_measure
from perfdb.compare.match import metric_for
from perfdb.compare.run_diff import Differences, RunFacts, differences, digest
from perfdb.compare.sides import Side
from perfdb.compare.verdict import Judgement, Reason, Terms, Verdict, by_tolerance, judge
from perfdb.fields import CONFIGURATION, DERIVED, WORKLOAD, short
from perfdb.groups import grouped
from perfdb.metrics import METRICS
from perfdb.recipe import RecipeFile, RunSpec
from perfdb.recipe.model import NOT_STARTED
from perfdb.record import Origin, Result
from perfdb.run_record import RunRecord

REPRODUCED: Final = (Verdict.SAME, Verdict.FASTER)
"""The verdicts on a measurement that is as fast as the row says, or faster."""
Corrections = Mapping[str, tuple[object, object]]
"""Fields that a row prints wrongly: what is printed, and what the recipe has instead."""
SAME_PUBLISHED: Final = 0.01
"""By how much a run may differ from a page and be the same."""

SAME_AGAIN: Final = 0.04
"""By how much a run may differ from another run and have it again; single runs show no less."""
LOSS: Final = "loss"
"""What can be judged besides a metric: the loss of the last step."""
SAME_LOSS_FP32: Final = 1e-5
"""By how much losses of equal runs may differ: another order of sums gives 1e-6 in float32."""
SAME_LOSS: Final = 2**-8
"""The same in other precisions: a rounding step of bfloat16, the coarsest of the activations."""
_SPEED_ASIDE: Final = re.compile(
    r"hostname|os|memory_bytes|gpu_count|release|perfdb_version|git_commit|git_dirty"
    r"|variables\.(SLURM_\w+|\w+_(VISIBLE_DEVICES|DIR|HOME|PATH|ADDR|PORT))"
)
"""Fields of a machine and its software that do not change speed, or that others say better."""
_KNOWN_ABSENT: Final = re.compile(r"container|(variables|packages)\..+")
"""Fields of a run without a value that do not have one; of others it is not known."""


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
        found.append(RowCoverage(row, spec, fixed, _reproduced(row, runs)))
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


def _reproduced(row: Result, runs: Sequence[Result]) -> Verdict | None:
    if not runs:
        return None
    published, measured = Side((row,)), Side(tuple(runs))
    return judge_again(published, measured, metric_for([published], [measured], None)).verdict


COVERAGE_COLUMNS: Final = ("Row", "Source", "Recipe", "Row prints, recipe has", "Measured")


def coverage_cells(it: RowCoverage) -> tuple[object, ...]:
    """What a table prints of a row's coverage, by `COVERAGE_COLUMNS`."""
    row = f"{it.row.release_name}: {report.workload(it.row)}"
    fixed = (f"{short(name)} {a}, {b}" for name, (a, b) in it.corrections.items())
    return row, it.row.place, it.spec and it.spec.name, "\n".join(fixed) or None, it.verdict


def coverage_summary(
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


class Answer(StrEnum):
    """Whether a number was had again; the last that any figure has counts for all."""

    AGREES = "agrees"
    UNKNOWN = "cannot tell"
    DIFFERS = "differs"


_ANSWERS: Final = {
    Verdict.SAME: Answer.AGREES, Verdict.FASTER: Answer.DIFFERS, Verdict.SLOWER: Answer.DIFFERS,
    Verdict.FAILED: Answer.DIFFERS,
}  # fmt: skip


@dataclass(frozen=True)
class Check:
    """One figure of the original and of the new run, and whether they agree."""

    figure: str
    original: float | None
    again: float | None
    answer: Answer
    reason: str


@dataclass(frozen=True)
class Reproduction:
    """Whether a number was had again, by which figures, and in what the runs differ."""

    checks: tuple[Check, ...]
    differences: Differences

    @property
    def answer(self) -> Answer:
        """It differs where what was run or a figure does, else by the least sure figure."""
        if self.differs_in:
            return Answer.DIFFERS
        answers = [it.answer for it in self.checks]
        return max(answers, key=list(Answer).index, default=Answer.UNKNOWN)

    @property
    def differs_in(self) -> list[str]:
        """The fields that make it another thing that was run, then the figures that differ."""
        fields = [
            name
            for group, pairs in self.differences.items()
            for name, pair in pairs.items()
            if group == "configuration"
            or (
                (None not in pair or _KNOWN_ABSENT.fullmatch(name))
                and not _SPEED_ASIDE.fullmatch(name)
            )
        ]
        return fields + [it.figure for it in self.checks if it.answer is Answer.DIFFERS]


@dataclass(frozen=True)
class RecipeCase:
    """A case of a recipe, and where it differs on purpose from a published row."""

    file: RecipeFile
    spec: RunSpec
    corrections: Corrections


@dataclass(frozen=True)
class Provenance:
    """A result, and how it was made. None: not known.

    `record`: of the run that is shown; `made`: the case of a recipe; `files`: the SHA-256 of the
    files of the run, by name. `is_kept`: the recipe is the run's own copy, which the store has and
    no file of the user's.
    """

    shown: Result
    facts: RunFacts | None = None
    record: RunRecord | None = None
    made: RecipeCase | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    is_kept: bool = False

    @property
    def command(self) -> list[str] | None:
        """What comes after `perfdb` to run it again. None where no recipe has it."""
        if self.made is None:
            return None
        is_proxy = self.record is not None and self.record.case.proxy_of
        only = ["--only", glob.escape(self.made.spec.name)]
        return ["run", str(self.made.file.path), *only, *(["--fit"] if is_proxy else [])]

    @property
    def document(self) -> dict[str, object]:
        """What belongs to the number, as text, numbers, lists and mappings. None: not known."""
        it, facts, record, made = self.shown, self.facts, self.record, self.made
        path = made and (record.recipe.path if record and self.is_kept else made.file.path)
        again = ["reproduce", str(it.result_id), "--run"] if self.is_kept else self.command
        if it.framework in NOT_STARTED:
            again = None
        return {
            "figures": {
                name: figure for name in METRICS if (figure := it.figure(name)) is not None
            },
            "recipe": path and str(path),
            "case": made and made.spec.name,
            "configuration": facts and facts.configuration,
            "corrections": made and {name: list(pair) for name, pair in made.corrections.items()},
            # a page prints the name of a release, of which the recipe has the image
            "container": (made and not record and made.spec.container) or it.container,
            "container_digest": record and digest(record),
            "versions": facts and facts.versions,
            "environment": facts and facts.environment,
            "source": {"path": it.source, "line": it.source_line, "sha256": it.source_sha256,
                       "url": it.source_url},
            "files": self.files,
            "run_again": made and again and shlex.join(["perfdb", *again]),
            "command": record and shlex.join(record.command),
        }  # fmt: skip


def case_of(
    result: Result, record: RunRecord | None, files: Iterable[RecipeFile]
) -> RecipeCase | None:
    """The recipe's case that a run was made from, else the one that is closest to the row."""
    points = [(file, spec) for file in files for spec in file.points]
    if record:
        asked = record.case.key, record.warmup_steps, record.measured_steps, record.seed
        for file, spec in points:
            key = spec.case.key, spec.warmup_steps, spec.measured_steps, spec.seed
            of = record.case.proxy_of
            is_meant = key == asked or bool(of and spec.case.key.startswith(of))
            if is_meant and file.reference.sha256 == record.recipe.sha256:
                return RecipeCase(file, spec, {})
        return None
    if closest := closest_case(result, [spec for _, spec in points]):
        spec, fixed = closest
        return RecipeCase(next(file for file, one in points if one is spec), spec, fixed)
    return None


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


def judged(
    original: tuple[Side, RunFacts], again: tuple[Side, RunFacts], asked: str | None
) -> Reproduction:
    """Whether runs agree with an original: in speed, and in the loss where they did the same.

    `asked`: the only figure to judge, a metric or the loss. Losses are judged where configuration,
    seed and steps are equal and both are known. Of a page or a log only what it states can differ.
    """
    (a, had), (b, has) = original, again
    is_run = "perfdb_version" in had.versions
    apart = {
        group: known
        for group, fields in differences(had, has).items()
        if group != "steps"
        and (known := {k: it for k, it in fields.items() if is_run or it[0] is not None})
    }
    checks = []
    if asked != LOSS:
        checks.append(_speed(a, b, metric_for([a], [b], asked)))
    if asked in (None, LOSS) and (check := _loss(had, has, is_same="configuration" not in apart)):
        checks.append(check)
    return Reproduction(tuple(checks), apart)


def _speed(a: Side, b: Side, metric: str) -> Check:
    found = judge_again(a, b, metric)
    answer = _ANSWERS.get(found.verdict, Answer.UNKNOWN)
    reason = f"{found.verdict}: {found.reason}" if found.reason else found.verdict.value
    return Check(metric, a.median(metric), b.median(metric), answer, reason)


def _loss(had: RunFacts, has: RunFacts, *, is_same: bool) -> Check | None:
    """The check of the losses of equal runs; None where there is nothing to check."""
    losses = [one.steps.get("last_loss") for one in (had, has)]
    match losses:
        case [float(a), float(b)] if is_same:
            is_exact = had.configuration.get("precision") == "fp32"
            allowed = SAME_LOSS_FP32 if is_exact else SAME_LOSS
            apart = abs(b - a) / abs(a) if a else abs(b)
            answer = Answer.AGREES if apart <= allowed else Answer.DIFFERS
            return Check(LOSS, a, b, answer, f"{apart:.1g} apart, {allowed:.1g} allowed")
    return None
