"""What the pages show, as values."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import date, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from perfdb.audit.report import counts
from perfdb.compare.coverage import RowCoverage
from perfdb.compare.run_diff import RunFacts
from perfdb.messages import note_text
from perfdb.recipe import RecipeFile
from perfdb.record import Finding, Result, RunKind, Severity
from perfdb.run_record import RunRecord
from perfdb.rundir import RunDir

if TYPE_CHECKING:
    from perfdb.site.pages.release_pairs import ReleasePair
    from perfdb.site.pages.revisions import ReleaseChangelog
    from perfdb.site.pages.scaling import ScalingPage

MOST_STEPS: Final = 1000
"""Rows of the table of steps; a page with more of them is slow to open, the file has them all."""
RECIPE: Final = RunDir(Path()).recipe.name
"""The name of the recipe among the files of a run."""


@dataclass(frozen=True)
class Flag:
    """What the audit objects to in a result: '1 error', and where the page of findings has it.

    `kind`: error, warning, or explained where all of it is acknowledged.
    """

    counts: str
    kind: str
    anchor: str


@dataclass(frozen=True, kw_only=True, repr=False)
class SiteResult(Result):
    """A result with the audit's marks. `build` orders releases that only a commit tells apart."""

    build: int = 0
    flag: Flag | None = None
    findings: str = ""

    @cached_property
    def note_texts(self) -> tuple[str, ...]:
        return tuple(map(note_text, self.notes))

    @property
    def withheld_text(self) -> str:
        """Why it has no figures; empty where it has."""
        return note_text(self.withheld) if self.withheld else ""

    @cached_property
    def digest(self) -> str:
        """The same for the same values."""
        return digest_of([getattr(self, name) for name in _VALUES])

    def __repr__(self) -> str:
        """Short: many pages are made of many results, and are known by what they are made of."""
        return f"SiteResult({self.digest})"

    def __reduce__(self) -> tuple[object, ...]:
        """Its values without their names: a build reads back all results that it has kept."""
        return _restored, (self.digest, *(getattr(self, name) for name in _VALUES))


_VALUES: Final = tuple(field.name for field in fields(SiteResult))


def _restored(digest: str, *values: object) -> SiteResult:
    one = SiteResult.__new__(SiteResult)
    vars(one).update(zip(_VALUES, values, strict=True), digest=digest)
    return one


def digest_of(values: object) -> str:
    """The same for what reads the same; SHA-256 in hexadecimal."""
    return hashlib.sha256(repr(values).encode(errors="surrogatepass")).hexdigest()


@dataclass(frozen=True, kw_only=True)
class RunStep:
    step: int
    step_time_s: float
    loss: float | None = None
    grad_norm: float | None = None
    peak_memory_bytes: int | None = None
    skipped: bool = False
    source_line: int


@dataclass(frozen=True, kw_only=True)
class RunFile:
    """A file of a run directory, by its name in there."""

    run_id: str
    name: str
    sha256: str
    size_bytes: int


@dataclass(frozen=True, kw_only=True)
class SiteRun:
    """A run, as perfdb.queries.catalog has it."""

    id: int = 0
    run_id: str
    recipe: str | None = None
    kind: str = RunKind.BENCHMARK
    outcome: str
    error: str | None = None
    exit_code: int | None = None
    attempt: int
    started_at: datetime | None = None
    ended_at: datetime | None = None
    ingested_at: datetime | None = None
    warmup_steps: int
    environment: Mapping[str, object]
    command: tuple[str, ...]
    summary: Mapping[str, object] | None = None


@dataclass(frozen=True)
class Link:
    """A document of the site, and what it is called where it is linked."""

    text: str
    document: str


@dataclass(frozen=True, kw_only=True)
class RunData:
    """A run with its result, steps and files. `recipe_text`: None without a recipe file.

    `others` are the other runs of its case and release; `lines` those of the file that its steps
    are from, by their numbers; none of a file that is large. `record`: None of a log; `provenance`
    is the document of `perfdb.compare.reproduce.Provenance`.
    """

    run: SiteRun
    result: SiteResult
    steps: tuple[RunStep, ...]
    files: tuple[RunFile, ...]
    recipe_text: str | None = None
    others: tuple[Link, ...] = ()
    lines: Mapping[int, str] = field(default_factory=dict)
    record: RunRecord | None = None
    facts: RunFacts
    provenance: Mapping[str, object] = field(default_factory=dict)

    @property
    def measured_file(self) -> RunFile | None:
        """The file that the steps are from."""
        return next((file for file in self.files if file.sha256 == self.result.source_sha256), None)

    @property
    def recipe_file(self) -> RunFile | None:
        """The file that the recipe's text is in."""
        return next((file for file in self.files if file.name == RECIPE), None)


@dataclass(frozen=True, kw_only=True)
class SourceData:
    """A state of a published page: its text, and what it says of its original."""

    path: str
    sha256: str
    text: str
    read_at: datetime | None = None
    source_url: str | None = None
    published_on: date | None = None


GRAVE: Final = (Severity.ERROR, Severity.WARNING)
"""How grave an objection is."""


def objections(findings: Iterable[Finding]) -> list[Finding]:
    """The errors and warnings among findings."""
    return [one for one in findings if one.severity in GRAVE]


def flag_of(findings: Iterable[Finding], anchor: str) -> Flag | None:
    """The mark of a result with these, the gravest first; None where none objects to it."""
    raised = objections(findings)
    return Flag(counts(raised), raised[0].kind, anchor) if raised else None


@dataclass(frozen=True, kw_only=True, repr=False)
class Audited:
    """A result that has findings, the gravest first. `anchor` names its entry."""

    result: SiteResult
    anchor: str
    findings: tuple[Finding, ...]

    @cached_property
    def digest(self) -> str:
        """The same for the same values."""
        return digest_of((self.result, self.anchor, list(map(vars, self.findings))))

    def __repr__(self) -> str:
        return f"Audited({self.digest})"

    def __reduce__(self) -> tuple[object, ...]:
        """As for a result: pydantic restores what it has made one by one."""
        return _audited, (self.result, self.anchor, [*map(vars, self.findings)], self.digest)

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """How grave each of its findings is, or that it is explained."""
        return tuple(it.kind for it in self.findings)

    @cached_property
    def objections(self) -> list[Finding]:
        """Its errors and warnings, also those that somebody has explained."""
        return objections(self.findings)

    @cached_property
    def open(self) -> list[Finding]:
        """Its errors and warnings that nobody has explained."""
        return [it for it in self.objections if it.kind in GRAVE]


def _audited(
    result: SiteResult, anchor: str, findings: Iterable[dict[str, Any]], digest: str
) -> Audited:
    """What `Audited.__reduce__` has written."""
    made = tuple(Finding.model_construct(**one) for one in findings)
    known = Audited(result=result, anchor=anchor, findings=made)
    vars(known)["digest"] = digest
    return known


KINDS: Final = (*(severity.value for severity in Severity), "explained")
"""Kinds of findings, the gravest first. An acknowledged one is explained, however grave it is."""


@dataclass(frozen=True, kw_only=True)
class ResultRevision(Result):
    """The values of a result at one moment: `superseded_at` is None while it is current.

    `withdrawn` is why its run does not count; `stated_reason` is why somebody withdrew its page or
    run when it was superseded.
    """

    key: str
    revision: int
    created_at: datetime
    superseded: bool
    superseded_at: datetime | None
    withdrawn: str | None = None
    stated_reason: str | None = None


@dataclass(frozen=True, kw_only=True)
class Rejection:
    """Something that was not stored, and why."""

    at: datetime
    path: str
    line: int | None
    reason: str | None


@dataclass(frozen=True, kw_only=True)
class SiteData:
    """Everything that the store has for the site.

    `current` are all results that are not superseded; `results` those of them that tables print,
    one for each case, release and origin; `runs` are all; `audited` are the results that have
    findings; `changelog` is of all results there ever were. `pairs` and `scaling` are what several
    kinds of pages show of them: comparisons of releases, and series over numbers of GPUs.
    `coverage` is of the published results by the recipes, and `provenance` what belongs to the
    number of each that has one; `buildable` is the verdict of the last deep check on cases, by
    their keys.
    """

    results: tuple[SiteResult, ...] = ()
    current: tuple[SiteResult, ...] = ()
    runs: tuple[RunData, ...] = ()
    sources: tuple[SourceData, ...] = ()
    audited: tuple[Audited, ...] = ()
    changelog: "tuple[ReleaseChangelog, ...]" = ()
    rejections: tuple[Rejection, ...] = ()
    pairs: "tuple[ReleasePair, ...]" = ()
    scaling: "tuple[ScalingPage, ...]" = ()
    recipes: tuple[RecipeFile, ...] = ()
    coverage: tuple[RowCoverage, ...] = ()
    provenance: Mapping[int, Mapping[str, object]] = field(default_factory=dict)
    buildable: Mapping[str, bool | None] = field(default_factory=dict)
    hostnames: bool = False
    """Whether pages of runs name the machine."""
    is_public: bool = False
    """Whether it is for everybody: without what only those who keep the store need."""
    prices: Mapping[str, float] = field(default_factory=dict)
    """US dollars per GPU-hour by system, as far as they are stated."""

    @property
    def corrected(self) -> Mapping[int, str]:
        """What was corrected in current results, by their numbers in the store."""
        return {key: text for one in self.changelog for key, text in one.corrected.items()}
