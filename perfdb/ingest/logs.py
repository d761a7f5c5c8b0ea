"""Reads logs and result files whole: from their bytes to runs and results, and what is missing."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from perfdb import measure, selection
from perfdb.aggregation import Window
from perfdb.db.packing import Packed, unpacked_pieces
from perfdb.db.rows import ResultRow, RunFiles, SourceFile
from perfdb.errors import ArchiveError, Diagnostic
from perfdb.formats import AVERAGES, FORMATS, LogFormat, ParsedLog, megatron_lm
from perfdb.ingest.archives import is_archive, unpack
from perfdb.ingest.attribution import Attributed, Attribution, Missing
from perfdb.ingest.base import PageRows, Read, Rejected, RunRead, Skipped, Unattributed, rejected
from perfdb.ingest.companions import LOG_PARSER_VERSION
from perfdb.ingest.compression import chunks, plain_name, plain_size_bytes, plain_suffix
from perfdb.ingest.find import Place, Source, find, name_fault, printable
from perfdb.ingest.options import Checked
from perfdb.ingest.pages import once_each, read_page
from perfdb.ingest.recognition import (
    Recognition,
    is_blank,
    is_empty,
    is_mismatch,
    is_run,
    reasons,
    recognition,
)
from perfdb.ingest.runs import RunFound, find_run, parse_run
from perfdb.jsonfile import content_hash
from perfdb.messages import note_text
from perfdb.record import Note, NoteCode

MOST_DOCUMENT_BYTES: Final = {".json": 16 << 20, ".yaml": 2 << 20, ".yml": 2 << 20}
"""What a file may have that is read whole: it takes up to a hundred times as much memory."""

PLAIN_TEXT: Final = (".txt",)
"""The suffixes of files that are logs or pages."""

LOG_NAMES: Final = (".log", ".out", ".err", ".jsonl")
"""The suffixes of files that are logs and nothing else."""

_TABLE: Final = re.compile(rb"---:?[ \t]*\|")
"""What is under the header of a page's table; a log has none."""

_LOG_ID = re.compile(r"log-[0-9a-f]{16}(?:-(\d+))?")


def number_in_log(run_id: str) -> int:
    """Which of the runs of its log a run is; 0 where it was read from none."""
    found = _LOG_ID.fullmatch(run_id)
    return int(found[1] or 1) if found else 0


def read_source(source: Source, options: Checked) -> Iterator[Read | RunFound]:
    """All that a source holds. What is wrong with it is part of the answer, not an error."""
    if source.kind == "linked":
        yield Skipped(printable(source.where), "linked")
        return
    where = source.where
    if fault := name_fault(where):
        yield rejected(printable(where), fault, "give it another name")
        return
    try:
        yield from _read(source, options if source.place.archive else options.fresh())
    except OSError as error:
        yield rejected(where, error.strerror or str(error))
    except ArchiveError as error:
        yield Rejected(where, tuple(replace(one, where=where) for one in error.problems))


def _read(source: Source, options: Checked) -> Iterable[Read | RunFound]:
    """Raises OSError and ArchiveError."""
    where = source.where
    if source.kind == "run":
        return [find_run(source, options.window, options.scratch)]
    if source.kind == "closed":
        os.scandir(source.path).close()
    if not source.path.is_file():
        return [rejected(where, "neither a file nor a folder", "write it to a file first")]
    if is_archive(source.path):
        return _read_archive(source, options)
    if source.named and is_blank(source, options.budget):
        return [rejected(where, "the file is empty", "write or copy it again")]
    if source.kind == "log" or (source.named and options.format):
        return _read_log(source, options)
    return [_read_page(source, options)]


def _read_archive(source: Source, options: Checked) -> Iterator[Read]:
    """All that an archive holds, each source named `ARCHIVE!/PATH`."""
    where = source.where
    if source.place.archive:
        yield rejected(where, "an archive in an archive is not read", "unpack the outer one")
        return
    with TemporaryDirectory(prefix="perfdb-", dir=options.scratch) as name:
        listing = unpack(source.path, Path(name), options.budget)
        problems = list(listing.problems(where))
        yield from (Rejected(problem.where, (problem,)) for problem in problems)
        found = find([Path(name)], Place(name, where))
        for one in found:
            for read in read_source(replace(one, named=False), options):
                yield parse_run(read) if isinstance(read, RunFound) else read
        if source.named and not found and not problems:
            yield rejected(where, "the archive holds no run directory, page or log")


def _read_page(source: Source, options: Checked) -> PageRows | Skipped | Rejected:
    return read_page(source, chunks(source.path, options.budget), options.context)


def _read_log(source: Source, options: Checked) -> Iterable[Read]:
    """A file that no format recognizes is taken for a page, if it may be one."""
    forced = options.format if source.named else None
    shown = Recognition(forced) if forced else recognition(source, options.budget)
    found = shown.format or shown.start
    if found and _may_quote_a_log(source, options):
        page = _read_page(source, options)
        if not isinstance(page, Rejected):
            return [page]
    if found is None or (options.format is not None and found is not options.format):
        return _of_no_format(source, options, shown)
    packed, logs = _parsed(found, source, options)
    if forced and (mismatch := _mismatch(source, options, logs)):
        return [mismatch]
    if all(log.outcome is None for log in logs):
        message = f"{found.name}: says what a run was and holds no result"
        remedy = "name the log beside it, which is read with it"
        return [rejected(source.where, message, remedy)] if source.named else []
    file = SourceFile(source.where, packed, found.name, LOG_PARSER_VERSION)
    return _LogFile(source, file, logs, options).reads()


def _parsed(
    found: LogFormat, source: Source, options: Checked
) -> tuple[Packed, Sequence[ParsedLog]]:
    """The bytes of a file, compressed and hashed, and what the format reads in them."""
    packed, size = Packed(options.scratch), plain_size_bytes(source.path)
    content = chunks(source.path, options.budget)
    kept = packed.passing(_limited(source, content))
    logs = found.parse(source.where, kept)
    for _ in kept:
        pass  # what the format had no need of is kept all the same
    packed.close()

    if size not in (None, packed.size_bytes):  # the file has grown while it was read
        logs = found.parse(source.where, unpacked_pieces(packed.compressed()))
    return packed, logs


def _of_no_format(source: Source, options: Checked, shown: Recognition) -> Sequence[Read]:
    """A page, or a log by its name that no format knows: it is reported, with what is odd in it."""
    suffix = plain_suffix(source.path)
    if source.named or suffix in PLAIN_TEXT:
        page = _read_page(source, options)
        if not (source.named and shown.oddity and isinstance(page, Rejected)):
            return [page]
    elif suffix not in LOG_NAMES or options.format is not None:
        return []
    if shown.oddity:
        return [Rejected(source.where, (shown.oddity,))]
    return [Skipped(source.where, "unknown")]


def _may_quote_a_log(source: Source, options: Checked) -> bool:
    """Whether a text that looks like a log may be a page that shows lines of one."""
    if options.format or plain_suffix(source.path) not in PLAIN_TEXT:
        return False
    return any(map(_TABLE.search, chunks(source.path, options.budget)))


def _limited(source: Source, content: Iterable[bytes]) -> Iterator[bytes]:
    """The same chunks. Raises ArchiveError for a document that is too large to be one."""
    most = MOST_DOCUMENT_BYTES.get(plain_suffix(source.path))
    size = 0
    for chunk in content:
        size += len(chunk)
        if most and size > most:
            message = f"larger than {most >> 20} MiB, which no file of settings or results is"
            raise ArchiveError(Diagnostic(source.where, message))
        yield chunk


def _mismatch(source: Source, options: Checked, logs: Sequence[ParsedLog]) -> Rejected | None:
    """What is wrong with a file that the format of --format finds nothing in."""
    forced, like = options.format, recognition(source, options.budget).format
    if forced is None or not is_mismatch(forced, like, logs):
        return None
    looks, remedy = "no format that is known", f"known: {', '.join(sorted(FORMATS))}"
    if like:
        looks, remedy = like.name, "leave --format out"
    elif not isinstance(_read_page(source, options), Rejected):
        looks, remedy = "a page with a table of results", "leave --format out"
    first = next(reason for log in logs for reason in reasons(source.where, log))
    message = f"--format {forced.name}: {first.message}; the content looks like {looks}"
    return Rejected(source.where, (replace(first, message=message, remedy=remedy),))


@dataclass(frozen=True)
class _LogFile:
    """A file of a known format, and what it holds."""

    source: Source
    file: SourceFile
    logs: Sequence[ParsedLog]
    options: Checked

    def reads(self) -> Iterator[Read]:
        """Each run, the results that are only printed, and what cannot be stored."""
        where = self.source.where
        printed: list[tuple[ResultRow, Attribution]] = []
        for number, log in enumerate(self.logs, start=1):
            attribution = self._attribution(log)
            of = attribution.of
            if attribution.contradictions:
                yield Rejected(where, attribution.contradictions)
            elif is_empty(log):
                yield Rejected(where, reasons(where, log))
            elif isinstance(of, Missing):
                yield self._unattributed(attribution, number, of)
            elif is_run(log):
                yield self._run(attribution, number, of)
            else:
                printed.append((self._printed(log, number, of), attribution))
        if printed:
            yield self._page(printed)

    def _attribution(self, log: ParsedLog) -> Attribution:
        files = self.options.folders.companions(self.source, self.file.parser)
        options = self.options
        forced = options.format is not None
        return Attribution(self.source.where, log, files, options.stated, options.versions, forced)

    def _run_id(self, number: int, identity: str | None = None) -> str:
        """The same for the same bytes, wherever they are, or for what a file states by its hash."""
        several_runs = f"-{number}" if len(self.logs) > 1 else ""
        return f"log-{(identity or self.file.sha256)[:16]}{several_runs}"

    def _window(self, log: ParsedLog) -> Window:
        return measure.log_window(log, self.options.window)

    def _run(self, attribution: Attribution, number: int, of: Attributed) -> RunRead:
        log, where = attribution.with_environment, self.source.where
        everything = (self.file, *(one.source for one in attribution.companions))
        name = plain_name(Path(where))
        files = RunFiles({plain_name(Path(one.path)): one for one in everything}, name, name)
        content = content_hash({"files": [one.sha256 for one in everything]})
        averages = self.file.parser in AVERAGES
        notes = tuple(Note(NoteCode.REPORTED, {"text": note.message}) for note in attribution.notes)
        run = measure.LogRun(of.case, of.release, self._run_id(number), content, averages, notes)
        measured = measure.of_log(log, run, self._window(log))
        odd = _window_notes(where, log, measured.result, self._window(log), averages=averages)
        window = self.options.window
        return RunRead(
            where,
            measured,
            files,
            (*log.problems, *log.notes, *attribution.remarks(), *attribution.notes, *odd),
            self.options.any_of_logs,
            window.name if window else None,
            attribution.paths,
        )

    def _unattributed(
        self, attribution: Attribution, number: int, missing: Missing
    ) -> Unattributed:
        log = attribution.log
        line = log.emitted_line
        if log.steps and len(self.logs) > 1:
            line = log.steps[0].line
        notes = (*log.problems, *log.notes, *attribution.other_runs())
        return Unattributed(
            self.file,
            missing.problem(self.source.where, line),
            self._run_id(number) if is_run(log) else None,
            self.options.any_of_logs,
            missing.names,
            (*notes, *self._of_a_rank(missing)),
        )

    def _of_a_rank(self, missing: Missing) -> Iterator[Diagnostic]:
        """Where the settings may be of a log that lacks them, though its program prints them."""
        if self.file.parser == megatron_lm.FORMAT.name and "num_gpus" in missing.names:
            message = "its iterations are those of the last rank, and rank 0 prints the arguments"
            remedy = (
                "if rank 0 has a log of its own, ingest the two as one: cat RANK_0 THIS > JOINED"
            )
            yield Diagnostic(self.source.where, message, remedy=remedy)

    def _printed(self, log: ParsedLog, number: int, of: Attributed) -> ResultRow:
        run_id = self._run_id(number, log.identity)
        return measure.of_summary(
            log, measure.LogRun(of.case, of.release, run_id, self.file.sha256)
        )

    def _page(self, printed: Sequence[tuple[ResultRow, Attribution]]) -> PageRows:
        where = self.source.where
        rows, repeated = once_each(where, [row for row, _ in printed])
        notes: list[Diagnostic] = []
        for _, attribution in printed:
            log = attribution.log
            notes += (*log.problems, *log.notes, *attribution.remarks(), *self._no_window(log))
        companions = dict.fromkeys(path for _, one in printed for path in one.paths)
        whole, explicit = len(printed) == len(self.logs), self.options.any_of_logs
        return PageRows(
            self.file, rows, repeated, tuple(notes), whole, explicit, companions=tuple(companions)
        )

    def _no_window(self, log: ParsedLog) -> Iterator[Diagnostic]:
        window = self.options.window
        if window and window.name != log.window:
            message = f"--window {window.name} is not taken: its figures are as they are printed"
            yield Diagnostic(self.source.where, message)


def _window_notes(
    where: str, log: ParsedLog, result: ResultRow, window: Window, *, averages: bool
) -> Iterator[Diagnostic]:
    """Steps that do not count, or that have other tokens.

    `averages`: whether the log's format is one of those in `perfdb.formats.AVERAGES`.
    """
    withheld = result.withheld
    for note in (*filter(None, [withheld]), *result.notes):
        if note.code is NoteCode.SKIPPED_STEPS:
            yield Diagnostic(where, note_text(note))
    if result.step_time_s is None:
        return
    case = result.case
    within = selection.pick_steps(log.steps, window, averages=averages).steps
    place = selection.first_of_other_tokens(within, case)
    if place is not None:
        odd, expected = within[place], f"{case.global_batch_size:,} × {case.sequence_length:,}"
        rated = measure.has_note(result, NoteCode.VARIABLE_LENGTH_STEPS)
        known = "tokens/s are those of the steps, TFLOP/s and MFU" if rated else "rates"
        message = f"step {odd.step} has {odd.tokens:,} tokens, not {expected}"
        yield Diagnostic(where, f"{message}: {known} are unknown")
