"""What a case must have whatever its layout: its fields, and names of the catalogue. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass

from perfdb import catalog
from perfdb.errors import suggestion
from perfdb.recipe.expand import REQUIRED, global_batch_size
from perfdb.recipe.model import FRAMEWORKS, Settings
from perfdb.record import MOST


@dataclass(frozen=True)
class Fault:
    """A rule that a case breaks: in which field, how, and how to repair it."""

    field: str
    message: str
    remedy: str


def missing(settings: Settings) -> Iterator[Fault]:
    """A fault for each field that every case needs and this one lacks, or has twice."""
    for field in REQUIRED:
        if not getattr(settings, field):
            yield Fault(field, "is required and missing", "add it")
    if settings.global_batch_size and settings.global_batch_size_per_gpu:
        yield Fault("global_batch_size_per_gpu", "given beside global_batch_size", "keep one")
    if not (settings.global_batch_size or settings.global_batch_size_per_gpu):
        remedy = "give global_batch_size or global_batch_size_per_gpu"
        yield Fault("global_batch_size", "is required and missing", remedy)
    if (total := global_batch_size(settings)) > MOST:
        message = f"{settings.num_gpus} GPUs make a GBS of {total}"
        yield Fault("global_batch_size_per_gpu", message, f"make it {MOST} at most")
    if not (settings.micro_batch_size or settings.local_batch_size):
        yield Fault("micro_batch_size", "is required and missing", "add it")


def unknown_names(settings: Settings) -> Iterator[Fault]:
    """A fault for each name of a case that is not in the catalogue."""
    named = [
        ("framework", settings.framework, FRAMEWORKS),
        ("model", settings.model, tuple(catalog.models())),
        ("precision", settings.precision, tuple(catalog.precisions())),
        *(("systems", name, tuple(catalog.systems())) for name in settings.systems),
    ]
    for field, name, known in named:
        if name and name not in known:
            kind = field.removesuffix("s")
            is_system = kind == "system"
            remedy = catalog.other_systems() if is_system else suggestion(name, known)
            yield Fault(field, f"no {kind} {name!r}", remedy)
