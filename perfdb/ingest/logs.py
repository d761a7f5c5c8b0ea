"""Reads logs and result files whole: from their bytes to runs and results, and what is missing."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from perfdb import logged, said_before
from perfdb.attribute import Attributed, Missing
from perfdb.db.packed import Packed
from perfdb.db.rows import MeasuredRun, ResultRow, RunFiles, SourceFile
from perfdb.errors import ArchiveError, Problem
from perfdb.formats import AVERAGES, LogFormat, ParsedLog
from perfdb.ingest import archive, names
from perfdb.ingest.account import Account
from perfdb.ingest.companions import Companion
from perfdb.ingest.compression import chunks, plain_name
from perfdb.ingest.find import Source
from perfdb.ingest.members import is_archive
from perfdb.ingest.read import (
    PageRows,
    PassedOver,
    Read,
    Rejected,
    RunRead,
    Unattributed,
    once_each,
    read_page,
    read_run,
)
from perfdb.ingest.recognised import is_blank, is_empty, misread, reasons, recognised
from perfdb.ingest.words import Words
from perfdb.record import content_hash
from perfdb.rundir import RunDir

LOG_PARSER_VERSION = 3
"""Kept with each log; raised when perfdb.formats reads something else out of the same bytes."""

MOST_DOCUMENT_BYTES: Final = {".json": 64 << 20, ".yaml": 4 << 20, ".yml": 4 << 20}
"""What a file may have that is read whole."""

PLAIN_TEXT: Final = (".txt",)
"""The suffixes of files that are logs or pages."""

LOG_NAMES: Final = (".log", ".out", ".jsonl")
"""The suffixes of files that are logs and nothing else."""

_TABLE: Final = re.compile(rb"---:?[ \t]*\|")
"""What stands under the header of a page's table; a log has none."""


def read_any(source: Source, given: Words) -> Iterator[Read]:
    """All that a source says. What is wrong with it is part of the answer, not an error."""
    where = str(source.path)
    if fault := names.fault(where):
        where = names.shown(where)
        yield Rejected(where, (Problem(where, fault, remedy="give it another name"),))
        return
    try:
        yield from _read(source, given)
    except OSError as error:
        yield Rejected(where, (Problem(where, error.strerror or str(error)),))
    except ArchiveError as error:
        yield Rejected(where, tuple(error.problems))


def _read(source: Source, given: Words) -> Iterable[Read]:
    """Raises OSError and ArchiveError."""
    if source.kind == "run":
        return [read_run(RunDir(source.path), given.window, given.scratch)]
    if source.kind == "closed":
        os.scandir(source.path).close()
    where = str(source.path)
    if not source.path.is_file():
        problem = Problem(where, "neither a file nor a folder", remedy="write it to a file first")
        return [Rejected(where, (problem,))]
    fresh = replace(given, budget=replace(given.budget)) if given.depth == 0 else given
    if is_archive(source.path):
        return _read_archive(source, fresh)
    if source.named and is_blank(source.path, fresh.budget):
        problem = Problem(where, "the file is empty", remedy="write or copy it again")
        return [Rejected(where, (problem,))]
    if source.kind == "log" or (source.named and given.format):
        return _read_log(source, fresh)
    return [_read_page(source, fresh)]


def _read_archive(source: Source, given: Words) -> Iterable[Read]:
    if given.depth == archive.MOST_DEEP:
        return [archive.too_deep(source)]
    inner = replace(given, depth=given.depth + 1)

    def read(one: Source) -> Iterator[Read]:
        return read_any(one, inner)

    return archive.reads(source, given.budget, read, given.scratch)


def _read_page(source: Source, given: Words) -> PageRows | PassedOver | Rejected:
    return read_page(source, chunks(source.path, given.budget), given.context)


def _read_log(source: Source, given: Words) -> Iterable[Read]:
    """A file that no format recognises is taken for a page, if it may be one."""
    forced = given.format if source.named else None
    found = forced or recognised(source.path, given.budget)
    if found and _may_quote_a_log(source, given):
        page = _read_page(source, given)
        if not isinstance(page, Rejected):
            return [page]
    if found is None or (given.format is not None and found is not given.format):
        may_be_page = source.named or Path(plain_name(source.path)).suffix.lower() in PLAIN_TEXT
        return [_read_page(source, given)] if may_be_page else _passed_over(source, given)
    packed = Packed(given.scratch)
    content = packed.passing(_not_too_large(source.path, chunks(source.path, given.budget)))
    logs = found.parse(str(source.path), content)
    for _ in content:
        pass  # what the format had no need of is kept all the same
    packed.close()
    if forced and (problem := misread(source, given, logs)):
        return [Rejected(problem.where, (problem,))]
    if all(log.outcome is None for log in logs):
        return _companion_read(source, found)
    file = SourceFile(str(source.path), packed, found.NAME, LOG_PARSER_VERSION)
    return _LogFile(file, logs, given, given.companions.of(source.path)).reads()


def _passed_over(source: Source, given: Words) -> Sequence[Read]:
    """A file that no format knows is told of where it is a log by its name."""
    is_log = Path(plain_name(source.path)).suffix.lower() in LOG_NAMES
    return [PassedOver(str(source.path), unknown=True)] if is_log and given.format is None else []


def _may_quote_a_log(source: Source, given: Words) -> bool:
    """Whether a text that looks like a log may be a page that shows lines of one."""
    if given.format or Path(plain_name(source.path)).suffix.lower() not in PLAIN_TEXT:
        return False
    return any(map(_TABLE.search, chunks(source.path, given.budget)))


def _not_too_large(path: Path, content: Iterable[bytes]) -> Iterator[bytes]:
    """The same chunks. Raises ArchiveError for a document that is too large to be one."""
    most = MOST_DOCUMENT_BYTES.get(Path(plain_name(path)).suffix.lower())
    size = 0
    for chunk in content:
        size += len(chunk)
        if most and size > most:
            message = f"larger than {most >> 20} MiB, which no file of settings or results is"
            raise ArchiveError(Problem(str(path), message))
        yield chunk


def _companion_read(source: Source, found: LogFormat) -> Sequence[Read]:
    """A file that only says what other files are of is no result of its own."""
    where = str(source.path)
    message = f"{found.NAME}: says what a run was and holds no result"
    remedy = "name the log beside it, which is read with it"
    problem = Problem(where, message, remedy=remedy)
    return [Rejected(where, (problem,))] if source.named else []


@dataclass(frozen=True)
class _LogFile:
    """A file of a known format, what it holds, what was said of it and what lies beside it."""

    source: SourceFile
    logs: Sequence[ParsedLog]
    words: Words
    beside: tuple[Companion, ...]

    def reads(self) -> Iterator[Read]:
        """Each run, the results that are only printed, and what cannot be stored."""
        where = self.source.path
        rows: list[ResultRow] = []
        for number, log in enumerate(self.logs, start=1):
            account = self._account(log)
            of = account.of
            if mixed := account.not_to_be_mixed:
                yield Rejected(where, mixed)
            elif is_empty(log):
                yield Rejected(where, reasons(where, log))
            elif isinstance(of, Missing):
                yield self._unattributed(log, number, of)
            elif log.readings or log.emitted == type(log.emitted)():
                yield self._run(account, number, of)
            else:
                rows.append(logged.printed(log, of.case, of.release))
        if rows:
            yield self._printed(rows)

    def _account(self, log: ParsedLog) -> Account:
        return Account(self.source.path, log, self.beside, self.words)

    @property
    def _averages(self) -> bool:
        return self.source.parser in AVERAGES

    def _run_id(self, number: int) -> str:
        """The same for the same bytes, wherever they lie."""
        several = f"-{number}" if len(self.logs) > 1 else ""
        return f"log-{self.source.sha256[:16]}{several}"

    def _run(self, account: Account, number: int, of: Attributed) -> RunRead:
        log, everything = account.log, (self.source, *map(_companion_file, account.companions))
        name = plain_name(Path(self.source.path))
        by_name = {plain_name(Path(one.path)): one for one in everything}
        files = RunFiles(by_name, name, name)
        content = content_hash({"files": [one.sha256 for one in everything]})
        run = logged.LogRun(of.case, of.release, self._run_id(number), content, self._averages)
        measured = self._measured(log, run)

        def anew(before: Attributed) -> MeasuredRun:
            holds = said_before.held(of, before, self.words.said)
            return self._measured(log, replace(run, case=holds.case, release=holds.release))

        beside = [note for one in account.companions for note in one.said.notes]
        notes = (*log.problems, *log.notes, *account.contradictions(), *beside)
        notes = (*notes, *self._no_rates(log, measured.result))
        asked = self.words.window.name if self.words.window else None
        insisted = self.words.any_of_logs
        return RunRead(self.source.path, measured, files, notes, insisted, asked, anew)

    def _measured(self, log: ParsedLog, run: logged.LogRun) -> MeasuredRun:
        return logged.measured(log, run, logged.window_of(log, self.words.window))

    def _no_rates(self, log: ParsedLog, result: ResultRow) -> Iterator[Problem]:
        """Why there is a step time without tokens per second."""
        if result.step_time_s is None or result.tokens_per_sec_per_gpu is not None:
            return
        window, case = logged.window_of(log, self.words.window), result.case
        within = logged.picked(log.readings, window, self._averages).lines
        place = logged.odd_step(within.column("tokens"), case)
        if place is not None:
            expected = f"{case.global_batch_size:,} × {case.sequence_length:,}"
            odd = within[place]
            message = f"step {odd.step} has {odd.tokens:,} tokens, not {expected}"
            yield Problem(self.source.path, f"{message}: rates are unknown")

    def _unattributed(self, log: ParsedLog, number: int, missing: Missing) -> Unattributed:
        line = log.emitted_line
        if log.readings and len(self.logs) > 1:
            line = log.readings[0].line
        problem = missing.problem(self.source.path, line)
        run_id = None if log.emitted_line else self._run_id(number)
        insisted = self.words.any_of_logs
        return Unattributed(self.source, problem, run_id, insisted, missing.names)

    def _printed(self, rows: Sequence[ResultRow]) -> PageRows:
        kept, repeated = once_each(self.source.path, rows)
        notes = tuple(
            note
            for log in self.logs
            for note in (*log.problems, *log.notes, *self._account(log).contradictions())
        )
        whole = len(rows) == len(self.logs)
        insisted = self.words.any_of_logs
        return PageRows(self.source, kept, repeated, notes, whole, insisted)


def _companion_file(one: Companion) -> SourceFile:
    return SourceFile(str(one.path), one.content, one.format, LOG_PARSER_VERSION)
