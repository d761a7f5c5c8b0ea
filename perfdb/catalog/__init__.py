"""The systems, models and precisions perfdb knows: data with sources, and one way to read it.

To add a model write `models/NAME.yaml`; to add a system or a precision add it to its file. Users
add systems and models of their own in perfdb.toml, which `perfdb.config` reads.
"""

import re
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache, lru_cache, partial
from pathlib import Path

from perfdb import config
from perfdb.catalog.entries import Model, Peak, Precision, System
from perfdb.catalog.load import (
    check_models,
    check_precisions,
    check_systems,
    load,
    sized,
    spellings,
    squeezed,
)
from perfdb.catalog.proxy import Models, proxy_name
from perfdb.errors import NEAREST, CatalogError, Diagnostic, nearest

__all__ = [
    "Model", "Peak", "Precision", "System", "has_gpus", "model", "models", "named_model",
    "named_system", "other_systems", "peak", "precision_of", "precisions", "proxy_name", "system",
    "system_of_gpu", "systems",
]  # fmt: skip

FOLDER = Path(__file__).parent
_KEPT = FOLDER / "__pycache__"

_OF_NO_SYSTEM = re.compile(
    r"(?<![A-Z])(?:PCIE|NVL|HBM2E?|MIG)(?![A-Z0-9])|-[0-9]+[ABCQ](?![A-Z0-9])"
)
"""Says that a GPU is a card with other peaks, or a part of one: MIG, or a vGPU as in H100-8C.

Unless it is among the words of a system itself."""


@cache
def systems() -> Mapping[str, System]:
    """Every system by name, in the order pages show them."""
    peaks = list(dict.fromkeys(it.peak for it in precisions().values() if it.peak))
    check = partial(check_systems, peaks=peaks)
    own, kept = config.entries("systems"), _KEPT / "systems.json"
    return load([FOLDER / "systems.yaml"], System, check, own, kept)


@cache
def precisions() -> Mapping[str, Precision]:
    """Every precision recipe by name."""
    files, kept = [FOLDER / "precisions.yaml"], _KEPT / "precisions.json"
    return load(files, Precision, check_precisions, kept=kept)


@cache
def models() -> Mapping[str, Model]:
    """Every model by name; and a proxy of one by its name, though it is not listed."""
    files = sorted((FOLDER / "models").glob("*.yaml"))
    own, kept = config.entries("models"), _KEPT / "models.json"
    return Models(load(files, Model, check_models, own, kept))


def system(name: str) -> System:
    """The system of a name. Raises CatalogError with the names that there are."""
    if name not in systems():
        raise CatalogError(Diagnostic("system", f"no system {name!r}", remedy=other_systems(name)))
    return systems()[name]


def other_systems(name: str) -> str:
    """What to do about a system that is not here. None is meant for sure: an H20 is no H200."""
    near = get_close_matches(name.casefold(), systems(), n=NEAREST, cutoff=0.0)
    return f"nearest: {', '.join(near)}; docs/how-to/add.md says how to add one"


def model(name: str) -> Model:
    """The model of a name. Raises CatalogError with a suggestion."""
    if name not in models():
        remedy = nearest(name, models())
        raise CatalogError(Diagnostic("model", f"no model {name!r}", remedy=remedy))
    return models()[name]


@cache
def _models_spelled() -> Mapping[str, str]:
    return {sized(word): entry.name for entry in models().values() for _, word in spellings(entry)}


@cache
def _systems_spelled() -> Mapping[str, str]:
    every = systems().values()
    return {squeezed(word): entry.name for entry in every for _, word in spellings(entry)}


@cache
def _precisions_spelled() -> Mapping[str, str]:
    return {squeezed(word): entry.name for entry in precisions().values() for word in entry.words}


def named_model(printed: str) -> str | None:
    """The model that a page means by a name ('LLAMA3-8B' is llama3-8b); None if none."""
    return _models_spelled().get(sized(printed))


def named_system(printed: str) -> str | None:
    """The system that a page means by a name ('DGX H100' is dgx-h100); None if none."""
    return _systems_spelled().get(squeezed(printed))


def precision_of(printed: str) -> str | None:
    """The precision that a page means by a word ('MXFP8' is fp8_mx); None if none."""
    return _precisions_spelled().get(squeezed(printed))


@lru_cache(maxsize=256)
def system_of_gpu(gpu: str) -> System | None:
    """The system of the GPU that reports such a name; None if no system has such a GPU.

    'NVIDIA GB200' contains the word B200 too: the longest word that is found decides.
    """
    capitals, found = gpu.upper(), dict[str, System]()
    for entry in systems().values():
        for word in entry.detect:
            if word not in capitals:
                continue
            # Another number or a G makes another GPU: an H200 is no H20, an A10G no A10.
            rest, number = re.subn(rf"(?<![A-Z0-9]){word}(?![0-9G])", "", capitals)
            if number and not _OF_NO_SYSTEM.search(rest):
                found[word] = entry
    return found[max(found, key=len)] if found else None


def has_gpus(system_name: str | None) -> bool:
    """Whether a system has GPUs; a system that is not in the catalog is taken to have them."""
    entry = systems().get(system_name or "")
    return entry is None or entry.gpu is not None


def peak(system_name: str, precision: str | None) -> Peak | None:
    """The dense peak that a case's MFU is measured against; None if there is none (cpu, fp32)."""
    known, recipe = systems().get(system_name), precisions().get(precision or "")
    return known.peaks.get(recipe.peak) if known and recipe and recipe.peak else None
