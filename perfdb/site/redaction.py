"""What the site leaves out: secrets, on which machine runs ran, and where on it."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Any, Final

from perfdb.hardware import without_secrets
from perfdb.record import Scalar
from perfdb.rundir import RECORD

_PART: Final = r"[^\s/:;,'\"=()<>|]"
_PATH: Final = re.compile(
    rf"(?:(?<![\w./~-])|(?<=file://)|(?<=\s-[A-Z])|(?<=^-[A-Z]))(?:/|(?:\.\./)+)(?:{_PART}+/)+{_PART}*"
)
"""A path of two parts or more that begins at the root or above the run, in a text. A flag such as
-I may be right before it."""
_HOMES: Final = ("home", "Users")
"""Folders whose folders have the names of people."""
_NAMES_A_HOST: Final = re.compile(
    r"host|nodelist|nodename|addr|user|account|cluster_name|_[ug]id$", re.IGNORECASE
)
"""What is in the names of fields and variables that identify a machine, or its owner."""

Redactor = Callable[[str], str]


@lru_cache(maxsize=10_000)
def of_path(path: str, run_id: str | None = None) -> str:
    """A path of a file that was read, without the folders of the machine that it was read on.

    One in a run's folder begins with that folder; of others the name is left.
    """
    parts = PurePosixPath(path).parts
    if not path.startswith("/") and ".." not in parts:
        return path
    if run_id is None or run_id not in parts:
        return PurePosixPath(path).name
    return f"{run_id}/{_within(path, run_id)}"


def of_file(name: str, content: bytes, *, hostnames: bool) -> bytes:
    """A file of a run without secrets; its record without the names of machines and folders, too.

    With `hostnames` the record keeps those.
    """
    text = content.decode("latin-1")  # any bytes, one character each
    plain = without_secrets(text)
    kept = content if plain == text else plain.encode("latin-1")
    if name != RECORD or hostnames:
        return kept
    record = json.loads(kept)
    redact = redactor(str(record["run_id"]), record["environment"])
    known = {**redacted_fields(record, redact), "run_id": record["run_id"]}
    return json.dumps(known, indent=1, ensure_ascii=False).encode()


def redactor(run_id: str, environment: Mapping[str, Any]) -> Redactor:  # as JSON has it
    """A function that leaves folders and the names of its hosts out of texts of a run."""
    names = [environment.get("hostname")]
    names += [host for group in environment.get("nodes", ()) for host in group["hostnames"]]
    name = _hosts(tuple(sorted({str(host) for host in names if host})))

    def redact(text: str) -> str:
        short = _PATH.sub(lambda path: _within(path[0], run_id), without_secrets(text))
        return name.sub("HOST", short) if name else short

    return redact


def redacted(value: object, redact: Redactor, *, names: bool = False) -> object:
    """A value of JSON without what `redact` takes out, at whatever depth.

    It keeps fields that name a machine only with `names`.
    """
    match value:
        case str():
            return redact(value)
        case Mapping():
            return redacted_fields(value, redact, names=names)
        case list() | tuple():
            return [redacted(one, redact, names=names) for one in value]
        case _:
            return value


def redacted_fields(
    values: Mapping[str, object], redact: Redactor, *, names: bool = False
) -> dict[str, object]:
    """The fields of an object of JSON, redacted likewise."""
    return {
        name: redacted(one, redact, names=names)
        for name, one in values.items()
        if names or not _NAMES_A_HOST.search(name)
    }


def redacted_options(options: Mapping[str, Scalar], redact: Redactor) -> dict[str, Scalar]:
    """Options of a framework, redacted likewise."""
    kept = {name: one for name, one in options.items() if not _NAMES_A_HOST.search(name)}
    return {name: redact(one) if isinstance(one, str) else one for name, one in kept.items()}


def _hosts(names: Sequence[str]) -> re.Pattern[str] | None:
    """Finds hosts by their whole names and by the first parts, which may also name a file."""
    wholes = [f"{re.escape(name)}|" for name in names if "." in name]
    firsts = "|".join(sorted({re.escape(name.partition(".")[0]) for name in names}))
    found = rf"(?<![\w.-])(?:{''.join(wholes)}(?:{firsts})(?!\.\w))(?![\w-])"
    return re.compile(found) if names else None


def _within(path: str, run_id: str) -> str:
    """'/home/me/runs/one/ranks' is 'ranks' to the run one, '/home/me/bin/python' is 'python'."""
    parts = PurePosixPath(path).parts
    if run_id in parts:
        return "/".join(parts[parts.index(run_id) + 1 :]) or "."
    is_home = len(parts) > 1 and parts[-2] in _HOMES
    return "~" if is_home else parts[-1]
