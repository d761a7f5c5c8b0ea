"""Finds the format of a log by its content, and why a file of no format holds nothing."""

import codecs
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from perfdb import formats
from perfdb.errors import Diagnostic
from perfdb.formats import LogFormat, ParsedLog, outcome
from perfdb.formats.outcome import Ending
from perfdb.ingest.compression import Budget, chunks, plain_name, plain_suffix
from perfdb.ingest.find import Source
from perfdb.record import Figures, Outcome

HEAD_BYTES: Final = 1 << 16
"""Bytes that a format is recognized by, before the rest of the file is read."""

_OF_PERFDB: Final = re.compile(
    rb"^plan: \d+ to run, \d+ finished before, \d+ skipped$", re.MULTILINE
)
"""What `perfdb run` prints first, as in the file that Slurm keeps of the job's output."""

_ERRORS: Final = ".err"
"""What a job writes to stderr; the end of a run whose steps are in another file is no run."""

_JSON_OBJECT: Final = re.compile(rb'\s*(?:\[\s*)?\{\s*"')
"""How the JSON of a log collector begins."""

_NO_DATA: Final = (Outcome.FINISHED, Outcome.INCOMPLETE, Outcome.NO_DATA)
"""Outcomes of which there is nothing to keep without a step; a run that failed is data."""


@dataclass(frozen=True)
class Recognition:
    """What a file shows of itself.

    `format` is that of its steps or figures; `start` that of the program that begins there, where
    it dies without a step; `oddity` why a log of no format cannot be read.
    """

    format: LogFormat | None = None
    start: LogFormat | None = None
    oddity: Diagnostic | None = None


def recognition(source: Source, budget: Budget) -> Recognition:
    """The format of a file, by as little of it as is enough: its head, or the head and a part.

    A single step may be quoted above the log's own: what follows decides.
    """
    name, content = plain_name(source.path), chunks(source.path, budget)
    first = next(content, b"")
    head, window = first[:HEAD_BYTES], first
    seen = [formats.likest(head, name)]
    if seen[0].num_steps < formats.MANY and len(first) > len(head):
        seen.append(formats.likest(first, name))
    start = outcome.started(first)
    for chunk in content:
        if seen[-1].num_steps > 1:
            break
        window = b"".join((head, window[-HEAD_BYTES:], chunk))
        seen.append(formats.likest(window, name))
        start = start or outcome.started(window)
    best = max(seen, key=lambda one: one.num_steps)
    if best.format and not best.format.is_json and _JSON_OBJECT.match(head):
        remedy = "write them to a file as text, as by jq -r '.OBJECT.message'"
        message = "holds the lines of a log within JSON"
        return Recognition(oddity=Diagnostic(source.where, message, remedy=remedy))
    if best.format:
        return Recognition(best.format)
    if not source.named and plain_suffix(source.path) == _ERRORS:
        return Recognition()
    return _without_steps(source, head, start, outcome.died(window[-HEAD_BYTES:], start))


def _without_steps(
    source: Source, head: bytes, start: str | None, end: Ending | None
) -> Recognition:
    where, path = source.where, source.path
    if _OF_PERFDB.search(head):
        return Recognition()
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        remedy = f"convert it: iconv -f UTF-16 -t UTF-8 {path.name} > utf8-{path.name}"
        return Recognition(
            oddity=Diagnostic(where, "the file is in UTF-16, not in UTF-8", remedy=remedy)
        )
    if end is None:
        return Recognition()
    message = f"holds no step, names no program that is known, and ends in an error: {end.error}"
    remedy = "name it with --format NAME to keep it as a run that failed"
    known = formats.FORMATS[start] if start else None
    return Recognition(start=known, oddity=Diagnostic(where, message, remedy=remedy))


def is_blank(source: Source, budget: Budget) -> bool:
    """Whether a file holds nothing but white space."""
    return not any(chunk.strip() for chunk in chunks(source.path, budget))


def is_mismatch(log_format: LogFormat, like: LogFormat | None, logs: Sequence[ParsedLog]) -> bool:
    """Whether the format of --format finds nothing in a file, and the file is not like it.

    A run that failed before its first step looks like no format: it is kept as the user says.
    """
    if like is log_format or not all(map(_has_no_figures, logs)):
        return False
    return like is not None or all(log.outcome is not None and is_empty(log) for log in logs)


def is_empty(log: ParsedLog) -> bool:
    """Whether there is nothing to keep: no step, no figure, and no way that a run failed."""
    return _has_no_figures(log) and (log.outcome is None or log.outcome in _NO_DATA)


def is_run(log: ParsedLog) -> bool:
    """Whether it is of a run, if only that it failed, and does not only sum one up."""
    return bool(log.steps) or log.emitted == Figures()


def reasons(where: str, log: ParsedLog) -> tuple[Diagnostic, ...]:
    """Why there is nothing to keep."""
    return log.problems or (Diagnostic(where, log.error or "holds no step and no figure"),)


def _has_no_figures(log: ParsedLog) -> bool:
    return not log.steps and not any(log.emitted.model_dump().values())
