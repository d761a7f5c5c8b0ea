"""Recipe files: find them, read them, and say everything that is wrong with all of them at once."""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from perfdb import yamlfile
from perfdb.errors import Problem, RecipeError
from perfdb.recipe.check import faults, unknown_names
from perfdb.recipe.expand import Draft, Point, drafts, misnamed, point, without
from perfdb.recipe.model import Recipe
from perfdb.record import RecipeRef
from perfdb.yamlfile import Document

SUFFIXES = (".yaml", ".yml")


@dataclass(frozen=True)
class RecipeFile:
    """A recipe file that is right: its text byte for byte, and the cases it makes."""

    path: Path
    text: str
    recipe: Recipe
    points: tuple[Point, ...]

    @property
    def reference(self) -> RecipeRef:
        """What a run remembers of the recipe it came from."""
        digest = hashlib.sha256(self.text.encode()).hexdigest()
        return RecipeRef(name=self.recipe.name, path=str(self.path), sha256=digest)


def load(paths: Iterable[Path]) -> list[RecipeFile]:
    """Every recipe in files and folders. Raises RecipeError with all problems of all files."""
    found: list[RecipeFile] = []
    problems: list[Problem] = []
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


def _files(paths: Iterable[Path], problems: list[Problem]) -> Iterator[Path]:
    """The recipe files named, and those in the folders named, each once, in order."""
    seen: set[Path] = set()
    for path in paths:
        found = _inside(path)
        if not found:
            missing = not path.exists()
            message = "no such file or folder" if missing else "holds no recipe (*.yaml)"
            problems.append(Problem(str(path), message, remedy="name a recipe or a folder of them"))
        for file in found:
            if file.resolve() not in seen:
                seen.add(file.resolve())
                yield file


def _inside(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(file for suffix in SUFFIXES for file in path.rglob(f"*{suffix}"))
    return [path] if path.is_file() else []


def _read(path: Path) -> RecipeFile | list[Problem]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        return [Problem(str(path), f"cannot be read: {error}")]
    document = yamlfile.parse(str(path), text)
    if isinstance(document, yamlfile.Unreadable):
        return list(document.problems)
    recipe = yamlfile.validate(document, Recipe)
    if isinstance(recipe, list):
        return _in_order([*recipe, *_of_the_rest(document, recipe)])
    if misnamed(document):
        return _in_order(_of_the_rest(document, ()))
    made, problems = drafts(recipe, document)
    problems += [problem for draft in made for problem in _faults(document, draft)]
    if problems:
        return _in_order(problems)
    points = [point(draft, system) for draft in made for system in draft.settings.systems]
    return RecipeFile(path, text, recipe, tuple(points))


def _in_order(problems: Iterable[Problem]) -> list[Problem]:
    """Each problem once, by its line."""
    return sorted(dict.fromkeys(problems), key=lambda one: one.line or 0)


def _of_the_rest(document: Document, problems: Iterable[Problem]) -> list[Problem]:
    """What else is wrong, where some fields are: the names and values of all the others.

    Whether a layout fits is not asked: it would be one that nobody wrote.
    """
    if not isinstance(document.content, dict):
        return []
    rest = without(document, {(one.field or "").split(".")[0] for one in problems})
    recipe = yamlfile.validate(rest, Recipe)
    if isinstance(recipe, list):
        return misnamed(document)
    made, found = drafts(recipe, rest)
    for draft in made:
        for fault in unknown_names(draft.settings):
            place = draft.place(fault.field)
            found.append(document.problem(place, fault.message, fault.remedy).of(fault.field))
    return [*misnamed(document), *found]


def _faults(document: Document, draft: Draft) -> Iterator[Problem]:
    for fault in faults(draft.settings):
        yield document.problem(draft.place(fault.field), fault.message, fault.remedy).of(
            fault.field
        )


def _same_name(files: list[RecipeFile]) -> Iterator[Problem]:
    first: dict[str, Path] = {}
    for file in files:
        other = first.setdefault(file.recipe.name, file.path)
        if other != file.path:
            message = f"{file.recipe.name!r} is the name of {other} too"
            yield Problem(str(file.path), message, field="name", remedy="names must differ")


def _same_case(files: list[RecipeFile]) -> Iterator[Problem]:
    first: dict[str, str] = {}
    for file in files:
        for made in file.points:
            if made.case.key in first:
                message = f"case {made.name} is the same as {first[made.case.key]}"
                yield Problem(str(file.path), message, remedy="remove one, or give one a variant")
            first.setdefault(made.case.key, made.name)
