"""Recipe files: finds and reads them, and reports all problems of all of them at once."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from perfdb import catalog, yamlfile
from perfdb.errors import Diagnostic, RecipeError, suggestion
from perfdb.hardware import readable
from perfdb.recipe import automodel, choose
from perfdb.recipe.check import faults
from perfdb.recipe.expand import Draft, RunSpec, drafts, num_cases, point, stated_twice
from perfdb.recipe.model import FRAMEWORKS, CaseSettings, Recipe
from perfdb.run_record import RecipeRef
from perfdb.yamlfile import Document, Place

SUFFIXES = (".yaml", ".yml")
MOST_CASES = 10_000
"""How many cases a recipe may make unless more are asked for."""


@dataclass(frozen=True)
class RecipeFile:
    """A valid recipe file: its text byte for byte, and its cases."""

    path: Path
    text: str
    recipe: Recipe
    points: tuple[RunSpec, ...]

    @property
    def reference(self) -> RecipeRef:
        """The recipe's name, path and hash, as a run's record keeps them."""
        digest = hashlib.sha256(self.text.encode()).hexdigest()
        return RecipeRef(name=self.recipe.name, path=str(self.path), sha256=digest)


def load(
    paths: Iterable[Path],
    max_cases: int = MOST_CASES,
    only: Iterable[str] = (),
    given: Iterable[str] = (),
) -> list[RecipeFile]:
    """Every recipe in files and folders. Raises RecipeError with all problems of all files.

    A recipe that would make more than `max_cases` is a problem, and is not expanded. `only` and
    `given` are as --set and --only have them: values that all cases get, and those then to keep.
    """
    values, only = choose.changes(given), tuple(only)
    if others := values and choose.without(only, values):  # recipes that they rule out stay as is
        paths = [file.path for file in load(paths, max_cases, others)]
    found: list[RecipeFile] = []
    problems: list[Diagnostic] = []
    for path in _files(paths, problems):
        read = _read(path, max_cases, values)
        if isinstance(read, RecipeFile):
            found.append(read)
        else:
            problems += (choose.of_option(one, values) for one in read)
    problems += [*_same_name(found), *_same_case(found)]
    if problems:
        raise RecipeError(problems)
    return choose.chosen(found, only)


def _files(paths: Iterable[Path], problems: list[Diagnostic]) -> Iterator[Path]:
    """The recipe files named, and those in the folders named, each once, in order."""
    seen: set[Path] = set()
    for path in paths:
        found = [path] if path.is_file() else []
        if path.is_dir():
            found = sorted(file for suffix in SUFFIXES for file in path.rglob(f"*{suffix}"))
        if not found:
            fault = "holds no recipe (*.yaml)" if path.exists() else "no such file or folder"
            remedy = "name a recipe or a folder of them"
            problems.append(Diagnostic(str(path), fault, remedy=remedy))
        for file in found:
            where = readable(str(file))
            if where != str(file):
                problems.append(Diagnostic(where, "the name is not UTF-8", remedy="rename it"))
            elif file.resolve() not in seen:
                seen.add(file.resolve())
                yield file


def read_text(path: Path) -> str | Diagnostic:
    """The text of a file, or why there is none."""
    try:
        return path.read_bytes().decode()
    except OSError as error:
        return Diagnostic(str(path), f"cannot be read: {error.strerror or error}")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        message = f"cannot be read as UTF-8: {error.reason}"
        return Diagnostic(str(path), message, line=line, remedy="save it as UTF-8")


def _read(path: Path, max_cases: int, given: Mapping[str, object]) -> RecipeFile | list[Diagnostic]:
    """The recipe of a file with changed values, or its problems by their line.

    Layouts are checked once every field and value is right: what a wrong one was meant to be is
    unknown.
    """
    text = read_text(path)
    if isinstance(text, Diagnostic):
        return [text]
    document = yamlfile.parse(str(path), text)
    if isinstance(document, yamlfile.Unreadable):
        return list(document.problems)
    if given:
        document = choose.changed(document, given)
        text = yamlfile.dumped(document.content)
    recipe = yamlfile.validate(document, Recipe)
    problems = [*(recipe if isinstance(recipe, list) else ()), *_in_parts(document)]
    if isinstance(recipe, Recipe) and not problems:
        if (number := num_cases(recipe)) > max_cases:
            message = f"makes {number:,} cases, more than {max_cases:,}"
            remedy = "vary fewer fields, or allow more with --max-cases"
            return [document.problem(("matrix",), message, remedy)]
        made = drafts(recipe, document)
        problems += stated_twice(recipe, document)
        problems += [
            document.problem(draft.place(one.field), one.message, one.remedy).of(one.field)
            for draft in made
            for one in faults(draft.settings)
        ]
        problems += [one for draft in made for one in _carried(document, draft)]
        if not problems:
            points = [point(draft, system) for draft in made for system in draft.settings.systems]
            return RecipeFile(path, text, recipe, tuple(points))
    return sorted(dict.fromkeys(problems), key=lambda problem: problem.line or 0)


def _carried(document: Document, draft: Draft) -> Iterator[Diagnostic]:
    """The configuration that a recipe carries is AutoModel's, and says what the recipe says."""
    settings, name = draft.settings, "framework_config"
    if settings.framework_config is None:
        return
    place = draft.place(name)
    if settings.framework != automodel.FRAMEWORK:
        fault = f"{settings.framework} takes none"
        yield document.problem(place, fault, "remove it").of(name)
    elif settings.options:
        fault = f"would change nothing beside {name}"
        yield document.problem(draft.place("options"), fault, "remove them").of("options")
    else:
        start = document.line(place) or 0
        for one in automodel.differences(settings.framework_config, settings.model_dump()):
            line = start + (one.line or 0)
            yield replace(one, where=document.where, field=f"{name}.{one.field or ''}", line=line)


def _in_parts(document: Document) -> Iterator[Diagnostic]:
    """Unknown names in a recipe; unknown fields and wrong values in its `cases` and `matrix`."""
    content = document.content if isinstance(document.content, Mapping) else {}
    yield from unknown_names(document, content, ())
    cases, matrix = content.get("cases"), content.get("matrix")
    for index, fields in enumerate(cases if isinstance(cases, list) else ()):
        if isinstance(fields, Mapping):
            yield from _wrong_fields(document, fields, ("cases", index))
    for name, values in matrix.items() if isinstance(matrix, Mapping) else ():
        for index, value in enumerate(values if isinstance(values, list) else ()):
            yield from _wrong_fields(document, {name: value}, ("matrix",), (index,))


def _wrong_fields(
    document: Document, fields: Mapping[str, object], above: Place, below: Place = ()
) -> Iterator[Diagnostic]:
    """Problems of some fields of a case: `above` and `below` are around a field's name."""
    read = yamlfile.validate(Document(document.where, fields, {}), CaseSettings)
    for problem in read if isinstance(read, list) else ():
        name, *rest = (problem.field or "").split(".")
        inside = (*below, *rest) if name in CaseSettings.model_fields else ()
        yield document.problem((*above, name, *inside), problem.message, problem.remedy)
    yield from unknown_names(document, fields, above, below)


def unknown_names(
    document: Document, fields: Mapping[str, object], above: Place, below: Place = ()
) -> Iterator[Diagnostic]:
    """A problem for each name that the catalog lacks."""
    known = {
        "framework": FRAMEWORKS,
        "model": tuple(catalog.models()),
        "precision": tuple(catalog.precisions()),
        "systems": tuple(catalog.systems()),
    }
    for field, choices in known.items():
        value = fields.get(field)
        for name in value if isinstance(value, list) else [value]:
            if isinstance(name, str) and name and name not in choices:
                is_system = field == "systems"
                remedy = catalog.other_systems(name) if is_system else suggestion(name, choices)
                message = f"no {field.removesuffix('s')} {name!r}"
                yield document.problem((*above, field, *below), message, remedy)


def _same_name(files: list[RecipeFile]) -> Iterator[Diagnostic]:
    first: dict[str, Path] = {}
    for file in files:
        other = first.setdefault(file.recipe.name, file.path)
        if other != file.path:
            message = f"{file.recipe.name!r} is the name of {other} too"
            yield Diagnostic(str(file.path), message, field="name", remedy="names must differ")


def _same_case(files: list[RecipeFile]) -> Iterator[Diagnostic]:
    """A case may be listed in several containers, with several seeds, and in several lengths."""
    first: dict[object, str] = {}
    for file in files:
        for made in file.points:
            steps = made.warmup_steps, made.measured_steps
            asked = made.case.key, made.container, made.seed, made.kind, steps
            if asked in first:
                message = f"case {made.name} is the same as {first[asked]}"
                remedy = "remove one; `perfdb run --repeat` measures a case several times"
                yield Diagnostic(str(file.path), message, remedy=remedy)
            first.setdefault(asked, made.name)
