"""Chooses cases of recipes by name or field (--only), and gives fields other values (--set)."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from perfdb import catalog, yamlfile
from perfdb.errors import Diagnostic, InputError, suggestion
from perfdb.recipe.expand import CASE_FIELDS, RunSpec
from perfdb.recipe.model import CaseSettings
from perfdb.yamlfile import Document

if TYPE_CHECKING:
    from perfdb.recipe.load import RecipeFile

DGXC: Final = {
    "DTYPE": "precision", "MODEL_SIZE": "model_size", "JOB_TOTAL_GPUS": "num_gpus",
    "GPUS_PER_NODE": "gpus_per_node",
}  # fmt: skip
"""The variables of dgxc-benchmarking's launch.sh, and the fields that they name."""
NAMES_SHOWN: Final = 3
_FILTER = re.compile(r"(\w+)=(.*)", re.DOTALL)
"""A name of a case has a slash before its first `=`."""
_SIZE = re.compile(r"-(\d+(?:\.\d+)?[bm])(?![a-z0-9])")


def choice(point: RunSpec) -> dict[str, str]:
    """The fields by which a case can be chosen, as lower-case text."""
    case, size = point.case, _SIZE.search(point.case.model)
    values = {
        **{name: getattr(case, name) for name in (*sorted(CASE_FIELDS), "system")},
        "model_size": size and size[1],
        "gpus_per_node": catalog.system(case.system).gpus_per_node,
        "warmup_steps": point.warmup_steps,
        "measured_steps": point.measured_steps,
    }
    plain = (str, int, type(None))
    return {name: str(it).lower() for name, it in values.items() if isinstance(it, plain)}


def chosen(files: Sequence["RecipeFile"], only: Iterable[str]) -> list["RecipeFile"]:
    """The recipes with those of their cases that all of `only` take; a recipe without is left out.

    FIELD=VALUE takes cases by a field, anything else by their name; each may be a pattern, and the
    values of one field, or several names, are alternatives. Raises InputError for a field or a
    value that no case has, and where no case is left.
    """
    points = {id(point): choice(point) for file in files for point in file.points}
    fields: dict[str, list[str]] = {}
    names: list[str] = []
    for text in only:
        if found := _FILTER.fullmatch(text):
            field = DGXC.get(found[1], found[1])
            fields.setdefault(field, []).extend(found[2].lower().split(","))
        else:
            names.append(text)
    if points and (problems := [*_unknown(fields, [*points.values()]), *_no_name(names, files)]):
        raise InputError(problems)

    def is_wanted(point: RunSpec) -> bool:
        own = points[id(point)]
        patterns = (*((own[field], values) for field, values in fields.items()),
                    *([(point.name, names)] if names else []))  # fmt: skip
        return all(any(fnmatchcase(it, one) for one in some) for it, some in patterns)

    left = [replace(file, points=tuple(filter(is_wanted, file.points))) for file in files]
    left = [file for file in left if file.points]
    if points and not left:
        remedy = "each matches some case, and no case matches all: leave one out"
        raise InputError(Diagnostic("--only", "leaves no case", remedy=remedy))
    return left


def _unknown(
    fields: Mapping[str, Iterable[str]], points: Sequence[Mapping[str, str]]
) -> Iterable[Diagnostic]:
    for field, patterns in fields.items():
        if field not in points[0]:
            yield Diagnostic("--only", f"no field {field!r}", remedy=suggestion(field, points[0]))
            continue
        values = {point[field] for point in points}
        for one in patterns:
            if not any(fnmatchcase(value, one) for value in values):
                message = f"no case has {field} {one!r}"
                yield Diagnostic("--only", message, remedy=suggestion(one, values))


def _no_name(names: Sequence[str], files: Sequence["RecipeFile"]) -> Iterable[Diagnostic]:
    every = [point.name for file in files for point in file.points]
    for pattern in names:
        if not any(fnmatchcase(name, pattern) for name in every):
            shown = ", ".join(file.points[0].name for file in files[:NAMES_SHOWN] if file.points)
            message = f"{pattern!r} matches none of the cases"
            yield Diagnostic("--only", message, remedy=f"their names are like {shown}")


def without(only: Iterable[str], given: Mapping[str, object]) -> list[str]:
    """Those of `only` that choose by a field which --set does not give."""
    found = ((text, _FILTER.fullmatch(text)) for text in only)
    fields = {"system" if name == "systems" else name for name in given}
    return [text for text, it in found if it and DGXC.get(it[1], it[1]) not in fields]


def of_option(problem: Diagnostic, given: Mapping[str, object]) -> Diagnostic:
    """A problem of a recipe; one of a value that --set gives names the option, not a line."""
    parent, _, field = (problem.field or "").rpartition(".")[0].partition(".")
    if parent == "matrix" and field in given:
        return replace(problem, field=f"--set {field}", line=None)
    return problem


def assigned(pairs: Iterable[str]) -> dict[str, object]:
    """The fields and values of texts such as 'num_gpus=8'. Raises InputError."""
    lines = []
    for field, equals, value in (pair.partition("=") for pair in pairs):
        if not (equals and field):
            raise InputError(Diagnostic("--set", f"{field!r} is no FIELD=VALUE"))
        lines.append(f"{field}: {f'[{value}]' if field == 'systems' else value}")
    if not lines:
        return {}
    read = yamlfile.parse("--set", "\n".join(lines), keep_last=True)
    if isinstance(read, yamlfile.Unreadable):
        raise InputError(read.problems)
    return dict(read.content) if isinstance(read.content, Mapping) else {}


def changes(pairs: Iterable[str]) -> dict[str, object]:
    """Fields of cases and the values that --set gives them. Raises InputError.

    `options.NAME=VALUE` sets one option and leaves the others.
    """
    from perfdb.recipe.load import unknown_names  # noqa: PLC0415  # it imports this module

    given: dict[str, object] = {}
    options: dict[str, object] = {}
    for name, value in assigned(pairs).items():
        head, _, option = name.partition(".")
        field = DGXC.get(head, "systems" if head == "system" else head)
        if field == "options" and option:
            options[option] = value
        else:
            given[field] = [value] if field != head and field == "systems" else value
    if options:
        given["options"] = options
    fields = CaseSettings.model_fields
    problems = [
        Diagnostic("--set", f"no field {name!r} of a case", remedy=suggestion(name, fields))
        for name in given
        if name not in fields
    ]
    document = Document("--set", given, {})
    read = [] if problems else yamlfile.validate(document, CaseSettings)
    problems += [*(read if isinstance(read, list) else ()), *unknown_names(document, given, ())]
    if problems:
        raise InputError(problems)
    return given


def changed(document: Document, given: Mapping[str, object]) -> Document:
    """A recipe with these values in every case; they replace its own.

    They are a matrix of one value each, so that names of cases and messages tell them.
    """
    content = document.content
    if not given or not isinstance(content, Mapping):
        return document
    others = {"global_batch_size", "global_batch_size_per_gpu"}
    gone = {*given, *(others if others & given.keys() else ())} - {"options"}
    options = given.get("options")
    named = options if isinstance(options, Mapping) else {}

    def without(fields: object) -> object:
        if not isinstance(fields, Mapping):
            return fields
        kept = {name: value for name, value in fields.items() if name not in gone}
        if isinstance(own := kept.get("options"), Mapping):
            kept["options"] = {name: it for name, it in own.items() if name not in named}
        return kept

    made = {name: value for name, value in content.items() if name not in gone}
    if isinstance(cases := made.get("cases"), list):
        kept = [without(one) for one in cases]
        made["cases"] = [one for at, one in enumerate(kept) if one not in kept[:at]]
    matrix = without(made.get("matrix", {}))
    if isinstance(matrix, Mapping):
        each = {name: [value] for name, value in given.items()}
        listed = matrix.get("options")
        if named and isinstance(listed, list):
            each["options"] = [{**one, **named} for one in listed if isinstance(one, Mapping)]
        made["matrix"] = {**matrix, **each}
    return Document(document.where, made, document.lines)
