"""Recipe files: finds and reads them, and reports all problems of all of them at once."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from pathlib import Path

from perfdb import yamlfile
from perfdb.errors import Diagnostic, RecipeError, closest, suggestion
from perfdb.hardware import readable
from perfdb.recipe.check import Violation, faults, missing, unknown_names
from perfdb.recipe.expand import Draft, RunSpec, drafts, point
from perfdb.recipe.model import CaseSettings, Recipe
from perfdb.run_record import RecipeRef
from perfdb.yamlfile import Document, Place

SUFFIXES = (".yaml", ".yml")

OF_NO_LAYOUT = frozenset(
    ("name", "description", "warmup_steps", "measured_steps", "seed", "timeout_s", "container")
)
"""The fields that do not matter for whether a case fits."""
EITHER = (
    frozenset(("global_batch_size", "global_batch_size_per_gpu")),
    frozenset(("micro_batch_size", "local_batch_size")),
)
"""Groups of fields of which a case needs one."""


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


def load(paths: Iterable[Path]) -> list[RecipeFile]:
    """Every recipe in files and folders. Raises RecipeError with all problems of all files."""
    found: list[RecipeFile] = []
    problems: list[Diagnostic] = []
    for path in _files(paths, problems):
        read = _read(path)
        if isinstance(read, RecipeFile):
            found.append(read)
        else:
            problems += read
    problems += [*_same_name(found), *_same_case(found)]
    if problems:
        raise RecipeError(problems)
    return found


def _files(paths: Iterable[Path], problems: list[Diagnostic]) -> Iterator[Path]:
    """The recipe files named, and those in the folders named, each once, in order."""
    seen: set[Path] = set()
    for path in paths:
        found = _inside(path)
        if not found:
            missing = not path.exists()
            message = "no such file or folder" if missing else "holds no recipe (*.yaml)"
            problems.append(
                Diagnostic(str(path), message, remedy="name a recipe or a folder of them")
            )
        for file in found:
            if readable(str(file)) != str(file):
                where = readable(str(file))
                problems.append(Diagnostic(where, "the name is not UTF-8", remedy="rename it"))
            elif file.resolve() not in seen:
                seen.add(file.resolve())
                yield file


def _inside(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(file for suffix in SUFFIXES for file in path.rglob(f"*{suffix}"))
    return [path] if path.is_file() else []


def _read(path: Path) -> RecipeFile | list[Diagnostic]:
    text = _text(path)
    if isinstance(text, Diagnostic):
        return [text]
    document = yamlfile.parse(str(path), text)
    if isinstance(document, yamlfile.Unreadable):
        return list(document.problems)
    recipe = yamlfile.validate(document, Recipe)
    if isinstance(recipe, list):
        return _in_order([*recipe, *_of_the_rest(document, recipe)])
    if misnamed(document):
        return _in_order(_of_the_rest(document, ()))
    made, problems = drafts(recipe, document)
    for draft in made:
        problems += _problems(document, draft, faults(draft.settings))
    if problems:
        return _in_order(problems)
    points = [point(draft, system) for draft in made for system in draft.settings.systems]
    return RecipeFile(path, text, recipe, tuple(points))


def _text(path: Path) -> str | Diagnostic:
    try:
        return path.read_bytes().decode()
    except OSError as error:
        return Diagnostic(str(path), f"cannot be read: {error}")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        message = f"cannot be read as UTF-8: {error.reason}"
        return Diagnostic(str(path), message, line=line, remedy="save it as UTF-8")


def _in_order(problems: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Each problem once, by its line."""
    return sorted(dict.fromkeys(problems), key=lambda problem: problem.line or 0)


def _of_the_rest(document: Document, problems: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Problems in the names and values of the fields other than those that have problems already.

    The layout is not checked if a part of it is wrong: what is left is not what was written.
    """
    if not isinstance(document.content, dict):
        return []
    wrong = {(problem.field or "").split(".")[0] for problem in problems}
    rest = without(document, wrong)
    recipe = yamlfile.validate(rest, Recipe)
    if isinstance(recipe, list):
        return misnamed(document)
    inside = {(problem.field or "").split(".")[-1] for problem in misnamed(document)}
    unsaid = _meant(wrong | inside)
    made, found = drafts(recipe, rest)
    for draft in made:
        found += _problems(document, draft, _faults_but(draft.settings, unsaid))
    return [*misnamed(document), *found]


def _meant(names: Iterable[str]) -> set[str]:
    """The fields that these are, or are misspelt for; one may stand for another of its group."""
    fields = {closest(name, Recipe.model_fields) or name for name in names}
    return fields.union(*(group for group in EITHER if group & fields))


def _faults_but(settings: CaseSettings, unsaid: Set[str]) -> Iterable[Violation]:
    """The faults of a case of which nobody can tell what some fields are to say."""
    if unsaid <= OF_NO_LAYOUT:
        return faults(settings)
    found = (*missing(settings), *unknown_names(settings))
    return (fault for fault in found if fault.field not in unsaid)


def _problems(
    document: Document, draft: Draft, broken: Iterable[Violation]
) -> Iterator[Diagnostic]:
    for fault in broken:
        place = draft.place(fault.field)
        yield document.problem(place, fault.message, fault.remedy).of(fault.field)


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
            asked = made.case.key, made.container, made.seed, made.warmup_steps, made.measured_steps
            if asked in first:
                message = f"case {made.name} is the same as {first[asked]}"
                remedy = "remove one; `perfdb run --repeat` measures a case several times"
                yield Diagnostic(str(file.path), message, remedy=remedy)
            first.setdefault(asked, made.name)


def misnamed(document: Document) -> list[Diagnostic]:
    """Problems: fields of `cases` and `matrix` that no case has, and empty lists in `matrix`."""
    unknown = [
        document.problem(
            place, "no such field of a case", suggestion(str(place[-1]), CaseSettings.model_fields)
        )
        for place, _ in _overriding(document)
        if place[-1] not in CaseSettings.model_fields
    ]
    empty = [
        document.problem(place, "an empty list gives no case", "add a value")
        for place, value in _overriding(document)
        if place[0] == "matrix" and value == []
    ]
    return unknown + empty


def _overriding(document: Document) -> Iterator[tuple[Place, object]]:
    """Each field in `matrix` and `cases`, with its place and value; skips what is no mapping."""
    content = document.content if isinstance(document.content, Mapping) else {}
    matrix, cases = content.get("matrix"), content.get("cases")
    for name, value in matrix.items() if isinstance(matrix, Mapping) else ():
        yield ("matrix", str(name)), value
    for index, fields in enumerate(cases) if isinstance(cases, list) else ():
        for name, value in fields.items() if isinstance(fields, Mapping) else ():
            yield ("cases", index, str(name)), value


def without(document: Document, fields: Set[str]) -> Document:
    """The document without some top-level fields and without misnamed fields in the others."""
    content = document.content if isinstance(document.content, Mapping) else {}
    wrong = {(problem.field or "") for problem in misnamed(document)}
    kept: dict[str, object] = {"name": "unnamed"}
    kept |= {name: value for name, value in content.items() if name not in fields}
    matrix, cases = content.get("matrix"), content.get("cases")
    if isinstance(matrix, Mapping):
        kept["matrix"] = {k: v for k, v in matrix.items() if f"matrix.{k}" not in wrong}
    if isinstance(cases, list):
        kept["cases"] = [_kept(case, f"cases.{i}", wrong) for i, case in enumerate(cases)]
    return Document(document.where, kept, document.lines)


def _kept(fields: object, place: str, wrong: Set[str]) -> object:
    if not isinstance(fields, Mapping):
        return fields
    return {name: value for name, value in fields.items() if f"{place}.{name}" not in wrong}
