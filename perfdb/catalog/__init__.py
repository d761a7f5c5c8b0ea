"""The systems, models and precisions perfdb knows: data with sources, and one way to read it.

To add a model write `models/NAME.yaml`; to add a system or a precision add it to its file.
"""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final, TypeVar

import yaml

from perfdb import yamlfile
from perfdb.catalog.base import Model, Peak, Precision, System
from perfdb.errors import CatalogError, Problem, suggestion
from perfdb.record import Frozen

__all__ = [
    "Model", "Peak", "Precision", "System", "model", "models", "named_model", "peak",
    "precision_of", "precisions", "system", "system_of_gpu", "systems",
]  # fmt: skip

FOLDER = Path(__file__).parent
Entry = TypeVar("Entry", bound=Frozen)

_LOADER: Final = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
"""The files are ours: libyaml's faster one has nothing to fear from them."""


@cache
def systems() -> Mapping[str, System]:
    """Every system by name, in the order pages show them."""
    return {entry.name: entry for entry in _entries(FOLDER / "systems.yaml", System)}


@cache
def precisions() -> Mapping[str, Precision]:
    """Every precision recipe by name."""
    return {entry.name: entry for entry in _entries(FOLDER / "precisions.yaml", Precision)}


@cache
def models() -> Mapping[str, Model]:
    """Every model by name."""
    files = sorted((FOLDER / "models").glob("*.yaml"))
    return {entry.name: entry for file in files for entry in _entries(file, Model)}


def _entries(path: Path, kind: type[Entry]) -> list[Entry]:
    """The entries of a catalogue file: one, or a list. Raises CatalogError with all problems."""
    content = yaml.load(path.read_text(), _LOADER)
    listed = content if isinstance(content, list) else [content]
    found = [yamlfile.validate(yamlfile.Document(str(path), one, {}), kind) for one in listed]
    problems = [problem for one in found if isinstance(one, list) for problem in one]
    if problems:
        raise CatalogError(problems)
    return [one for one in found if isinstance(one, kind)]


def system(name: str) -> System:
    """The system of a name. Raises CatalogError with a suggestion."""
    return _named("system", name, systems())


def model(name: str) -> Model:
    """The model of a name. Raises CatalogError with a suggestion."""
    return _named("model", name, models())


def _named(kind: str, name: str, table: Mapping[str, Entry]) -> Entry:
    if name not in table:
        raise CatalogError(Problem(kind, f"no {kind} {name!r}", remedy=suggestion(name, table)))
    return table[name]


def squeezed(words: str) -> str:
    """A name without case, spaces and punctuation, to compare how people spell it."""
    return re.sub(r"[\s._\-/]+", "", words).lower()


@cache
def _spellings() -> Mapping[str, str]:
    return {
        squeezed(spelling): entry.name
        for entry in models().values()
        for alias in (entry.name, entry.title, *entry.aliases)
        for spelling in (alias, _without_owner(alias))
    }


def _without_owner(alias: str) -> str:
    """A Hugging Face repository's own name, by which it is meant too."""
    return alias if " " in alias else alias.rpartition("/")[2]


def named_model(printed: str) -> str | None:
    """The model that a page means by a name ('LLAMA3-8B' is llama3-8b); None if none."""
    return _spellings().get(squeezed(printed))


def precision_of(printed: str) -> str | None:
    """The precision that a page means by a word ('MXFP8' is fp8_mx); None if none."""
    word = squeezed(printed)
    return next((p.name for p in precisions().values() if word in p.words), None)


def system_of_gpu(gpu: str) -> System | None:
    """The system whose GPU reports such a name; None rather than a guess.

    'NVIDIA GB200' holds the word B200 too: the longest word that is found decides.
    """
    found = [
        (len(word), entry)
        for entry in systems().values()
        for word in entry.detect
        if re.search(rf"(?<![A-Z0-9]){word}(?![0-9])", gpu.upper())
    ]
    return max(found, key=lambda pair: pair[0])[1] if found else None


def peak(system_name: str, precision: str | None) -> Peak | None:
    """The dense peak a case is measured against; None where there is none (cpu, fp32)."""
    known, recipe = systems().get(system_name), precisions().get(precision or "")
    return known.peaks.get(recipe.peak) if known and recipe and recipe.peak else None
