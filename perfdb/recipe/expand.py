"""From a recipe to its cases: overrides, the matrix, weak scaling, systems. Pure."""

import itertools
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass

from perfdb import metrics, yamlfile
from perfdb.errors import Problem, suggestion
from perfdb.recipe.model import Recipe, Settings
from perfdb.record import Case
from perfdb.yamlfile import Document, Place

CASE_FIELDS = Settings.model_fields.keys() & Case.model_fields.keys()
REQUIRED = ("framework", "model", "num_gpus", "precision", "sequence_length", "systems")


@dataclass(frozen=True)
class Draft:
    """The settings of one case before they are known to be right, and where each was written."""

    label: str
    settings: Settings
    places: Mapping[str, Place]

    def place(self, field: str) -> Place:
        """Where a field of this case was written; the case or the file where it was not."""
        return self.places.get(field, self.places.get("", ()))


@dataclass(frozen=True)
class Point:
    """One thing to run: a case, and how long."""

    name: str
    case: Case
    warmup_steps: int
    measured_steps: int
    seed: int
    timeout_s: float
    container: str | None


@dataclass(frozen=True)
class Override:
    """Fields that differ in some cases, each with its place, and a label for the case's name."""

    label: str
    fields: Mapping[str, object]
    places: Mapping[str, Place]


def drafts(recipe: Recipe, document: Document) -> tuple[list[Draft], list[Problem]]:
    """Every combination of `cases` and `matrix`, and what is wrong with their fields."""
    found: list[Draft] = []
    problems: list[Problem] = []
    for listed, crossed in itertools.product(_listed(recipe), list(_crossed(recipe))):
        places = {**_top_places(document), **listed.places, **crossed.places}
        label = "/".join(part for part in (recipe.name, listed.label, crossed.label) if part)
        settings = _merged(document, listed, crossed)
        if isinstance(settings, Settings):
            found.append(Draft(label, settings, places))
        else:
            problems += [_moved(document, problem, places) for problem in settings]
    return found, list(dict.fromkeys(problems))


def _top_places(document: Document) -> dict[str, Place]:
    return {str(place[0]): place for place in document.lines if len(place) == 1}


def _listed(recipe: Recipe) -> list[Override]:
    """The entries of `cases`; one that overrides nothing where there are none."""
    listed = [
        Override(
            _label(fields),
            fields,
            {"": ("cases", index)} | {name: ("cases", index, name) for name in fields},
        )
        for index, fields in enumerate(recipe.cases)
    ]
    return listed or [Override("", {}, {})]


def _crossed(recipe: Recipe) -> Iterator[Override]:
    """Every combination of the matrix; one that overrides nothing where there is none."""
    names = list(recipe.matrix)
    ranges = [range(len(recipe.matrix[name])) for name in names]
    for indices in itertools.product(*ranges):
        chosen = dict(zip(names, indices, strict=True))
        fields = {name: recipe.matrix[name][index] for name, index in chosen.items()}
        places: dict[str, Place] = {name: ("matrix", name, i) for name, i in chosen.items()}
        yield Override(_label(fields), fields, places)


def _label(fields: Mapping[str, object]) -> str:
    return "/".join(f"{name}={_short(value)}" for name, value in fields.items())


def _short(value: object) -> str:
    match value:
        case dict():
            return ",".join(f"{name}:{inner}" for name, inner in value.items())
        case list():
            return ",".join(map(str, value))
        case _:
            return str(value)


def misnamed(document: Document) -> list[Problem]:
    """Fields of `cases` and `matrix` that no case has, and lists that hold nothing."""
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
    """The fields in `matrix` and `cases`, each with its place, as far as they are fields."""
    content = document.content if isinstance(document.content, Mapping) else {}
    matrix, cases = content.get("matrix"), content.get("cases")
    for name, value in matrix.items() if isinstance(matrix, Mapping) else ():
        yield ("matrix", str(name)), value
    for index, fields in enumerate(cases) if isinstance(cases, list) else ():
        for name, value in fields.items() if isinstance(fields, Mapping) else ():
            yield ("cases", index, str(name)), value


def without(document: Document, fields: Set[str]) -> Document:
    """The document without some of its fields, and without what is misnamed in the others."""
    content = document.content if isinstance(document.content, Mapping) else {}
    wrong = {(one.field or "") for one in misnamed(document)}
    kept: dict[str, object] = {"name": "unnamed"}
    kept |= {name: value for name, value in content.items() if name not in fields}
    matrix, cases = content.get("matrix"), content.get("cases")
    if isinstance(matrix, Mapping):
        kept["matrix"] = {k: v for k, v in matrix.items() if f"matrix.{k}" not in wrong}
    if isinstance(cases, list):
        kept["cases"] = [_kept(one, f"cases.{place}", wrong) for place, one in enumerate(cases)]
    return Document(document.where, kept, document.lines)


def _kept(fields: object, place: str, wrong: Set[str]) -> object:
    if not isinstance(fields, Mapping):
        return fields
    return {name: value for name, value in fields.items() if f"{place}.{name}" not in wrong}


def _merged(document: Document, *overrides: Override) -> Settings | list[Problem]:
    """The recipe's own fields under the overrides; `options` are merged, not replaced."""
    assert isinstance(document.content, dict)
    fields = {
        name: value for name, value in document.content.items() if name in Settings.model_fields
    }
    for override in overrides:
        options = {**_options(fields), **_options(override.fields)}
        fields = {**fields, **override.fields}
        if options:
            fields["options"] = options
    return yamlfile.validate(Document(document.where, fields, {}), Settings)


def _options(fields: Mapping[str, object]) -> Mapping[str, object]:
    options = fields.get("options")
    return options if isinstance(options, Mapping) else {}


def _moved(document: Document, problem: Problem, places: Mapping[str, Place]) -> Problem:
    """The same problem, said of the place in the file where the field stands."""
    field = (problem.field or "").split(".")[0]
    return document.problem(places.get(field, ()), problem.message, problem.remedy)


def point(draft: Draft, system: str) -> Point:
    """The case of a draft on a system. Expects a draft without problems."""
    settings = draft.settings
    chosen = settings.model_dump(include=set(CASE_FIELDS))
    size = data_parallel(settings)
    batch = settings.local_batch_size or settings.micro_batch_size or 1
    total = global_batch_size(settings)
    case = Case(
        **{
            **chosen,
            "system": system,
            "global_batch_size": total,
            "data_parallel": size,
            "gradient_accumulation": metrics.gradient_accumulation(total, batch, size),
        }
    )
    name = draft.label if len(settings.systems) == 1 else f"{draft.label}/{system}"
    return Point(
        name=name,
        case=case,
        warmup_steps=settings.warmup_steps,
        measured_steps=settings.measured_steps,
        seed=settings.seed,
        timeout_s=settings.timeout_s,
        container=settings.container,
    )


def global_batch_size(settings: Settings) -> int:
    """GBS, from itself or from the size per GPU; 0 where neither is given."""
    if settings.global_batch_size:
        return settings.global_batch_size
    return (settings.global_batch_size_per_gpu or 0) * (settings.num_gpus or 0)


def data_parallel(settings: Settings) -> int:
    """DP of the settings; 0 where the GPUs are fewer than one model needs."""
    return metrics.data_parallel(
        settings.num_gpus or 0,
        settings.tensor_parallel or 1,
        settings.pipeline_parallel or 1,
        settings.context_parallel or 1,
    )
