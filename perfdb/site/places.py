"""What the site leaves out: on which machine runs ran, and where on it. The store has it."""

import re
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import Final

from perfdb.site.data import Result, RunPage

_PATH: Final = re.compile(r"(?<![\w./~-])/(?:[^\s/:;,'\"=()<>|]+/)+[^\s/:;,'\"=()<>|]*")
"""An absolute path of two parts or more, in a text."""
_NAMES_A_HOST: Final = re.compile(r"host|nodelist|nodename|addr|user", re.IGNORECASE)
"""What is in the names of fields and variables that tell a machine, or whose it is."""

Said = Callable[[str], str]


def of_result(result: Result) -> Result:
    """The result with its source as a path that tells no folder of the machine it was read on.

    One of a run begins with the run's own folder; of others the name is left.
    """
    if not PurePosixPath(result.source).is_absolute():
        return result
    of_run = result.run_id if result.run_id in PurePosixPath(result.source).parts else None
    inside = _within(result.source, of_run or "")
    source = f"{of_run}/{inside}" if of_run else inside
    return result.model_copy(update={"source": source})


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
    of = {"source": said(result.source), "options": _told(result.options, said)}
    return page.model_copy(update={"run": told, "result": result.model_copy(update=of)})


def _saying(run_id: str, host: object) -> Said:
    """How a text is told of a run on a machine."""
    name = re.compile(rf"(?<![\w.-]){re.escape(str(host))}(?![\w-])") if host else None

    def said(text: str) -> str:
        short = _PATH.sub(lambda path: _within(path[0], run_id), text)
        return name.sub("HOST", short) if name else short

    return said


def _within(path: str, run_id: str) -> str:
    """'/home/me/runs/one/ranks' is 'ranks' to the run one, '/home/me/bin/python' is 'python'."""
    parts = PurePosixPath(path).parts
    if run_id not in parts:
        return parts[-1]
    return "/".join(parts[parts.index(run_id) + 1 :]) or "."


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
