"""From a recipe to its cases: overrides, the matrix, weak scaling, systems. Pure."""

import dataclasses
import hashlib
import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from perfdb import metrics
from perfdb.errors import Diagnostic
from perfdb.recipe.model import CaseSettings, Recipe
from perfdb.recipe.slurm import SlurmSettings
from perfdb.record import Case, RunKind, Scalar
from perfdb.yamlfile import Document, Place

CARRIED = "framework_config_sha256"
"""The option that identifies the configuration of a case, which its recipe carries."""
CASE_FIELDS = CaseSettings.model_fields.keys() & Case.model_fields.keys()


@dataclass(frozen=True)
class Draft:
    """The settings of one case before its layout is checked, and where each was written."""

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
    published: Mapping[str, Scalar]
    """What the published row of the case prints where it is wrong, by field."""
    framework_config: str | None = None
    """The framework's own configuration, where the recipe carries one."""
    slurm: SlurmSettings = field(default_factory=SlurmSettings)
    kind: RunKind = RunKind.BENCHMARK
    profile_ranks: tuple[int, ...] = ()
    reload_layout: Mapping[str, int] = field(default_factory=dict)


Override = tuple[Mapping[str, object], Mapping[str, Place]]
"""Fields that differ in some cases, and where each was written."""


def num_cases(recipe: Recipe) -> int:
    """How many cases a recipe makes, counted without making them."""
    combinations = prod(len(values) for name, values in recipe.matrix.items() if name != "systems")
    listed = recipe.cases or ({},)
    varied = recipe.matrix.get("systems") or [one.get("systems", recipe.systems) for one in listed]
    repeated = len(listed) if "systems" in recipe.matrix else 1
    systems = sum(len(one) or 1 for one in varied if isinstance(one, Sequence))
    return combinations * repeated * systems


def drafts(recipe: Recipe, document: Document) -> list[Draft]:
    """Every combination of `cases` and `matrix`, over the recipe's own fields."""
    top = {str(place[0]): place for place in document.lines if len(place) == 1}
    content = document.content if isinstance(document.content, Mapping) else {}
    own = {name: value for name, value in content.items() if name in CaseSettings.model_fields}
    listed: list[Override] = [
        (fields, {"": ("cases", index)} | {name: ("cases", index, name) for name in fields})
        for index, fields in enumerate(recipe.cases)
    ]
    made, told = [], _told_apart(recipe.cases)
    for case, cell in itertools.product(listed or [({}, {})], [*_from_matrix(recipe)]):
        fields = {**own, **case[0], **cell[0]}
        merged: dict[str, object] = {}  # options are merged, not replaced
        for options in (one.get("options") for one in (own, case[0], cell[0])):
            merged |= options if isinstance(options, Mapping) else {}
        settings = CaseSettings.model_validate(fields | ({"options": merged} if merged else {}))
        label = "/".join(filter(None, (recipe.name, _label(case[0], told), _label(cell[0]))))
        made.append(Draft(label, settings, {**top, **case[1], **cell[1]}))
    return made


def _from_matrix(recipe: Recipe) -> Iterator[Override]:
    """Every combination of the matrix; if there is none, one that overrides nothing."""
    names, ranges = list(recipe.matrix), [range(len(v)) for v in recipe.matrix.values()]
    for indices in itertools.product(*ranges):
        chosen = dict(zip(names, indices, strict=True))
        fields = {name: recipe.matrix[name][index] for name, index in chosen.items()}
        yield fields, {name: ("matrix", name, index) for name, index in chosen.items()}


def _told_apart(cases: Sequence[Mapping[str, object]]) -> list[str]:
    """The first fields of listed cases that are enough to tell these apart."""
    names = list(dict.fromkeys(name for fields in cases for name in fields))
    for count in range(1, len(names)):
        if len({_label(fields, names[:count]) for fields in cases}) == len(cases):
            return names[:count]
    return names


def _label(fields: Mapping[str, object], named: Collection[str] | None = None) -> str:
    """'num_gpus=16/options=overlap:True': what sets a case apart in its name."""
    shown = {name: value for name, value in fields.items() if named is None or name in named}
    return "/".join(f"{name}={_short(value)}" for name, value in shown.items())


def _short(value: object) -> str:
    if isinstance(value, dict):
        return ",".join(f"{name}:{inner}" for name, inner in value.items())
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def stated_twice(recipe: Recipe, document: Document) -> Iterator[Diagnostic]:
    """A problem for each field, and each option, that both `cases` and `matrix` state."""

    def options(values: Iterable[object]) -> set[str]:
        return {str(key) for value in values if isinstance(value, Mapping) for key in value}

    for name, values in recipe.matrix.items():
        listed = [fields[name] for fields in recipe.cases if name in fields]
        both, what = bool(listed), "given"
        if name == "options":
            repeated = options(listed) & options(values)
            both, what = bool(repeated), f"{', '.join(sorted(repeated))} is given"
        if both:
            message = f"{what} in cases and in matrix, which would win in silence"
            yield document.problem(("matrix", name), message, "keep one")


def point(draft: Draft, system: str) -> RunSpec:
    """The case of a draft on a system. Expects a draft without problems."""
    settings = draft.settings
    size, total = data_parallel(settings), global_batch_size(settings)
    batch = settings.local_batch_size or settings.micro_batch_size or 1
    derived = {
        "system": system,
        "global_batch_size": total,
        "data_parallel": size,
        "gradient_accumulation": metrics.gradient_accumulation(total, batch, size),
    }
    fields = settings.model_dump(include=set(CASE_FIELDS)) | derived
    if carried := settings.framework_config:  # its other settings make another case, too
        digest = hashlib.sha256(carried.encode()).hexdigest()[:12]
        fields["options"] = {**settings.options, CARRIED: digest}
    names = (one.name for one in dataclasses.fields(RunSpec) if one.name not in ("name", "case"))
    return RunSpec(
        draft.label if len(settings.systems) == 1 else f"{draft.label}/{system}",
        Case.model_validate(fields),
        **{name: getattr(settings, name) for name in names},
    )


def global_batch_size(settings: CaseSettings) -> int:
    """GBS, as stated or from the size per GPU; 0 if neither is stated."""
    per_gpu = (settings.global_batch_size_per_gpu or 0) * (settings.num_gpus or 0)
    return settings.global_batch_size or per_gpu


def data_parallel(settings: CaseSettings) -> int:
    """The data-parallel size; 0 if there are fewer GPUs than one copy of the model needs."""
    return metrics.data_parallel(
        settings.num_gpus or 0,
        settings.tensor_parallel,
        settings.pipeline_parallel,
        settings.context_parallel,
    )
