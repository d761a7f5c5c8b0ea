"""What must hold between the entries of a catalogue file, beyond the fields of each."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path

from perfdb.catalog.base import Model, Precision, System
from perfdb.catalog.files import Entry, Given
from perfdb.catalog.spelling import spellings, squeezed
from perfdb.errors import Problem, suggestion


def systems(given: Sequence[Given[System]], peaks: Collection[str]) -> Iterator[Problem]:
    """Names and words of GPUs mean one system; peaks are those that precisions are held against."""
    yield from _once(given, "name", spellings)
    yield from _once(given, "detect", lambda it: it.detect)
    for one in given:
        for name in one.it.peaks.keys() - peaks:
            message = "no precision is measured against this peak"
            yield one.document.problem(("peaks", name), message, suggestion(name, peaks))


def precisions(given: Sequence[Given[Precision]]) -> Iterator[Problem]:
    """Names and words mean one precision."""
    yield from _once(given, "words", lambda it: (it.name, *it.words))


def models(given: Sequence[Given[Model]]) -> Iterator[Problem]:
    """Names mean one model, and each file is called as its model."""
    yield from _once(given, "name", spellings)
    for one in given:
        file = Path(one.document.where)
        if file.stem != one.it.name:
            message = f"{one.it.name!r} is not the name of the file"
            yield one.document.problem(("name",), message, f"call the file {one.it.name}.yaml")


def _once(
    given: Iterable[Given[Entry]], field: str, words: Callable[[Entry], Iterable[str]]
) -> Iterator[Problem]:
    first: dict[str, Given[Entry]] = {}
    for one in given:
        for word in dict.fromkeys(words(one.it)):
            other = first.setdefault(squeezed(word), one)
            if other is not one:
                message = f"{word!r} is {other.it.name} in {other.place} already"
                yield one.document.problem((field,), message, "it must mean one of them")
