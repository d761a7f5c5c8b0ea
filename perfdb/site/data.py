"""What the pages show, read from the store in one read-only transaction."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import date, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from sqlalchemy import URL, Connection, Select

from perfdb import catalog as catalogue
from perfdb.audit.report import counts, ordered
from perfdb.audit.review import Entry, explained
from perfdb.catalog import names
from perfdb.catalog.titles import model as model_title
from perfdb.compare import run_diff
from perfdb.compare.coverage import RowCoverage
from perfdb.compare.releases import builds, known_releases
from perfdb.compare.run_diff import RunFacts
from perfdb.db.session import reading, require_current, store_url
from perfdb.db.sources import content
from perfdb.groups import grouped
from perfdb.hardware import without_secrets
from perfdb.messages import note_text
from perfdb.queries import catalog, results, runs
from perfdb.queries.catalog import row_versions
from perfdb.recipe import RecipeFile
from perfdb.record import Finding, Result, RunKind, Severity
from perfdb.run_record import RunRecord
from perfdb.rundir import RunDir
from perfdb.site import redaction
from perfdb.text import ESCAPE, decoded

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from perfdb.site.pages.pairs import ReleasePair
    from perfdb.site.pages.scaling import ScalingPage

Kind = TypeVar("Kind", bound="DataclassInstance")
StoredRow = dict[str, object]

MOST_STEPS: Final = 1000
"""Rows of the table of steps; a page with more of them is slow to open, the file has them all."""
MOST_LISTED_BYTES: Final = 1 << 20
"""No line of a larger file is shown: it would have to be unpacked for each build."""
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
        """The words of its notes."""
        return tuple(map(note_text, self.notes))

    @property
    def withheld_text(self) -> str:
        """Why it has no figures; empty where it has."""
        return note_text(self.withheld) if self.withheld else ""

    @cached_property
    def digest(self) -> str:
        """The same for the same values."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return hashlib.sha256(repr(values).encode()).hexdigest()

    def __repr__(self) -> str:
        """Short: many pages are made of many results, and are known by what they are made of."""
        return f"SiteResult({self.digest})"


@dataclass(frozen=True, kw_only=True)
class RunStep:
    """A step of a run."""

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


@dataclass(frozen=True, kw_only=True)
class Audited:
    """A result that has findings, the gravest first. `anchor` names its entry."""

    result: SiteResult
    anchor: str
    findings: tuple[Finding, ...]

    @property
    def objections(self) -> list[Finding]:
        """Its errors and warnings, also those that somebody has explained."""
        return [one for one in self.findings if one.severity.reaches(Severity.WARNING)]

    @property
    def open(self) -> list[Finding]:
        """Its errors and warnings that nobody has explained."""
        return [one for one in self.objections if not one.acknowledged]

    @property
    def flag(self) -> Flag | None:
        """The mark of the result; None where the findings are only worth knowing."""
        raised = self.objections
        return Flag(counts(raised), raised[0].kind, self.anchor) if raised else None


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
    findings; `revisions` are of all results there ever were. `pairs` and `scaling` are what several
    kinds of pages show of them: comparisons of releases, and series over numbers of GPUs.
    `coverage` is of the published results by the recipes, and `provenance` what belongs to the
    number of each; `buildable` is the verdict of the last deep check on cases, by their keys.
    """

    results: tuple[SiteResult, ...] = ()
    current: tuple[SiteResult, ...] = ()
    runs: tuple[RunData, ...] = ()
    sources: tuple[SourceData, ...] = ()
    audited: tuple[Audited, ...] = ()
    revisions: tuple[ResultRevision, ...] = ()
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


def stored(url: URL, accepted: Sequence[Entry] = ()) -> SiteData:
    """The data of a store; `accepted` are findings that people have explained.

    Raises StoreError where there is no database, or one of another version.
    """
    with reading(url) as connection:
        require_current(connection, url.render_as_string())
        return read(connection, accepted)


def state(address: str) -> str:
    """A short text that changes whenever the rows of a store on a server do. Raises StoreError."""
    url = store_url(address)
    with reading(url) as connection:
        require_current(connection, url.render_as_string())
        return repr(connection.execute(row_versions()).all())


def read(connection: Connection, accepted: Sequence[Entry] = ()) -> SiteData:
    """Everything but the bytes of run files. The same store always gives the same."""
    build = dict[object, int](builds(known_releases(connection)).items())
    rows = [
        row | {"build": build.get(row["release_id"], 0)}
        for row in _dicts(connection, results.every())
    ]
    titles = _printed_titles(rows)
    plain = list(map(_maker(SiteResult), _relocated(rows, titles)))
    audited = _audited(connection, plain, accepted)
    every = [_marked(result, audited.get(result.result_id)) for result in plain]
    current = [result for result in every if result.run_kind in (None, RunKind.BENCHMARK)]
    by_id = {result.result_id: result for result in every}
    revisions = _relocated(_dicts(connection, results.all_revisions()), titles)
    return SiteData(
        results=tuple(_shown(connection, current)),
        current=tuple(current),
        runs=tuple(_runs(connection, every)),
        sources=tuple(_sources(connection)),
        audited=tuple(replace(one, result=by_id[key]) for key, one in audited.items()),
        revisions=tuple(map(_maker(ResultRevision), revisions)),
        rejections=tuple(
            replace(one, path=redaction.of_path(one.path))
            for one in _rows(connection, catalog.all_rejections(), Rejection)
        ),
    )


def representative(connection: Connection) -> list[SiteResult]:
    """The results that tables print, without the marks of the audit."""
    rows = _dicts(connection, results.representative())
    return list(map(_maker(SiteResult), _relocated(rows, {})))


def _printed_titles(rows: Iterable[StoredRow]) -> dict[object, str]:
    """Titles of models that the catalog lacks, as the first row of a page prints them.

    Without qualifiers, which follow the title wherever it is printed. Of names in capitals alone,
    LLAMA2-13B, the title is made as of names that no page prints.
    """
    unknown = [row for row in rows if row["model"] not in catalogue.models()]
    found = {}
    for row in sorted(unknown, key=lambda row: int(str(row["result_id"])), reverse=True):
        printed = row["printed"]
        text = str(printed.get("model", "")) if isinstance(printed, Mapping) else ""
        found[row["model"]] = names.unqualified(text)
    return {
        name: title
        for name, title in found.items()
        if names.model(title) == names.ModelName(str(name)) and not title.isupper()
    }


def _relocated(rows: Iterable[StoredRow], titles: Mapping[object, str]) -> Iterator[StoredRow]:
    """Rows with these titles of models, and their sources without folders of a machine."""
    for row in rows:
        yield row | {
            "model_title": titles.get(row["model"]) or _titled(row),
            "notes": tuple(row["notes"]) if isinstance(row["notes"], list) else row["notes"],
            "source": redaction.of_path(str(row["source"]), str(row["run_id"] or "") or None),
        }


def _titled(row: StoredRow) -> str:
    """The stored title of a model; where that is its name, one as the name spells it."""
    name, title = str(row["model"]), str(row["model_title"])
    return model_title(name) if title == name else title


def _audited(
    connection: Connection, plain: Iterable[SiteResult], accepted: Sequence[Entry]
) -> dict[int, Audited]:
    """The results that have findings, by their number in the store."""
    stored_findings = map(Finding.model_validate, _dicts(connection, results.current_findings()))
    found = grouped(explained(list(stored_findings), accepted), lambda one: one.result_id)
    keys = dict(iter(connection.execute(results.current_keys())))
    made = {}
    for one in plain:
        if one.result_id in found:
            ranked = sorted(ordered(found[one.result_id]), key=lambda it: KINDS.index(it.kind))
            anchor = f"result-{keys[one.result_id][:12]}"
            made[one.result_id] = Audited(result=one, anchor=anchor, findings=tuple(ranked))
    return made


def _marked(result: SiteResult, audited: Audited | None) -> SiteResult:
    """A result with what the audit found."""
    if audited is None:
        return result
    rules = sorted({f"{it.rule} ({it.severity.value})" for it in audited.findings})
    flag = audited.flag
    is_wrong = flag is not None and flag.kind == Severity.ERROR
    return replace(result, flag=flag, findings=", ".join(rules), has_open_errors=is_wrong)


def _shown(connection: Connection, current: Iterable[SiteResult]) -> Iterator[SiteResult]:
    """The results that tables print, each with how many it represents."""
    numbers = {key: counted for key, *counted in connection.execute(results.printed())}
    for one in current:
        if counted := numbers.get(one.result_id):
            every, finished = counted
            is_one = counted == [1, 1]
            yield one if is_one else replace(one, num_results=every, num_finished=finished)


def _runs(connection: Connection, current: Iterable[SiteResult]) -> Iterator[RunData]:
    """Every run with its result, its steps and its files."""
    of_run = {result.run_id: result for result in current if result.is_measured}
    files = grouped(_rows(connection, runs.all_run_files(), RunFile), lambda file: file.run_id)
    for run in _rows(connection, runs.all_runs(), SiteRun):
        result, own = of_run[run.run_id], tuple(files.get(run.run_id, ()))
        steps = tuple(_rows(connection, runs.steps_of(run.run_id), RunStep))
        record = run_diff.record_of(connection, run.run_id, {it.name: it.sha256 for it in own})
        page = RunData(
            run=replace(run, command=tuple(run.command)),
            result=result,
            steps=steps,
            files=own,
            record=record,
            facts=run_diff.of_record(record, steps)
            if record
            else run_diff.of_log(result, run.environment, run.warmup_steps, steps),
        )
        recipe, measured = page.recipe_file, page.measured_file
        lines: list[bytes] = []
        if measured is not None and measured.size_bytes <= MOST_LISTED_BYTES:
            lines = content(connection, measured.sha256).split(b"\n")
        numbers = [step.source_line for step in page.steps[:MOST_STEPS]]
        yield replace(
            page,
            recipe_text=_recipe(content(connection, recipe.sha256)) if recipe else None,
            lines={it: _text(lines[it - 1]) for it in numbers if it <= len(lines)},
        )


def _recipe(data: bytes) -> str:
    return without_secrets(_text(data))


def _text(data: bytes) -> str:
    """Text of a file without colors; bytes that are no UTF-8 are shown as such."""
    return decoded(ESCAPE.sub(b"", data))


def _sources(connection: Connection) -> Iterator[SourceData]:
    """Each state of the pages that results are from; one for the same bytes."""
    rows = {str(row["sha256"]): row for row in _dicts(connection, catalog.published_sources())}
    for sha256, row in rows.items():
        text = content(connection, sha256).decode("utf-8-sig", errors="replace")
        moments = [row.get("ingested_at"), row.get("created_at")]
        read_at = max((it for it in moments if isinstance(it, datetime)), default=None)
        yield _maker(SourceData)(row | {"text": text, "read_at": read_at})


def _rows(
    connection: Connection, question: Select[*tuple[object, ...]], kind: type[Kind]
) -> list[Kind]:
    return list(map(_maker(kind), _dicts(connection, question)))


def _maker(kind: type[Kind]) -> Callable[[StoredRow], Kind]:
    """A function from a row to a dataclass; columns that it has no field for are left out."""
    names = [it.name for it in fields(kind)]
    return lambda row: kind(**{name: row[name] for name in names if name in row})


def _dicts(connection: Connection, question: Select[*tuple[object, ...]]) -> Iterator[StoredRow]:
    answer = connection.execute(question)
    keys = list(answer.keys())
    return (dict(zip(keys, row, strict=True)) for row in answer)
