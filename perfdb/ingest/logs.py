"""Reads logs and result files whole: from their bytes to runs and results, and what is missing."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from perfdb import measure, said_before
from perfdb.attribute import Attributed, Missing
from perfdb.db.packing import Packed, unpacked_pieces
from perfdb.db.rows import MeasuredRun, ResultRow, RunFiles, SourceFile
from perfdb.errors import ArchiveError, Diagnostic
from perfdb.formats import AVERAGES, LogFormat, ParsedLog, attempts, batch
from perfdb.ingest import archive, names, window_notes
from perfdb.ingest.account import Account
from perfdb.ingest.companions import Companion
from perfdb.ingest.compression import chunks, plain_name, plain_size_bytes, plain_suffix
from perfdb.ingest.find import Source
from perfdb.ingest.members import is_archive
from perfdb.ingest.page import once_each, read_page
from perfdb.ingest.read import (
    PageRows,
    PassedOver,
    Read,
    Rejected,
    RunRead,
    Unattributed,
    read_run,
)
from perfdb.ingest.recognised import Look, is_blank, is_empty, look_at, misread, of_a_rank, reasons
from perfdb.ingest.words import Words
from perfdb.jsonfile import content_hash
from perfdb.record import Figures, Note, NoteCode
from perfdb.rundir import RunDir

LOG_PARSER_VERSION = 12
"""Kept with each log; raised when perfdb.formats reads something else out of the same bytes."""

MOST_DOCUMENT_BYTES: Final = {".json": 16 << 20, ".yaml": 2 << 20, ".yml": 2 << 20}
"""What a file may have that is read whole: it takes up to a hundred times as much memory."""

PLAIN_TEXT: Final = (".txt",)
"""The suffixes of files that are logs or pages."""

LOG_NAMES: Final = (".log", ".out", ".err", ".jsonl")
"""The suffixes of files that are logs and nothing else."""

_TABLE: Final = re.compile(rb"---:?[ \t]*\|")
"""What stands under the header of a page's table; a log has none."""


def read_any(source: Source, given: Words) -> Iterator[Read]:
    """All that a source says. What is wrong with it is part of the answer, not an error."""
    where = str(source.path)
    if fault := names.fault(where):
        where = names.shown(where)
        yield Rejected(where, (Diagnostic(where, fault, remedy="give it another name"),))
        return
    try:
        yield from _read(source, given)
    except OSError as error:
        yield Rejected(where, (Diagnostic(where, error.strerror or str(error)),))
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
        problem = Diagnostic(
            where, "neither a file nor a folder", remedy="write it to a file first"
        )
        return [Rejected(where, (problem,))]
    fresh = replace(given, budget=replace(given.budget)) if given.depth == 0 else given
    if is_archive(source.path):
        return _read_archive(source, fresh)
    if source.named and is_blank(source.path, fresh.budget):
        problem = Diagnostic(where, "the file is empty", remedy="write or copy it again")
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

    return archive.reads(source, given.budget, read, given.companions.meet, given.scratch)


def _read_page(source: Source, given: Words) -> PageRows | PassedOver | Rejected:
    return read_page(source, chunks(source.path, given.budget), given.context)


def _read_log(source: Source, given: Words) -> Iterable[Read]:
    """A file that no format recognises is taken for a page, if it may be one."""
    forced = given.format if source.named else None
    shown = Look(forced) if forced else look_at(source, given.budget)
    found = shown.format or shown.start
    if found and _may_quote_a_log(source, given):
        page = _read_page(source, given)
        if not isinstance(page, Rejected):
            return [page]
    if found is None or (given.format is not None and found is not given.format):
        return _of_no_format(source, given, shown)
    packed, logs = _parsed(found, source, given)
    if forced and (problem := misread(source, given, logs)):
        return [Rejected(problem.where, (problem,))]
    if all(log.outcome is None for log in logs):
        return _companion_read(source, found)
    file = SourceFile(str(source.path), packed, found.name, LOG_PARSER_VERSION)
    return _LogFile(file, logs, given, given.companions.of(source.path, found.name)).reads()


def _parsed(found: LogFormat, source: Source, given: Words) -> tuple[Packed, Sequence[ParsedLog]]:
    """The bytes of a file, and what they say."""
    where, packed = str(source.path), Packed(given.scratch)
    kept = packed.passing(_not_too_large(source.path, chunks(source.path, given.budget)))
    size = plain_size_bytes(source.path)
    logs = found.parse(where, kept)
    for _ in kept:
        pass  # what the format had no need of is kept all the same
    packed.close()
    if size not in (None, packed.size_bytes):  # what is kept has grown while it was read
        logs = found.parse(where, unpacked_pieces(packed.compressed()))
    return packed, [attempts.of_window(log, given.window) for log in logs]


def _of_no_format(source: Source, given: Words, shown: Look) -> Sequence[Read]:
    """A page, or a log by its name that no format knows: it is told, with what is odd about it."""
    suffix = plain_suffix(source.path)
    if source.named or suffix in PLAIN_TEXT:
        page = _read_page(source, given)
        if not (source.named and shown.oddity and isinstance(page, Rejected)):
            return [page]
    elif suffix not in LOG_NAMES or given.format is not None:
        return []
    where = str(source.path)
    return [Rejected(where, (shown.oddity,)) if shown.oddity else PassedOver(where, "unknown")]


def _may_quote_a_log(source: Source, given: Words) -> bool:
    """Whether a text that looks like a log may be a page that shows lines of one."""
    if given.format or plain_suffix(source.path) not in PLAIN_TEXT:
        return False
    return any(map(_TABLE.search, chunks(source.path, given.budget)))


def _not_too_large(path: Path, content: Iterable[bytes]) -> Iterator[bytes]:
    """The same chunks. Raises ArchiveError for a document that is too large to be one."""
    most = MOST_DOCUMENT_BYTES.get(plain_suffix(path))
    size = 0
    for chunk in content:
        size += len(chunk)
        if most and size > most:
            message = f"larger than {most >> 20} MiB, which no file of settings or results is"
            raise ArchiveError(Diagnostic(str(path), message))
        yield chunk


def _companion_read(source: Source, found: LogFormat) -> Sequence[Read]:
    """A file that only says what other files are of is no result of its own."""
    where = str(source.path)
    message = f"{found.name}: says what a run was and holds no result"
    remedy = "name the log beside it, which is read with it"
    problem = Diagnostic(where, message, remedy=remedy)
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
        notes: list[Diagnostic] = []
        beside: dict[str, None] = {}
        for number, log in enumerate(map(self._over_window, self.logs), start=1):
            account = Account(where, log, self.beside, self.words)
            of = account.of
            if mixed := account.not_to_be_mixed:
                yield Rejected(where, mixed)
            elif is_empty(log):
                yield Rejected(where, reasons(where, log))
            elif isinstance(of, Missing):
                yield self._unattributed(account, number, of)
            elif _is_run(log):
                yield self._run(account, number, of)
            else:
                known_by = self._run_id(number, log.identity)
                run = measure.LogRun(of.case, of.release, known_by, self.source.sha256)
                rows.append(measure.of_summary(log, run))
                notes += (*log.problems, *log.notes, *account.remarks(), *self._no_window(log))
                beside |= dict.fromkeys(account.beside_it)
        if rows:
            yield replace(self._printed(rows, notes), beside=tuple(beside))

    @property
    def _averages(self) -> bool:
        return self.source.parser in AVERAGES

    def _run_id(self, number: int, identity: str | None = None) -> str:
        """The same for the same bytes, wherever they lie, or for what a file says by its hash."""
        several = f"-{number}" if len(self.logs) > 1 else ""
        return f"log-{(identity or self.source.sha256)[:16]}{several}"

    def _over_window(self, log: ParsedLog) -> ParsedLog:
        window, said = measure.log_window(log, self.words.window), self.words.said
        asked = said.configuration.global_batch_size
        return batch.of_window(self.source.path, log, window, asked)

    def _no_window(self, log: ParsedLog) -> Iterator[Diagnostic]:
        asked = self.words.window
        if asked and asked.name != log.window:
            message = f"--window {asked.name} is not taken: its figures are as they are printed"
            yield Diagnostic(self.source.path, message)

    def _run(self, account: Account, number: int, of: Attributed) -> RunRead:
        log, everything = account.told, (self.source, *map(_companion_file, account.companions))
        name = plain_name(Path(self.source.path))
        by_name = {plain_name(Path(one.path)): one for one in everything}
        files = RunFiles(by_name, name, name)
        content = content_hash({"files": [one.sha256 for one in everything]})
        run = measure.LogRun(
            of.case, of.release, self._run_id(number), content, self._averages,
            tuple(
                Note(NoteCode.REPORTED, {"text": note.message}) for note in account.notes
            ),
        )  # fmt: skip
        measured = self._measured(log, run)

        def anew(now: Attributed, before: Attributed) -> MeasuredRun:
            holds = said_before.held(now, before, self.words.said)
            return self._measured(log, replace(run, case=holds.case, release=holds.release))

        window = measure.log_window(log, self.words.window)
        odd = window_notes.notes(
            self.source.path, log, measured.result, window, averages=self._averages
        )
        notes = (*log.problems, *log.notes, *account.remarks(), *account.notes, *odd)
        asked = self.words.window.name if self.words.window else None
        insisted, beside = self.words.any_of_logs, account.beside_it
        # What was said of the same bytes may be of an attempt that is not the window's.
        again = None if asked and log.changed_settings else anew
        return RunRead(self.source.path, measured, files, notes, insisted, asked, again, beside)

    def _measured(self, log: ParsedLog, run: measure.LogRun) -> MeasuredRun:
        return measure.of_log(log, run, measure.log_window(log, self.words.window))

    def _unattributed(self, account: Account, number: int, missing: Missing) -> Unattributed:
        log = account.log
        line = log.emitted_line
        if log.readings and len(self.logs) > 1:
            line = log.readings[0].line
        problem = missing.problem(self.source.path, line)
        run_id = self._run_id(number) if _is_run(log) else None
        of_rank = of_a_rank(self.source, missing.names)
        notes = (*log.problems, *log.notes, *account.of_others, *of_rank)
        insisted = self.words.any_of_logs
        return Unattributed(self.source, problem, run_id, insisted, missing.names, notes)

    def _printed(self, rows: Sequence[ResultRow], notes: Iterable[Diagnostic]) -> PageRows:
        kept, repeated = once_each(self.source.path, rows)
        whole = len(rows) == len(self.logs)
        return PageRows(self.source, kept, repeated, tuple(notes), whole, self.words.any_of_logs)


def _is_run(log: ParsedLog) -> bool:
    """Whether it tells of a run, if only that it failed, and does not only sum one up."""
    return bool(log.readings) or log.emitted == Figures()


def _companion_file(one: Companion) -> SourceFile:
    return SourceFile(str(one.path), one.content, one.format, LOG_PARSER_VERSION)
