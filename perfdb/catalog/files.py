"""Catalogue files: their entries with their lines, and all problems in them at once."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Generic, TypeVar

import yaml

from perfdb import yamlfile
from perfdb.catalog.base import Named
from perfdb.errors import CatalogError, Diagnostic
from perfdb.yamlfile import Document, Unreadable

Entry = TypeVar("Entry", bound=Named)

_LOADER: Final = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
"""libyaml's loader where there is one: it is faster, and the files come with perfdb."""


@dataclass(frozen=True)
class Given(Generic[Entry]):
    """An entry, and the document that it was read from, which knows its lines."""

    entry: Entry
    document: Document

    @property
    def place(self) -> str:
        """'systems.yaml:4'."""
        return f"{Path(self.document.where).name}:{self.document.line(())}"


Check = Callable[[Sequence[Given[Entry]]], Iterable[Diagnostic]]


def entries(paths: Iterable[Path], kind: type[Entry], check: Check[Entry]) -> dict[str, Entry]:
    """The entries of files, by name; a file has one entry or a list. Raises CatalogError."""
    given: list[Given[Entry]] = []
    problems: list[Diagnostic] = []
    for path in paths:
        for document in _documents(path, problems):
            read = yamlfile.validate(document, kind, kind.ELSEWHERE)
            if isinstance(read, list):
                problems += read
            else:
                given.append(Given(read, document))
    problems += check(given)
    if problems:
        raise CatalogError(sorted(problems, key=lambda problem: (problem.where, problem.line or 0)))
    return {item.entry.name: item.entry for item in given}


def _documents(path: Path, problems: list[Diagnostic]) -> Sequence[Document]:
    """Each entry of a file with its own lines."""
    parsed = yamlfile.parse(str(path), path.read_text(encoding="utf-8"), _LOADER)
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
