"""What must hold between the entries of a catalogue file, beyond the fields of each."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from perfdb.catalog.base import Model, Precision, System
from perfdb.catalog.files import Entry, Given
from perfdb.catalog.spelling import placed, sized, squeezed
from perfdb.errors import Diagnostic, suggestion
from perfdb.yamlfile import Document, Place


def systems(given: Sequence[Given[System]], peaks: Sequence[str]) -> Iterator[Diagnostic]:
    """No name or GPU word is of two systems, and each peak is one that a precision has.

    `peaks` have the widest numbers first; none of a system is below the one before it.
    """
    yield from _once(given, placed)
    yield from _once(given, lambda system: _listed("detect", system.detect))
    for item in given:
        for name in item.entry.peaks.keys() - set(peaks):
            yield _no_such_peak(item.document, ("peaks", name), peaks)
        own = [(name, item.entry.peaks[name].tflops) for name in peaks if name in item.entry.peaks]
        for (wider, more), (name, tflops) in pairwise(own):
            if tflops < more:
                message = f"{tflops:g} TFLOP/s are fewer than the {more:g} in {wider}"
                remedy = "whose numbers are wider; correct one of them"
                yield item.document.problem(("peaks", name), f"{message}, {remedy}")


def precisions(given: Sequence[Given[Precision]]) -> Iterator[Diagnostic]:
    """No name or word is of two precisions, and none needs a peak that no precision has."""
    yield from _once(given, lambda it: [(("name",), it.name), *_listed("words", it.words)])
    peaks = {item.entry.peak for item in given if item.entry.peak}
    for item in given:
        if item.entry.needs and item.entry.needs not in peaks:
            yield _no_such_peak(item.document, ("needs", item.entry.needs), peaks)


def models(given: Sequence[Given[Model]]) -> Iterator[Diagnostic]:
    """No name is of two models, and each file has the name of its model."""
    yield from _once(given, placed, sized)
    for item in given:
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
    given: Iterable[Given[Entry]],
    words: Callable[[Entry], Iterable[tuple[Place, str]]],
    spelled: Callable[[str], str] = squeezed,
) -> Iterator[Diagnostic]:
    first: dict[str, Given[Entry]] = {}
    for item in given:
        places: dict[str, Place] = {}
        for place, word in words(item.entry):
            places.setdefault(word, place)
        for word, place in places.items():
            other = first.setdefault(spelled(word), item)
            if other is not item:
                message = f"{word!r} is {other.entry.name} in {other.place} already"
                yield item.document.problem(place, message, "it must mean one of them")
