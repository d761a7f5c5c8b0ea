"""Reads small files whole: JSON and YAML as checked values, or as a result without figures."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from perfdb import yamlfile
from perfdb.errors import Diagnostic
from perfdb.formats.base import Content
from perfdb.text import decoded, plain

Value = TypeVar("Value", bound=BaseModel)

_UNKEPT: Final = re.compile("[\0\ud800-\udfff]")
"""Characters that YAML can write and no store takes."""


class ForeignDocument(BaseModel):
    """What another program wrote: it may state more than perfdb reads."""

    model_config = ConfigDict(extra="ignore", frozen=True, protected_namespaces=())


def _whole(content: Content) -> str:
    return decoded(plain(b"".join(content))).removeprefix("\ufeff")


def json_object(where: str, content: Content) -> Mapping[str, object] | Diagnostic:
    """The JSON object in a file, or what is wrong with it."""
    text = _whole(content)
    if not text.strip():
        return Diagnostic(where, "the file is empty", line=1, remedy="run the benchmark again")
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        return Diagnostic(
            where, f"not JSON: {error.msg}", line=error.lineno, remedy="is it cut off?"
        )
    except (ValueError, RecursionError) as error:
        return Diagnostic(where, f"not JSON: {error}")
    if not isinstance(found, dict):
        return Diagnostic(where, f"expected a JSON object, found a {type(found).__name__}", line=1)
    return found


def checked(where: str, found: Mapping[str, object], kind: type[Value]) -> Value | Diagnostic:
    """An object as a checked value, or the first thing that is wrong with it."""
    try:
        return kind.model_validate(found)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"])) or None
        return Diagnostic(where, first["msg"], field=field)


def yaml_document(
    where: str, content: Content, kind: type[Value], *, keep_last: bool = False
) -> tuple[yamlfile.Document, Value] | Diagnostic:
    """The YAML mapping in a file and its checked value, or the first thing that is wrong.

    `keep_last`: the last value of a repeated key is kept.
    """
    document = yamlfile.parse(where, _whole(content), keep_last=keep_last)
    if isinstance(document, yamlfile.Unreadable):
        return document.problems[0]
    if not isinstance(document.content, dict):
        name = type(document.content).__name__
        return Diagnostic(where, f"expected a YAML mapping, found a {name}", line=1)
    document = replace(document, content=_storable(document.content))
    value = yamlfile.validate(document, kind)
    return value[0] if isinstance(value, list) else (document, value)


def _storable(value: object) -> object:
    if isinstance(value, dict):
        return {_storable(name): _storable(one) for name, one in value.items()}
    if isinstance(value, list):
        return list(map(_storable, value))
    return _UNKEPT.sub("\ufffd", value) if isinstance(value, str) else value


def identity(document: object) -> str | None:
    """The hash of what a document states, whatever its layout; None if no JSON can state it."""
    try:
        text = json.dumps(document, sort_keys=True, default=str)
    except (TypeError, ValueError, RecursionError):
        return None
    return hashlib.sha256(text.encode()).hexdigest()


def texts(values: Mapping[str, object]) -> dict[str, str]:
    """Each value as text."""
    return {name: str(value) for name, value in values.items()}


def has_keys(head: bytes, *keys: str) -> bool:
    """Whether the first bytes of a JSON file name all of these keys."""
    return all(re.search(rb'"%s"\s*:' % re.escape(key.encode()), head) for key in keys)
