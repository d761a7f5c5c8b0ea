"""Everything that the pages show, read from the store in one read-only transaction.

What was read of a release is used again as long as its rows are the same: `perfdb.site.kept`.
"""

import hashlib
import pickle
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from sqlalchemy import URL, Connection, Select

from perfdb import catalog as catalogue
from perfdb.audit.report import ordered
from perfdb.audit.review import Entry, explained
from perfdb.catalog import names
from perfdb.catalog.titles import model as model_title
from perfdb.compare import run_diff
from perfdb.compare.releases import builds, known_releases
from perfdb.db.session import reading, require_current, store_url
from perfdb.db.sources import content
from perfdb.groups import grouped
from perfdb.hardware import without_secrets
from perfdb.queries import Rows, catalog, fingerprints, results, runs
from perfdb.queries.catalog import row_versions
from perfdb.queries.fingerprints import ReleaseName
from perfdb.record import Finding, RunKind, Severity
from perfdb.site import downloads, redaction
from perfdb.site.data import (
    KINDS,
    MOST_STEPS,
    Audited,
    Rejection,
    ResultRevision,
    RunData,
    RunFile,
    RunStep,
    SiteData,
    SiteResult,
    SiteRun,
    SourceData,
    digest_of,
    flag_of,
)
from perfdb.site.kept import KeptRelease, KeptReleases
from perfdb.site.pages.revisions import of_release
from perfdb.site.pages.scaling import of_results
from perfdb.text import ESCAPE, decoded

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Kind = TypeVar("Kind", bound="DataclassInstance")
StoredRow = dict[str, object]

MOST_LISTED_BYTES: Final = 1 << 20
"""No line of a larger file is shown: it would have to be unpacked for each build."""


@dataclass(kw_only=True)
class _Read:
    """The rows of a release, before anything is made of them."""

    rows: list[StoredRow] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    revisions: list[StoredRow] = field(default_factory=list)
    runs: list[SiteRun] = field(default_factory=list)
    files: list[RunFile] = field(default_factory=list)

    @property
    def release_ids(self) -> frozenset[int]:
        """The numbers of the release, one for each of its containers."""
        return frozenset(int(str(row["release_id"])) for row in self.rows)

    @property
    def unknown(self) -> dict[str, tuple[int, str]]:
        """The models that the catalog lacks: the first result of each, and its page's words."""
        found: dict[str, tuple[int, str]] = {}
        for row in self.rows:
            if (model := str(row["model"])) not in catalogue.models():
                printed = row["printed"]
                text = str(printed.get("model", "")) if isinstance(printed, Mapping) else ""
                one = (int(str(row["result_id"])), text)
                found[model] = min(found.get(model, one), one)
        return found


def stored(url: URL, accepted: Sequence[Entry] = (), kept: KeptReleases | None = None) -> SiteData:
    """The data of a store; `accepted` are findings that people have explained.

    `kept`: what an earlier build read of each release. It then holds what this one knows.
    Raises StoreError where there is no database, or one of another version.
    """
    with reading(url) as connection:
        require_current(connection, url.render_as_string())
        return read(connection, accepted, {} if kept is None else kept)


def state(address: str) -> str:
    """A short text that changes whenever the rows of a store on a server do. Raises StoreError."""
    url = store_url(address)
    with reading(url) as connection:
        require_current(connection, url.render_as_string())
        return repr(connection.execute(row_versions()).all())


def read(connection: Connection, accepted: Sequence[Entry], kept: KeptReleases) -> SiteData:
    """Everything but the bytes of run files. The same store always gives the same."""
    now = _updated(connection, accepted, kept)
    kept.clear()
    kept.update(now)
    every = kept.values()
    return SiteData(
        results=tuple(chain.from_iterable(it.results for it in every)),
        current=tuple(chain.from_iterable(it.current for it in every)),
        runs=tuple(
            sorted(chain.from_iterable(it.runs for it in every), key=lambda it: it.run.run_id)
        ),
        sources=tuple(_sources(connection)),
        audited=tuple(chain.from_iterable(it.audited for it in every)),
        changelog=tuple(it.changelog for it in every),
        scaling=tuple(chain.from_iterable(it.scaling for it in every)),
        rejections=tuple(
            replace(one, path=redaction.of_path(one.path))
            for one in _rows(connection, catalog.all_rejections(), Rejection)
        ),
    )


@dataclass(frozen=True, kw_only=True)
class _Across:
    """What is known across releases: titles of models, the order of releases by their numbers.

    `numbers`: of the results that tables print, by their numbers, how many each represents, and how
    many of them finished.
    """

    titles: Mapping[str, str]
    order: Mapping[int, int]
    numbers: Mapping[int, tuple[int, int]] = field(default_factory=dict)

    def context(self, read: "_Read | KeptRelease", findings: Iterable[Finding]) -> str:
        """A hash of what the values of a release are made of besides its rows."""
        places = sorted((it, self.order.get(it, 0)) for it in read.release_ids)
        accepted = [(n, it.acknowledged) for n, it in enumerate(findings) if it.acknowledged]
        return digest_of((places, self.titles, accepted))


def _updated(connection: Connection, accepted: Sequence[Entry], kept: KeptReleases) -> KeptReleases:
    """What the store has of each release; read where its rows or their context have changed."""
    prints = _fingerprints(connection)
    changed = [it for it, one in prints.items() if it not in kept or kept[it].fingerprint != one]
    fresh = _read(connection, changed, len(prints))
    known: dict[ReleaseName, _Read | KeptRelease] = {it: fresh.get(it) or kept[it] for it in prints}
    across = _Across(
        titles=_printed_titles(it.unknown for it in known.values()),
        order=builds(known_releases(connection)),
    )
    raised = {name: it.findings for name, it in known.items()} if accepted else {}
    reviewed = iter(explained(chain.from_iterable(raised.values()), accepted))
    found = {name: [next(reviewed) for _ in some] for name, some in raised.items()}
    contexts = {name: across.context(it, found.get(name, ())) for name, it in known.items()}
    stale = [it for it in prints if it not in fresh and kept[it].context != contexts[it]]
    fresh |= _read(connection, stale, len(prints))
    across = replace(across, numbers=_numbers(connection, fresh, len(prints)))
    now = {}
    for name, one in prints.items():
        if (read := fresh.get(name)) is None:
            now[name] = kept[name]
        else:
            made = _made(connection, read, found.get(name, read.findings), across)
            now[name] = replace(made, fingerprint=one, context=contexts[name])
    return now


def _fingerprints(connection: Connection) -> dict[ReleaseName, str]:
    """A hash of the rows of each release, in the order of `results.every`."""
    hashes: dict[ReleaseName, Any] = {}
    for number, statement in enumerate(fingerprints.contents()):
        for framework, version, text in connection.execute(statement):
            name = str(framework), cast("str | None", version)
            digest = hashes.setdefault(name, hashlib.sha256())
            digest.update(f"{number} {text}".encode(errors="surrogatepass"))
    return {name: digest.hexdigest() for name, digest in hashes.items()}


def _read(
    connection: Connection, names: Collection[ReleaseName], of: int
) -> dict[ReleaseName, _Read]:
    """The rows of some releases of so many."""
    found = {name: _Read() for name in names}
    if not found:
        return found
    some = None if len(names) == of else names

    def rows(statement: Rows) -> Iterator[tuple[_Read, StoredRow]]:
        for row in _dicts(connection, fingerprints.narrowed(statement, some)):
            yield found[str(row["framework"]), cast("str | None", row["release"])], row

    of_run = {}
    for read, row in rows(results.every()):
        read.rows.append(row)
        of_run[row["run_id"]] = read
    for read, row in rows(results.all_revisions()):
        read.revisions.append(row)
    for read, row in rows(results.current_findings()):
        read.findings.append(Finding.model_validate(row))
    _read_runs(connection, some, of_run)
    return found


def _read_runs(
    connection: Connection, some: Collection[ReleaseName] | None, of_run: Mapping[object, _Read]
) -> None:
    """Add the runs and their files to what was read of the releases of their results."""
    for run in _rows(connection, fingerprints.of_runs(runs.all_runs(), some), SiteRun):
        of_run[run.run_id].runs.append(run)
    for file in _rows(connection, fingerprints.of_runs(runs.all_run_files(), some), RunFile):
        of_run[file.run_id].files.append(file)


def _numbers(
    connection: Connection, names: Collection[ReleaseName], of: int
) -> dict[int, tuple[int, int]]:
    """Of the results that tables print, how many each represents, and how many finished."""
    if not names:
        return {}
    asked = fingerprints.narrowed(results.printed(), None if len(names) == of else names)
    found = connection.execute(asked)
    return {key: (every, done) for key, every, done in found}


def _made(
    connection: Connection, read: _Read, findings: Iterable[Finding], across: _Across
) -> KeptRelease:
    """What the rows of a release become."""
    found = {
        key: tuple(sorted(ordered(some), key=lambda it: KINDS.index(it.kind)))
        for key, some in grouped(findings, lambda one: one.result_id).items()
    }
    keys = {row["result_id"]: row["key"] for row in read.revisions}
    anchors = {key: f"result-{str(keys[key])[:12]}" for key in found}
    make = _maker(SiteResult)
    every = []
    for row in _relocated(read.rows, across.titles):
        key = int(str(row["result_id"]))
        marks = _marks(found[key], anchors[key]) if key in found else {}
        build = across.order.get(int(str(row["release_id"])), 0)
        every.append(make(_interned(row) | marks | {"build": build}))
    current = [result for result in every if result.run_kind in (None, RunKind.BENCHMARK)]
    revisions = list(map(_maker(ResultRevision), _relocated(read.revisions, across.titles)))
    shown = tuple(_shown(across.numbers, current))
    return KeptRelease(
        release_ids=read.release_ids,
        unknown=read.unknown,
        raised=pickle.dumps(list(map(vars, read.findings))),
        results=shown,
        current=tuple(current),
        runs=tuple(_runs(connection, read, every)),
        audited=tuple(
            Audited(result=it, anchor=anchors[it.result_id], findings=found[it.result_id])
            for it in every
            if it.result_id in found
        ),
        changelog=of_release(revisions, {it.result_id for it in shown}),
        scaling=tuple(of_results(shown)),
        exported=downloads.written(current),
    )


def _marks(findings: Sequence[Finding], anchor: str) -> StoredRow:
    """What a result has of what the audit found in it."""
    rules = sorted({f"{it.rule} ({it.severity.value})" for it in findings})
    flag = flag_of(findings, anchor)
    is_wrong = flag is not None and flag.kind == Severity.ERROR
    return {"flag": flag, "findings": ", ".join(rules), "has_open_errors": is_wrong}


def representative(connection: Connection) -> list[SiteResult]:
    """The results that tables print, without the marks of the audit."""
    rows = _dicts(connection, results.representative())
    return list(map(_maker(SiteResult), _relocated(rows, {})))


def _printed_titles(unknown: Iterable[Mapping[str, tuple[int, str]]]) -> dict[str, str]:
    """Titles of models that the catalog lacks, as the first row of a page prints them.

    Without qualifiers, which follow the title wherever it is printed. Of names in capitals alone,
    LLAMA2-13B, the title is made as of names that no page prints.
    """
    found: dict[str, tuple[int, str]] = {}
    for known in unknown:
        for model, one in known.items():
            found[model] = min(found.get(model, one), one)
    titles = {model: names.unqualified(text) for model, (_, text) in found.items()}
    return {
        name: title
        for name, title in titles.items()
        if names.model(title) == names.ModelName(name) and not title.isupper()
    }


def _relocated(rows: Iterable[StoredRow], titles: Mapping[str, str]) -> Iterator[StoredRow]:
    """Rows with these titles of models, and their sources without folders of a machine."""
    for row in rows:
        yield row | {
            "model_title": titles.get(str(row["model"])) or _titled(row),
            "notes": tuple(row["notes"]) if isinstance(row["notes"], list) else row["notes"],
            "source": redaction.of_path(str(row["source"]), str(row["run_id"] or "") or None),
        }


def _interned(row: StoredRow) -> StoredRow:
    """A row with interned texts: pickle writes a text that many rows have only once."""
    return {
        name: sys.intern(it) if type(it) is str else _interned(it) if type(it) is dict else it
        for name, it in row.items()
    }


def _titled(row: StoredRow) -> str:
    """The stored title of a model; where that is its name, one as the name spells it."""
    name, title = str(row["model"]), str(row["model_title"])
    return model_title(name) if title == name else title


def _shown(
    numbers: Mapping[int, tuple[int, int]], current: Iterable[SiteResult]
) -> Iterator[SiteResult]:
    """The results that tables print, each with how many it represents."""
    for one in current:
        if counted := numbers.get(one.result_id):
            every, finished = counted
            is_one = counted == (1, 1)
            yield one if is_one else replace(one, num_results=every, num_finished=finished)


def _runs(connection: Connection, read: _Read, every: Iterable[SiteResult]) -> Iterator[RunData]:
    """Every run with its result, its steps and its files."""
    of_run = {result.run_id: result for result in every if result.is_measured}
    files = grouped(read.files, lambda file: file.run_id)
    for run in read.runs:
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
            recipe_text=without_secrets(_text(content(connection, recipe.sha256)))
            if recipe
            else None,
            lines={it: _text(lines[it - 1]) for it in numbers if it <= len(lines)},
        )


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
    return (dict(zip(keys, row, strict=True)) for row in answer.all())  # faster than one by one
