"""What belongs to a number, so that it can be had again, and whether a run has it again. Pure."""

import glob
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from perfdb.compare.coverage import Corrections, closest_case
from perfdb.compare.match import metric_for
from perfdb.compare.run_diff import Differences, RunFacts, differences
from perfdb.compare.sides import Side
from perfdb.compare.verdict import Verdict, judge
from perfdb.metrics import METRICS
from perfdb.recipe import RecipeFile, RunSpec
from perfdb.record import Result
from perfdb.run_record import RunRecord

LOSS: Final = "loss"
"""What can be judged besides a metric: the loss of the last step."""
SAME_LOSS_FP32: Final = 1e-5
"""By how much losses of equal runs may differ: another order of sums gives 1e-6 in float32."""
SAME_LOSS: Final = 2**-8
"""The same in other precisions: a rounding step of bfloat16, the coarsest of the activations."""


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
        """It differs where the configuration or a figure does, else by the least sure figure."""
        if "configuration" in self.differences:
            return Answer.DIFFERS
        answers = [it.answer for it in self.checks]
        return max(answers, key=list(Answer).index, default=Answer.UNKNOWN)


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
    files of the run, by name.
    """

    shown: Result
    facts: RunFacts | None = None
    record: RunRecord | None = None
    made: RecipeCase | None = None
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def command(self) -> list[str] | None:
        """What comes after `perfdb` to run it again. None where no recipe has it."""
        if self.made is None:
            return None
        return ["run", str(self.made.file.path), "--only", glob.escape(self.made.spec.name)]

    @property
    def document(self) -> dict[str, object]:
        """What belongs to the number, as text, numbers, lists and mappings. None: not known."""
        it, facts, record, made = self.shown, self.facts, self.record, self.made
        return {
            "figures": {
                name: figure for name in METRICS if (figure := it.figure(name)) is not None
            },
            "recipe": made and str(made.file.path),
            "case": made and made.spec.name,
            "configuration": facts and facts.configuration,
            "corrections": made and {name: list(pair) for name, pair in made.corrections.items()},
            # a page prints the name of a release, of which the recipe has the image
            "container": (made and not record and made.spec.container) or it.container,
            "container_digest": record and record.release.container_digest,
            "versions": facts and facts.versions,
            "environment": facts and facts.environment,
            "source": {"path": it.source, "line": it.source_line, "sha256": it.source_sha256,
                       "url": it.source_url},
            "files": self.files,
            "run_again": self.command and shlex.join(["perfdb", *self.command]),
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
            if key == asked and file.reference.sha256 == record.recipe.sha256:
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
    seed and steps are equal and both are known. Software and machine may differ, and are listed.
    """
    (a, had), (b, has) = original, again
    apart = {
        group: known
        for group, fields in differences(had, has).items()
        if group != "steps"
        and (known := {k: it for k, it in fields.items() if had.environment or it[0] is not None})
    }
    checks = []
    if asked != LOSS:
        metric = metric_for([a], [b], asked)
        found = judge(a, b, metric)
        answer = _ANSWERS.get(found.verdict, Answer.UNKNOWN)
        because = found.reason or _across(a, b)
        reason = f"{found.verdict}: {because}" if because else found.verdict.value
        checks.append(Check(metric, a.median(metric), b.median(metric), answer, reason))
    if asked in (None, LOSS) and (check := _loss(had, has, is_same="configuration" not in apart)):
        checks.append(check)
    return Reproduction(tuple(checks), apart)


def _across(a: Side, b: Side) -> str:
    """Why figures of which one is published cannot be judged; empty where both are measured."""
    return "" if a.origin == b.origin else f"{a.origin} against {b.origin}, without its spread"


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
