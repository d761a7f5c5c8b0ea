"""`perfdb baseline`: names of releases that others are held against."""

from collections.abc import Sequence

import click

from perfdb.cli import options
from perfdb.compare import baselines, named
from perfdb.compare.releases import known_releases
from perfdb.db.session import reading_current, store_url
from perfdb.errors import Diagnostic, InputError
from perfdb.groups import grouped
from perfdb.jsonfile import write_atomically


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
    path, known = baselines.FILE, baselines.read()
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
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    names = [it.name for it in found]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, baselines.with_baseline(text, baselines.checked_name(name), names))
    before = f", before: {', '.join(known[name])}" if name in known else ""
    click.echo(f"{path}: {name} is {', '.join(names)}{before}")


@baseline.command(epilog=options.examples("perfdb baseline show --json"))
@options.json_option
def show(*, as_json: bool) -> None:
    """List the baselines and their releases."""
    known = baselines.read()
    if as_json:
        options.print_json(known)
    elif known:
        options.print_table(
            "Baselines", ("Name", "Releases"), [(it, ", ".join(some)) for it, some in known.items()]
        )
    else:
        click.echo(f"No baselines: {baselines.FILE} has none.")
