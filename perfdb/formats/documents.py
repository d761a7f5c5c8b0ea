"""Reads small files whole: JSON and YAML as checked values, or as a result that holds nothing."""

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
from perfdb.formats.scan import whole

Value = TypeVar("Value", bound=BaseModel)

_UNKEPT: Final = re.compile("[\0\ud800-\udfff]")
"""Characters that YAML can write and no store takes."""


class ForeignDocument(BaseModel):
    """What another program wrote: it may say more than perfdb asks for."""

    model_config = ConfigDict(extra="ignore", frozen=True, protected_namespaces=())


def json_object(where: str, content: Content) -> Mapping[str, object] | Diagnostic:
    """The JSON object that a file holds, or what is wrong with it."""
    text = whole(content)
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


def yaml_document(where: str, content: Content) -> yamlfile.Document | Diagnostic:
    """The YAML mapping that a file holds, or what is wrong with it."""
    document = yamlfile.parse(where, whole(content))
    if isinstance(document, yamlfile.Unreadable):
        return document.problems[0]
    if not isinstance(document.content, dict):
        kind = type(document.content).__name__
        return Diagnostic(where, f"expected a YAML mapping, found a {kind}", line=1)
    return replace(document, content=_kept(document.content))


def _kept(value: object) -> object:
    """What a document holds, as it can be stored."""
    if isinstance(value, dict):
        return {_kept(name): _kept(one) for name, one in value.items()}
    if isinstance(value, list):
        return list(map(_kept, value))
    return _UNKEPT.sub("\ufffd", value) if isinstance(value, str) else value


def checked_yaml(document: yamlfile.Document, kind: type[Value]) -> Value | Diagnostic:
    """A YAML document as a checked value, or the first thing that is wrong with it."""
    value = yamlfile.validate(document, kind)
    return value[0] if isinstance(value, list) else value


def identity(document: object) -> str | None:
    """The hash of what a document says, however it is laid out; None where no JSON says it."""
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
