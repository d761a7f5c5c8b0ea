"""Results that stay in force though their page no longer states them.

What it says now could not be read, is of another release, or is what another page of its name says.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from sqlalchemy import Connection

from perfdb.db import pages, results
from perfdb.db.rows import ResultRow
from perfdb.errors import Diagnostic
from perfdb.ingest import fallback, shown
from perfdb.ingest.read import PageRows
from perfdb.ingest.shown import Shown
from perfdb.record import Release
from perfdb.units import counted

MOST: Final = 5
"""Results of a page that are told one by one."""

_REMEDY: Final = "mend what is rejected: what the page no longer states is then withdrawn"
_CORRECTED: Final = "if they are not to, withdraw it by its path and read it again"
_OF_ONE_NAME: Final = f"read pages of one name from a folder above them; {_CORRECTED}"


def notes(connection: Connection, path: str, given: Sequence[ResultRow]) -> Iterator[Diagnostic]:
    """The results in force that a page stated before and that are not among the rows read now.

    One of them may be what a rejected row says, or have been taken off: nobody can tell which.
    """
    stated = (
        results.no_longer_stated(connection, path, given, same_page=True)
        if given
        else results.all_stated(connection, path)
    )
    left = list(shown.of_ids(connection, [one.id for one in stated]))
    if len(left) > MOST:
        message = f"{len(left)} results read from it {_when(left)} stay in force"
        yield Diagnostic(path, message, remedy=_REMEDY)
    else:
        yield from (_note(path, one) for one in left)


def of_path(connection: Connection, path: str) -> Iterator[Diagnostic]:
    """The same of a page, or a file of results, of which nothing at all could be read."""
    for page in pages.stating(connection, fallback.spellings(path)):
        yield from notes(connection, page.path, ())


def of_state(
    connection: Connection, read: PageRows, source_id: int | None, *, whole: bool
) -> Iterator[Diagnostic]:
    """The results in force of the state of a page before this one that this one does not state.

    They are of a release that it does not name, or, of one read `whole`, of another page.
    """
    stated = {row.key for row in read.rows}
    ids = [
        one.id
        for one in results.all_stated(connection, read.path)
        if one.source_id == source_id and one.key not in stated
    ]
    by_release: dict[Release, list[Shown]] = {}
    for one in shown.of_ids(connection, ids):
        release = Release(framework=one.framework, version=one.release)
        by_release.setdefault(release, []).append(one)
    for release, some in by_release.items():
        stay = f"stay{'s' if len(some) == 1 else ''} in force"
        message = f"{counted(len(some), 'result')} of {release.name}, read from it {_when(some)}, "
        if release.version not in {None, *(row.release.version for row in read.rows)}:
            message += f"{stay}: it does not name that release now"
            yield Diagnostic(read.path, message, remedy=_CORRECTED)
        elif whole:
            message += f"{stay}: it shows no case of theirs, as another page of this name would"
            yield Diagnostic(read.path, message, remedy=_OF_ONE_NAME)


def _note(path: str, one: Shown) -> Diagnostic:
    of = f"{one.model} on {one.num_gpus} × {one.system}, {one.figure}"
    place = "this line" if one.source_line else "it"
    message = f"the result read from {place} {_when([one])} ({of}) stays in force"
    return Diagnostic(path, message, line=one.source_line, remedy=_REMEDY)


def _when(left: Iterable[Shown]) -> str:
    """'on 2026-11-20', or 'from 2026-11-20 to 2026-11-22'."""
    days = sorted({f"{one.created_at:%Y-%m-%d}" for one in left})
    return f"on {days[0]}" if len(days) == 1 else f"from {days[0]} to {days[-1]}"
