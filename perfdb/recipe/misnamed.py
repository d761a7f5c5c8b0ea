"""Misnamed fields in the `cases` and `matrix` of a recipe, and the recipe without them. Pure."""

from collections.abc import Iterator, Mapping, Set

from perfdb.errors import Diagnostic, suggestion
from perfdb.recipe.model import Settings
from perfdb.yamlfile import Document, Place


def misnamed(document: Document) -> list[Diagnostic]:
    """Problems: fields of `cases` and `matrix` that no case has, and empty lists in `matrix`."""
    unknown = [
        document.problem(
            place, "no such field of a case", suggestion(str(place[-1]), Settings.model_fields)
        )
        for place, _ in _overriding(document)
        if place[-1] not in Settings.model_fields
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
    """The document without the given top-level fields and without misnamed fields in the others."""
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
