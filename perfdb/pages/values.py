"""From the texts of a row, by field, and what holds for its table, to the case and its figures."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from perfdb import catalog
from perfdb.pages import cells, names, plausible, systems
from perfdb.pages.cells import Wrong
from perfdb.pages.columns import FIGURES
from perfdb.pages.context import Setting
from perfdb.pages.halves import BRACKETED, Texts
from perfdb.pages.held import Recipe
from perfdb.pages.names import ModelName
from perfdb.record import Case, Figures

_READERS: Final[Mapping[str, Callable[[str], object]]] = {
    "num_gpus": lambda text: cells.required(names.gpus(text).count),
    "global_batch_size": cells.required,
    "sequence_length": cells.required,
    "micro_batch_size": cells.positive,
    "local_batch_size": cells.positive,
    "gradient_accumulation": cells.positive,
    "tensor_parallel": cells.size,
    "pipeline_parallel": cells.size,
    "context_parallel": cells.size,
    "expert_parallel": cells.size,
    "expert_tensor_parallel": cells.size,
    "virtual_pipeline": cells.size,
    "data_parallel": cells.size,
    "kernels": cells.listed,
    "step_time_s": cells.figure,
    "tokens_per_sec_per_gpu": cells.figure,
    "model_tflops_per_sec_per_gpu": cells.figure,
    "mfu": cells.fraction,
    "tokens_per_sec": cells.figure,
}
_SHARD_GROUPS: Final = frozenset({"automodel"})
"""Frameworks whose FSDP column is always the size of the group that shards, even when it is 1."""


@dataclass(frozen=True)
class Values:
    """What a row says; `computed`: how, by the fields that it gives as products of its GPUs."""

    case: Case
    figures: Figures
    computed: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Faults:
    """The fields of a row that are no values, and why."""

    wrong: Mapping[str, Wrong]


def read(texts: Texts, setting: Setting) -> Values | Faults:
    """The values of a row, or everything that is wrong with it."""
    products = _products(texts)
    computed = {name: f"{texts.of(name)} is {value}" for name, value in products.items()}
    texts = replace(texts, cells={**texts.cells, **products})
    found = {name: reader(texts.of(name)) for name, reader in _READERS.items()}
    found |= _names(texts, setting) | _fsdp(texts, setting) | _sequence_parallel(texts, setting)
    wrong = {name: value for name, value in found.items() if isinstance(value, Wrong)}
    if wrong:
        return Faults(wrong)
    figures = Figures.model_validate({name: found.pop(name) for name in FIGURES})
    case = Case.model_validate(found)
    if wrong := plausible.wrong(case, figures, texts.cells):
        return Faults(wrong)
    return Values(case, figures, computed)


def _products(texts: Texts) -> dict[str, str]:
    """What the products of the row's GPUs come to; a figure is measured, and never one."""
    num_gpus = cells.whole(names.gpus(texts.of("num_gpus")).count)
    if not isinstance(num_gpus, int):
        return {}
    found = {name: cells.product(text, num_gpus) for name, text in texts.cells.items()}
    return {n: str(value) for n, value in found.items() if value is not None and n not in FIGURES}


def _names(texts: Texts, setting: Setting) -> dict[str, object]:
    """What was trained, on what, in which precision: said by the row, or above its table."""
    return _model(texts, setting) | {
        "framework": setting.framework,
        "system": systems.of_row(texts.cells, setting.system, setting.fallback.system),
        "precision": precision(texts, setting),
        "task": _task(texts, setting),
        "variant": _variant(texts, setting),
    }


def precision(texts: Texts, setting: Setting) -> str | Wrong | None:
    """The precision of a row; a plain FP8 is the recipe that is said above of such a row."""
    said, recipe = setting.said, setting.said.recipe
    printed = texts.of("precision") or said.precision or setting.fallback.precision
    found = names.precision(printed or "")
    exact = recipe and names.is_recipe_of(found, recipe.name) and _is_of(texts, setting, recipe)
    return names.precision(recipe.name) if recipe and exact else found


def _is_of(texts: Texts, setting: Setting, recipe: Recipe) -> bool:
    """Whether a row is of what a recipe was said of, on a system that has units for it."""
    system = systems.of_row(texts.cells, setting.system, setting.fallback.system)
    exact = catalog.precisions()[catalog.precision_of(recipe.name) or ""]
    if not isinstance(system, str) or not exact.is_of(catalog.system(system).peaks):
        return False
    if recipe.system and not systems.may_be(recipe.system, system):
        return False
    model = names.model(recipe.model or "")
    is_other = isinstance(model, ModelName) and model.name != _model(texts, setting)["model"]
    return not is_other and recipe.task in (None, _task(texts, setting))


def _model(texts: Texts, setting: Setting) -> dict[str, object]:
    """The model, and what does not fit it of what stands beside it."""
    printed = texts.of("model") or setting.said.model or ""
    model, size = names.model(printed), texts.of("size")
    if not cells.absent(size) and isinstance(model, ModelName):
        model = _sized(printed, model, size)
    if isinstance(model, Wrong):
        return {"model": model}
    wrong = _layers(texts.of("layers"), model)
    return {"model": model.name, "qualifiers": model.qualifiers, **wrong}


def _sized(printed: str, model: ModelName, size: str) -> ModelName | Wrong:
    """A model whose size stands beside its name; `Llama 3` alone may be several."""
    words = catalog.resized(printed, size)
    resized = names.model(words)
    if model.name not in catalog.models():
        return resized if words.startswith(printed) and isinstance(resized, ModelName) else model
    if isinstance(resized, Wrong) or resized.name not in catalog.models():
        return model
    message = f"{printed!r} has another size than {size!r}, which stands beside it"
    return model if resized.name == model.name else Wrong(message, "correct one of them")


def _layers(text: str, model: ModelName) -> dict[str, Wrong]:
    """What is wrong with the number of a model's layers: another one is another model."""
    known, layers = catalog.models().get(model.name), cells.whole(text)
    if known is None or not isinstance(layers, int) or layers in (0, known.num_layers):
        return {}
    message = f"{known.title} has {known.num_layers} layers, not {layers}"
    return {"layers": Wrong(message, "name the model that was trained, or correct the number")}


def _variant(texts: Texts, setting: Setting) -> str | None:
    printed = texts.of("variant")
    if not cells.absent(printed):
        return printed
    parts = (setting.variant, BRACKETED if texts.bracketed else None)
    return " ".join(filter(None, parts)) or None


def _task(texts: Texts, setting: Setting) -> str | Wrong:
    """The row's task; pre-training where nobody says: it is what a benchmark trains."""
    printed = texts.of("task")
    remedy = "write Pre-training, SFT or LoRA"
    if cells.absent(printed) and setting.said.no_task:
        return Wrong(setting.said.no_task, remedy)
    if cells.absent(printed):
        return setting.said.task or "pretrain"
    return names.task(printed) or Wrong(f"{printed!r} is no task", remedy)


def _fsdp(texts: Texts, setting: Setting) -> dict[str, object]:
    """FSDP is a switch on some pages, the size of the sharding group on others."""
    printed = texts.of("fsdp")
    size = cells.whole(printed)
    if isinstance(size, Wrong):
        said = cells.ticked(printed)
        return {"fsdp": size} if said is None else {"fsdp_enabled": said}
    is_switch = setting.framework not in _SHARD_GROUPS
    if size == 0 and is_switch:
        return {"fsdp_enabled": False}
    if size == 1 and is_switch and "fsdp" not in setting.sized:
        return {"fsdp_enabled": True}
    return {"fsdp_size": size or None}


def _sequence_parallel(texts: Texts, setting: Setting) -> dict[str, object]:
    """A switch; where another row of the column is a size, a 1 may be either."""
    value = cells.flag(texts.of("sequence_parallel"))
    if value is True and "sequence_parallel" in setting.sized:
        message = "it may be a switch or a size: another row of the column is a size"
        value = Wrong(message, "write 0 or 1 in all rows")
    return {"sequence_parallel": value}
