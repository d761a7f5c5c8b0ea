"""Names of releases that others are held against, such as production: the reviewed file."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pydantic import RootModel
from ruamel.yaml import YAML
from ruamel.yaml.compat import StringIO

from perfdb import yamlfile
from perfdb.audit.review import Text
from perfdb.errors import Diagnostic, InputError

FILE: Final = Path("data/baselines.yaml")
_NAME: Final = re.compile(r"[A-Za-z][\w.-]*")


class _File(RootModel[dict[str, tuple[Text, ...]]]):
    pass


def read(path: Path = FILE) -> dict[str, tuple[str, ...]]:
    """The names of releases by that of a baseline; none without a file.

    Raises InputError with everything that is wrong with it.
    """
    text = yamlfile.text_of(path) if path.is_file() else ""
    if all(not line.strip() or line.lstrip().startswith("#") for line in text.splitlines()):
        return {}
    return yamlfile.checked(yamlfile.parse(str(path), text), _File).root


def checked_name(name: str) -> str:
    """The name of a baseline. Raises InputError for one that could be taken for a release."""
    if _NAME.fullmatch(name) is None:
        remedy = "begin with a letter, then letters, digits, - and ."
        raise InputError(Diagnostic("baseline", f"{name!r} is no name", remedy=remedy))
    return name


def with_baseline(text: str, name: str, releases: Sequence[str]) -> str:
    """The text of the file with a baseline set, and all else as it was."""
    yaml = YAML()
    yaml.width = 10_000
    content = yaml.load(text) or {}
    content[name] = [*releases]
    written = StringIO()
    yaml.dump(content, written)
    return written.getvalue()
