"""Reads catalog files: their entries with their lines, and all problems in them at once."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Generic, TypeVar

from perfdb import yamlfile
from perfdb.catalog.entries import Model, Named, Precision, System
from perfdb.catalog.spelling import placed, sized, squeezed
from perfdb.errors import CatalogError, Diagnostic, suggestion
from perfdb.yamlfile import Document, Place, Unreadable

Entry = TypeVar("Entry", bound=Named)


@dataclass(frozen=True)
class Loaded(Generic[Entry]):
    """An entry, and the document that it was read from, which knows its lines."""

    entry: Entry
    document: Document

    @property
    def place(self) -> str:
        """'systems.yaml:4'."""
        return f"{Path(self.document.where).name}:{self.document.line(())}"


Check = Callable[[Sequence[Loaded[Entry]]], Iterable[Diagnostic]]


def load(paths: Iterable[Path], kind: type[Entry], check: Check[Entry]) -> dict[str, Entry]:
    """The entries of files, by name; a file has one entry or a list. Raises CatalogError."""
    loaded: list[Loaded[Entry]] = []
    problems: list[Diagnostic] = []
    for path in paths:
        for document in _documents(path, problems):
            read = yamlfile.validate(document, kind, kind.ELSEWHERE)
            if isinstance(read, list):
                problems += read
            else:
                loaded.append(Loaded(read, document))
    problems += check(loaded)
    if problems:
        raise CatalogError(sorted(problems, key=lambda problem: (problem.where, problem.line or 0)))
    return {item.entry.name: item.entry for item in loaded}


def _documents(path: Path, problems: list[Diagnostic]) -> Sequence[Document]:
    """Each entry of a file with its own lines."""
    parsed = yamlfile.parse(str(path), path.read_text(encoding="utf-8"))
    if isinstance(parsed, Unreadable):
        problems += _run_together(parsed.problems) or parsed.problems
        return ()
    if not isinstance(parsed.content, list):
        return (parsed,)
    return [parsed.item(number, content) for number, content in enumerate(parsed.content)]


def _run_together(problems: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Where an entry of a list goes on with the name of another one."""
    named = (one for one in problems if re.fullmatch(r"[0-9]+\.name", one.field or ""))
    return [replace(one, field="name", remedy="begin each entry with '- '") for one in named]


# What must hold between the entries of a file, beyond the fields of each.


def check_systems(loaded: Sequence[Loaded[System]], peaks: Sequence[str]) -> Iterator[Diagnostic]:
    """No name or GPU word is of two systems, and each peak is one that a precision has.

    `peaks` have the widest numbers first; none of a system is below the one before it.
    """
    yield from _once(loaded, placed)
    yield from _once(loaded, lambda system: _listed("detect", system.detect))
    for item in loaded:
        for name in item.entry.peaks.keys() - set(peaks):
            yield _no_such_peak(item.document, ("peaks", name), peaks)
        own = [(name, item.entry.peaks[name].tflops) for name in peaks if name in item.entry.peaks]
        for (wider, more), (name, tflops) in pairwise(own):
            if tflops < more:
                message = f"{tflops:g} TFLOP/s are fewer than the {more:g} in {wider}"
                remedy = "whose numbers are wider; correct one of them"
                yield item.document.problem(("peaks", name), f"{message}, {remedy}")


def check_precisions(loaded: Sequence[Loaded[Precision]]) -> Iterator[Diagnostic]:
    """No name or word is of two precisions, and none needs a peak that no precision has."""
    yield from _once(loaded, lambda it: [(("name",), it.name), *_listed("words", it.words)])
    peaks = {item.entry.peak for item in loaded if item.entry.peak}
    for item in loaded:
        if item.entry.needs and item.entry.needs not in peaks:
            yield _no_such_peak(item.document, ("needs", item.entry.needs), peaks)


def check_models(loaded: Sequence[Loaded[Model]]) -> Iterator[Diagnostic]:
    """No name is of two models, and each file has the name of its model."""
    yield from _once(loaded, placed, sized)
    for item in loaded:
        file = Path(item.document.where)
        if file.stem != item.entry.name:
            message = f"{item.entry.name!r} is not the name of the file"
            yield item.document.problem(("name",), message, f"call the file {item.entry.name}.yaml")


def _no_such_peak(document: Document, place: tuple[str, str], peaks: Collection[str]) -> Diagnostic:
    message = "no precision is measured against this peak"
    return document.problem(place, message, suggestion(place[-1], peaks))


def _listed(field: str, words: Iterable[str]) -> list[tuple[Place, str]]:
    return [((field, number), word) for number, word in enumerate(words)]


def _once(
    loaded: Iterable[Loaded[Entry]],
    words: Callable[[Entry], Iterable[tuple[Place, str]]],
    spelled: Callable[[str], str] = squeezed,
) -> Iterator[Diagnostic]:
    first: dict[str, Loaded[Entry]] = {}
    for item in loaded:
        places: dict[str, Place] = {}
        for place, word in words(item.entry):
            places.setdefault(word, place)
        for word, place in places.items():
            other = first.setdefault(spelled(word), item)
            if other is not item:
                message = f"{word!r} is {other.entry.name} in {other.place} already"
                yield item.document.problem(place, message, "it must mean one of them")
