"""Reads catalog files: their entries, how each is spelled, and all problems in them at once.

To parse the YAML of all models takes a quarter of a second. So files without problems are kept as
JSON, as Python keeps its bytecode: in __pycache__, until a file changes.
"""

import json
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

from perfdb import yamlfile
from perfdb.catalog.entries import Model, Named, Precision, System
from perfdb.errors import CatalogError, Diagnostic, suggestion
from perfdb.jsonfile import write_atomically
from perfdb.yamlfile import Document, Place

Entry = TypeVar("Entry", bound=Named)
Loaded = Sequence[tuple[Entry, Document]]
"""Entries, each with the document that it was read from, which knows its lines."""

_SIZE = re.compile(r"(?<![0-9])[0-9]+(?:\.[0-9]+)?(?=\s*b(?![a-z]))", re.IGNORECASE)
"""A number of billions: of parameters, or of those that are active."""


def squeezed(words: str) -> str:
    """A name without case, spaces and punctuation, to compare how people spell it."""
    return re.sub(r"[\s._\-/]+", "", words).lower()


def sized(words: str) -> str:
    """A model's name as `squeezed`, and its sizes: `Qwen2-57B` is no `Qwen2.5-7B`."""
    return " ".join((squeezed(words), *_SIZE.findall(words)))


def spellings(entry: Model | System) -> Iterator[tuple[Place, str]]:
    """The name, title and aliases of an entry, each with its place in the file.

    A repository is also known by its last part.
    """
    words = [(("name",), entry.name), (("title",), entry.title), *_items("aliases", entry.aliases)]
    for place, word in words:
        yield place, word
        if " " not in word:
            yield place, word.rpartition("/")[2]


def _items(field: str, words: Iterable[str]) -> list[tuple[Place, str]]:
    return [((field, number), word) for number, word in enumerate(words)]


def load(
    paths: Iterable[Path],
    kind: type[Entry],
    check: Callable[[Loaded[Entry]], Iterable[Diagnostic]],
    own: Iterable[Document] = (),
    kept: Path | None = None,
) -> dict[str, Entry]:
    """The entries of files, by name; a file has one entry or a list. Raises CatalogError.

    `own`: entries of the user, who may repeat one of the files as it is, and change none. `kept`:
    where the files are kept as JSON.
    """
    files, others = tuple(paths), tuple(own)
    state = [_state(file) for file in files] if kept else []
    if kept and not others and (contents := _read_kept(kept, state)):
        return {entry.name: entry for entry in map(kind.model_validate, contents)}
    problems: list[Diagnostic] = []
    loaded = _valid(_documents(files, problems), kind, problems)
    known = [entry for entry, _ in loaded]
    contents = [document.content for _, document in loaded]
    loaded += [one for one in _valid(others, kind, problems) if one[0] not in known]
    problems += check(loaded)
    if problems:
        raise CatalogError(sorted(problems, key=lambda problem: (problem.where, problem.line or 0)))
    if kept and not sys.dont_write_bytecode:
        with suppress(OSError):  # an installation that another user owns
            write_atomically(kept, json.dumps([state, contents], default=str))
    return {entry.name: entry for entry, _ in loaded}


def _state(file: Path) -> list[object]:
    """By its content: installed files may have the time and the size of those before them."""
    return [file.name, sha256(file.read_bytes()).hexdigest()]


def _read_kept(kept: Path, state: Sequence[object]) -> list[object]:
    """The entries of files in a state; none if they are kept of another one, or not at all."""
    with suppress(OSError, ValueError):
        of, contents = json.loads(kept.read_bytes())
        return contents if of == state else []
    return []


def _documents(paths: Iterable[Path], problems: list[Diagnostic]) -> Iterator[Document]:
    """Each entry of YAML files; what makes a file unreadable is added to the problems."""
    for path in paths:
        parsed = yamlfile.parse(str(path), path.read_text(encoding="utf-8"))
        if isinstance(parsed, yamlfile.Unreadable):
            problems += parsed.problems
        elif isinstance(parsed.content, list) and parsed.content:
            yield from parsed.items().values()
        else:
            yield parsed


def _valid(
    documents: Iterable[Document], kind: type[Entry], problems: list[Diagnostic]
) -> list[tuple[Entry, Document]]:
    """The entries that are as they must be; what is wrong with others is added to the problems."""
    found = []
    for document in documents:
        read = yamlfile.validate(document, kind)
        if isinstance(read, list):
            problems += read
        else:
            found.append((read, document))
    return found


# What must hold between the entries of a file, beyond the fields of each.


def check_systems(loaded: Loaded[System], peaks: Sequence[str]) -> Iterator[Diagnostic]:
    """No two systems share a name or GPU word, and a precision is measured against each peak.

    `peaks` have the widest numbers first; none of a system is below the one before it.
    """
    yield from _once(loaded, spellings)
    yield from _once(loaded, lambda system: _items("detect", system.detect))
    for entry, document in loaded:
        for name in entry.peaks.keys() - set(peaks):
            yield _no_such_peak(document, ("peaks", name), peaks)
        own = [(name, entry.peaks[name].tflops) for name in peaks if name in entry.peaks]
        for (wider, more), (name, tflops) in pairwise(own):
            if tflops < more:
                message = f"{tflops:g} TFLOP/s are fewer than the {more:g} in {wider}"
                remedy = "whose numbers are wider; correct one of them"
                yield document.problem(("peaks", name), f"{message}, {remedy}")


def check_precisions(loaded: Loaded[Precision]) -> Iterator[Diagnostic]:
    """No two precisions share a name or word, and none needs a peak that no precision has."""
    yield from _once(loaded, lambda it: [(("name",), it.name), *_items("words", it.words)])
    peaks = {entry.peak for entry, _ in loaded if entry.peak}
    for entry, document in loaded:
        if entry.needs and entry.needs not in peaks:
            yield _no_such_peak(document, ("needs", entry.needs), peaks)


def check_models(loaded: Loaded[Model]) -> Iterator[Diagnostic]:
    """No two models share a name, and each YAML file has the name of its model."""
    yield from _once(loaded, spellings, sized)
    for entry, document in loaded:
        file = Path(document.where)
        if file.suffix == ".yaml" and file.stem != entry.name:
            message = f"{entry.name!r} is not the name of the file"
            yield document.problem(("name",), message, f"call the file {entry.name}.yaml")


def _no_such_peak(document: Document, place: tuple[str, str], peaks: Collection[str]) -> Diagnostic:
    message = "no precision is measured against this peak"
    return document.problem(place, message, suggestion(place[-1], peaks))


def _once(
    loaded: Loaded[Entry],
    words: Callable[[Entry], Iterable[tuple[Place, str]]],
    spelled: Callable[[str], str] = squeezed,
) -> Iterator[Diagnostic]:
    first: dict[str, tuple[Entry, Document]] = {}
    for item in loaded:
        places: dict[str, Place] = {}
        for place, word in words(item[0]):
            places.setdefault(word, place)
        for word, place in places.items():
            entry, document = other = first.setdefault(spelled(word), item)
            if other is not item:
                there = f"{Path(document.where).name}:{document.line(())}"
                message = f"{word!r} is {entry.name} in {there} already"
                yield item[1].problem(place, message, "it must mean one of them")
