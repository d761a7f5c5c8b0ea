"""Tells the format of a file by its content, and why a format that the user names gives nothing."""

import codecs
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from perfdb import formats
from perfdb.db.rows import SourceFile
from perfdb.errors import Diagnostic
from perfdb.formats import LogFormat, ParsedLog, megatron_lm, outcome
from perfdb.formats.outcome import Ending
from perfdb.ingest.compression import Budget, chunks, plain_name, plain_suffix
from perfdb.ingest.find import Source
from perfdb.ingest.page import read_page
from perfdb.ingest.read import Rejected
from perfdb.ingest.words import Words
from perfdb.record import Outcome

HEAD_BYTES: Final = 1 << 16
"""Bytes that a format is recognised by, before the rest of the file is looked at."""

_LEAVE_OUT: Final = "leave --format out"

_OF_PERFDB: Final = re.compile(
    rb"^plan: \d+ to run, \d+ finished before, \d+ skipped$", re.MULTILINE
)
"""What `perfdb run` says first, as in the file that Slurm keeps of the job's output."""

_OBJECT: Final = re.compile(rb"\s*(?:\[\s*)?\{\s*\"")
"""How a collector's JSON begins that holds the lines of a log."""

_ERRORS: Final = ".err"
"""What a job writes to stderr; the end of a run whose steps stand in another file is no run."""

_NOTHING = (Outcome.FINISHED, Outcome.INCOMPLETE, Outcome.NO_DATA)
"""Outcomes of which there is nothing to keep without a step; a run that failed is data."""


@dataclass(frozen=True)
class Look:
    """What a file shows of itself.

    `format` is that of its steps or figures; `start` that of the program that begins there, where
    it dies without a step; `oddity` what is plain of a log of no format.
    """

    format: LogFormat | None = None
    start: LogFormat | None = None
    oddity: Diagnostic | None = None


def look_at(source: Source, budget: Budget) -> Look:
    """What a source shows of itself: a job's stderr that was met in a folder only its steps."""
    shown = look(source.path, budget)
    is_errors = not source.named and plain_suffix(source.path) == _ERRORS
    return Look(shown.format) if is_errors else shown


def look(path: Path, budget: Budget) -> Look:
    """The format of a file, by as little of it as tells: its head, or the head and a part.

    A single step may be quoted above the log's own: what follows tells.
    """
    name, content = plain_name(path), iter(chunks(path, budget))
    first = next(content, b"")
    head, window = first[:HEAD_BYTES], first
    seen = [formats.likest(head, name)]
    if seen[0].num_steps >= formats.MANY:
        return _of_steps(path, first, seen[0].format)
    seen += [formats.likest(first, name)] if len(first) > len(head) else []
    start = outcome.started(first)
    for chunk in content:
        if seen[-1].num_steps > 1:
            break
        window = b"".join((head, window[-HEAD_BYTES:], chunk))
        seen.append(formats.likest(window, name))
        start = start or outcome.started(window)
    best = max(seen, key=lambda one: one.num_steps)
    if best.format:
        return _of_steps(path, first, best.format)
    return _of_no_step(path, head, start, outcome.died(window[-HEAD_BYTES:], start))


def _of_steps(path: Path, head: bytes, found: LogFormat | None) -> Look:
    if found is None or found.is_json or not _OBJECT.match(head):
        return Look(found)
    message = "holds the lines of a log within JSON"
    remedy = "write them to a file as text, as by jq -r '.OBJECT.message'"
    return Look(oddity=Diagnostic(str(path), message, remedy=remedy))


def _of_no_step(path: Path, head: bytes, start: str | None, end: Ending | None) -> Look:
    where = str(path)
    if _OF_PERFDB.search(head):
        return Look()
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        remedy = f"convert it: iconv -f UTF-16 -t UTF-8 {path.name} > utf8-{path.name}"
        return Look(oddity=Diagnostic(where, "the file is in UTF-16, not in UTF-8", remedy=remedy))
    if end is None:
        return Look()
    message = f"holds no step, names no program that is known, and ends in an error: {end.error}"
    remedy = "name it with --format NAME to keep it as a run that failed"
    known = formats.FORMATS[start] if start else None
    return Look(start=known, oddity=Diagnostic(where, message, remedy=remedy))


def is_blank(path: Path, budget: Budget) -> bool:
    """Whether a file holds nothing but white space."""
    return not any(chunk.strip() for chunk in chunks(path, budget))


def misread(source: Source, given: Words, logs: Sequence[ParsedLog]) -> Diagnostic | None:
    """What is wrong with a file that the format of --format finds nothing in, and is not like it.

    A run that failed before its first step looks like no format: it is kept as it was asked for.
    """
    if given.format is None or not all(map(_no_figures, logs)):
        return None
    like = look(source.path, given.budget).format
    if like is given.format or (like is None and not all(map(_says_nothing, logs))):
        return None
    first = next(reason for log in logs for reason in reasons(str(source.path), log))
    looks, remedy = _looks(source, given, like)
    message = f"--format {given.format.name}: {first.message}; the content looks like {looks}"
    return replace(first, message=message, remedy=remedy)


def _looks(source: Source, given: Words, like: LogFormat | None) -> tuple[str, str]:
    """What the content of a file looks like, and what to do."""
    if like:
        return like.name, _LEAVE_OUT
    page = read_page(source, chunks(source.path, given.budget), given.context)
    if not isinstance(page, Rejected):
        return "a page with a table of results", _LEAVE_OUT
    return "no format that is known", f"known: {', '.join(sorted(formats.FORMATS))}"


def is_empty(log: ParsedLog) -> bool:
    """Whether there is nothing to keep: no step, no figure, and no way that a run failed."""
    return _no_figures(log) and (log.outcome is None or log.outcome in _NOTHING)


def _no_figures(log: ParsedLog) -> bool:
    return not log.readings and not any(log.emitted.model_dump().values())


def _says_nothing(log: ParsedLog) -> bool:
    return log.outcome is not None and is_empty(log)


def of_a_rank(log: SourceFile, missing: Sequence[str]) -> tuple[Diagnostic, ...]:
    """Where the settings may be of a log that does not say them, though its program prints them."""
    if log.parser != megatron_lm.FORMAT.name or "num_gpus" not in missing:
        return ()
    message = "its iterations are those of the last rank, and rank 0 prints the arguments"
    remedy = "if rank 0 has a log of its own, ingest the two as one: cat RANK_0 THIS > JOINED"
    return (Diagnostic(log.path, message, remedy=remedy),)


def reasons(where: str, log: ParsedLog) -> tuple[Diagnostic, ...]:
    """Why there is nothing to keep."""
    return log.problems or (Diagnostic(where, log.error or "holds no step and no figure"),)
