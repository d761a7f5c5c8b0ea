"""What must hold between the entries of a catalogue file, beyond the fields of each."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path

from perfdb.catalog.base import Model, Precision, System
from perfdb.catalog.files import Entry, Given
from perfdb.catalog.spelling import sized, spellings, squeezed
from perfdb.errors import Problem, suggestion
from perfdb.yamlfile import Document


def systems(given: Sequence[Given[System]], peaks: Collection[str]) -> Iterator[Problem]:
    """No name or GPU word is of two systems, and each peak is one that a precision has."""
    yield from _once(given, "name", spellings)
    yield from _once(given, "detect", lambda system: system.detect)
    for item in given:
        for name in item.entry.peaks.keys() - peaks:
            yield _no_such_peak(item.document, ("peaks", name), peaks)


def precisions(given: Sequence[Given[Precision]]) -> Iterator[Problem]:
    """No name or word is of two precisions, and none needs a peak that no precision has."""
    yield from _once(given, "words", lambda precision: (precision.name, *precision.words))
    peaks = {item.entry.peak for item in given if item.entry.peak}
    for item in given:
        if item.entry.needs and item.entry.needs not in peaks:
            yield _no_such_peak(item.document, ("needs", item.entry.needs), peaks)


def models(given: Sequence[Given[Model]]) -> Iterator[Problem]:
    """No name is of two models, and each file has the name of its model."""
    yield from _once(given, "name", spellings, sized)
    for item in given:
        file = Path(item.document.where)
        if file.stem != item.entry.name:
            message = f"{item.entry.name!r} is not the name of the file"
            yield item.document.problem(("name",), message, f"call the file {item.entry.name}.yaml")


def _no_such_peak(document: Document, place: tuple[str, str], peaks: Collection[str]) -> Problem:
    message = "no precision is measured against this peak"
    return document.problem(place, message, suggestion(place[-1], peaks))


def _once(
    given: Iterable[Given[Entry]],
    field: str,
    words: Callable[[Entry], Iterable[str]],
    spelled: Callable[[str], str] = squeezed,
) -> Iterator[Problem]:
    first: dict[str, Given[Entry]] = {}
    for item in given:
        for word in dict.fromkeys(words(item.entry)):
            other = first.setdefault(spelled(word), item)
            if other is not item:
                message = f"{word!r} is {other.entry.name} in {other.place} already"
                yield item.document.problem((field,), message, "it must mean one of them")
