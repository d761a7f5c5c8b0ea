"""All that is read from the store, from which the pages are made."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property

from perfdb.compare import Comparison
from perfdb.messages import NoteText
from perfdb.record import Frozen
from perfdb.site import addresses
from perfdb.site.data import Audited, Result, Row, RunPage, SourcePage
from perfdb.site.series import ScalingPage, groups


class Skipped(Frozen):
    """A release that a later one is not compared with, and why."""

    release: str
    reason: str


class ReleasePair(Frozen):
    """A release of a framework against the newest before it that shares work.

    `skipped` are those between; `rows` names the row of each result, by its number in the store, on
    the page of its release.
    """

    framework: str
    before: str
    after: str
    comparison: Comparison
    skipped: tuple[Skipped, ...] = ()
    rows: Mapping[int, str] = {}
    is_newest: bool = False

    @property
    def document(self) -> str:
        """The name of its page: that of the newest release is the framework's own."""
        return addresses.of_changes(self.framework, None if self.is_newest else self.after)


class Revision(Row):
    """What a result says at one moment: `superseded_at` is None while it holds, or not known.

    `withdrawn` says why its run does not count; `logged` is what the log says of what superseded a
    row of a page.
    """

    key: str
    revision: int
    created_at: datetime
    superseded: bool
    superseded_at: datetime | None
    framework: str
    release: str | None
    system: str
    system_title: str
    model: str
    model_title: str
    qualifiers: str
    task: str
    variant: str | None = None
    precision: str | None
    num_gpus: int
    origin: str
    source: str
    source_sha256: str
    source_line: int | None
    run_id: str | None
    recipe: str | None = None
    withdrawn: str | None = None
    logged: str | None = None
    outcome: str
    withheld: NoteText | None
    window: str | None = None
    step_time_s: float | None
    tokens_per_sec: float | None = None
    tokens_per_sec_per_gpu: float | None
    flops_convention: str | None = None
    model_tflops_per_sec_per_gpu: float | None
    mfu: float | None
    peak_memory_bytes: int | None = None
    raw: Mapping[str, str]
    notes: tuple[NoteText, ...] = ()
    result_id: int = 0


class Rejection(Row):
    """Something that was not stored, and why."""

    at: datetime
    path: str
    line: int | None
    reason: str | None


class State(Row):
    """A published page as it was at a moment."""

    path: str
    sha256: str
    ingested_at: datetime
    created_at: datetime | None
    source_url: str | None
    published_on: date | None

    @property
    def read_at(self) -> datetime:
        """When the page was last known to say this: when it, or a result of it, was read."""
        return max(self.ingested_at, self.created_at or self.ingested_at)


@dataclass(frozen=True)
class Contents:
    """All that the store says to the site.

    `in_force` are all results that are; `results` those of them that tables print, one for each
    case, release and origin; `runs` are all; `audited` are the results that have findings;
    `revisions` are of all results there ever were.
    """

    results: tuple[Result, ...] = ()
    in_force: tuple[Result, ...] = ()
    runs: tuple[RunPage, ...] = ()
    sources: tuple[SourcePage, ...] = ()
    audited: tuple[Audited, ...] = ()
    pairs: tuple[ReleasePair, ...] = ()
    revisions: tuple[Revision, ...] = ()
    rejections: tuple[Rejection, ...] = ()

    @cached_property
    def scaling(self) -> tuple[ScalingPage, ...]:
        """The pages of the same work on more and more GPUs, which several kinds of pages name."""
        return tuple(groups(self.results))
