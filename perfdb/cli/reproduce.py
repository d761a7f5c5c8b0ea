"""`perfdb reproduce`: everything that belongs to a number, and getting it again."""

import json
import shlex
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

import click
from sqlalchemy import Connection

from perfdb import ingest, recipe
from perfdb.cli import another, options
from perfdb.compare import Side, report, run_diff
from perfdb.compare.releases import scope_of
from perfdb.compare.reproduce import LOSS, Answer, Provenance, Reproduction, case_of, judged
from perfdb.compare.run_diff import RunFacts
from perfdb.db import sources
from perfdb.db.session import reading_current, store_url
from perfdb.errors import Diagnostic, InputError, RecipeError, RunError
from perfdb.groups import grouped
from perfdb.metrics import METRICS
from perfdb.queries import results
from perfdb.queries.scope import within
from perfdb.record import Result
from perfdb.rundir import RunDir
from perfdb.site import addresses
from perfdb.yamlfile import dumped

DEFAULT = Path("recipes")
MOST_LISTED = 20
"""How many results are listed where several are meant."""


@click.command(
    epilog=options.examples(
        "perfdb reproduce llama3-8b@dgx-h100@25.09",
        "perfdb reproduce 3dcda9 --run --repeat 3",
    )
)
@click.argument("result")
@click.option("--recipes", "recipes_", default=DEFAULT, show_default=True, metavar="PATH",
              type=click.Path(path_type=Path), help="The recipe file or folder.")  # fmt: skip
@click.option("--run", "run_it", is_flag=True, help="Run the case again, and compare.")
@click.option("--against", metavar="RUN", help="Compare with an existing run directory.",
              type=click.Path(path_type=Path))  # fmt: skip
@click.option("--repeat", metavar="N", default=1, show_default=True, type=click.IntRange(min=1),
              help="With --run, the number of runs.")  # fmt: skip
@click.option("--output", default="runs", show_default=True, type=click.Path(path_type=Path),
              help="With --run, the folder for new run directories.")  # fmt: skip
@click.option("--metric", type=click.Choice([*METRICS, LOSS]), metavar="METRIC",
              help="Compare only this figure: a metric of `perfdb compare`, or loss. [default: "
              "the speed, and the loss if configuration and seed are equal]")  # fmt: skip
@options.db_option
@options.json_option
def reproduce(
    result: str, db: str | None, recipes_: Path, *, metric: str | None, as_json: bool, **asked: Any
) -> int:
    """Show how to reproduce RESULT, and run it again with --run.

    RESULT is a result ID, a link to a row or run of the site, or MODEL@SYSTEM@RELEASE. Six or more
    characters of a run ID or case key also work. The output has the recipe, configuration,
    container, environment, command, and log. With --run or --against, the answer is one of: agrees
    (exit code 0), differs, or cannot tell (exit code 1).
    """
    with TemporaryDirectory() as temporary, reading_current(store_url(db)) as connection:
        folder = Path(temporary)
        side = _side(connection, result)
        original = _original(connection, side.shown, recipes_, folder)
        if original.made is None and not recipes_.exists():
            told = f"note: there is no folder {recipes_} here; name the recipes with --recipes"
            click.echo(told, err=True)
        document = _document(original)
        code = 0
        if asked["run_it"] or asked["against"]:
            made, why = _runs(original, **asked)
            again = Reproduction((), {})
            if made and original.facts:
                again = _judged((side, original.facts), made, folder, metric)
            document |= {
                "answer": again.answer,
                "differs_in": again.differs_in,
                "why": why or None,
                "runs": [str(it.path) for it in made],
                "checks": [asdict(it) for it in again.checks],
                "differences": again.differences,
            }
            code = 0 if again.answer is Answer.AGREES else 1
    if as_json:
        options.print_json(document)
    else:
        click.echo(dumped(json.loads(json.dumps(document, default=str))), nl=False)
    return code


def belonging(word: str, db: str | None, recipes: Path) -> dict[str, Any]:
    """What belongs to the number that a word means, as `perfdb reproduce --json` has it."""
    with TemporaryDirectory() as temporary, reading_current(store_url(db)) as connection:
        shown = _side(connection, word).shown
        return _document(_original(connection, shown, recipes, Path(temporary)))


def _side(connection: Connection, word: str) -> Side:
    """The results that a word means. Raises InputError where they are none or several."""
    found = _results(connection, word)
    sides = grouped(found, lambda it: (it.case_key, it.release_id, it.origin))
    if len(sides) == 1:
        return Side(tuple(found))
    if not sides:
        message = f"no result {word!r}"
        remedy = (
            "use a result ID, six characters or more of a run ID or case key, the link to a row "
            "of the site, or MODEL@SYSTEM@RELEASE"
        )
    else:
        message = f"{word!r} means {len(sides)} results"
        listed = [_line(Side(tuple(some)).shown) for some in sides.values()]
        left = len(listed) - MOST_LISTED
        more = [f"and {left} more"] if left > 0 else []
        remedy = "\n  ".join(["use the ID of one:", *listed[:MOST_LISTED], *more])
    raise InputError(Diagnostic("reproduce", message, remedy=remedy))


def _line(it: Result) -> str:
    return f"{it.result_id}: {it.release_name}, {report.workload(it)}, {report.configuration(it)}"


def _results(connection: Connection, word: str) -> list[Result]:
    """The results that a link, a model at a system and release, an id or a key may mean."""
    if "/" in word or "#" in word:
        address, _, anchor = word.partition("#")
        page = address.partition("?")[0].removesuffix(".html").rstrip("/").removesuffix("/index")
        return [
            it
            for it in results.read(connection, results.current())
            if (it.run_id and f"/{page}".endswith(f"/{addresses.of_run(it.run_id)}"))
            or anchor in (addresses.result_row(it), it.run_id and addresses.run_row(it))
        ]
    if word.count("@") >= 2:
        model, system, release = word.split("@", 2)
        scope = scope_of(connection, release, model=model, system=system)
        return results.read(connection, within(connection, results.current(), scope))
    return results.read(connection, results.referred_to(word))


def _original(connection: Connection, shown: Result, recipes: Path, folder: Path) -> Provenance:
    run_id = shown.run_id
    files = run_diff.files_of(connection, run_id) if run_id else {}
    record = run_diff.record_of(connection, run_id, files) if run_id else None
    is_there = recipes.exists() or recipes != DEFAULT
    made = case_of(shown, record, recipe.load([recipes])) if is_there else None
    is_kept = made is None
    if record and not made and (name := RunDir(Path()).recipe.name) in files:
        kept = folder / f"{record.recipe.name}.yaml"
        kept.write_bytes(sources.content(connection, files[name]))
        with suppress(RecipeError):  # of another version of perfdb
            made = case_of(shown, record, recipe.load([kept]))
    facts = None
    if record and run_id:
        facts = run_diff.of_stored(connection, run_id)
    elif made:
        facts = run_diff.of_spec(made.spec, shown)
    return Provenance(shown, facts, record, made, files, is_kept)


def _document(original: Provenance) -> dict[str, Any]:
    """What belongs to the number; for a published row also what this machine would start."""
    it = original.shown
    document: dict[str, Any] = {
        "result": it.result_id,
        "work": _line(it).partition(": ")[2],
        "case_key": it.case_key,
        "run_id": it.run_id,
        **original.document,
        "not_here": None,
    }
    if original.made and not original.record:
        asked = [*_command(original), "--output", "runs/reproduce", "--dry-run"]
        (case,) = another.answer(asked, is_quiet=True)["cases"]
        document["command"] = shlex.join(case["command"]) or None
        document["variables"] = case.get("variables")
        document["not_here"] = case["reason"] or None
    return document


def _command(original: Provenance) -> list[str]:
    """What comes after `perfdb` to run it again. Raises InputError where no recipe has it."""
    if original.command is None:
        what = f"no recipe has the case of {report.workload(original.shown)}"
        raise InputError(Diagnostic("reproduce", what, remedy="name others with --recipes"))
    return original.command


def _runs(
    original: Provenance, *, run_it: bool, against: Path | None, repeat: int, output: Path
) -> tuple[list[RunDir], str]:
    """The directories of the runs to judge, and why there are none."""
    if against:
        return [RunDir(against)], ""
    output.mkdir(parents=True, exist_ok=True)
    into = mkdtemp(prefix="reproduce-", dir=output)
    again = [*_command(original), "--output", into, "--repeat", str(repeat)]
    cases = another.answer(again)["cases"]
    reasons = dict.fromkeys(case["reason"] for case in cases if case["reason"])
    return [RunDir(Path(case["run_dir"])) for case in cases if case["run_dir"]], ", ".join(reasons)


def _judged(
    original: tuple[Side, RunFacts], made: Sequence[RunDir], folder: Path, metric: str | None
) -> Reproduction:
    """The verdict on runs, by their figures in a store of their own."""
    facts = run_diff.of_directory(made[0])
    return judged(original, (measured(made, folder / "again.sqlite"), facts), metric)


def measured(made: Sequence[RunDir], store: Path) -> Side:
    """The figures of runs of one case, read in a store of their own. Raises RunError."""
    url = store_url(str(store))
    ingest.ingest([it.path for it in made], url, ingest.Options())
    with reading_current(url) as connection:
        found = results.read(connection, results.current())
    if not found:
        raise RunError(f"{made[0].path} has no result: `perfdb ingest {made[0].path}` says why")
    return Side(tuple(found))
