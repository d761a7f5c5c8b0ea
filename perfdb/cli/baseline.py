"""`perfdb baseline`: names of releases that others are held against, in a reviewed file."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click
from pydantic import RootModel
from ruamel.yaml import YAML
from ruamel.yaml.compat import StringIO

from perfdb import yamlfile
from perfdb.audit.review import Text
from perfdb.cli import options
from perfdb.compare import named
from perfdb.compare.releases import known_releases
from perfdb.db.session import reading_current, store_url
from perfdb.errors import Diagnostic, InputError
from perfdb.groups import grouped
from perfdb.jsonfile import write_atomically

FILE: Final = Path("data/baselines.yaml")
_NAME: Final = re.compile(r"[A-Za-z][\w.-]*")


@click.group(epilog=options.examples("perfdb baseline show"))
def baseline() -> None:
    """Name releases to compare with, such as production.

    A baseline names one release each of some frameworks. Use its name in `perfdb compare`, `perfdb
    report`, and `perfdb trend --since`.
    """


@baseline.command("set", epilog=options.examples("perfdb baseline set production 'nemo 25.04'"))
@click.argument("name")
@click.argument("releases", nargs=-1, required=True, metavar="RELEASE...")
@options.db_option
def set_(name: str, releases: Sequence[str], db: str | None) -> None:
    """Use NAME for each RELEASE, such as 'nemo 25.04'.

    This replaces the earlier releases of NAME. It writes data/baselines.yaml. Keep that file in
    version control.
    """
    path, known = FILE, read()
    with reading_current(store_url(db)) as connection:
        choices = known_releases(connection)
    if any(name in (choice.name, choice.version) for choice in choices):
        message = f"{name!r} is a release"
        raise InputError(Diagnostic("baseline", message, remedy="choose another name"))
    found = [named(release, choices) for release in releases]
    for framework, some in grouped(found, lambda it: it.framework).items():
        if len(some) > 1:
            message = f"{' and '.join(it.name for it in some)} are both of {framework}"
            raise InputError(Diagnostic("baseline", message, remedy="name one of each framework"))
    if _NAME.fullmatch(name) is None:
        remedy = "begin with a letter, then letters, digits, - and ."
        raise InputError(Diagnostic("baseline", f"{name!r} is no name", remedy=remedy))
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    names = [it.name for it in found]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, with_baseline(text, name, names))
    before = f", before: {', '.join(known[name])}" if name in known else ""
    click.echo(f"{path}: {name} is {', '.join(names)}{before}")


@baseline.command(epilog=options.examples("perfdb baseline show --json"))
@options.json_option
def show(*, as_json: bool) -> None:
    """List the baselines and their releases."""
    known = read()
    if as_json:
        options.print_json(known)
    elif known:
        options.print_table(
            "Baselines", ("Name", "Releases"), [(it, ", ".join(some)) for it, some in known.items()]
        )
    else:
        click.echo(f"No baselines: {FILE} has none.")


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


def with_baseline(text: str, name: str, releases: Sequence[str]) -> str:
    """The text of the file with a baseline set, and all else as it was."""
    yaml = YAML()
    yaml.width = 10_000
    content = yaml.load(text) or {}
    content[name] = [*releases]
    written = StringIO()
    yaml.dump(content, written)
    return written.getvalue()
