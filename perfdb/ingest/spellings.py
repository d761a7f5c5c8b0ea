"""How the versions of releases are spelled, so that 25.09 and 25.09.00 are one release."""

from collections.abc import Iterable, Iterator

from sqlalchemy import Engine

from perfdb import versions
from perfdb.queries import catalog
from perfdb.record import Release


class Spellings:
    """The versions of each framework as they were met first: in the store, or in this ingest."""

    def __init__(self, known: Iterable[tuple[str, str]] = ()) -> None:
        self._met: dict[str, dict[str, None]] = {}
        self._told = set[tuple[str, str]]()
        for framework, version in known:
            self._of(framework)[version] = None

    def of(self, release: Release, asked: str | None) -> Release:
        """A release as it is spelled by the command line, else as it was met before."""
        version = release.version
        if version is None:
            return release
        met = self._of(release.framework)
        known = (asked, version if version in met else None, *met)
        alike = (one for one in known if one and versions.is_same(one, version))
        spelled = versions.plain(next(alike, version))
        met[spelled] = None
        return release.model_copy(update={"version": spelled})

    def news(self, said: Release, spelled: Release) -> Iterator[str]:
        """That a version is spelled otherwise than a file says it, once for each."""
        pair = (said.name, spelled.name)
        if said.version != spelled.version and pair not in self._told:
            self._told.add(pair)
            yield f"release {said.version} is stored as {spelled.version}, which is the same"

    def _of(self, framework: str) -> dict[str, None]:
        return self._met.setdefault(framework, {})


def of_store(engine: Engine) -> Spellings:
    """The versions of which the store has a result in force."""
    with engine.connect() as connection:
        return Spellings(connection.execute(catalog.versions()).all())
