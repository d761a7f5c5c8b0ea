"""What the site leaves out: on which machine runs ran, and where on it. The store has it."""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Final

from perfdb.site.contents import Rejection
from perfdb.site.data import RunPage

_PART: Final = r"[^\s/:;,'\"=()<>|]"
_PATH: Final = re.compile(
    rf"(?:(?<![\w./~-])|(?<=file://)|(?<=\s-[A-Z])|(?<=^-[A-Z]))(?:/|(?:\.\./)+)(?:{_PART}+/)+{_PART}*"
)
"""A path of two parts or more that begins at the root or above the run, in a text. A flag such as
-I may stand right before it."""
_HOMES: Final = ("home", "Users")
"""Folders whose folders are called as people are."""
_NAMES_A_HOST: Final = re.compile(r"host|nodelist|nodename|addr|user", re.IGNORECASE)
"""What is in the names of fields and variables that tell a machine, or whose it is."""

Said = Callable[[str], str]


@lru_cache(maxsize=10_000)
def of_path(path: str, run_id: str | None = None) -> str:
    """A path of a file that was read, without the folders of the machine that it was read on.

    One in a run's folder begins with that folder; of others the name is left.
    """
    if not path.startswith("/") and ".." not in path:
        return path
    given = PurePosixPath(path)
    if not given.is_absolute() and ".." not in given.parts:
        return path
    if run_id is None or run_id not in given.parts:
        return given.name
    return f"{run_id}/{_within(path, run_id)}"


def of_row(row: Mapping[str, object]) -> dict[str, object]:
    """A row of `perfdb.queries` on a result, or on a revision, with its source as it is told."""
    return {**row, "source": of_path(str(row["source"]), row["run_id"])}


def of_rejection(rejection: Rejection) -> Rejection:
    """The rejection with its path as it is told."""
    return rejection.model_copy(update={"path": of_path(rejection.path)})


def without(page: RunPage) -> RunPage:
    """The page without the names of machines, and with paths as they are in the run's folder.

    A path that does not lead into it is told by its last part.
    """
    run, result = page.run, page.result
    said = _saying(run.run_id, run.environment.get("hostname"))
    told = run.model_copy(
        update={
            "error": run.error and said(run.error),
            "environment": _told(run.environment, said),
            "command": tuple(map(said, run.command)),
            "summary": _told(run.summary, said),
        }
    )
    options = {"options": _told(result.options, said)}
    lines = {number: said(line) for number, line in page.lines.items()}
    return page.model_copy(
        update={"run": told, "result": result.model_copy(update=options), "lines": lines}
    )


def _saying(run_id: str, host: object) -> Said:
    """How a text is told of a run on a machine."""
    name = _host(str(host)) if host else None

    def said(text: str) -> str:
        short = _PATH.sub(lambda path: _within(path[0], run_id), text)
        return name.sub("HOST", short) if name else short

    return said


def _host(name: str) -> re.Pattern[str]:
    """Finds a host by its whole name and by the first part of it, which may also name a file."""
    first, _, domain = name.partition(".")
    whole = f"{re.escape(name)}|" if domain else ""
    return re.compile(rf"(?<![\w.-])(?:{whole}{re.escape(first)}(?!\.\w))(?![\w-])")


def _within(path: str, run_id: str) -> str:
    """'/home/me/runs/one/ranks' is 'ranks' to the run one, '/home/me/bin/python' is 'python'."""
    parts = PurePosixPath(path).parts
    if run_id in parts:
        return "/".join(parts[parts.index(run_id) + 1 :]) or "."
    is_home = len(parts) > 1 and parts[-2] in _HOMES
    return "~" if is_home else parts[-1]


def _told(value: object, said: Said) -> object:
    """Texts as they are told, at whatever depth; what tells a machine is left out."""
    match value:
        case str():
            return said(value)
        case Mapping():
            kept = {name: one for name, one in value.items() if not _NAMES_A_HOST.search(name)}
            return {name: _told(one, said) for name, one in kept.items()}
        case list() | tuple():
            return [_told(one, said) for one in value]
        case _:
            return value
