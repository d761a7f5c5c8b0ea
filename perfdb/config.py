"""Reads `perfdb.toml`, what a user or a site adds of their own: the only reader of the file."""

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from perfdb.errors import ConfigError, Diagnostic, suggestion

if TYPE_CHECKING:
    from perfdb.yamlfile import Document, Place

FILE: Final = "perfdb.toml"
VARIABLE: Final = "PERFDB_CONFIG"
TABLES: Final = ("systems", "models", "slurm", "publish", "prices")
"""The tables of the file."""

_HEADER = re.compile(r"\s*\[([^\[\]]+)\]\s*(?:#.*)?")
_KEY = re.compile(r"\s*([\w-]+|\"[^\"]*\"|'[^']*')\s*=")
_AT_LINE = re.compile(r" \(at line (\d+), column \d+\)$")


def path() -> Path | None:
    """The file that PERFDB_CONFIG names, else perfdb.toml here; None where there is none.

    Raises ConfigError where PERFDB_CONFIG names a file that is not there.
    """
    named = os.environ.get(VARIABLE)
    file = Path(named or FILE)
    if file.is_file():
        return file
    if named:
        remedy = f"correct the path, or unset {VARIABLE}"
        raise ConfigError(Diagnostic(VARIABLE, f"no file {named}", remedy=remedy))
    return None


def entries(table: str) -> "Iterator[Document]":
    """Each entry of a table as a document, with the key of the entry as its `name`.

    Raises ConfigError.
    """
    document = _document(path())
    content = document.content if document else None
    found = content.get(table, {}) if isinstance(content, Mapping) else {}
    if document and not isinstance(found, Mapping):
        raise ConfigError(document.problem((table,), "is no table", f"write [{table}.NAME]"))
    for name, entry in found.items():
        assert document is not None, "no file has no entries"
        place = (table, name)
        if not isinstance(entry, Mapping):
            remedy = f"write [{table}.NAME]"
            raise ConfigError(document.problem(place, "is no table", remedy))
        if entry.get("name", name) != name:
            message = f"its table is called {name!r}"
            raise ConfigError(document.problem((*place, "name"), message, "leave it out"))
        lines = {at[2:]: line for at, line in document.lines.items() if at[:2] == place}
        from perfdb.yamlfile import Document  # noqa: PLC0415  a site is built without it

        # An entry that is written within a line has no line of its own.
        where = document.where if () in lines else f"{document.where}: {table}.{name}"
        yield Document(where, {**entry, "name": name}, lines)


def table(name: str, file: Path | None = None) -> "Document | None":
    """A table of a file, else of perfdb.toml, that has no entries; None where there is none.

    Raises ConfigError.
    """
    document = _document(file or path())
    content = document.content if document else None
    if document is None or not isinstance(content, Mapping) or name not in content:
        return None
    if not isinstance(content[name], Mapping):
        raise ConfigError(document.problem((name,), "is no table", f"write [{name}]"))
    lines = {at[1:]: line for at, line in document.lines.items() if at[:1] == (name,)}
    from perfdb.yamlfile import Document  # noqa: PLC0415  a site is built without it

    return Document(document.where, content[name], lines)


def _document(file: Path | None) -> "Document | None":
    """The file, with its tables checked. Raises ConfigError."""
    if file is None:
        return None
    try:
        return _checked(str(file), file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(Diagnostic(str(file), f"not TOML: {error}")) from error


@cache
def _checked(where: str, text: str) -> "Document":
    """The text of a file, which may be another one when a path is read again."""
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        at = _AT_LINE.search(str(error))
        message = f"not TOML: {_AT_LINE.sub('', str(error))}"
        raise ConfigError(Diagnostic(where, message, line=int(at[1]) if at else None)) from error
    from perfdb.yamlfile import Document  # noqa: PLC0415  a site is built without it

    document = Document(where, content, _lines(text))
    if unknown := [name for name in content if name not in TABLES]:
        raise ConfigError(
            document.problem((name,), "no such table", suggestion(name, TABLES)) for name in unknown
        )
    return document


def _lines(text: str) -> "Mapping[Place, int]":
    """The line of each table and key, as far as they are written on lines of their own."""
    found: dict[Place, int] = {}
    table: Place = ()
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.fullmatch(line):
            table = _parts(header[1])
            found.setdefault(table[:1], number)
            found[table] = number
        elif key := _KEY.match(line):
            found[(*table, *_parts(key[1]))] = number
    return found


def _parts(key: str) -> "Place":
    """The parts of a dotted key: `models."llama3.1-8b".mamba`."""
    found = re.findall(r"\"([^\"]*)\"|'([^']*)'|([\w-]+)", key)
    return tuple("".join(part) for part in found)
