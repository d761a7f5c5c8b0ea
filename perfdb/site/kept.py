"""What a build has made of the store, kept for the next one.

What was made with other code, or is damaged, is left out: it is made again.
"""

import hashlib
import pickle
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from perfdb.export.formats import WrittenTable
from perfdb.queries.fingerprints import ReleaseName
from perfdb.record import Finding
from perfdb.site import files
from perfdb.site.data import Audited, RunData, SiteResult, digest_of
from perfdb.site.pages.revisions import ReleaseChangelog
from perfdb.site.pages.scaling import ScalingPage

if TYPE_CHECKING:
    from perfdb.site.pages.release_pairs import ReleasePair

_SEAL_DIGITS: Final = 64


@dataclass(frozen=True, kw_only=True)
class KeptRelease:
    """What was read of a release: its values as `SiteData` has them, of this release alone.

    `fingerprint` is of the rows of the store; `context` of what else the values are made of: the
    order of releases, titles that only pages print, and who accepted which finding.
    `unknown` are the models that the catalog lacks, with the first result and what its page calls
    the model. `raised` are the values of the findings as the audit made them, which few builds
    read. `exported` are the current results in the file of all.
    """

    fingerprint: str = ""
    context: str = ""
    release_ids: frozenset[int]
    unknown: Mapping[str, tuple[int, str]]
    raised: bytes
    results: tuple[SiteResult, ...]
    current: tuple[SiteResult, ...]
    runs: tuple[RunData, ...]
    audited: tuple[Audited, ...]
    changelog: ReleaseChangelog
    scaling: tuple[ScalingPage, ...]
    exported: WrittenTable

    @property
    def findings(self) -> list[Finding]:
        """What the audit found, as if nobody had accepted any of it."""
        return [Finding.model_construct(**one) for one in pickle.loads(self.raised)]


KeptReleases = dict[ReleaseName, KeptRelease]
"""What is known of each release."""
KeptPairs = dict[str, "ReleasePair"]
"""Comparisons of two releases, by the keys of what they are made of."""


class KeptBuild:
    """The releases as they were read and their comparisons, each in a file of a folder.

    `releases` and `pairs` are what is known now.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.releases: KeptReleases = {}
        self.pairs: KeptPairs = {}
        for path in folder.glob("*.pickle"):
            content = memoryview(path.read_bytes())
            if content[:_SEAL_DIGITS] == _seal(content[_SEAL_DIGITS:]):
                name, value = pickle.loads(content[_SEAL_DIGITS:])
                known = self.releases if isinstance(value, KeptRelease) else self.pairs
                known[name] = value
        self._written = dict(self._items())

    def _items(self) -> Iterator[tuple[ReleaseName | str, "KeptRelease | ReleasePair"]]:
        yield from self.releases.items()
        yield from self.pairs.items()

    def save(self) -> set[Path]:
        """Write what was made anew; the files of all that is known."""
        paths = set()
        for name, value in self._items():
            path = self.folder / f"{digest_of(name)[:16]}.pickle"
            if self._written.get(name) is not value:
                content = pickle.dumps((name, value), pickle.HIGHEST_PROTOCOL)
                files.replace(path, _seal(content) + content)
            paths.add(path)
        return paths


def _seal(content: bytes | memoryview) -> bytes:
    """The same for the same content of the same code and settings."""
    known = hashlib.sha256(f"{files.code()} {files.own_catalog()!r}".encode())
    known.update(content)
    return known.hexdigest().encode()
