"""`perfdb bisect`: the version at which a case became slower, faster, or failed."""

import glob
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import click
from pydantic import Field

from perfdb import recipe, units
from perfdb.cli import another, gates, options
from perfdb.cli.reproduce import DEFAULT, measured
from perfdb.compare import Judgement, Side, Verdict, metric_for, report
from perfdb.compare.bisect import SOUGHT, is_changed, search
from perfdb.compare.verdict import judge
from perfdb.errors import Diagnostic, InputError, RunError, nearest
from perfdb.jsonfile import content_hash
from perfdb.record import Frozen, must
from perfdb.rundir import RunDir
from perfdb.yamlfile import Document, parse, text_of, validate


class Version(Frozen):
    """One of the versions to walk: what makes it, beside what `perfdb run` has anyway."""

    name: Annotated[
        str,
        must(re.compile(r"\w[\w.+-]*").fullmatch, "may have letters, digits and . + - _"),
    ]
    container: str | None = None
    python: str | None = None
    """The interpreter of an environment that has this version and perfdb."""
    environment: Mapping[str, str] = Field(default_factory=dict)

    @property
    def folder(self) -> str:
        """The folder of its runs, which another version of the same name does not share."""
        return f"{self.name}-{content_hash(self.model_dump())[:6]}"


@click.command(
    epilog=options.examples(
        "perfdb bisect 25.07 25.09 --case smoke-dp2 --versions versions.yaml",
        "perfdb bisect a b --case smoke-dp2 --versions versions.yaml --min-change 2%",
    )
)
@click.argument("a")
@click.argument("b")
@click.option("--case", required=True, metavar="CASE", help="The case to run.")
@click.option("--versions", "file", required=True, metavar="FILE", help="The versions, in order.",
              type=click.Path(exists=True, dir_okay=False, path_type=Path))  # fmt: skip
@click.option("--recipes", "recipes_", default=DEFAULT, show_default=True, metavar="PATH",
              type=click.Path(path_type=Path), help="The recipe file or folder.")  # fmt: skip
@click.option("--output", default="bisect", show_default=True, type=click.Path(path_type=Path),
              help="The folder for the run directories.")  # fmt: skip
@click.option("--launcher", type=click.Choice(["local", "slurm"]), default="local",
              show_default=True, help="Where to run.")  # fmt: skip
@click.option("--cluster", metavar="FILE", help="As for `perfdb run`.")
@click.option("--slurm", metavar="KEY=VALUE", multiple=True, help="As for `perfdb run`.")
@click.option("--repeat", metavar="N", default=3, show_default=True, type=click.IntRange(min=1),
              help="The number of runs per version at first.")  # fmt: skip
@click.option("--max-repeat", metavar="N", default=9, show_default=True, help="The most runs per"
              " version, if the results are noisy.", type=click.IntRange(min=1))  # fmt: skip
@click.option("--min-change", "least", metavar="PERCENT", default="0%", callback=gates.fraction,
              help="The smallest change to find, such as 2%.")  # fmt: skip
@options.metric_option("judge")
@options.json_option
def bisect(*, as_json: bool, **asked: object) -> int:
    """Find the version between A and B that made a case slower or faster.

    A and B are names in the file of versions. Each version there has a `name`, and a `container`,
    a `python`, or an `environment`. The command runs the case on each version that it tries, and
    compares it with A as `perfdb compare` does. If the result is inconclusive, it runs both again,
    up to --max-repeat times. Run the same command again to continue. It exits with 1 if A and B
    are the same, or if more than one version remains.
    """
    with TemporaryDirectory() as folder:
        walk = _Walk(folder=Path(folder), **_checked(asked))  # type: ignore[arg-type]  # click's
        document = walk.document()
    if as_json:
        options.print_json(document)
    else:
        columns = ("Version", "Runs", "B/A", "99 % interval", "Verdict")
        options.print_table(f"{walk.case}, A: {walk.versions[0].name}", columns, walk.rows)
        click.echo(document["answer"])
    return 0 if document["first"] else 1


def _checked(asked: dict[str, object]) -> dict[str, object]:
    """The options of a walk. Raises InputError."""
    a, b, file, recipes, case = (asked.pop(name) for name in ("a", "b", "file", "recipes_", "case"))
    assert isinstance(file, Path)
    assert isinstance(recipes, Path)
    versions = between(load(file), str(a), str(b), str(file))
    boxed = next((it.name for it in versions if it.container), None)
    if boxed and asked["launcher"] == "local":
        message = f"{boxed} is a container image"
        raise InputError(Diagnostic(str(file), message, remedy="give --launcher slurm"))
    names = [spec.name for loaded in recipe.load([recipes]) for spec in loaded.points]
    if case not in names:
        remedy = nearest(str(case), names)
        raise InputError(Diagnostic("--case", f"no case {case!r} in {recipes}", remedy=remedy))
    return {**asked, "versions": versions, "recipes": recipes, "case": case}


def load(file: Path) -> list[Version]:
    """The versions of a file, in its order. Raises InputError with every problem."""
    document = parse(str(file), text_of(file))
    if not isinstance(document, Document):
        raise InputError(document.problems)
    if not isinstance(document.content, list):
        raise InputError(Diagnostic(str(file), "is no list", remedy="write `- name: …` for each"))
    read = [validate(it, Version) for it in document.items().values()]
    if problems := [it for one in read if not isinstance(one, Version) for it in one]:
        raise InputError(problems)
    versions = [one for one in read if isinstance(one, Version)]
    names = [one.name for one in versions]
    if twice := {name for name in names if names.count(name) > 1}:
        raise InputError(Diagnostic(str(file), f"{min(twice)} is there twice"))
    return versions


def between(versions: Sequence[Version], a: str, b: str, where: str) -> list[Version]:
    """The versions from A to B, backwards where B comes first. Raises InputError."""
    names = [it.name for it in versions]
    for name in (a, b):
        if name not in names:
            message = f"no version {name!r}"
            raise InputError(Diagnostic(where, message, remedy=nearest(name, names)))
    if a == b:
        raise InputError(Diagnostic(where, f"A and B are both {a}", remedy="name two"))
    first, last = names.index(a), names.index(b)
    some = versions[min(first, last) : max(first, last) + 1]
    return list(some if first < last else reversed(some))


@dataclass
class _Walk:
    """The versions from A to B, and what is known of them."""

    versions: list[Version]
    recipes: Path
    case: str
    output: Path
    launcher: str
    cluster: str | None
    slurm: tuple[str, ...]
    repeat: int
    max_repeat: int
    least: float
    metric: str | None
    folder: Path
    found: dict[int, tuple[Judgement, Side, str]] = field(default_factory=dict)
    sides: dict[tuple[int, int], Side] = field(default_factory=dict)
    """By the number of a version and how many runs of it were asked for."""

    def document(self) -> dict[str, object]:
        """The verdict on each version that was run, and the first that is as the last."""
        last = len(self.versions) - 1
        verdict = self.judged(last, None).verdict
        sought = verdict if verdict in SOUGHT and self._changed(last, verdict) else None
        low, high = search(last + 1, lambda it: self._changed(it, sought)) if sought else (0, last)
        names = [it.name for it in self.versions]
        if sought is None:
            answer = f"{names[last]} is {verdict}: nothing to look for"
        elif high - low == 1:
            answer = f"first {sought}: {names[high]} (after {names[low]})"
        else:
            answer = f"first {sought}: one of {', '.join(names[low + 1 : high + 1])}"
        return {
            "case": self.case,
            "sought": sought,
            "first": names[high] if sought and high - low == 1 else None,
            "left": names[low + 1 : high + 1] if sought else [],
            "versions": [self._object(number) for number in sorted(self.found)],
            "answer": answer,
        }

    def _changed(self, number: int, sought: Verdict) -> bool | None:
        return is_changed(self.judged(number, sought), sought, self.least)

    def judged(self, number: int, sought: Verdict | None) -> Judgement:
        """A version against the first one, by as many runs as it takes."""
        repeat = self.repeat
        while True:
            a, b = self._side(0, repeat), self._side(number, repeat)
            metric = metric_for([a], [b], self.metric)
            found: Judgement = judge(a, b, metric)
            self.found[number] = found, b, metric
            is_open = found.verdict is Verdict.UNKNOWN
            is_told = not is_open or (sought and is_changed(found, sought, self.least) is not None)
            if is_told or repeat >= self.max_repeat:
                return found
            repeat = min(2 * repeat, self.max_repeat)

    def _side(self, number: int, repeat: int) -> Side:
        """The runs of a version, of which each number is asked for once."""
        if (number, repeat) not in self.sides:
            self.sides[number, repeat] = self._ran(number, repeat)
        return self.sides[number, repeat]

    def _ran(self, number: int, repeat: int) -> Side:
        """The runs of a version: those that are there, and as many more as are wanted."""
        version = self.versions[number]
        cases = another.answer(
            self._command(version, repeat),
            python=version.python or sys.executable,
            variables={**os.environ, **version.environment},
        )["cases"]
        made = [RunDir(Path(case["run_dir"])) for case in cases if case["run_dir"]]
        if not made:
            reasons = ", ".join(dict.fromkeys(case["reason"] for case in cases))
            raise RunError(f"{version.name}: {reasons or 'no run'}")
        side = measured(made, self.folder / f"{number}-{repeat}.sqlite")
        if number == 0 and not side.finished:
            raise RunError(f"{version.name}: no run has finished; see {made[-1].path}")
        return side

    def _command(self, version: Version, repeat: int) -> list[str]:
        command = ["run", str(self.recipes), "--only", glob.escape(self.case)]
        command += ["--output", str(self.output / version.folder), "--repeat", str(repeat)]
        command += ["--launcher", self.launcher]
        if version.container:
            command += ["--set", f"container={version.container}"]
        if self.launcher == "slurm":
            command += ["--cluster", self.cluster] if self.cluster else []
            own = [f"environment.{name}={value}" for name, value in version.environment.items()]
            for word in (*self.slurm, *own):
                command += ["--slurm", word]
        return command

    @property
    def rows(self) -> list[tuple[object, ...]]:
        """What a table prints of each version that was run."""
        return [
            (
                self.versions[number].name,
                len(side.results),
                units.figure(judged.ratio, 3),
                report.interval(judged),
                report.verdict(judged, metric),
            )
            for number, (judged, side, metric) in sorted(self.found.items())
        ]

    def _object(self, number: int) -> dict[str, object]:
        judged, side, metric = self.found[number]
        return {
            "name": self.versions[number].name,
            "verdict": judged.verdict,
            "reason": judged.reason,
            "metric": metric,
            "ratio": judged.ratio,
            "low": judged.low,
            "high": judged.high,
            "runs": len(side.results),
        }
