"""From a recipe to its cases: overrides, the matrix, weak scaling, systems. Pure."""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from perfdb import metrics, yamlfile
from perfdb.errors import Diagnostic
from perfdb.recipe.model import CaseSettings, Recipe
from perfdb.record import Case
from perfdb.yamlfile import Document, Place

CASE_FIELDS = CaseSettings.model_fields.keys() & Case.model_fields.keys()
REQUIRED = ("framework", "model", "num_gpus", "precision", "sequence_length", "systems")


@dataclass(frozen=True)
class Draft:
    """The settings of one case, not checked yet, and where each was written."""

    label: str
    settings: CaseSettings
    places: Mapping[str, Place]

    def place(self, field: str) -> Place:
        """Where a field of this case was written; else where the case or the file starts."""
        return self.places.get(field, self.places.get("", ()))


@dataclass(frozen=True)
class RunSpec:
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


def drafts(recipe: Recipe, document: Document) -> tuple[list[Draft], list[Diagnostic]]:
    """Every combination of `cases` and `matrix`, and what is wrong with their fields."""
    found: list[Draft] = []
    problems = [*_given_twice(recipe, document)]
    for case, cell in itertools.product(_from_cases(recipe), list(_from_matrix(recipe))):
        places = {**_top_places(document), **case.places, **cell.places}
        label = "/".join(part for part in (recipe.name, case.label, cell.label) if part)
        settings = _merged(document, case, cell)
        if isinstance(settings, CaseSettings):
            found.append(Draft(label, settings, places))
        else:
            problems += [_at_its_line(document, problem, places) for problem in settings]
    return found, list(dict.fromkeys(problems))


def _given_twice(recipe: Recipe, document: Document) -> Iterator[Diagnostic]:
    """Problems: what both `cases` and `matrix` give; of `options` only the same one is the same."""
    for name, values in recipe.matrix.items():
        listed: list[object] = [fields[name] for fields in recipe.cases if name in fields]
        what = "given"
        if name == "options":
            twice = _keys(listed) & _keys(values)
            what = f"{', '.join(sorted(twice))} is given"
            listed = [*twice]
        if listed:
            message = f"{what} in cases and in matrix, which would win in silence"
            yield document.problem(("matrix", name), message, "keep one")


def _keys(values: Iterable[object]) -> set[str]:
    """The keys of all mappings among the values."""
    return {str(key) for value in values if isinstance(value, Mapping) for key in value}


def _top_places(document: Document) -> dict[str, Place]:
    return {str(place[0]): place for place in document.lines if len(place) == 1}


def _from_cases(recipe: Recipe) -> list[Override]:
    """The entries of `cases`; if there are none, one that overrides nothing."""
    listed = [
        Override(
            _label(fields),
            fields,
            {"": ("cases", index)} | {name: ("cases", index, name) for name in fields},
        )
        for index, fields in enumerate(recipe.cases)
    ]
    return listed or [Override("", {}, {})]


def _from_matrix(recipe: Recipe) -> Iterator[Override]:
    """Every combination of the matrix; if there is none, one that overrides nothing."""
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


def _merged(document: Document, *overrides: Override) -> CaseSettings | list[Diagnostic]:
    """The recipe's own fields under the overrides; `options` are merged, not replaced."""
    assert isinstance(document.content, dict)
    fields = {
        name: value for name, value in document.content.items() if name in CaseSettings.model_fields
    }
    for override in overrides:
        options = {**_options(fields), **_options(override.fields)}
        fields = {**fields, **override.fields}
        if options:
            fields["options"] = options
    return yamlfile.validate(Document(document.where, fields, {}), CaseSettings)


def _options(fields: Mapping[str, object]) -> Mapping[str, object]:
    options = fields.get("options")
    return options if isinstance(options, Mapping) else {}


def _at_its_line(
    document: Document, problem: Diagnostic, places: Mapping[str, Place]
) -> Diagnostic:
    """The same problem, with the line on which its field was written."""
    field = (problem.field or "").split(".")[0]
    return document.problem(places.get(field, ()), problem.message, problem.remedy)


def point(draft: Draft, system: str) -> RunSpec:
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
    return RunSpec(
        name=name,
        case=case,
        warmup_steps=settings.warmup_steps,
        measured_steps=settings.measured_steps,
        seed=settings.seed,
        timeout_s=settings.timeout_s,
        container=settings.container,
    )


def global_batch_size(settings: CaseSettings) -> int:
    """GBS, as stated or from the size per GPU; 0 if neither is stated."""
    if settings.global_batch_size:
        return settings.global_batch_size
    return (settings.global_batch_size_per_gpu or 0) * (settings.num_gpus or 0)


def data_parallel(settings: CaseSettings) -> int:
    """The data-parallel size; 0 if there are fewer GPUs than one copy of the model needs."""
    return metrics.data_parallel(
        settings.num_gpus or 0,
        settings.tensor_parallel or 1,
        settings.pipeline_parallel or 1,
        settings.context_parallel or 1,
    )
