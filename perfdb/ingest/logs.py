"""Reads logs and result files whole: from their bytes to runs and results, and what is missing."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from perfdb import attribute, formats, logged, windows
from perfdb.attribute import Attributed, Missing, Said
from perfdb.db.rows import ResultRow, RunFiles, SourceFile
from perfdb.errors import Problem
from perfdb.formats import LogFormat, ParsedLog
from perfdb.ingest.find import Source
from perfdb.ingest.read import (
    PageRows,
    Read,
    Rejected,
    RunRead,
    Unattributed,
    once_each,
    read_source,
)
from perfdb.pages import PageContext
from perfdb.record import Outcome, content_hash

LOG_PARSER_VERSION = 1
"""Kept with each log; raised when perfdb.formats reads something else out of the same bytes."""

HEADS = (1 << 16, 1 << 20)
"""Bytes that a format is recognised by, before the whole file is looked at."""

COMPANIONS = (".yaml", ".yml")
"""The suffixes of files that may say something of the logs beside them."""

_NOTHING = (Outcome.FINISHED, Outcome.INCOMPLETE, Outcome.NO_DATA)
"""Outcomes of which there is nothing to keep without a step; a run that failed is data."""


@dataclass(frozen=True)
class LogOptions:
    """What the command line says of logs alone: --set, --format and --window."""

    settings: tuple[str, ...] = ()
    format: str | None = None
    window: str | None = None


@dataclass(frozen=True)
class Words:
    """All that the command line says of pages and logs, checked."""

    context: PageContext = field(default_factory=PageContext)
    said: Said = field(default_factory=Said)
    format: LogFormat | None = None
    window: windows.Window | None = None

    @property
    def any_of_logs(self) -> bool:
        """Whether anything was said that changes what is read out of a log."""
        return self.said != Said() or self.window is not None


def words(context: PageContext, options: LogOptions) -> Words:
    """The options of the command line, checked. Raises InputError."""
    return Words(
        context,
        attribute.said(context, options.settings),
        formats.named(options.format) if options.format else None,
        windows.named(options.window) if options.window else None,
    )


def read_any(source: Source, given: Words) -> Sequence[Read]:
    """All that a source says. What is wrong with it is part of the answer, not an error."""
    if source.kind == "log" or (source.kind == "page" and source.named and given.format):
        try:
            return _read_log(source, given)
        except OSError as error:
            where = str(source.path)
            return [Rejected(where, (Problem(where, error.strerror or str(error)),))]
    return [read_source(source, given.context)]


def _read_log(source: Source, given: Words) -> Sequence[Read]:
    """A file that no format recognises is taken for a page, if the user named it."""
    found = _recognised(source.path, given.format if source.named else None)
    foreign = given.format is not None and found is not given.format
    if found is None or foreign:
        return [read_source(replace(source, kind="page"), given.context)] if source.named else []
    content = source.path.read_bytes()
    logs = found.parse(str(source.path), [content])
    if all(log.outcome is None for log in logs):
        return _companion_read(source, found)
    file = SourceFile(str(source.path), content, found.NAME, LOG_PARSER_VERSION)
    return list(_LogFile(file, logs, given, _beside(source.path)).reads())


def _recognised(path: Path, forced: LogFormat | None) -> LogFormat | None:
    """The format of a file, by as little of it as tells."""
    if forced:
        return forced
    with path.open("rb") as file:
        head = b""
        for size in HEADS:
            more = file.read(size - len(head))
            head += more
            if more and (found := formats.recognised(head, path.name)):
                return found
        rest = file.read()
    return formats.recognised(head + rest, path.name) if rest else None


def _companion_read(source: Source, found: LogFormat) -> Sequence[Read]:
    """A file that only says what other files are of is no result of its own."""
    where = str(source.path)
    message = f"{found.NAME}: says what a run was and holds no result"
    remedy = "name the log beside it, which is read with it"
    problem = Problem(where, message, remedy=remedy)
    return [Rejected(where, (problem,))] if source.named else []


@dataclass(frozen=True)
class _Companion:
    """A file that says what the run beside it is of."""

    source: SourceFile
    said: ParsedLog


def _beside(path: Path) -> tuple[_Companion, ...]:
    """What may accompany a log: files in its folder that are the only ones of their format."""
    found: dict[str, list[_Companion]] = {}
    for other in sorted(path.parent.iterdir()):
        if other != path and other.suffix.lower() in COMPANIONS and other.is_file():
            for companion in _companion(other):
                found.setdefault(companion.source.parser, []).append(companion)
    return tuple(some[0] for some in found.values() if len(some) == 1)


def _companion(path: Path) -> Iterator[_Companion]:
    with path.open("rb") as file:
        head = file.read(HEADS[0])
    if member := formats.recognised(head, path.name):
        content = path.read_bytes()
        parsed = member.parse(str(path), [content])
        if len(parsed) == 1 and parsed[0].outcome is None:
            source = SourceFile(str(path), content, member.NAME, LOG_PARSER_VERSION)
            yield _Companion(source, parsed[0])


@dataclass(frozen=True)
class _LogFile:
    """A file of a known format, what it holds, what was said of it and what lies beside it."""

    source: SourceFile
    logs: Sequence[ParsedLog]
    words: Words
    beside: tuple[_Companion, ...]

    def reads(self) -> Iterator[Read]:
        """Each run, the results that are only printed, and what cannot be stored."""
        where = self.source.path
        rows: list[ResultRow] = []
        for number, log in enumerate(self.logs, start=1):
            said = [companion.said for companion in self._companions(log)]
            of = attribute.attributed(log, said, self.words.said)
            if not log.readings and _is_empty(log):
                yield Rejected(where, _reasons(where, log))
            elif isinstance(of, Missing):
                yield self._unattributed(log, number, of)
            elif log.readings or log.emitted == type(log.emitted)():
                yield self._run(log, number, of)
            else:
                rows.append(logged.printed(log, of.case, of.release))
        if rows:
            yield self._printed(rows)

    def _companions(self, log: ParsedLog) -> list[_Companion]:
        return [one for one in self.beside if attribute.accompanies(one.said, log)]

    def _run_id(self, number: int) -> str:
        """The same for the same bytes, wherever they lie."""
        several = f"-{number}" if len(self.logs) > 1 else ""
        return f"log-{self.source.sha256[:16]}{several}"

    def _run(self, log: ParsedLog, number: int, of: Attributed) -> RunRead:
        everything = (self.source, *(one.source for one in self._companions(log)))
        name = Path(self.source.path).name
        files = RunFiles({Path(one.path).name: one for one in everything}, name, name)
        content = content_hash({"files": [one.sha256 for one in everything]})
        run = logged.LogRun(of.case, of.release, self._run_id(number), content)
        measured = logged.measured(log, run, logged.window_of(log, self.words.window))
        notes = (*log.problems, *log.notes, *self._no_rates(log, measured.result))
        return RunRead(self.source.path, measured, files, notes, self.words.any_of_logs)

    def _no_rates(self, log: ParsedLog, result: ResultRow) -> Iterator[Problem]:
        """Why there is a step time without tokens per second."""
        if result.step_time_s is None or result.tokens_per_sec_per_gpu is not None:
            return
        window, case = logged.window_of(log, self.words.window), result.case
        odd = logged.odd_step([step for _, step in log.steps], case, window)
        if odd and odd.tokens:
            expected = f"{case.global_batch_size:,} × {case.sequence_length:,}"
            message = f"step {odd.step} has {odd.tokens:,} tokens, not {expected}"
            yield Problem(self.source.path, f"{message}: rates are unknown")

    def _unattributed(self, log: ParsedLog, number: int, missing: Missing) -> Unattributed:
        line = log.emitted_line
        if log.readings and len(self.logs) > 1:
            line = log.readings[0].line
        problem = missing.problem(self.source.path, line)
        run_id = None if log.emitted_line else self._run_id(number)
        return Unattributed(self.source, problem, run_id, self.words.any_of_logs)

    def _printed(self, rows: Sequence[ResultRow]) -> PageRows:
        kept, repeated = once_each(self.source.path, rows)
        notes = tuple(note for log in self.logs for note in (*log.problems, *log.notes))
        whole = len(rows) == len(self.logs)
        insisted = self.words.any_of_logs
        return PageRows(self.source, kept, repeated, notes, whole, insisted)


def _is_empty(log: ParsedLog) -> bool:
    """Whether there is nothing to keep: no step, no figure, and no way that a run failed."""
    no_figures = not any(log.emitted.model_dump().values())
    return no_figures and (log.outcome is None or log.outcome in _NOTHING)


def _reasons(where: str, log: ParsedLog) -> tuple[Problem, ...]:
    return log.problems or (Problem(where, log.error or "holds no step and no figure"),)
