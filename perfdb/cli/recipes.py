"""`perfdb recipes`: list, show and validate recipes; print their JSON Schema."""

from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import click

from perfdb.cli import options
from perfdb.cli.options import (
    json_option,
    max_cases_option,
    only_cases_option,
    print_json,
    print_table,
    set_option,
)
from perfdb.errors import Diagnostic, InputError, nearest
from perfdb.units import counted

if TYPE_CHECKING:
    from perfdb.recipe import RecipeFile, RunSpec

PATHS = click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
DEFAULT = Path("recipes")


@click.group(
    epilog=options.examples("perfdb recipes list", "perfdb recipes validate recipes/ --deep")
)
def recipes() -> None:
    """List, show, and check benchmark recipes.

    A recipe is a YAML file with a model, a system, batch sizes, and a parallel layout. In a sweep,
    fields have several values, and each combination is a case.
    """


def _load(
    paths: tuple[Path, ...], max_cases: int, only: Iterable[str] = (), given: Iterable[str] = ()
) -> "list[RecipeFile]":
    from perfdb import recipe

    return recipe.load(paths or (DEFAULT,), max_cases, only, given)


@recipes.command(
    "list",
    epilog=options.examples(
        "perfdb recipes list", "perfdb recipes list recipes/ --only precision=fp8"
    ),
)
@PATHS
@only_cases_option
@set_option
@max_cases_option
@options.wide_option
@json_option
def list_(
    paths: tuple[Path, ...],
    only: tuple[str, ...],
    given: tuple[str, ...],
    max_cases: int,
    as_json: bool,
) -> None:
    """List the recipes with the number of cases in each.

    PATHS are recipe files or folders. The default is recipes/.
    """
    files = _load(paths, max_cases, only, given)
    if as_json:
        listed = [
            {
                "name": file.recipe.name,
                "path": str(file.path),
                "description": file.recipe.description,
                "cases": [point.name for point in file.points],
            }
            for file in files
        ]
        print_json(listed)
        return
    fields = {"Framework": "framework", "Model": "model", "Systems": "system", "GPUs": "num_gpus"}
    rows = []
    for file in files:
        cases = [point.case for point in file.points]
        varied = (dict.fromkeys(str(getattr(it, name)) for it in cases) for name in fields.values())
        rows.append(
            (file.recipe.name, *map(", ".join, varied), len(cases), file.recipe.description)
        )
    columns = ("Recipe", *fields, "Cases", "Description")
    print_table(counted(len(files), "recipe"), columns, rows, ("Description", "Framework"))


@recipes.command(epilog=options.examples("perfdb recipes show smoke-dp2"))
@click.argument("name")
@PATHS
@max_cases_option
@json_option
def show(name: str, paths: tuple[Path, ...], max_cases: int, as_json: bool) -> None:
    """Show every case of the recipe NAME with all of its fields.

    PATHS are recipe files or folders. The default is recipes/.
    """
    files = {file.recipe.name: file for file in _load(paths, max_cases)}
    if name not in files:
        remedy = nearest(name, files)
        raise InputError(Diagnostic("recipes show", f"no recipe {name!r}", remedy=remedy))
    resolved = [_resolved(point) for point in files[name].points]
    if as_json:
        print_json(resolved)
    else:
        from perfdb.yamlfile import dumped

        click.echo("---\n".join(map(dumped, resolved)), nl=False)


def _resolved(point: "RunSpec") -> dict[str, object]:
    case = point.case.model_dump(mode="json", exclude_none=True)
    return {
        "name": point.name,
        "case_key": point.case.key,
        **{field: value for field, value in case.items() if value not in ([], {})},
        "warmup_steps": point.warmup_steps,
        "measured_steps": point.measured_steps,
        "seed": point.seed,
        "timeout_s": point.timeout_s,
        "container": point.container,
    }


deep_option = click.option(
    "--deep", is_flag=True,
    help="Build the model of each pipeline stage without GPUs, and sum the memory per GPU.",
)  # fmt: skip


def _deep_check() -> ModuleType:
    """The runner's, by name as in the table of commands: this package imports no runner."""
    return import_module("runner.deep_check")


@recipes.command(
    epilog=options.examples("perfdb recipes validate", "perfdb recipes validate a.yaml --deep")
)
@PATHS
@deep_option
@only_cases_option
@set_option
@max_cases_option
@options.wide_option
@json_option
def validate(
    paths: tuple[Path, ...],
    max_cases: int,
    *,
    deep: bool,
    as_json: bool,
    **chosen: tuple[str, ...],
) -> int:
    """Check recipes and report every problem.

    PATHS are recipe files or folders. The default is recipes/. With --deep, perfdb builds the
    Megatron-Core model of one rank per pipeline stage. It then shows the parameters per rank, the
    memory per GPU, and the balance of the pipeline. It exits with 1 if a case cannot be built or
    does not fit.
    """
    files = _load(paths, max_cases, chosen["only"], chosen["given"])
    points = [point for file in files for point in file.points]
    checks = _deep_check().check(points) if deep else []
    if as_json:
        problems = {"recipes": len(files), "cases": len(points), "problems": []}
        keyed = ((it.as_json(), point.case.key) for it, point in zip(checks, points, strict=False))
        found = [it | {"case_key": key} for it, key in keyed]
        print_json(problems | ({"deep": found} if deep else {}))
    elif deep:
        print_table("Deep check", _deep_check().COLUMNS, [it.cells() for it in checks])
    else:
        click.echo(f"OK: {counted(len(files), 'recipe')} with {counted(len(points), 'case')}")
    return int(any(it.ok is False for it in checks))


@recipes.command(
    "import",
    epilog=options.examples("perfdb recipes import automodel a.yaml --set systems=[dgx-h100]"),
)
@click.argument("framework", type=click.Choice(["automodel"]))
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--set", "pairs", metavar="FIELD=VALUE", multiple=True,
              help="A field that FILE does not state. May be repeated.")  # fmt: skip
def import_(framework: str, path: Path, pairs: tuple[str, ...]) -> None:
    """Print a recipe that contains a framework's own file.

    FILE is a YAML file of an AutoModel benchmark recipe. State the systems and the number of GPUs
    with --set, and the model if it is not in the catalog.
    """
    from perfdb import recipe, yamlfile
    from perfdb.recipe.choose import assigned
    from perfdb.recipe.load import read_text
    from perfdb.units import slug

    text = read_text(path)
    if isinstance(text, Diagnostic):
        raise InputError(text)
    about = f"{framework} with {path.name} as it is."
    fields = {"name": slug(path.stem), "description": about, **assigned(pairs)}
    given = yamlfile.Document("--set", fields, {})
    click.echo(recipe.wrapped(str(path), text, given), nl=False)


@recipes.command(
    epilog=options.examples(
        "perfdb recipes coverage --release 'nemo 25.04'",
        "perfdb recipes coverage --fail-on missing",
    )
)
@PATHS
@options.db_option
@options.only_options("release", "framework", "system", "model")
@deep_option
@max_cases_option
@options.wide_option
@json_option
@options.gate_option(("missing",), "Exit with 1 if a published row has no recipe. [default: never]")
def coverage(
    gate: frozenset[str], paths: tuple[Path, ...], max_cases: int, *, deep: bool, as_json: bool,
    **only: str | None,
) -> int:  # fmt: skip
    """Show which published rows have a recipe or are reproduced.

    PATHS are recipe files or folders. The default is recipes/. A row is reproduced if the measured
    case is at least as fast. With --deep, the summary also counts the cases that can be built.
    """
    from perfdb.compare import coverage as covered
    from perfdb.compare.releases import scope_of
    from perfdb.db.session import reading_current, store_url
    from perfdb.queries.results import current, read
    from perfdb.queries.scope import within

    specs = [spec for file in _load(paths, max_cases) for spec in file.points]
    with reading_current(store_url(only.pop("db"))) as connection:
        wanted = within(connection, current(), scope_of(connection, **only))
        rows = covered.coverage(read(connection, wanted), specs)
    covering = {it.spec.name: it.spec for it in rows if it.spec}
    checks = _deep_check().check([*covering.values()]) if deep else []
    counts = covered.summary(rows, {it.name: it.ok for it in checks} if deep else None)
    if as_json:
        print_json(counts)
    else:
        print_table("Coverage", covered.COLUMNS, map(covered.cells, rows), ("Source",))
        built = f"{counts['buildable']} can be built, " if deep else ""
        click.echo(
            f"{counts['with_recipe']} of {counted(len(rows), 'published row')} have a recipe, "
            f"{built}{counts['measured']} were measured, {counts['reproduced']} reproduced"
        )
    return 1 if gate and counts["missing"] else 0


@recipes.command(epilog=options.examples("perfdb recipes schema"))
def schema() -> None:
    """Print the JSON Schema of recipes, for editors."""
    from perfdb import recipe

    print_json(recipe.schema())
