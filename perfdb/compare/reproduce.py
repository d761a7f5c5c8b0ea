"""What belongs to a number, so that it can be had again, and whether a run has it again. Pure."""

import glob
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from perfdb.compare.coverage import Corrections, closest_case, judge_again
from perfdb.compare.match import metric_for
from perfdb.compare.run_diff import Differences, RunFacts, differences, digest
from perfdb.compare.sides import Side
from perfdb.compare.verdict import Verdict
from perfdb.metrics import METRICS
from perfdb.recipe import RecipeFile, RunSpec
from perfdb.recipe.model import NOT_STARTED
from perfdb.record import Result
from perfdb.run_record import RunRecord

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
