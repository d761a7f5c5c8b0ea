"""Reads logs and result files whole: from their bytes to runs and results, and what is missing."""

import codecs
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from perfdb import formats, measure, selection
from perfdb.aggregation import Window
from perfdb.db.packing import Packed
from perfdb.db.rows import ResultRow, RunFiles, SourceFile
from perfdb.errors import ArchiveError, Diagnostic
from perfdb.formats import LogFormat, ParsedLog, megatron_lm, outcome
from perfdb.ingest.attribution import REQUIRED, Attribution, attribute
from perfdb.ingest.companions import Companion
from perfdb.ingest.find import Place, Source, find, name_fault, plain_name, plain_suffix, printable
from perfdb.ingest.options import BESIDE, Checked, item_names
from perfdb.ingest.pages import once_each, read_page
from perfdb.ingest.reads import (
    LOG_PARSER_VERSION,
    PageRows,
    Read,
    Rejected,
    RunRead,
    Skipped,
    Unattributed,
    rejected,
)
from perfdb.ingest.runs import RunFound, find_run, parse_run
from perfdb.ingest.unpack import Budget, chunks, is_archive, unpack
from perfdb.jsonfile import content_hash
from perfdb.messages import note_text
from perfdb.record import Note, NoteCode, Outcome

HEAD_BYTES: Final = 1 << 16
"""Bytes that a format is recognized by, before the rest of the file is read."""

MOST_DOCUMENT_BYTES: Final = {".json": 16 << 20, ".yaml": 2 << 20, ".yml": 2 << 20}
"""What a file may have that is read whole: it takes up to a hundred times as much memory."""

_TEXTS: Final = (".txt",)
_LOG_NAMES: Final = (".log", ".out", ".err", ".jsonl")
"""The suffixes of files that are logs or pages, and of those that are logs and nothing else."""

_TABLE: Final = re.compile(rb"---:?[ \t]*\|")
"""What is under the header of a page's table; a log has none. NVIDIA's recipe of Nemotron 4 in
dgxc-benchmarking is such a page that shows lines of a log."""

_OF_PERFDB: Final = re.compile(
    rb"^plan: \d+ to run, \d+ finished before, \d+ skipped$", re.MULTILINE
)
"""What `perfdb run` prints first, as in the file that Slurm keeps of the job's output."""

_JSON_OBJECT: Final = re.compile(rb'\s*(?:\[\s*)?\{\s*"')
"""How the JSON of a log collector begins."""

_NO_DATA: Final = (None, Outcome.FINISHED, Outcome.INCOMPLETE, Outcome.NO_DATA)
"""Outcomes of which there is nothing to keep without a step; a run that failed is data."""

_LOG_ID = re.compile(r"log-[0-9a-f]{16}(?:-(\d+))?")


@dataclass(frozen=True)
class Recognition:
    """What a file shows of itself.

    `format` is that of its steps or figures; `start` that of the program that begins there, if it
    died without a step; `oddity` is why a log of no format cannot be read.
    """

    format: LogFormat | None = None
    start: LogFormat | None = None
    oddity: Diagnostic | None = None


def number_in_log(run_id: str) -> int:
    """Which of the runs of its log a run is; 0 if it was read from none."""
    found = _LOG_ID.fullmatch(run_id)
    return int(found[1] or 1) if found else 0


def read_source(source: Source, options: Checked) -> Iterator[Read | RunFound]:
    """All that a source holds. What is wrong with it is part of the answer, not an error."""
    where = source.where
    if source.kind == "linked":
        yield Skipped(printable(where), reason="linked")
        return
    if fault := name_fault(where):
        yield rejected(printable(where), fault, "give it another name")
        return
    try:
        yield from _read(source, options if source.place.archive else options.of_file(source.path))
    except OSError as error:
        yield rejected(where, error.strerror or str(error))
    except ArchiveError as error:
        yield Rejected(where, tuple(replace(one, where=where) for one in error.problems))


def _read(source: Source, options: Checked) -> Iterable[Read | RunFound]:
    """Raises OSError and ArchiveError."""
    where, path = source.where, source.path
    if source.kind == "run":
        return [find_run(source, options.window, options.scratch)]
    if source.kind == "closed":
        os.scandir(path).close()
    if not path.is_file():
        return [rejected(where, "neither a file nor a folder", "write it to a file first")]
    if is_archive(path):
        return _read_archive(source, options)
    if source.named and not any(chunk.strip() for chunk in chunks(path, options.budget)):
        return [rejected(where, "the file is empty", "write or copy it again")]
    if source.kind == "log" or (source.named and options.format):
        return _read_log(source, options)
    return [read_page(source, options)]


def _read_archive(source: Source, options: Checked) -> Iterator[Read]:
    """All that an archive holds, each source named `ARCHIVE!/PATH`."""
    where = source.where
    if source.place.archive:
        yield rejected(where, "an archive in an archive is not read", "unpack the outer one")
        return
    with TemporaryDirectory(prefix="perfdb-", dir=options.scratch) as name:
        problems = unpack(source.path, Path(name), options.budget, where)
        yield from (Rejected(problem.where, (problem,)) for problem in problems)
        found = find([Path(name)], Place(name, where))
        for one in found:
            for read in read_source(replace(one, named=False), options):
                yield parse_run(read) if isinstance(read, RunFound) else read
        if source.named and not found and not problems:
            yield rejected(where, "the archive holds no run directory, page or log")


def recognition(source: Source, budget: Budget) -> Recognition:
    """The format of a file, by as little of it as is enough: its head, or the head and a part.

    A single step may be quoted above the log's own: what follows decides.
    """
    name, content = plain_name(source.path), chunks(source.path, budget)
    window = next(content, b"")
    head, start = window[:HEAD_BYTES], outcome.started(window)
    best = formats.likest(head, name)
    if best.num_steps < formats.MANY and len(window) > len(head):
        best = max(best, formats.likest(window, name), key=lambda one: one.num_steps)
    for chunk in content:
        if best.num_steps > 1:
            break
        window = b"".join((head, window[-HEAD_BYTES:], chunk))
        best = max(best, formats.likest(window, name), key=lambda one: one.num_steps)
        start = start or outcome.started(window)
    if best.format is None:
        return _without_steps(source, head, window[-HEAD_BYTES:], start)
    if not best.format.is_json and _JSON_OBJECT.match(head):
        remedy = "write them to a file as text, as by jq -r '.OBJECT.message'"
        return _odd(source, "holds the lines of a log within JSON", remedy)
    return Recognition(best.format)


def _without_steps(source: Source, head: bytes, tail: bytes, start: str | None) -> Recognition:
    """Why a file of no format is odd, by its first and last bytes and the program that starts."""
    # The end of a run in stderr, with its steps in another file, is no run of its own.
    of_job = not source.named and plain_suffix(source.path) == ".err"
    if of_job or _OF_PERFDB.search(head):
        return Recognition()
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        name = source.path.name
        convert = f"convert it: iconv -f UTF-16 -t UTF-8 {name} > utf8-{name}"
        return _odd(source, "the file is in UTF-16, not in UTF-8", convert)
    if start is None and (program := outcome.other_program(head + tail)):
        remedy = "write its figures into a table of a page, and ingest that"
        return _odd(source, f"a log of {program}, which is not read", remedy)
    if not (end := outcome.died(tail, start)):
        return Recognition()
    message = f"holds no step, names no program that is known, and ends in an error: {end.error}"
    odd = _odd(source, message, "name it with --format NAME to keep it as a run that failed")
    return replace(odd, start=formats.FORMATS[start] if start else None)


def _odd(source: Source, message: str, remedy: str) -> Recognition:
    return Recognition(oddity=Diagnostic(source.where, message, remedy=remedy))


def _read_log(source: Source, options: Checked) -> Iterable[Read]:
    """The runs and results of a file, or of a page that shows lines of a log."""
    forced = options.format if source.named else None
    shown = Recognition(forced) if forced else recognition(source, options.budget)
    found = shown.format or shown.start
    if found is None or (options.format is not None and found is not options.format):
        return _of_no_format(source, options, shown.oddity)
    is_text = not options.format and plain_suffix(source.path) in _TEXTS
    if is_text and any(map(_TABLE.search, chunks(source.path, options.budget))):
        page = read_page(source, options)
        if not isinstance(page, Rejected):
            return [page]
    content = _limited(source, chunks(source.path, options.budget))
    file, logs = parsed_log(source.where, found, content, options.scratch)
    if forced and (mismatch := _mismatch(source, options, logs)):
        return [mismatch]
    if all(log.outcome is None for log in logs):
        message = f"{found.name}: says what a run was and holds no result"
        remedy = "name the log beside it, which is read with it"
        return [rejected(source.where, message, remedy)] if source.named else []
    companions = options.folders.companions(source, found.name)
    return LogFile(source, file, len(logs), options, companions).reads(logs)


def parsed_log(
    where: str, known: LogFormat, content: Iterable[bytes], scratch: Path | None = None
) -> tuple[SourceFile, Sequence[ParsedLog]]:
    """A log of a known format: its bytes, kept as they pass by, and its runs and results."""
    packed = Packed(scratch)
    passing = packed.passing(content)
    logs = known.parse(where, passing)
    for _ in passing:
        pass  # what the format had no need of is kept all the same
    packed.close()
    return SourceFile(where, packed, known.name, LOG_PARSER_VERSION), logs


def _of_no_format(source: Source, options: Checked, oddity: Diagnostic | None) -> Sequence[Read]:
    """A page, or a log by its name that no format recognizes, with what is odd about it."""
    suffix = plain_suffix(source.path)
    if source.named or suffix in _TEXTS:
        page = read_page(source, options)
        if not (source.named and oddity and isinstance(page, Rejected)):
            return [page]
    elif suffix not in _LOG_NAMES or options.format is not None:
        return []
    where = source.where
    return [Rejected(where, (oddity,)) if oddity else Skipped(where, reason="unknown")]


def _limited(source: Source, content: Iterable[bytes]) -> Iterator[bytes]:
    """The same chunks. Raises ArchiveError for a document that is too large to be one."""
    most, size = MOST_DOCUMENT_BYTES.get(plain_suffix(source.path)), 0
    for chunk in content:
        size += len(chunk)
        if most and size > most:
            message = f"larger than {most >> 20} MiB, which no file of settings or results is"
            raise ArchiveError(Diagnostic(source.where, message))
        yield chunk


def _mismatch(source: Source, options: Checked, logs: Sequence[ParsedLog]) -> Rejected | None:
    """What is wrong with a file that the format of --format finds nothing in.

    A run that failed before its first step looks like no format: it is kept as the user says.
    """
    forced, like = options.format, recognition(source, options.budget).format
    if forced is None or like is forced or not all(map(_has_no_figures, logs)):
        return None
    if like is None and not all(log.outcome is not None and _is_empty(log) for log in logs):
        return None
    looks, remedy = like.name if like else "no format that is known", "leave --format out"
    if like is None and not isinstance(read_page(source, options), Rejected):
        looks = "a page with a table of results"
    elif like is None:
        remedy = f"known: {', '.join(sorted(formats.FORMATS))}"
    first = next(reason for log in logs for reason in _reasons(source.where, log))
    message = f"--format {forced.name}: {first.message}; the content looks like {looks}"
    return Rejected(source.where, (replace(first, message=message, remedy=remedy),))


def _has_no_figures(log: ParsedLog) -> bool:
    return not log.steps and not log.is_summary


def _is_empty(log: ParsedLog) -> bool:
    """Whether there is nothing to keep: no step, no figure, and no way that a run failed."""
    return _has_no_figures(log) and log.outcome in _NO_DATA


def _reasons(where: str, log: ParsedLog) -> tuple[Diagnostic, ...]:
    """Why there is nothing to keep."""
    return log.problems or (Diagnostic(where, log.error or "holds no step and no figure"),)


@dataclass(frozen=True)
class LogFile:
    """A file of a known format, and the files next to it that may say what it is of."""

    source: Source
    file: SourceFile
    num_logs: int
    options: Checked
    files: Sequence[Companion]

    def reads(self, logs: Sequence[ParsedLog]) -> Iterator[Read]:
        """Each run, the results that are only printed, and what cannot be stored."""
        where = self.source.where
        options = [self.options.of_item(log) for log in logs]
        attributed = [
            attribute(where, log, self.files, of) for log, of in zip(logs, options, strict=True)
        ]
        printed: list[tuple[ResultRow, Attribution, bool]] = []
        for number, (found, of) in enumerate(zip(attributed, options, strict=True), start=1):
            if found.contradictions:
                yield Rejected(where, found.contradictions)
            elif _is_empty(found.log):
                yield Rejected(where, _reasons(where, found.log))
            elif found.missing:
                yield self._unattributed(found, number, attributed, explicit=of.any_of_logs)
            elif not found.log.is_summary:  # of a run, if only that it failed
                yield self._run(found, number, of)
            else:
                run = self._of(found, self._run_id(number, found.log.identity), self.file.sha256)
                beside = [file.source.sha256 for file in found.companions]
                stated = of.stated | ({BESIDE: beside} if beside else {})
                row = replace(measure.of_summary(found.log, run), stated=stated)
                printed.append((row, found, of.any_of_logs))
        if printed:
            yield self._page(printed)

    def _run_id(self, number: int, identity: str | None = None) -> str:
        """The same for the same bytes, wherever they are, or for what a file states by its hash."""
        several_runs = f"-{number}" if self.num_logs > 1 else ""
        return f"log-{(identity or self.file.sha256)[:16]}{several_runs}"

    def _of(self, found: Attribution, run_id: str, content: str) -> measure.LogRun:
        assert found.case is not None
        assert found.release is not None
        averages = self.file.parser in formats.AVERAGES
        notes = tuple(Note(NoteCode.REPORTED, {"text": note.message}) for note in found.notes)
        return measure.LogRun(found.case, found.release, run_id, content, averages, notes)

    def _run(self, found: Attribution, number: int, options: Checked) -> RunRead:
        log, where, asked = found.log, self.source.where, self.options.window
        window = measure.log_window(log, asked)
        files = (self.file, *(one.source for one in found.companions))
        content = content_hash({"files": [one.sha256 for one in files]})
        of = self._of(found, self._run_id(number), content)
        run = measure.of_log(log, of, window, asked=asked is not None)
        run = replace(run, result=replace(run.result, stated=options.stated))
        odd = _window_notes(where, log, run.result, window, averages=of.averages)
        name = plain_name(Path(where))
        return RunRead(
            where,
            notes=(*log.problems, *log.notes, *found.remarks, *found.notes, *odd),
            run=run,
            files=RunFiles({plain_name(Path(one.path)): one for one in files}, name, name),
            explicit=options.any_of_logs,
            window=asked.name if asked else None,
            companions=found.paths,
        )

    def _unattributed(
        self, found: Attribution, number: int, of_file: Sequence[Attribution], *, explicit: bool
    ) -> Unattributed:
        log, where = found.log, self.source.where
        same = [item_names(one.log) for one in of_file if one.missing == found.missing]
        items = [names[0] for names in same if names]
        line = log.steps[0].line if log.steps and self.num_logs > 1 else log.emitted_line
        notes = [*log.problems, *log.notes, *found.other_runs]
        if self.file.parser == megatron_lm.FORMAT.name and "num_gpus" in found.missing:
            message = "its iterations are those of the last rank, and rank 0 prints the arguments"
            remedy = (
                "if rank 0 has a log of its own, ingest the two as one: cat RANK_0 THIS > JOINED"
            )
            notes.append(Diagnostic(where, message, remedy=remedy))
        return Unattributed(
            where,
            notes=tuple(notes),
            source=self.file,
            problem=found.problem(where, line, items=items, differing=_differing(of_file)),
            run_id=None if log.is_summary else self._run_id(number),
            explicit=explicit,
            missing=found.missing,
        )

    def _page(self, printed: Sequence[tuple[ResultRow, Attribution, bool]]) -> PageRows:
        where, window = self.source.where, self.options.window
        rows, repeated = once_each(where, [row for row, *_ in printed])
        notes: list[Diagnostic] = []
        for _, found, _ in printed:
            notes += (*found.log.problems, *found.log.notes, *found.remarks)
            if window and window.name != found.log.window:
                message = (
                    f"--window {window.name} is not taken: its figures are as they are printed"
                )
                notes.append(Diagnostic(where, message))
        return PageRows(
            where,
            repeated,
            tuple(notes),
            source=self.file,
            rows=rows,
            whole=len(printed) == self.num_logs,
            as_before=frozenset(row.key for row, _, explicit in printed if not explicit),
            companions=tuple(dict.fromkeys(path for _, one, _ in printed for path in one.paths)),
            beside=tuple(it.source for _, one, _ in printed for it in one.companions),
        )


def _differing(of_file: Sequence[Attribution]) -> Sequence[str]:
    """The required fields that results of a file state differently, or only some of them."""
    stated = [one.log.configuration for one in of_file if not _is_empty(one.log)]
    return [name for name in REQUIRED if len({getattr(one, name) for one in stated}) > 1]


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
    if result.outcome is not Outcome.FINISHED:
        yield Diagnostic(where, f"{log.error}: its figures are in no table of its release")
    case = result.case
    within = selection.pick_steps(log.steps, window, averages=averages).steps
    place = selection.first_of_other_tokens(within, case)
    if place is not None:
        odd, expected = within[place], f"{case.global_batch_size:,} × {case.sequence_length:,}"
        rated = measure.has_note(result, NoteCode.VARIABLE_LENGTH_STEPS)
        known = "tokens/s are those of the steps, TFLOP/s and MFU" if rated else "rates"
        message = f"step {odd.step} has {odd.tokens:,} tokens, not {expected}"
        yield Diagnostic(where, f"{message}: {known} are unknown")
