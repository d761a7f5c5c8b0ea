"""JSON: files read as checked values and written atomically, and the hash of a document."""

import hashlib
import json
import os
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from perfdb.errors import Diagnostic, RunDirError

Value = TypeVar("Value", bound=BaseModel)

_canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=vars).encode


def read_json(path: Path, kind: type[Value]) -> Value:
    """A JSON file as a checked value. Raises RunDirError."""
    try:
        return parse_json(str(path), path.read_bytes(), kind)
    except OSError as error:
        raise RunDirError(Diagnostic(str(path), error.strerror or str(error))) from error


def parse_json(where: str, content: bytes, kind: type[Value]) -> Value:
    """A JSON document as a checked value. Raises RunDirError."""
    try:
        return kind.model_validate_json(content)
    except ValidationError as error:
        message = first_error(error)
        line = re.search(r"at line (\d+)", message)
        remedy = "was it written by another version?"
        raise RunDirError(
            Diagnostic(where, message, line=int(line[1]) if line else None, remedy=remedy)
        ) from error


def first_error(error: ValidationError) -> str:
    """The first thing pydantic found, as 'field: what'."""
    first = error.errors()[0]
    field = ".".join(map(str, first["loc"]))
    message = first["msg"].removeprefix("Value error, ")
    return f"{field}: {message}" if field else message


def write_atomically(path: Path, content: str) -> None:
    """Write to a neighbour and rename, so that no reader ever sees half a file."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_text(content, encoding="utf-8")
        with temporary.open() as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)  # of a full disk, which took only a part


def content_hash(fields: Mapping[str, object]) -> str:
    """SHA-256 over the canonical JSON of the fields that have a value.

    Unknown and empty fields are left out, so a field added to a later version changes no old hash.
    """
    known = {name: value for name, value in fields.items() if value not in (None, [], {}, "")}
    return hashlib.sha256(_canonical(known).encode()).hexdigest()


@lru_cache(maxsize=4096)
def of_document(document: str) -> str:
    """The content hash of a JSON document; the same cases and releases come again and again."""
    return content_hash(json.loads(document))
